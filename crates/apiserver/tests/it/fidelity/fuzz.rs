//! Requests that nobody thought of, sent to ours and to a real kube-apiserver.
//!
//! Drawn cases (`draw`) are played at both; the first answer that differs names a class of differences. Of each new
//! class one case is made small (`shrink`) and written beside the recorded ones, with what the real server answered,
//! where it fails in `cargo test` until ours answers the same. `cargo xtask fuzz differential` runs this. What is known and
//! waits to be mended lies in `found/open`, which nobody plays.

mod custom;
mod draw;
mod shrink;
mod steps;
mod types;
mod values;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::{Duration, Instant},
};

use regex::Regex;

use self::{draw::Draw, shrink::Shows, steps::Case, types::Types};
use super::{
    compare,
    play::{self, Answer, Server},
};

/// How many cases are under way at once.
const AT_ONCE: usize = 3;

/// Where found cases go.
fn found() -> PathBuf {
    super::directory().join("found")
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(format!("WINDLASS_FUZZ_{name}")).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("WINDLASS_FUZZ_{name}: {text:?} is not a value of its type")))
}

#[test]
#[ignore = "needs a real API server: run `cargo xtask fuzz differential`"]
fn live() {
    let kubeconfig: PathBuf = variable("KUBECONFIG").expect("run this by `cargo xtask fuzz differential`");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let differences = runtime.block_on(async { Box::pin(Run::new(&kubeconfig).await.go()).await });
    assert_eq!(differences, 0, "answers differ: the cases are in {}", found().display());
}

/// Cases that are drawn and not sent anywhere are scripts all the same, and one seed draws the same ones.
#[test]
fn a_seed_draws_the_same_scripts_always() {
    let types = Types::load();
    let kinds = types.kinds();
    for seed in 0..200 {
        let draw = || Draw::new(&types, seed).case(&kinds, format!("s{seed}"));
        let text = draw().text("Drawn.");
        assert_eq!(text, draw().text("Drawn."));
        assert_eq!(draw().script("Drawn.").requests.len(), draw().steps.len());
    }
}

/// Every kind that can be created has an object that ours accepts.
#[test]
fn every_base_is_accepted() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let types = Types::load();
    for kind in types.kinds() {
        let step = steps::Step::new("POST", kind.collection(), Some(kind.base.clone()));
        let case = Case { name: kind.plural.clone(), managed: false, steps: vec![step] };
        let answers =
            runtime.block_on(async { Box::pin(play::play(&case.script("Base."), &Server::ours())).await });
        assert_eq!(answers[0].status, 201, "{}: {}", kind.plural, answers[0].body);
    }
}

struct Class {
    count: usize,
    file: String,
}

struct Run {
    types: Types,
    real: Server,
    seed: u64,
    end: Instant,
    requests: usize,
    filter: String,
    books: RefCell<Books>,
}

#[derive(Default)]
struct Books {
    sent: usize,
    cases: usize,
    /// The request after which the last new class came.
    last: usize,
    classes: BTreeMap<String, Class>,
}

/// A difference: which request, what class, and the text of it.
struct Difference {
    class: String,
    text: String,
}

impl Run {
    #[expect(clippy::disallowed_methods, reason = "a run against a real server takes real minutes")]
    async fn new(kubeconfig: &Path) -> Self {
        let minutes = variable::<f64>("MINUTES").unwrap_or(1.0);
        Self {
            types: Types::load(),
            real: Server::real(kubeconfig).await,
            seed: variable("SEED").unwrap_or(1),
            end: Instant::now() + Duration::from_secs_f64(minutes * 60.0),
            requests: variable("REQUESTS").unwrap_or(usize::MAX),
            filter: variable("FILTER").unwrap_or_default(),
            books: RefCell::default(),
        }
    }

    /// Runs until the end; leaves how many classes of differences there were.
    async fn go(self) -> usize {
        std::fs::create_dir_all(found()).unwrap();
        let mut kinds = self.types.kinds();
        kinds.retain(|kind| format!("{}/{}", kind.group_version, kind.plural).contains(&self.filter));
        assert!(!kinds.is_empty() || self.filter == "custom", "no kind matches {:?}", self.filter);
        let kinds = &kinds;
        let run = &self;
        let workers = (0..AT_ONCE).map(|worker| async move {
            let mut index = worker as u64;
            while run.more() {
                let seed = run.seed.wrapping_mul(1_000_000_007).wrapping_add(index);
                let case = Draw::new(&run.types, seed).case(kinds, format!("s{index}"));
                run.try_case(case, seed).await;
                index += AT_ONCE as u64;
            }
        });
        futures::future::join_all(workers).await;
        self.report()
    }

    #[expect(clippy::disallowed_methods, reason = "a run against a real server takes real minutes")]
    fn more(&self) -> bool {
        Instant::now() < self.end && self.books.borrow().sent < self.requests
    }

    async fn try_case(&self, case: Case, seed: u64) {
        let steps = case.steps.len();
        let difference = self.difference(&case).await;
        {
            let mut books = self.books.borrow_mut();
            books.sent += steps;
            books.cases += 1;
            let Some(difference) = &difference else { return };
            if let Some(class) = books.classes.get_mut(&difference.class) {
                class.count += 1;
                return;
            }
            books.last = books.sent;
            books.classes.insert(difference.class.clone(), Class { count: 1, file: String::new() });
        }
        let Some(difference) = difference else { return };
        let mut judge =
            Judge { run: self, class: difference.class.clone(), tries: variable("TRIES").unwrap_or(80) };
        let small = Box::pin(shrink::shrink(case, &mut judge)).await;
        self.keep(small, seed, difference).await;
    }

