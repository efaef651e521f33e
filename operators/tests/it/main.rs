//! The operators as their users meet them: generated files, and behaviour on a cluster.
//!
//! A behaviour is written once and runs on two clusters: on the embedded one always, and, ignored unless asked for,
//! on the real one that `KUBECONFIG` names: `cargo xtask kubernetes test`.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

/// Defines a test per cluster for each case of an operator: `operator => case case …` or `… module::case …`.
macro_rules! on_both_clusters {
    ($operator:ident => $($case:ident)+) => {
        on_both_clusters!(@tests $operator $(($case, super::$case))+);
    };
    ($operator:ident => $($module:ident::$case:ident)+) => {
        on_both_clusters!(@tests $operator $(($case, super::$module::$case))+);
    };
    (@tests $operator:ident $(($name:ident, $case:path))+) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::bed::run(crate::bed::Ground::Embedded, super::$operator, $case).await;
            })+
        }

        mod real {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a real cluster"]
            async fn $name() {
                crate::bed::run(crate::bed::Ground::Real, super::$operator, $case).await;
            })+
        }
    };
}

/// Defines a test per cluster for each case over all kinds: on the embedded one, and on a real control plane.
macro_rules! on_both_control_planes {
    ($($name:ident: $case:ident;)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $case(crate::bed::Ground::Embedded).await;
        })+

        mod real_control_plane {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a real cluster"]
            async fn $name() {
                super::$case(crate::bed::Ground::Real).await;
            })+
        }
    };
}

mod bed;
mod caches;
mod children;
mod crash;
mod database;
mod fields;
mod heals;
mod helloworld;
mod hooks;
mod imoocpod;
mod logs;
mod manifests;
mod memcached;
mod plane;
mod podmanager;
mod readme;
mod seeds;
mod software;
mod suite;
mod upgrade;
mod versions;
mod webapp;
mod webserver;
mod whole;
