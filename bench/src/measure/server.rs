//! What the API server says about the requests that it has answered.

use anyhow::{Context, Result};
use kube::Client;

/// Writes by operators: to children, and to the status of WebServers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Writes {
    pub(super) all: u64,
    pub(super) conflicts: u64,
}

impl Writes {
    pub(super) async fn of(client: &Client) -> Result<Self> {
        let request = http_get("/metrics")?;
        let text = client.request_text(request).await.context("failed to read the API server's metrics")?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut writes = Self::default();
        for line in text.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{")) {
            let (labels, value) = line.split_once("} ").context("failed to read a metric")?;
            if !is_operators_write(labels) {
                continue;
            }
            // Large counters are written like 1.2e+06.
            let count: f64 = value.trim().parse().with_context(|| format!("failed to read {line}"))?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a counter")]
            let count = count as u64;
            writes.all += count;
            if has(labels, "code", "409") {
                writes.conflicts += count;
            }
        }
        Ok(writes)
    }
}

fn is_operators_write(labels: &str) -> bool {
    let writes = ["POST", "PUT", "PATCH", "APPLY", "DELETE"].iter().any(|verb| has(labels, "verb", verb));
    let child = ["deployments", "services"].iter().any(|resource| has(labels, "resource", resource));
    let status = has(labels, "resource", "webservers") && has(labels, "subresource", "status");
    writes && (child || status)
}

fn has(labels: &str, name: &str, value: &str) -> bool {
    labels.split(',').any(|label| label.split_once('=') == Some((name, &format!("\"{value}\""))))
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>> {
    http::Request::get(path).body(Vec::new()).context("failed to make a request")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_to_children_and_status_count() {
        let text = concat!(
            "# HELP apiserver_request_total x\n",
            "apiserver_request_total{code=\"201\",group=\"apps\",resource=\"deployments\",subresource=\"\",verb=\"APPLY\"} 1.2e+03\n",
            "apiserver_request_total{code=\"409\",group=\"b\",resource=\"webservers\",subresource=\"status\",verb=\"PUT\"} 5\n",
            "apiserver_request_total{code=\"201\",group=\"b\",resource=\"webservers\",subresource=\"\",verb=\"POST\"} 7\n",
            "apiserver_request_total{code=\"200\",group=\"\",resource=\"services\",subresource=\"\",verb=\"LIST\"} 9\n",
        );
        assert_eq!(Writes::parse(text).unwrap(), Writes { all: 1205, conflicts: 5 });
    }
}
