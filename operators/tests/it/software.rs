//! Real software in real Pods, reached as its users reach it: nothing here runs on the embedded cluster.
//!
//! The node has nginx and memcached from `cargo xtask kubernetes load-software`. Requests come from Pods beside them,
//! through the address of the Service.

mod cache;
mod visitor;
mod web;

macro_rules! with_real_software {
    ($($name:ident: $operator:path => $case:path;)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "needs a real cluster"]
        async fn $name() {
            crate::bed::run(crate::bed::Ground::Real, $operator, $case).await;
        })+
    };
}

with_real_software! {
    a_rollout_of_a_webserver_drops_no_request: crate::webserver::operator => web::webserver;
    a_rollout_of_a_webapp_drops_no_request: crate::webapp::operator => web::webapp;
    memcached_stores_and_returns_a_value: crate::memcached::operator => cache::stores_and_returns_a_value;
}
