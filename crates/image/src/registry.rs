//! Registries, as the OCI distribution specification has them.
//!
//! Enter the name of an image and a layout; leave requests, and nothing is sent that the registry has already. What goes
//! wrong is said in one line with a hint: who is down, who denies, what is too much.

mod auth;
mod body;
mod challenge;
mod credentials;
mod error;
mod http;
mod proxy;
mod pull;
mod push;
mod referrers;
mod retry;
mod upload;

pub use self::{
    credentials::{CredentialsError, Keyring, Login},
    error::Error,
    http::{Access, Options, Repository},
    proxy::Proxies,
    pull::pull,
    push::{PushOptions, Pushed, Step, push},
    retry::Retry,
};
