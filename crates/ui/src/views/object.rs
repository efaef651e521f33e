//! One object: its state, its lines and their owners, its history, its runs, its log, and an editor where there may be one.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use super::{diff, mark, name, run, word};
use crate::{
    App,
    api_faults::{self, ApiFault},
    change::{NODE_FAULTS, POD_FAULTS},
    detail::{self, duration, mask, said, text},
    health, history, lines,
    query::Query,
    target::Target,
    words::{Language, Words},
};

/// An object's own page, or one part of it.
pub(crate) async fn object(app: &App, query: &Query, language: Language) -> Markup {
    let words = language.words();
    let Some(target) = Target::of(query) else { return html! { p.problem { (words.gone) } } };
    let object = match target.get(&app.client).await {
        Ok(object) => object,
        Err(error) => return html! { p.problem { (said(&error)) } },
    };
    let part = query.get("part").map_or("overview", String::as_str);
    let body = match (part, &object) {
        ("history", _) => versions(app, &target, query, words).await,
        ("runs", _) => runs(app, &target, words),
        (_, None) => html! { p.hint { (words.gone) } },
        ("yaml", Some(object)) => yaml(object, query, words),
        ("edit", Some(object)) => editor(object, words),
        ("logs", Some(object)) => log(app, &target, object, query, words).await,
        (_, Some(object)) => overview(app, &target, object, words).await,
    };
    let judged = health::judge(object.as_ref());
    let pod = target.kind.plural == "pods" && target.kind.group.is_empty();
    let parts = [
        ("overview", words.overview, true),
        ("yaml", words.yaml, true),
        ("history", words.history, true),
        ("runs", words.reconciles, !app.options.operators.is_empty()),
        ("logs", words.logs, pod),
        ("edit", words.edit, app.options.edit),
    ];
    html! {
        div.top {
            div.title {
                span.kind { (target.kind.kind) }
                h2 { (target.name) }
                @if !target.namespace.is_empty() { span.namespace { (target.namespace) } }
            }
            button.close type="button" aria-label=(words.close) title=(words.close) { "×" }
        }
        p class={"health " (name(judged.health))} { (mark(judged.health)) b { (word(judged.health, words)) } @if !judged.message.is_empty() { span { (judged.message) } } }
        div.tabs role="tablist" {
            @for (id, label, _) in parts.iter().filter(|part| part.2) {
                button type="button" role="tab" data-part=(id) aria-selected=(*id == part) { (label) }
            }
        }
        div.part role="tabpanel" data-part=(part) { (body) }
    }
}

async fn overview(app: &App, target: &Target, object: &Value, words: &Words) -> Markup {
    let metadata = &object["metadata"];
    let conditions: Vec<&Value> = health::conditions(object).collect();
    let owners: Vec<&Value> = metadata["ownerReferences"].as_array().into_iter().flatten().collect();
    html! {
        dl {
            dt { (words.created) } dd { time.ago datetime=(text(&metadata["creationTimestamp"])) { (text(&metadata["creationTimestamp"])) } }
            @if !owners.is_empty() {
                dt { (words.owners) }
                dd { @for owner in owners { a.link href="#" data-uid=(text(&owner["uid"])) { (text(&owner["kind"])) " " (text(&owner["name"])) } " " } }
            }
        }
        @if app.options.faults { (faults(app, target, object, words)) }
        h3 { (words.conditions) }
        @if conditions.is_empty() { p.hint { (words.no_conditions) } } @else {
            ul.conditions {
                @for condition in conditions {
                    li {
                        span class={"status " (text(&condition["status"]))} { (text(&condition["status"])) }
                        b { (text(&condition["type"])) }
                        @if !text(&condition["reason"]).is_empty() { span.reason { (text(&condition["reason"])) } }
                        @if !text(&condition["lastTransitionTime"]).is_empty() { time.ago datetime=(text(&condition["lastTransitionTime"])) {} }
                        @if !text(&condition["message"]).is_empty() { p { (text(&condition["message"])) } }
                    }
                }
            }
        }
        h3 { (words.events) }
        (events(app, target, object, words).await)
        @if app.options.edit {
            p.actions { button.danger type="button" data-action="delete" data-uid=(text(&metadata["uid"])) { (words.delete) } span.outcome role="status" {} }
        }
    }
}

