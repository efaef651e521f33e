//! What is known of one object beyond its row: its events, its log, its YAML without secrets. The page and the terminal
//! show the same.

use serde_json::Value;
use windlass::kube::{self, Client, api::ListParams};

use crate::{kinds::Kind, target::Target};

/// How many lines of a log are shown.
const TAIL: usize = 500;
/// How many events are shown.
const EVENTS: usize = 50;
/// In the place of what must not be seen.
const HIDDEN: &str = "\u{2022}\u{2022}\u{2022}\u{2022}\u{2022}\u{2022}";

/// What somebody has told about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// `Normal` or `Warning`.
    pub(crate) level: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// When it was last so.
    pub(crate) time: String,
    pub(crate) count: i64,
}

/// The log of a container of a Pod.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) containers: Vec<String>,
    pub(crate) chosen: String,
    pub(crate) lines: Result<String, String>,
}

/// What a server said, in its own words.
pub(crate) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The events about an object, newest first.
pub(crate) async fn events(
    client: &Client,
    target: &Target,
    object: &Value,
) -> Result<Vec<Event>, kube::Error> {
    let uid = text(&object["metadata"]["uid"]);
    // Events about objects without a namespace are in this one.
    let namespace = if target.namespace.is_empty() { "default" } else { &target.namespace };
    let kind = Kind {
        group: String::new(),
        version: "v1".into(),
        kind: "Event".into(),
        plural: "events".into(),
        namespaced: true,
        custom: false,
        workload: false,
    };
    let params = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let list = kind.api(client, Some(namespace)).list(&params).await?;
    let mut events: Vec<Event> = list.items.iter().map(|event| event_of(&event.data)).collect();
    events.sort_by(|a, b| b.time.cmp(&a.time));
    events.truncate(EVENTS);
    Ok(events)
}

fn event_of(data: &Value) -> Event {
    let times = [
        &data["lastTimestamp"],
        &data["series"]["lastObservedTime"],
        &data["eventTime"],
        &data["firstTimestamp"],
    ];
    Event {
        level: text(&data["type"]).to_owned(),
        reason: text(&data["reason"]).to_owned(),
        message: text(&data["message"]).to_owned(),
        time: times.into_iter().map(text).find(|time| !time.is_empty()).unwrap_or_default().to_owned(),
        count: data["series"]["count"].as_i64().or(data["count"].as_i64()).unwrap_or(1),
    }
}

/// The containers of a Pod, the first to begin with.
pub(crate) fn containers(pod: &Value) -> Vec<&str> {
    let lists = ["initContainers", "containers"];
    let all = lists.iter().flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
    all.map(|container| text(&container["name"])).collect()
}

/// The container that is meant: the one of this name, or the first that is not there to prepare others.
pub(crate) fn container(pod: &Value, asked: Option<&str>) -> String {
    let first = text(&pod["spec"]["containers"][0]["name"]);
    asked.filter(|name| containers(pod).contains(name)).unwrap_or(first).to_owned()
}

/// The end of a container's log.
pub(crate) async fn log(client: &Client, target: &Target, pod: &Value, asked: Option<&str>) -> Log {
    let chosen = container(pod, asked);
    let path = format!(
        "{}/{}/log?tailLines={TAIL}&container={chosen}",
        target.api(client).resource_url(),
        target.name
    );
    let answer = match http::Request::get(path).body(Vec::new()) {
        Ok(request) => client.request_text(request).await,
        Err(error) => Err(kube::Error::HttpError(error)),
    };
    let containers = containers(pod).into_iter().map(ToOwned::to_owned).collect();
    Log { containers, chosen, lines: answer.map(|text| plain(&text)).map_err(|error| said(&error)) }
}

/// Text without what only a terminal understands.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' if characters.peek() == Some(&'[') => {
                characters.next();
                while characters.next_if(|c| !('\u{40}'..='\u{7e}').contains(c)).is_some() {}
                characters.next();
            }
            '\n' | '\t' => out.push(character),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Whether the values of an object are nobody's business.
pub(crate) fn is_secret(object: &Value) -> bool {
    text(&object["kind"]) == "Secret" && object["apiVersion"] == "v1"
}

/// A Secret without its values.
pub(crate) fn mask(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["data", "stringData"] {
        let values = object.get_mut(field).and_then(Value::as_object_mut);
        for value in values.into_iter().flat_map(|map| map.values_mut()) {
            *value = HIDDEN.into();
        }
    }
    // kubectl keeps a copy of everything that was applied.
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(copy) =
        annotations.and_then(|map| map.get_mut("kubectl.kubernetes.io/last-applied-configuration"))
    {
        *copy = HIDDEN.into();
    }
    object
}

/// A length of time, as people say it.
pub(crate) fn duration(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} \u{b5}s"),
        1000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        1_000_000..120_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        120_000_000..7_200_000_000 => format!("{} min", micros / 60_000_000),
        _ => format!("{} h", micros / 3_600_000_000),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_terminal_acts_upon_is_not_in_a_log() {
        assert_eq!(plain("a\u{1b}[31mred\u{1b}[0m\tb\r\n\u{7}c\u{1b}"), "ared\tb\nc");
    }

    #[test]
    fn the_values_of_a_secret_are_hidden_also_in_what_kubectl_remembers() {
        let secret = json!({"kind": "Secret", "data": {"a": "aGlkZGVu"}, "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "aGlkZGVu"}}});
        assert!(!mask(&secret).to_string().contains("aGlkZGVu"));
    }

    #[test]
    fn a_container_is_asked_for_by_a_name_that_the_pod_has() {
        let pod = json!({"spec": {"initContainers": [{"name": "a"}], "containers": [{"name": "b"}, {"name": "c"}]}});
        for (asked, chosen) in [(None, "b"), (Some("a"), "a"), (Some("c"), "c"), (Some("x&y"), "b")] {
            assert_eq!(container(&pod, asked), chosen);
        }
    }
}
