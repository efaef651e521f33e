//! `/healthz`, `/livez` and `/readyz`: all checks at once, in detail with `?verbose`, or one by its name.

use std::fmt::Write;

use http::Response;

use super::{answer, body::Body, query::Query};

/// The names under which clients know them. `etcd` is the storage, whatever that is.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// Answers `/endpoint` or `/endpoint/check`. Only the storage can fail while the server answers.
pub(super) fn answer(stored: bool, endpoint: &str, check: Option<&str>, query: &Query) -> Response<Body> {
    if let Some(check) = check {
        return match CHECKS.contains(&check) {
            true if check != "etcd" || stored => answer::text("ok"),
            true => answer::health_failure("internal server error: the storage has failed\n"),
            false => answer::not_a_path(),
        };
    }
    let (report, healthy) = report(endpoint, stored, &query.all("exclude"));
    match healthy {
        true if query.has("verbose") => answer::text(&report),
        true => answer::text("ok"),
        false => answer::health_failure(&report),
    }
}

/// What is shown while the controllers of the cluster do not work.
pub(super) fn controllers_failed(why: &str) -> String {
    format!("[+]ping ok\n[-]controllers failed: {why}\nreadyz check failed\n")
}

/// What is shown to those who want to know more, and whether all is well.
fn report(endpoint: &str, stored: bool, excluded: &[&str]) -> (String, bool) {
    let (mut report, mut healthy) = (String::new(), true);
    for check in CHECKS {
        // Writing to a String cannot fail.
        let _ = if excluded.contains(&check) {
            writeln!(report, "[+]{check} excluded: ok")
        } else if check == "etcd" && !stored {
            healthy = false;
            writeln!(report, "[-]{check} failed: reason withheld")
        } else {
            writeln!(report, "[+]{check} ok")
        };
    }
    let unknown: Vec<String> =
        excluded.iter().filter(|name| !CHECKS.contains(name)).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let names = unknown.join(",");
        let _ = writeln!(report, "warn: some health checks cannot be excluded: no matches for {names}");
    }
    let _ = writeln!(report, "{endpoint} check {}", if healthy { "passed" } else { "failed" });
    (report, healthy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_storage_is_named_unless_it_is_excluded() {
        let (shown, healthy) = report("readyz", false, &[]);
        assert!(!healthy);
        assert_eq!(shown, "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nreadyz check failed\n");
        let (shown, healthy) = report("livez", false, &["etcd", "other"]);
        assert!(healthy);
        assert_eq!(
            shown,
            "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n\
             warn: some health checks cannot be excluded: no matches for \"other\"\nlivez check passed\n"
        );
    }
}