fn faults(app: &App, target: &Target, object: &Value, words: &Words) -> Markup {
    let (title, known): (&str, &[&str]) = match (target.kind.group.as_str(), target.kind.plural.as_str()) {
        ("", "pods") => (words.faults_pod, &POD_FAULTS),
        ("", "nodes") => (words.faults_node, &NODE_FAULTS),
        ("coordination.k8s.io", "leases") => (words.faults_lease, &["expire"]),
        ("", "serviceaccounts") if app.options.api_faults.is_some() => {
            (words.faults_account, &["api-slow", "api-unavailable"])
        }
        _ => return html! {},
    };
    let account = api_faults::user(&target.namespace, &target.name);
    let met = app.options.api_faults.as_ref().and_then(|faults| faults.get(&account));
    let chosen = match target.kind.plural.as_str() {
        "serviceaccounts" => met.map_or("", ApiFault::word),
        _ => text(&object["metadata"]["annotations"]["windlass.dev/simulate"]),
    };
    html! {
        h3 { (words.faults) }
        p.hint { (title) }
        p.actions.faults {
            @for fault in known {
                button type="button" data-action="fault" data-fault=(fault) aria-pressed=(chosen == *fault) { (fault) }
            }
            @if !chosen.is_empty() { button type="button" data-action="fault" data-fault="" { (words.fault_none) } }
            span.outcome role="status" {}
        }
    }
}

async fn events(app: &App, target: &Target, object: &Value, words: &Words) -> Markup {
    let events = match detail::events(&app.client, target, object).await {
        Ok(events) => events,
        Err(error) => return html! { p.problem { (said(&error)) } },
    };
    if events.is_empty() {
        return html! { p.hint { (words.no_events) } };
    }
    html! {
        ul.events {
            @for event in &events {
                li class=(event.level) {
                    b { (event.reason) } @if event.count > 1 { span.times { "×" (event.count) } } time.ago datetime=(event.time) {}
                    p { (event.message) }
                }
            }
        }
    }
}

fn yaml(object: &Value, query: &Query, words: &Words) -> Markup {
    let masked = detail::is_secret(object) && !query.contains_key("reveal");
    let shown = if masked { mask(object) } else { object.clone() };
    let (managers, lines) = (lines::managers(&shown), lines::lines(&shown));
    let mut last: &[usize] = &[];
    html! {
        @if masked { p.hint { (words.masked) " " button.quiet type="button" data-action="reveal" { (words.reveal) } } }
        p.hint { (words.managers) }
        ul.managers {
            @for (at, manager) in managers.iter().enumerate() {
                li class={"owner o" (at % 8)} { b { (manager.name) } " " span { (manager.operation) @if !manager.subresource.is_empty() { " /" (manager.subresource) } } " " time.ago datetime=(manager.time) {} }
            }
        }
        pre.yaml {
            @for line in &lines {
                @let owner = line.owners.first().map_or(String::new(), |at| format!("owner o{}", at % 8));
                @let names = line.owners.iter().map(|at| managers[*at].name.as_str()).collect::<Vec<_>>().join(", ");
                @let new = line.owners != last && !names.is_empty();
                ({ last = &line.owners; "" })
                span class={"line " (owner)} title=(names) { span.text { (line.text) } @if new { span.who { (names) } } "\n" }
            }
        }
    }
}

fn editor(object: &Value, words: &Words) -> Markup {
    html! {
        textarea.editor spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" aria-label=(words.edit) { "\n" (lines::yaml(object)) }
        p.actions { button.main type="button" data-action="apply" disabled { (words.apply) } span.outcome role="status" { (words.unchanged) } }
    }
}

async fn log(app: &App, target: &Target, object: &Value, query: &Query, words: &Words) -> Markup {
    let log = detail::log(&app.client, target, object, query.get("container").map(String::as_str)).await;
    html! {
        div.tabs.small {
            @for name in &log.containers { button type="button" data-container=(name) aria-selected=(*name == log.chosen) { (name) } }
        }
        @match log.lines {
            Ok(text) if text.is_empty() => p.hint { (words.no_logs) },
            Ok(text) => pre.log { (text) },
            Err(problem) => p.problem { (problem) },
        }
    }
}