    /// Plays a case at both servers; the first difference, if there is one.
    async fn difference(&self, case: &Case) -> Option<Difference> {
        let script = case.script("Drawn.");
        let real = Box::pin(play::play(&script, &self.real)).await;
        let ours = Box::pin(play::play(&script, &Server::ours())).await;
        let requests = script.requests.iter().filter(|request| request.verb != "WAIT");
        for ((request, real), ours) in requests.zip(&real).zip(&ours) {
            let found = compare::of_answer(request, real.clone(), ours.clone());
            if !found.is_empty() {
                let text = format!("{} {}\n  {}", request.verb, request.path, found.join("\n  "));
                return Some(Difference { class: class(request, real, ours, &found), text });
            }
        }
        None
    }

    /// Writes a case and the real server's answers.
    async fn keep(&self, case: Case, seed: u64, difference: Difference) {
        let slug: String =
            difference.class.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).collect();
        let slug = slug.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
        // A namespace bears the name too, and something after it.
        let short: String = slug.to_lowercase().chars().take(40).collect();
        let digest = slug.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let name = format!("{}-{digest:04x}", short.trim_end_matches('-'));
        let case = Case { name: name.clone(), ..case };
        let text = match self.difference(&case).await {
            Some(small) => small.text,
            None => difference.text,
        };
        let heading = format!("Found by `cargo xtask fuzz differential`, seed {seed}.");
        let script = case.script(&heading);
        let answers = Box::pin(play::play(&script, &self.real)).await;
        std::fs::write(found().join(format!("{name}.http")), &script.text).unwrap();
        let recorded = serde_json::to_string_pretty(&answers).unwrap() + "\n";
        std::fs::write(found().join(format!("{name}.json")), recorded).unwrap();
        eprintln!("\n== {}\n{}\n{text}", difference.class, script.text);
        if let Some(class) = self.books.borrow_mut().classes.get_mut(&difference.class) {
            class.file = name;
        }
    }

    fn report(&self) -> usize {
        let books = self.books.borrow();
        let mut classes: Vec<_> = books.classes.iter().collect();
        classes.sort_by_key(|(_, class)| std::cmp::Reverse(class.count));
        for (key, class) in &classes {
            eprintln!("{:6}  {key}  [{}]", class.count, class.file);
        }
        eprintln!(
            "seed {}: {} requests in {} cases, {} classes of differences, the last new one after {} requests",
            self.seed,
            books.sent,
            books.cases,
            classes.len(),
            books.last
        );
        classes.len()
    }
}

struct Judge<'a> {
    run: &'a Run,
    class: String,
    tries: usize,
}

impl Shows for Judge<'_> {
    async fn shows(&mut self, case: &Case) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        let found = self.run.difference(case).await;
        found.is_some_and(|found| found.class == self.class)
    }
}

static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d+").unwrap());
static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""(\\.|[^"\\])*"|\{[^{}]*\}|s\d+-[0-9a-z]+(-a)?"#).unwrap());

/// What the differences of two answers have in common with others of their kind.
fn class(request: &super::script::Request, real: &Answer, ours: &Answer, found: &[String]) -> String {
    let path = request.path.split('?').next().unwrap();
    let resource = path.replace("/namespaces/$ns", "").replace("/api/v1/", "").replace("/apis/", "");
    let resource = resource.replace("/$id-a", "").replace("/a/", "/").replace("/v1.$id.example.com", "");
    let resource = resource.strip_suffix("/a").unwrap_or(&resource).to_owned();
    let general = |text: &str| {
        let text = QUOTED.replace_all(text, "_");
        NUMBER.replace_all(&text, "#").chars().take(160).collect::<String>()
    };
    let said = |answer: &Answer| {
        let causes = answer.body.pointer("/details/causes").and_then(serde_json::Value::as_array);
        let of = |cause: &serde_json::Value| {
            general(&format!(
                "{} {}",
                cause["field"].as_str().unwrap_or_default(),
                cause["message"].as_str().unwrap_or_default()
            ))
        };
        match causes {
            Some(causes) if !causes.is_empty() => causes.iter().map(of).collect(),
            _ if answer.status >= 400 => vec![general(answer.body["message"].as_str().unwrap_or_default())],
            _ => Vec::new(),
        }
    };
    let (theirs, own) = (said(real), said(ours));
    let missing = theirs.iter().find(|one| !own.contains(one));
    let extra = own.iter().find(|one| !theirs.contains(one));
    let what = match (missing, extra) {
        (Some(missing), Some(extra)) => format!("real {missing} | ours {extra}"),
        (Some(missing), None) => format!("lacks {missing}"),
        (None, Some(extra)) => format!("invents {extra}"),
        (None, None) => {
            let first = found[0].replace("\n    ", " ");
            let present = |word: &str| first.contains(&format!("{word} nothing"));
            let pointer = general(first.split(':').next().unwrap_or_default());
            let how = if found[0].contains("recorded nothing") {
                "invents"
            } else if present("ours    ") {
                "lacks"
            } else {
                "other"
            };
            format!("{how} {pointer}")
        }
    };
    format!(
        "{resource} {} {what}",
        if real.status == ours.status { String::new() } else { format!("{}/{}", real.status, ours.status) }
    )
}
