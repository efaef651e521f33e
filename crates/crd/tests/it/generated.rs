//! The modules that the generator made of the definitions, compiled. Write anew:
//! `cargo run -p windlass-crd --example types`.

#![allow(clippy::pedantic, dead_code, unreachable_pub, reason = "the types are compiled for the test alone")]

pub(crate) mod bare_v1;
pub(crate) mod cronjob_v1;
pub(crate) mod database_v1;
pub(crate) mod database_v1alpha1;
pub(crate) mod databasebackup_v1;
pub(crate) mod everything_v1;
pub(crate) mod everything_v1beta1;
pub(crate) mod helloworld_v1alpha1;
pub(crate) mod imoocpod_v1alpha1;
pub(crate) mod memcached_v1alpha1;
pub(crate) mod podmanager_v1;
pub(crate) mod podmanager_v1alpha1;
pub(crate) mod webapp_v1alpha1;
pub(crate) mod webserver_v1;
