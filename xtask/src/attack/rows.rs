//! The list of attacks, and what each may cost.

mod connections;
mod flood;
mod identity;
mod lifetime;
mod memory;
mod outgoing;
mod storage;
mod work;

use anyhow::Result;
use futures::future::LocalBoxFuture;

use super::Stage;

/// What an attack does; it says what held, or fails with what did not.
type Play = for<'a> fn(&'a mut Stage) -> LocalBoxFuture<'a, Result<String>>;

/// Megabytes that somebody with an ordinary account can make the server grow by, above what is stored.
const ACCOUNT: f64 = 512.0;

/// The same without credentials.
const NOBODY: f64 = 64.0;

/// One attack.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Whether it is part of the quick run.
    pub(super) quick: bool,
    /// By how many megabytes the server may grow.
    pub(super) megabytes: f64,
    /// Whether its data directory lies on a small disk.
    pub(super) small_disk: bool,
    /// Whether the attack ends the server on purpose: then nobody else is answered either.
    pub(super) ends_server: bool,
    pub(super) play: Play,
}

const fn row(name: &'static str, quick: bool, megabytes: f64, play: Play) -> Row {
    Row { name, quick, megabytes, small_disk: false, ends_server: false, play }
}

pub(super) const ALL: &[Row] = &[
    Row {
        ends_server: true,
        ..row("a Job that may run for 292 years", true, ACCOUNT, |s| Box::pin(lifetime::endless_job(s)))
    },
    row("impersonation in other letters", true, ACCOUNT, |s| Box::pin(identity::other_letters(s))),
    row("a certificate for system:masters", true, ACCOUNT, |s| Box::pin(identity::masters(s))),
    row("scale down while scaling up", true, ACCOUNT, |s| Box::pin(work::scale_down(s))),
    row("a Role of long lists", true, ACCOUNT, |s| Box::pin(work::role_product(s))),
    row("20,000 environment variables", true, ACCOUNT, |s| Box::pin(work::variables(s))),
    row("20,000 ports", true, ACCOUNT, |s| Box::pin(work::ports(s))),
    row("10,000 insertions at the head of a list", false, ACCOUNT, |s| Box::pin(work::insertions(s))),
    row("a selector of 62 KB", false, ACCOUNT, |s| Box::pin(work::selector(s))),
    row("a Table of every object", false, ACCOUNT, |s| Box::pin(work::table(s))),
    row("100,000 rows, many times at once", false, ACCOUNT, |s| Box::pin(flood::rows(s))),
    row("one account that asks without end", true, ACCOUNT, |s| Box::pin(flood::endless(s))),
    row("the worst requests, all at once", true, ACCOUNT, |s| Box::pin(flood::worst(s))),
    row("evictions that race for one disruption", true, ACCOUNT, |s| Box::pin(flood::evictions(s))),
    row("bodies of nobody", true, NOBODY, |s| Box::pin(memory::bodies(s))),
    row("patches of a large ConfigMap", false, ACCOUNT, |s| Box::pin(memory::history(s))),
    row("objects that are too large", true, ACCOUNT, |s| Box::pin(memory::oversized(s))),
    row("defaults that multiply", true, ACCOUNT, |s| Box::pin(memory::defaults(s))),
    row("200,000 warnings", true, ACCOUNT, |s| Box::pin(memory::warnings(s))),
    row("lists that nobody reads", false, ACCOUNT, |s| Box::pin(memory::unread(s))),
    row("silent connections", false, NOBODY, |s| Box::pin(connections::silent(s))),
    row("requests that are cut off", true, ACCOUNT, |s| Box::pin(connections::cut(s))),
    row("requests that are sent twice", true, ACCOUNT, |s| Box::pin(connections::doubled(s))),
    row("requests for something else", true, ACCOUNT, |s| Box::pin(connections::misdirected(s))),
    row("a watch for ever", true, ACCOUNT, |s| Box::pin(lifetime::endless_watch(s))),
    row("continue tokens of the future", true, ACCOUNT, |s| Box::pin(lifetime::forged_continue(s))),
    Row {
        ends_server: true,
        ..row("apply into a missing namespace, then SIGTERM", true, ACCOUNT, |s| {
            Box::pin(lifetime::missing_namespace(s))
        })
    },
    Row {
        ends_server: true,
        ..row("SIGTERM while a webhook hangs", true, ACCOUNT, |s| Box::pin(outgoing::stop_under_way(s)))
    },
    row("a client that leaves while a webhook hangs", true, ACCOUNT, |s| {
        Box::pin(outgoing::client_leaves(s))
    }),
    row("a webhook on simulated Pods", true, ACCOUNT, |s| Box::pin(outgoing::simulated(s))),
    row("a webhook at a metadata address", true, ACCOUNT, |s| Box::pin(outgoing::metadata(s))),
    Row { small_disk: true, ..row("a full disk", true, ACCOUNT, |s| Box::pin(storage::full_disk(s))) },
    Row {
        ends_server: true,
        ..row("a data directory without its log", true, ACCOUNT, |s| Box::pin(storage::without_log(s)))
    },
    Row { ends_server: true, ..row("kill -9 while writing", true, ACCOUNT, |s| Box::pin(storage::kills(s))) },
];

/// The names of all of them.
pub(super) fn names() -> String {
    ALL.iter().map(|row| row.name).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attack_has_a_name_of_its_own() {
        let mut names: Vec<_> = ALL.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
