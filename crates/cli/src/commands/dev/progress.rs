//! What becomes of the objects of the operators' kinds: one line each time it changes.
//!
//! Enters: watches of these kinds. Leaves: lines such as `webserver-sample  Ready 3/3`.

use std::{collections::BTreeMap, time::Instant};

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use windlass::kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event, watcher},
};

use crate::{error::Error, printer::Printer};

/// How an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    good: bool,
    word: &'static str,
    rest: String,
    /// Whether as many replicas are ready as are asked for.
    complete: bool,
}

/// Prints the state of every object, whenever it changes. Returns only when printing fails.
pub(in crate::commands) async fn show(
    client: &Client,
    kinds: &[ApiResource],
    begin: Instant,
    printer: Printer,
) -> Result<(), Error> {
    let streams = kinds.iter().map(|kind| {
        let api = Api::<DynamicObject>::all_with(client.clone(), kind);
        let name = kind.plural.as_str();
        watcher(api, watcher::Config::default()).map_ok(move |event| (name, event)).boxed()
    });
    let mut events = stream::select_all(streams);
    let mut shown = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok((kind, Event::Apply(object) | Event::InitApply(object))) => {
                changed(&mut shown, kind, &object, begin, printer)?;
            }
            Ok((kind, Event::Delete(object))) => {
                if shown.remove(&key(kind, &object)).is_some() {
                    printer.state(&title(&object), true, "deleted", "")?;
                }
            }
            Ok((_, Event::Init | Event::InitDone)) => {}
            // The watcher tries again by itself.
            Err(error) => tracing::debug!(%error, "a watch broke off"),
        }
    }
    Ok(())
}

type Shown = BTreeMap<String, State>;

fn changed(
    shown: &mut Shown,
    kind: &str,
    object: &DynamicObject,
    begin: Instant,
    printer: Printer,
) -> Result<(), Error> {
    let Some(state) = state_of(&object.data, object.metadata.generation) else { return Ok(()) };
    let known = shown.get(&key(kind, object));
    if !is_news(known, &state) {
        return Ok(());
    }
    let first = known.is_none() && state.good;
    let mut rest = state.rest.clone();
    if first {
        let gap = if rest.is_empty() { "" } else { "  " };
        let time = begin.elapsed().as_millis();
        rest = format!("{rest}{gap}({time} ms)");
    }
    printer.state(&title(object), state.good, state.word, &rest)?;
    shown.insert(key(kind, object), state);
    Ok(())
}

/// Whether a state is worth a line: not the steps of the way up, and not the same twice.
fn is_news(known: Option<&State>, state: &State) -> bool {
    match known {
        None => state.word != "NotReady",
        Some(known) if known.word == state.word => known != state && state.good && state.complete,
        Some(_) => true,
    }
}

fn key(kind: &str, object: &DynamicObject) -> String {
    format!("{kind} {}", title(object))
}

/// The name, with the namespace unless it is the usual one.
fn title(object: &DynamicObject) -> String {
    match object.namespace() {
        Some(namespace) if namespace != "default" => format!("{namespace}/{}", object.name_any()),
        _ => object.name_any(),
    }
}

/// The state that the conditions tell, if they tell it of the current generation.
fn state_of(object: &Value, generation: Option<i64>) -> Option<State> {
    let condition = |type_: &str| {
        let conditions = object.pointer("/status/conditions")?.as_array()?;
        conditions.iter().find(|condition| condition["type"] == type_)
    };
    let ready = condition("Ready")?;
    if ready["observedGeneration"].as_i64() < generation {
        return None;
    }
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let (counts, complete) = counts(object);
    let state = |good, word, words: &[String]| {
        let words = std::iter::once(&counts).chain(words).filter(|word| !word.is_empty());
        let rest = words.map(String::as_str).collect::<Vec<_>>().join(" ");
        Some(State { good, word, rest, complete })
    };
    if let Some(degraded) = condition("Degraded").filter(|degraded| degraded["status"] == "True") {
        return state(false, "Degraded", &[text(degraded, "reason") + ":", text(degraded, "message")]);
    }
    if ready["status"] == "True" {
        state(true, "Ready", &[])
    } else {
        state(false, "NotReady", &[text(ready, "reason")])
    }
}

/// `3/5`, where a kind has replicas, and whether these are all.
fn counts(object: &Value) -> (String, bool) {
    let ready = object.pointer("/status/readyReplicas").and_then(Value::as_i64);
    let desired = ["/spec/replicas", "/spec/size"].iter().find_map(|path| object.pointer(path)?.as_i64());
    match (ready, desired) {
        (Some(ready), Some(desired)) => (format!("{ready}/{desired}"), ready == desired),
        _ => (String::new(), true),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(ready: &str, degraded: &str, replicas: i64) -> Value {
        json!({
            "spec": {"replicas": 3},
            "status": {"readyReplicas": replicas, "conditions": [
                {"type": "Ready", "status": ready, "reason": "R", "message": "m", "observedGeneration": 2},
                {"type": "Degraded", "status": degraded, "reason": "NameConflict", "message": "taken"},
            ]},
        })
    }

    fn line(object: &Value) -> String {
        let state = state_of(object, Some(2)).unwrap();
        format!("{} {}", state.word, state.rest)
    }

    #[test]
    fn a_state_says_how_many_and_why_not() {
        assert_eq!(line(&object("True", "False", 3)), "Ready 3/3");
        assert_eq!(line(&object("False", "False", 1)), "NotReady 1/3 R");
        assert_eq!(line(&object("True", "True", 3)), "Degraded 3/3 NameConflict: taken");
    }

    #[test]
    fn a_state_of_an_older_generation_is_not_told() {
        assert_eq!(state_of(&object("True", "False", 3), Some(3)), None);
        assert_eq!(state_of(&json!({"spec": {"replicas": 3}}), Some(1)), None);
    }

    #[test]
    fn the_way_up_is_silent_and_every_new_ready_is_told() {
        let state = |ready, replicas| state_of(&object(ready, "False", replicas), Some(2)).unwrap();
        assert!(!is_news(None, &state("False", 1)));
        assert!(is_news(None, &state("True", 3)));
        assert!(!is_news(Some(&state("True", 3)), &state("True", 3)));
        assert!(is_news(Some(&state("True", 2)), &state("True", 3)));
        assert!(
            !is_news(Some(&state("True", 3)), &state("True", 4)),
            "not all of them yet, or still too many"
        );
        assert!(is_news(Some(&state("True", 3)), &state("False", 2)), "the way down is told once");
        assert!(!is_news(Some(&state("False", 2)), &state("False", 1)));
    }
}