async fn versions(app: &App, target: &Target, query: &Query, words: &Words) -> Markup {
    let namespace = Some(target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let known = match history::history(&app.client, &target.kind, namespace, &target.name).await {
        Ok(known) => known,
        Err(error) => return html! { p.problem { (error) } },
    };
    let secret = target.kind.plural == "secrets" && target.kind.group.is_empty();
    let last = known.versions.len().saturating_sub(1);
    let asked = query.get("revision").and_then(|text| text.parse::<u64>().ok());
    let chosen = asked
        .and_then(|asked| known.versions.iter().position(|version| version.revision == asked))
        .unwrap_or(last);
    let shown = |at: usize| {
        known
            .versions
            .get(at)
            .map(|version| if secret { mask(&version.object) } else { version.object.clone() })
    };
    let before = chosen.checked_sub(1).and_then(shown);
    let deleted = |at: usize| {
        known.versions.get(at).is_some_and(|version| version.happened == history::Happened::Deleted)
    };
    let after = shown(chosen).filter(|_| !deleted(chosen));
    let difference =
        history::unified(before.as_ref().filter(|_| chosen == 0 || !deleted(chosen - 1)), after.as_ref());
    html! {
        p.hint { @if known.complete { (words.from_beginning) } @else { (words.not_from_beginning) } }
        ol.versions reversed {
            @for (at, version) in known.versions.iter().enumerate().rev() {
                li {
                    button type="button" data-revision=(version.revision) aria-pressed=(at == chosen) {
                        span class={"what " (version.happened.word())} { (what(version.happened, words)) }
                        @if !version.writers.is_empty() { span { (words.by) " " b { (version.writers.join(", ")) } } }
                        span.right { (words.revision) " " (version.revision) @if let Some(time) = version.time { " · " time.ago datetime=(time) {} } }
                    }
                    @if at == chosen {
                        p.hint { (words.compare) }
                        @if difference.is_empty() { p.hint { (words.no_difference) } } @else { (diff(&difference)) }
                        @if app.options.edit && at != last && !deleted(at) {
                            p.actions { button type="button" data-action="restore" data-revision=(version.revision) { (words.restore) } span.outcome role="status" {} }
                        }
                    }
                }
            }
        }
        @if !secret { (fields(&history::writes(&known.versions), words)) }
    }
}

fn what(happened: history::Happened, words: &Words) -> &'static str {
    match happened {
        history::Happened::Known => words.known,
        history::Happened::Created => words.made,
        history::Happened::Changed => words.changed,
        history::Happened::Deleted => words.deleted,
    }
}

fn fields(writes: &BTreeMap<String, Vec<history::Write>>, words: &Words) -> Markup {
    let value = |write: &history::Write| match &write.value {
        None => "\u{2205}".to_owned(),
        Some(value) => lines::scalar(value).chars().take(120).collect(),
    };
    html! {
        h3 { (words.why) }
        input.why type="search" placeholder=(words.field) aria-label=(words.why) autocomplete="off" spellcheck="false";
        ul.fields {
            @for (path, writes) in writes {
                li data-path=(path) {
                    details {
                        summary { code { (path) } @if let Some(last) = writes.last() { span.value { (value(last)) } } }
                        ol {
                            @for write in writes.iter().rev() {
                                li { code { (value(write)) } " " (words.written_by) " " b { (write.writers.join(", ")) } " · " (words.revision) " " (write.revision) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn runs(app: &App, target: &Target, words: &Words) -> Markup {
    let runs = app.runs.of(&target.resource(), &target.namespace, &target.name);
    html! {
        @if runs.is_empty() { p.hint { (words.no_runs) } }
        ol.runs {
            @for numbered in &runs {
                li {
                    button type="button" data-run=(numbered.id) {
                        span class={"outcome " (numbered.run.outcome)} { (run::outcome(&numbered.run.outcome, words)) }
                        span { (duration(numbered.run.ran)) }
                        span { (numbered.run.requests.len()) " " (words.requests) }
                        time.ago.right datetime=(numbered.run.began) {}
                    }
                }
            }
        }
    }
}
