//! The log of a simulated container. Pure: a Pod enters, lines that say what happened to it leave.
//!
//! No process runs, so nothing is written anywhere. The lines come from the Pod's status, and from its annotation
//! `windlass.dev/log`, which stands for what the containers would have printed.

use serde_json::Value;

use crate::error::{Error, Result};

/// Which lines are wanted, and how.
#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    pub(super) container: &'a str,
    /// Those of the container before the last restart.
    pub(super) previous: bool,
    pub(super) timestamps: bool,
    /// Only so many of the last lines.
    pub(super) tail: Option<usize>,
}

/// The log of a container.
pub(super) fn text(pod: &Value, options: &Options<'_>) -> Result<String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let container = choose(pod, options.container, name)?;
    let status = status(pod, &container);
    let mut lines = if options.previous {
        let ended = &status["lastState"]["terminated"];
        if ended.is_null() {
            let why = format!("previous terminated container \"{container}\" in pod \"{name}\" not found");
            return Err(Error::bad_request(why));
        }
        life(pod, ended)
    } else {
        current(pod, status, &container, name)?
    };
    if let Some(tail) = options.tail {
        lines.drain(..lines.len().saturating_sub(tail));
    }
    let mut text = String::new();
    for (time, line) in lines {
        if options.timestamps {
            text.push_str(&time);
            text.push(' ');
        }
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

fn containers(pod: &Value) -> Vec<&str> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all = lists.iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    all.filter_map(|container| container["name"].as_str()).collect()
}

/// The container that is meant, or the only one if none is named.
pub(super) fn choose(pod: &Value, wanted: &str, name: &str) -> Result<String> {
    let main = pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    match (wanted, main) {
        ("", [only]) => Ok(only["name"].as_str().unwrap_or_default().to_owned()),
        ("", _) => {
            let why = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                containers(pod).join(" ")
            );
            Err(Error::bad_request(why))
        }
        (wanted, _) if containers(pod).contains(&wanted) => Ok(wanted.to_owned()),
        (wanted, _) => Err(Error::bad_request(format!("container {wanted} is not valid for pod {name}"))),
    }
}

/// The status of a container.
pub(super) fn status<'a>(pod: &'a Value, container: &str) -> &'a Value {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut all = lists.iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    all.find(|status| status["name"] == container).unwrap_or(&Value::Null)
}

type Lines = Vec<(String, String)>;

fn current(pod: &Value, status: &Value, container: &str, name: &str) -> Result<Lines> {
    let state = &status["state"];
    if !state["running"].is_null() {
        return Ok(life(pod, &state["running"]));
    }
    if !state["terminated"].is_null() {
        return Ok(life(pod, &state["terminated"]));
    }
    // A container that waits for its next start still has its last log.
    if !status["lastState"]["terminated"].is_null() {
        return Ok(life(pod, &status["lastState"]["terminated"]));
    }
    let reason = state["waiting"]["reason"].as_str().unwrap_or("ContainerCreating");
    let why = match reason {
        "ErrImagePull" | "ImagePullBackOff" => "trying and failing to pull image".to_owned(),
        other => other.to_owned(),
    };
    Err(Error::bad_request(format!("container \"{container}\" in pod \"{name}\" is waiting to start: {why}")))
}

/// The lines of one run of a container, from its state.
fn life(pod: &Value, state: &Value) -> Lines {
    let text = |field: &str| state[field].as_str().unwrap_or_default().to_owned();
    let start = text("startedAt");
    let mut lines =
        vec![(start.clone(), "windlass: container started; it is simulated, no process runs".to_owned())];
    let said = pod.pointer("/metadata/annotations/windlass.dev~1log").and_then(Value::as_str);
    lines.extend(said.unwrap_or_default().lines().map(|line| (start.clone(), line.to_owned())));
    if let Some(code) = state["exitCode"].as_i64() {
        let reason = text("reason");
        let line = format!("windlass: container ended with exit code {code} ({reason})");
        lines.push((text("finishedAt"), line));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: Value) -> Value {
        json!({
            "metadata": {"name": "web", "annotations": {"windlass.dev/log": "hello\nworld"}},
            "spec": {"containers": [{"name": "app"}]},
            "status": {"containerStatuses": [status]},
        })
    }

    #[test]
    fn the_log_tells_what_happened() {
        let running =
            pod(json!({"name": "app", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}));
        let lines = text(&running, &Options::default()).unwrap();
        assert_eq!(lines, "windlass: container started; it is simulated, no process runs\nhello\nworld\n");
        let last = Options { tail: Some(1), timestamps: true, ..Options::default() };
        assert_eq!(text(&running, &last).unwrap(), "2026-01-01T00:00:00Z world\n");
        let ended = json!({"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:05Z"});
        let crashed = pod(json!({"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": ended}}));
        let lines = text(&crashed, &Options::default()).unwrap();
        assert!(lines.ends_with("windlass: container ended with exit code 137 (OOMKilled)\n"), "{lines}");
    }

    #[test]
    fn what_has_no_log_says_why() {
        let waiting = pod(json!({"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff"}}}));
        let why = |options: Options<'_>| text(&waiting, &options).unwrap_err().to_string();
        let pull = "container \"app\" in pod \"web\" is waiting to start: trying and failing to pull image";
        assert!(why(Options::default()).contains(pull));
        assert!(
            why(Options { container: "x", ..Options::default() })
                .contains("container x is not valid for pod web")
        );
        let before = why(Options { previous: true, ..Options::default() });
        assert!(before.contains("previous terminated container \"app\" in pod \"web\" not found"));
    }
}
