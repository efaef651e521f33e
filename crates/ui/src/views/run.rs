//! One run of a reconciler: what woke it, what it asked and wrote, what it logged, how it ended.

use maud::{Markup, html};
use serde_json::Value;
use windlass::runs::Requested;

use super::diff;
use crate::{
    App,
    detail::duration,
    history,
    query::Query,
    target::Target,
    words::{Language, Words},
};

/// How a run ended, in the page's language.
pub(super) fn outcome(word: &str, words: &Words) -> String {
    match word {
        "success" => words.success,
        "requeue" => words.requeue,
        "error" => words.error,
        "terminal" => words.terminal,
        "panic" => words.panic,
        "timeout" => words.timeout,
        other => return other.to_owned(),
    }
    .to_owned()
}

/// A run's own page.
pub(crate) async fn run(app: &App, query: &Query, language: Language) -> Markup {
    let words = language.words();
    let known = query.get("id").and_then(|id| app.runs.run(id.parse().ok()?));
    let Some(numbered) = known else { return html! { p.hint { (words.run_gone) } } };
    let run = numbered.run;
    let mut wrote = Vec::new();
    for request in &run.requests {
        wrote.push(written(app, request).await);
    }
    html! {
        div.top {
            div.title { span.kind { (run.controller) } h2 { (run.name) } @if !run.namespace.is_empty() { span.namespace { (run.namespace) } } }
            button.close type="button" aria-label=(words.close) title=(words.close) { "×" }
        }
        p.health { span class={"outcome " (run.outcome)} { (outcome(&run.outcome, words)) } @if let Some((reason, message)) = &run.failure { b { (reason) } span { (message) } } }
        dl {
            dt { (words.object) } dd { a.link href="#" data-resource=(run.resource) data-namespace=(run.namespace) data-name=(run.name) { (run.resource) " " (run.name) } }
            dt { (words.woken) } dd { @if run.woken.is_empty() { (words.not_seen) } @else { (run.woken.join(", ")) } }
            dt { (words.waited) } dd { (duration(run.waited)) }
            dt { (words.ran) } dd { (duration(run.ran)) " · " time.ago datetime=(run.began) {} }
            @if let Some(next) = run.next { dt { (words.next) } dd { (duration(next)) } }
        }
        h3 { (words.requests) }
        @if run.requests.is_empty() { p.hint { (words.no_requests) } } @else {
            (flame(&run.requests, run.ran))
            ol.requests {
                @for (request, wrote) in run.requests.iter().zip(&wrote) {
                    li {
                        details open[wrote.is_some()] {
                            summary {
                                span class={"method " (request.method)} { (request.method) }
                                code { (request.path.split('?').next().unwrap_or_default()) }
                                span class={"right " (if (200..300).contains(&request.code) { "" } else { "bad" })} { (request.code) " · " (duration(request.took)) }
                            }
                            @if let Some(difference) = wrote { p.hint { (words.wrote) } (diff(difference)) }
                            @if !request.body.is_empty() { details { summary { (words.sent) } pre.log { (pretty(&request.body)) } } }
                        }
                    }
                }
            }
        }
        @if !run.logs.is_empty() {
            h3 { (words.lines) }
            ul.lines {
                @for line in &run.logs { li class=(line.level) { span.at { "+" (duration(line.at)) } b { (line.level) } span { (line.text) } } }
            }
        }
    }
}

/// When each request was under way, as a drawing: style sheets cannot be written into the page, so it is one of lines.
fn flame(requests: &[Requested], ran: u64) -> Markup {
    let whole = ran.max(1) as f64;
    let height = requests.len() * 8;
    html! {
        svg.flame viewBox={"0 0 1000 " (height)} preserveAspectRatio="none" height=(height) role="img" aria-hidden="true" {
            @for (at, request) in requests.iter().enumerate() {
                @let begin = 1000.0 * request.at as f64 / whole;
                @let length = (1000.0 * request.took as f64 / whole).max(3.0);
                rect class=(request.method) x=(format!("{begin:.1}")) y=(at * 8 + 1) width=(format!("{length:.1}")) height="6" rx="2" {}
            }
        }
    }
}

fn pretty(body: &str) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(value) => crate::lines::yaml(&value),
        Err(_) => body.to_owned(),
    }
}

/// What a request has changed, from the cluster's own history: the version that it answered against the one before.
async fn written(app: &App, request: &Requested) -> Option<String> {
    let revision: u64 = request.revision.parse().ok()?;
    if !matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
        return None;
    }
    let target = addressed(&request.path, &request.body)?;
    if target.kind.plural == "secrets" {
        return None;
    }
    let api = target.api(&app.client);
    let after = history::at(&api, &target.name, revision).await.ok()??;
    let before = history::at(&api, &target.name, revision - 1).await.ok()?;
    Some(history::unified(before.as_ref(), Some(&after))).filter(|difference| !difference.is_empty())
}

/// The object that a path is about.
fn addressed(path: &str, body: &str) -> Option<Target> {
    let path = path.split('?').next()?;
    let mut parts = path.trim_start_matches('/').split('/');
    let (group, version) = match parts.next()? {
        "api" => ("", parts.next()?),
        "apis" => (parts.next()?, parts.next()?),
        _ => return None,
    };
    let rest: Vec<&str> = parts.collect();
    let (namespace, rest) = match rest.as_slice() {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let name = match rest.get(1) {
        Some(name) => (*name).to_owned(),
        // A create says the name in what it sends.
        None => serde_json::from_str::<Value>(body).ok()?["metadata"]["name"].as_str()?.to_owned(),
    };
    let pairs = [
        ("group", group),
        ("version", version),
        ("plural", rest.first()?),
        ("namespace", namespace),
        ("name", &name),
    ];
    Target::of(&pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_of_a_request_is_known_by_its_path() {
        let shown = |path: &str, body: &str| {
            addressed(path, body).map(|target| (target.resource(), target.namespace, target.name))
        };
        let some = |a: &str, b: &str, c: &str| Some((a.to_owned(), b.to_owned(), c.to_owned()));
        let table = [
            ("/api/v1/namespaces/a/pods/b?x=y", "", some("pods", "a", "b")),
            ("/apis/apps/v1/namespaces/a/deployments/b/status", "", some("deployments.apps", "a", "b")),
            ("/api/v1/namespaces/a", "", some("namespaces", "", "a")),
            ("/api/v1/namespaces/a/pods", r#"{"metadata":{"name":"c"}}"#, some("pods", "a", "c")),
            ("/api/v1/namespaces/a/pods", "{}", None),
            ("/healthz", "", None),
        ];
        for (path, body, expected) in table {
            assert_eq!(shown(path, body), expected, "{path}");
        }
    }
}
