//! What a request costs grows with its size and no faster.
//!
//! Every list and every map of every built-in kind is grown, as the recorded schema has it (`shapes`), and so are the
//! lists of a custom kind; each request is answered at several sizes, and the processor time of this thread is compared.
//! A list that is four times as long may take about four times as long; where it takes sixteen times as
//! long, the work is quadratic and the test fails. Times are compared with each other only, never with a clock.
//!
//! `cargo test` looks at a slice of the kinds; `WINDLASS_GROWTH=all` looks at all of them, in about ten minutes.

mod writes;

use std::{sync::LazyLock, time::Duration};

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    server::Server,
    shapes::{self, Field, Shape, Variant},
};

/// The smallest and the largest length. The largest is quadratically slow where something is quadratic, and still a
/// fraction of what a body may hold.
const SHORT: usize = 250;
const LONG: usize = 1000;

/// Time below which nobody minds, in a build without optimizations.
const MATTERS: Duration = Duration::from_millis(25);

/// The kinds that every run looks at: those whose code is shared by others, and those that look at their lists most.
const SLICE: [&str; 9] = [
    "ConfigMap",
    "EndpointSlice",
    "Ingress",
    "NetworkPolicy",
    "Pod",
    "Role",
    "RoleBinding",
    "Service",
    "ValidatingWebhookConfiguration",
];

/// The processor time of this thread.
fn processor_time() -> Duration {
    // Wall time elsewhere: a busy machine makes single measurements long, and the shortest of several decides.
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let start = *START;
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = counted.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// What one answer costs at this length: the least of several.
async fn cost(
    runs: usize,
    length: usize,
    make: &dyn Fn(usize) -> Value,
    send: &impl AsyncFn(&Value, usize),
) -> Duration {
    let body = make(length);
    let mut least = Duration::MAX;
    for _ in 0..runs {
        let begin = processor_time();
        send(&body, length).await;
        least = least.min(processor_time().saturating_sub(begin));
    }
    least
}

/// Tells that a request costs clearly more than in proportion to its length; nothing if it does not.
async fn superlinear(
    what: &str,
    make: &dyn Fn(usize) -> Value,
    send: &impl AsyncFn(&Value, usize),
) -> Option<String> {
    let quick = (cost(1, SHORT, make, send).await, cost(1, LONG, make, send).await);
    if quick.1 < MATTERS || quick.1 < quick.0 * 7 {
        return None;
    }
    let mut costs = Vec::new();
    for length in [LONG, 2 * LONG, 4 * LONG] {
        costs.push(cost(3, length, make, send).await);
    }
    let told = format!("{what}: {quick:?}, then {costs:?}");
    (costs[1] > costs[0] * 3 || costs[2] > costs[1] * 3).then_some(told)
}

/// Sends an object that is looked at and not stored.
async fn try_create(server: &Server, shape: &Shape, object: &Value) -> Value {
    let path = format!("{}?dryRun=All", shape.path);
    server.send(Method::POST, &path, "application/json", "application/json", object).await.body
}

async fn grow(shapes: &[Shape], variants: &[Variant]) -> Vec<String> {
    let server = Server::new();
    let mut found = Vec::new();
    for shape in shapes {
        // What all kinds have is the same code in all of them.
        let own = |field: &Field| shape.kind == "ConfigMap" || !field.path().starts_with(".metadata");
        for field in shape.collections().into_iter().filter(own) {
            for variant in variants {
                let what = format!("{} {} {variant:?}", shape.kind, field.path());
                let make = |length| shape.with(&field, *variant, length);
                let send = async |object: &Value, _| drop(try_create(&server, shape, object).await);
                found.extend(superlinear(&what, &make, &send).await);
            }
        }
    }
    found
}

#[tokio::test]
async fn no_list_of_a_built_in_kind_costs_more_than_its_length() {
    let server = Server::new();
    let mut shapes = shapes::built_in(&server).await;
    assert!(shapes.len() > 60, "{}", shapes.len());
    let all = std::env::var("WINDLASS_GROWTH").as_deref() == Ok("all");
    if !all {
        shapes.retain(|shape| SLICE.contains(&shape.kind.as_str()));
    }
    let found = grow(&shapes, if all { &Variant::ALL } else { &Variant::ALL[..2] }).await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The specimens are of use: what is grown is decoded, and most of the kinds take their specimen as it is.
#[tokio::test]
async fn the_specimens_are_accepted() {
    let server = Server::new();
    let mut refused = Vec::new();
    for shape in shapes::built_in(&server).await {
        let answer = try_create(&server, &shape, &shape.specimen).await;
        if answer["kind"] == "Status" && answer["status"] == "Failure" {
            refused.push(format!("{}: {}", shape.kind, answer["message"]));
        }
    }
    assert!(refused.len() < 12, "{}", refused.join("\n"));
    assert_eq!(json!(refused.iter().filter(|one| one.starts_with("Pod:")).count()), 0);
}
