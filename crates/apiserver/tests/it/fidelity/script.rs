//! Scripts: requests as text.
//!
//! ```text
//! # What the script shows.
//! POST /api/v1/namespaces/$ns/configmaps
//! metadata: {name: a}
//!
//! GET /api/v1/namespaces/$ns/configmaps/a
//! @save revision /metadata/resourceVersion
//! ```
//!
//! `@let NAME TEXT` names a text that bodies use as `$NAME`, `@repeat NAME COUNT TEXT` one that is very long. A request
//! begins with a verb and a path; `@` lines say more about it; the rest is its body in YAML. `$ns` is a namespace of the
//! script's own, `$id` a name of its own for objects that live in none. Verbs beyond HTTP's: JSON, MERGE, STRATEGIC and
//! APPLY patch; TABLE and META get in another shape; WATCH reads events until the watch ends; WAIT repeats a GET until
//! it succeeds and is not recorded.

use std::path::Path;

const VERBS: [&str; 13] = [
    "GET ",
    "POST ",
    "PUT ",
    "DELETE ",
    "JSON ",
    "MERGE ",
    "STRATEGIC ",
    "APPLY ",
    "TABLE ",
    "META ",
    "WATCH ",
    "WAIT ",
    "PATCH ",
];

/// A script.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Its name: the file's, without the extension.
    pub(super) name: String,
    /// Its text, by which literal values are told from generated ones.
    pub(super) text: String,
    /// Whether the record of field ownership is compared too.
    pub(super) managed: bool,
    /// Texts that bodies name instead of repeating.
    pub(super) lets: Vec<(String, String)>,
    pub(super) requests: Vec<Request>,
}

/// A request of a script.
#[derive(Debug, Default, Clone)]
pub(super) struct Request {
    pub(super) line: usize,
    pub(super) verb: String,
    pub(super) path: String,
    pub(super) body: String,
    /// The body is sent as it stands, not read as YAML.
    pub(super) raw: bool,
    pub(super) headers: Vec<(String, String)>,
    /// Variables to take from the answer: name and JSON pointer.
    pub(super) saves: Vec<(String, String)>,
    /// Parts of the answer that may differ, and why.
    pub(super) except: Vec<(String, String)>,
    /// Causes are compared in any order: the real server takes some from Go maps.
    pub(super) unordered: bool,
    /// Why the answer differs as a whole; the status code must still be the same.
    pub(super) differs: Option<String>,
}

impl Script {
    pub(super) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Self::parse(name, text)
    }

    pub(super) fn parse(name: String, text: String) -> Self {
        let mut script = Self { name, ..Self::default() };
        for (index, line) in text.lines().enumerate() {
            if let Some(verb) = VERBS.iter().find(|verb| line.starts_with(**verb)) {
                let path = line[verb.len()..].trim().to_owned();
                let verb = verb.trim().to_owned();
                script.requests.push(Request { line: index + 1, verb, path, ..Request::default() });
            } else if line.trim() == "@managed" {
                script.managed = true;
            } else if let Some(definition) = line.strip_prefix("@let ") {
                let (name, value) = definition.split_once(' ').unwrap();
                script.lets.push((name.to_owned(), value.to_owned()));
            } else if let Some(definition) = line.strip_prefix("@repeat ") {
                let mut words = definition.splitn(3, ' ');
                let (name, count, text) =
                    (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
                script.lets.push((name.to_owned(), text.repeat(count.parse().unwrap())));
            } else if let Some(request) = script.requests.last_mut() {
                request.take(line, &script.name);
            } else {
                assert!(line.is_empty() || line.starts_with('#'), "{}:{}: {line}", script.name, index + 1);
            }
        }
        script.text = text;
        script
    }
}

impl Request {
    fn take(&mut self, line: &str, script: &str) {
        let Some(directive) = line.strip_prefix('@') else {
            if !line.starts_with('#') {
                self.body.push_str(line);
                self.body.push('\n');
            }
            return;
        };
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let pair = || {
            let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
            (first.to_owned(), second.to_owned())
        };
        match word {
            "raw" => self.raw = true,
            "unordered" => self.unordered = true,
            "header" => self.headers.push(pair()),
            "as" => self.headers.push(("Impersonate-User".into(), rest.into())),
            "save" => self.saves.push(pair()),
            "except" => self.except.push(pair()),
            "differs" => self.differs = Some(rest.into()),
            _ => panic!("{script}: the directive @{word} is unknown"),
        }
    }
}
