//! What the browser is sent as HTML. Every value of a cluster is text to these templates, and is escaped by them.

mod object;
mod run;

use maud::{DOCTYPE, Markup, html};

pub(crate) use self::{object::object, run::run};
use crate::{
    Options,
    health::Health,
    words::{Language, Words},
};

/// The page itself; the script fills it.
pub(crate) fn front(options: &Options, language: Language) -> Markup {
    let words = language.words();
    let text = serde_json::to_string(words).unwrap_or_default();
    let title = if options.cluster.is_empty() {
        "Windlass".to_owned()
    } else {
        format!("{} · Windlass", options.cluster)
    };
    html! {
        (DOCTYPE)
        html lang=(language.code()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="page.css";
                script src="page.js" defer {}
            }
            body data-words=(text) data-edit=(options.edit) data-faults=(options.faults) data-operators=(!options.operators.is_empty()) {
                a.skip href="#tree" { (words.skip) }
                header {
                    span.brand { img src="icon.svg" alt="" width="22" height="22"; "Windlass" }
                    nav aria-label="Windlass" {
                        @for (name, word) in [("objects", words.objects), ("reconciles", words.reconciles), ("changes", words.time)] {
                            a id={"nav-" (name)} href={"#" (name)} { (word) }
                        }
                    }
                    span.space {}
                    @if !options.cluster.is_empty() { span.cluster title=(options.cluster) { (options.cluster) } }
                    @if !options.edit { span.badge { (words.read_only) } }
                    span #live .live role="status" { (words.connecting) }
                    button #language .quiet type="button" { (words.language) }
                }
                p #past hidden {
                    span { (words.past) " " b #past-revision {} span #past-unknown {} }
                    button #past-back type="button" { (words.back) }
                }
                main { (objects(words)) (reconciles(words)) (changes(words)) aside #detail hidden aria-label=(words.object) {} }
                noscript { p.hint { "JavaScript" } }
            }
        }
    }
}

fn objects(words: &Words) -> Markup {
    let healths = [Health::Current, Health::InProgress, Health::Failed, Health::Terminating];
    html! {
        section #objects aria-label=(words.objects) {
            div.filters {
                input #text type="search" placeholder=(words.search) aria-label=(words.search) autocomplete="off" spellcheck="false";
                select #kind aria-label=(words.all_kinds) { option value="" { (words.all_kinds) } }
                select #namespace aria-label=(words.all_namespaces) { option value="" { (words.all_namespaces) } }
                div.chips role="group" aria-label=(words.any_health) {
                    @for health in healths {
                        button.chip type="button" aria-pressed="false" data-health=(name(health)) {
                            (mark(health)) (word(health, words)) " " span.count {}
                        }
                    }
                }
                label.check { input #everything type="checkbox"; (words.everything) }
            }
            div #tree role="tree" tabindex="0" aria-label=(words.objects) { div #rows role="presentation" {} }
            p #empty .hint hidden {}
            p.keys { (words.keys) span #unreadable {} }
        }
    }
}

fn reconciles(words: &Words) -> Markup {
    html! {
        section #reconciles hidden aria-label=(words.reconciles) {
            p #no-runs .hint { (words.no_runs) }
            div.columns {
                div.wide { h2 { (words.latest) } div #strips {} }
                div {
                    h2 { (words.slowest) } ol #slowest {}
                    h2 { (words.queue) } div #queue {}
                }
            }
        }
    }
}

fn changes(words: &Words) -> Markup {
    html! {
        section #changes hidden aria-label=(words.time) {
            p.hint { (words.changes_seen) }
            label.slider { span { (words.then) } input #moment type="range" min="0" max="0" value="0" step="1"; output #moment-time { (words.now) } }
            ol #feed {}
        }
    }
}

/// A health in the page's language.
pub(crate) fn word(health: Health, words: &Words) -> &'static str {
    match health {
        Health::Current => words.current,
        Health::InProgress => words.in_progress,
        Health::Failed => words.failed,
        Health::Terminating => words.terminating,
        Health::NotFound => words.not_found,
        Health::Unknown => words.unknown,
    }
}

/// A health as the script knows it.
pub(crate) fn name(health: Health) -> &'static str {
    match health {
        Health::Current => "Current",
        Health::InProgress => "InProgress",
        Health::Failed => "Failed",
        Health::Terminating => "Terminating",
        Health::NotFound => "NotFound",
        Health::Unknown => "Unknown",
    }
}

/// A health by colour and by shape: not everybody tells colours apart.
pub(crate) fn mark(health: Health) -> Markup {
    html! { span class={"mark " (name(health))} aria-hidden="true" {} }
}

/// A difference, line by line.
pub(crate) fn diff(text: &str) -> Markup {
    html! {
        pre.diff {
            @for line in text.lines() {
                @let class = match line.as_bytes().first() { Some(b'+') => "plus", Some(b'-') => "minus", Some(b'@') => "at", _ => "" };
                span class=(class) { (line) "\n" }
            }
        }
    }
}
