//! Measures one operator on one API server: converge, settle, change, restart.
//!
//! Enter a client and a command line; leaves a [`Report`]. Writes are counted by the server itself
//! (`apiserver_request_total`), CPU and memory by the kernel, times by this process's clock; so no framework is
//! asked about itself, except for when it has reconciled everything and in which order.

mod load;
mod operator;
mod server;
mod watch;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kube::Client;
use serde::{Deserialize, Serialize};

pub use load::{bare, prepare};
use operator::Operator;
use server::Writes;
use watch::Observer;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many WebServers.
    pub objects: usize,
    /// How many of them are changed, one after the other.
    pub changes: usize,
}

/// What was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Writes an object until every status is there.
    pub converge_writes: f64,
    /// From the start of the process until every status is there.
    pub converge_seconds: f64,
    /// CPU of the operator by then.
    pub converge_cpu_seconds: f64,
    /// How far first reconciles were from their place, over the number of objects; 0.33 is random.
    pub converge_displacement: f64,
    /// Resident memory when all is quiet.
    pub settled_megabytes: f64,
    /// Writes for one change of one spec.
    pub change_writes: f64,
    /// Of these, the ones that were answered with a conflict.
    pub change_conflicts: f64,
    /// From the answer to a change until the child's change is seen.
    pub latency_p50_milliseconds: f64,
    /// The same, for the slowest of a hundred.
    pub latency_p99_milliseconds: f64,
    /// From the start of a second process until it has reconciled everything.
    pub restart_seconds: f64,
    /// Writes an object by then, and for a while after.
    pub restart_writes: f64,
    /// As above.
    pub restart_displacement: f64,
}

/// How long a quiet operator must stay so.
const QUIET: Duration = Duration::from_secs(2);

/// Measures an operator on a server that holds `plan.objects` WebServers without children.
pub async fn measure(client: &Client, plan: Plan, command: &[String]) -> Result<Report> {
    let mut observer = Observer::start(client).await?;
    let before = Writes::of(client).await?;
    let start = Instant::now();
    let mut operator = Operator::start(command, plan.objects)?;
    let converged = tokio::select! {
        converged = observer.all_observed(plan.objects) => converged?,
        ended = operator.ended() => return Err(ended.context("the operator ended before it was done")),
    };
    let converge_seconds = converged.duration_since(start).as_secs_f64();
    let converge_cpu_seconds = operator.cpu()?.as_secs_f64();
    tokio::time::sleep(QUIET).await;
    let settled_megabytes = operator.memory("VmRSS")? / 1e6;
    let after = Writes::of(client).await?;

    let latencies = load::change_one_by_one(client, &mut observer, plan).await?;
    tokio::time::sleep(QUIET).await;
    let changed = Writes::of(client).await?;
    let converge_order = operator.stop().await?;

    let start = Instant::now();
    let mut operator = Operator::start(command, plan.objects)?;
    let restart_seconds = operator.all_reconciled().await?.duration_since(start).as_secs_f64();
    tokio::time::sleep(QUIET).await;
    let restarted = Writes::of(client).await?;
    let restart_order = operator.stop().await?;

    let per_object = |writes: u64| ratio(writes, plan.objects);
    Ok(Report {
        converge_writes: per_object(after.all - before.all),
        converge_seconds,
        converge_cpu_seconds,
        converge_displacement: displacement(&converge_order)?,
        settled_megabytes,
        change_writes: ratio(changed.all - after.all, plan.changes),
        change_conflicts: ratio(changed.conflicts - after.conflicts, plan.changes),
        latency_p50_milliseconds: percentile(&latencies, 50),
        latency_p99_milliseconds: percentile(&latencies, 99),
        restart_seconds,
        restart_writes: per_object(restarted.all - changed.all),
        restart_displacement: displacement(&restart_order)?,
    })
}

/// What a cache costs: the time until every object is in it, and the memory of each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CacheReport {
    /// From the start of the process until every object was reconciled, which writes nothing.
    pub sync_seconds: f64,
    /// Resident memory when all is quiet.
    pub megabytes: f64,
    /// What each object has added to the heap: the program itself, which is in `megabytes`, is not in it.
    pub bytes_per_object: f64,
    /// CPU by then.
    pub cpu_seconds: f64,
}

/// Measures an operator that reads and never writes.
pub async fn measure_cache(objects: usize, command: &[String]) -> Result<CacheReport> {
    let start = Instant::now();
    let mut operator = Operator::start(command, objects)?;
    operator.connected().await?;
    let empty = operator.memory("RssAnon")?;
    let sync_seconds = operator.all_reconciled().await?.duration_since(start).as_secs_f64();
    let cpu_seconds = operator.cpu()?.as_secs_f64();
    tokio::time::sleep(QUIET).await;
    let bytes_per_object = (operator.memory("RssAnon")? - empty) / ratio(u64::try_from(objects)?, 1);
    let megabytes = operator.memory("VmRSS")? / 1e6;
    operator.stop().await?;
    Ok(CacheReport { sync_seconds, megabytes, bytes_per_object, cpu_seconds })
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn ratio(count: u64, of: usize) -> f64 {
    count as f64 / of as f64
}

/// The mean distance of each name from its place in the sorted order, over their number.
fn displacement(order: &[String]) -> Result<f64> {
    let mut sorted: Vec<&String> = order.iter().collect();
    sorted.sort();
    let mut sum = 0_u64;
    for (place, name) in order.iter().enumerate() {
        let right = sorted.binary_search(&name).ok().context("an order must contain its own names")?;
        sum += u64::try_from(place.abs_diff(right))?;
    }
    Ok(ratio(sum, order.len()) / ratio(1, 1).max(ratio(u64::try_from(order.len())?, 1)))
}

/// Of durations, in milliseconds.
fn percentile(durations: &[Duration], percent: usize) -> f64 {
    let mut sorted = durations.to_vec();
    sorted.sort();
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(0.0, |duration| duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(order: &[&str]) -> Vec<String> {
        order.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn names_in_order_are_not_displaced() {
        assert!(displacement(&names(&["a", "b", "c", "d"])).unwrap().abs() < f64::EPSILON);
    }

    #[test]
    fn a_reversed_order_is_displaced_by_half() {
        assert!((displacement(&names(&["d", "c", "b", "a"])).unwrap() - 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn the_last_percentile_is_the_slowest() {
        let durations: Vec<_> = (1..=10).map(Duration::from_millis).collect();
        assert!((percentile(&durations, 99) - 10.0).abs() < 1e-9);
        assert!((percentile(&durations, 50) - 6.0).abs() < 1e-9);
    }
}
