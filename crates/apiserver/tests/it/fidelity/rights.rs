//! Who may do what: every request of the API by somebody without rights, and by somebody with just the right one.
//!
//! A server tells whom it refuses what is missing. So the table is made by asking: first by a user without any rule, then
//! by one who has the rule that the refusal named, in all the forms that a rule can have. What a real kube-apiserver
//! said lies in `tests/fixtures/rights.txt`; ours must refuse and let in the same, in the same words.

mod requests;

use std::{collections::BTreeMap, path::Path, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, StatusCode, header};
use serde_json::{Value, json};

use self::requests::Asked;
use super::play::{Server, prepare};

/// Requests that are under way at once: a real server holds a watch open for a second.
const AT_ONCE: usize = 16;

/// How the table calls an answer that is no refusal. What else is wrong with a request is not its subject.
const ALLOWED: &str = "allowed";

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A request, and how each form of its rule was answered.
#[derive(Debug)]
struct Row {
    request: String,
    /// By the form of the rule: what was answered.
    answers: BTreeMap<Form, String>,
}

impl Row {
    /// `REQUEST | without a rule | form=answer …`: a refusal that is the first one again is `=`.
    fn write(&self) -> String {
        let first = self.answers.get(&Form::Nothing).cloned().unwrap_or_default();
        let others = self.answers.iter().filter(|(form, _)| **form != Form::Nothing);
        let others = others.map(|(form, answer)| {
            let answer = if *answer == first { "=" } else { answer };
            format!(" | {form:?}: {answer}")
        });
        format!("{} | {first}{}\n", self.request, others.collect::<String>())
    }

    fn read(line: &str) -> Self {
        let mut parts = line.split(" | ");
        let (request, first) = (parts.next().unwrap().to_owned(), parts.next().unwrap().to_owned());
        let mut answers = BTreeMap::from([(Form::Nothing, first.clone())]);
        for part in parts {
            let (form, answer) = part.split_once(": ").unwrap();
            let form = Form::ALL.into_iter().find(|known| format!("{known:?}") == form).unwrap();
            answers.insert(form, if answer == "=" { first.clone() } else { answer.to_owned() });
        }
        Self { request, answers }
    }
}

/// What the user has of the rule that the refusal named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// No rule.
    Nothing,
    /// The rule, in all namespaces.
    Rule,
    /// The rule, for objects called `one`.
    Named,
    /// The rule, for objects called `other`.
    NamedOther,
    /// The rule, in the namespace.
    Inside,
    /// The rule, in another namespace.
    Elsewhere,
    /// The rule, for `*/SUBRESOURCE`.
    EverySubresource,
    /// The rule with `*` for its verb, its group and its resource.
    Everything,
    /// The rule, and the one that the refusal of it named.
    Both,
}

impl Form {
    const ALL: [Self; 9] = [
        Self::Nothing,
        Self::Rule,
        Self::Named,
        Self::NamedOther,
        Self::Inside,
        Self::Elsewhere,
        Self::EverySubresource,
        Self::Everything,
        Self::Both,
    ];
    const OF_A_RULE: [Self; 7] = [
        Self::Rule,
        Self::Named,
        Self::NamedOther,
        Self::Inside,
        Self::Elsewhere,
        Self::EverySubresource,
        Self::Everything,
    ];
}

/// What a refusal says is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    Resource { verb: String, group: String, resource: String },
    Path { verb: String, path: String },
}

impl Missing {
    /// Reads it from the short form of a refusal.
    fn read(answer: &str) -> Option<Self> {
        match answer.split(' ').collect::<Vec<_>>()[..] {
            ["path", verb, path] => Some(Self::Path { verb: verb.into(), path: path.into() }),
            [verb, group, resource, _, _] => Some(Self::Resource {
                verb: verb.into(),
                group: group.trim_start_matches('-').into(),
                resource: resource.into(),
            }),
            _ => None,
        }
    }

    /// The rule that gives it.
    fn rule(&self, form: Form) -> Value {
        match self {
            Self::Path { path, .. } if form == Form::Everything => {
                json!({"verbs": ["*"], "nonResourceURLs": [format!("{}*", &path[..=path.rfind('/').unwrap_or(0)])]})
            }
            Self::Path { verb, path } => json!({"verbs": [verb], "nonResourceURLs": [path]}),
            Self::Resource { .. } if form == Form::Everything => {
                json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
            }
            Self::Resource { verb, group, resource } => {
                let wide = resource.split_once('/').map(|(_, below)| format!("*/{below}"));
                let resource =
                    wide.filter(|_| form == Form::EverySubresource).unwrap_or_else(|| resource.clone());
                let mut rule = json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]});
                match form {
                    Form::Named => rule["resourceNames"] = json!(["one"]),
                    Form::NamedOther => rule["resourceNames"] = json!(["other"]),
                    _ => {}
                }
                rule
            }
        }
    }

    /// Whether a rule for it can have this form.
    fn has(&self, form: Form) -> bool {
        match self {
            Self::Path { .. } => matches!(form, Form::Rule | Form::Everything),
            Self::Resource { resource, .. } => form != Form::EverySubresource || resource.contains('/'),
        }
    }
}

/// The message of a refusal as the table has it: `VERB GROUP RESOURCE SCOPE NAME` or `path VERB PATH`. Whatever is said in
/// other words is kept as it is.
fn short(message: &str) -> String {
    let parsed = || {
        let (what, rest) = message.split_once("forbidden: User \"$user\" cannot ")?;
        let quoted: Vec<&str> = rest.split('"').collect();
        let verb = rest.split(' ').next()?;
        if what.is_empty() {
            return Some(format!("path {verb} {}", quoted.get(1)?));
        }
        let (resource, group, namespace) = (*quoted.get(1)?, *quoted.get(3)?, quoted.get(5).copied());
        let name = what.split('"').nth(1);
        let dash = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
        Some(format!("{verb} {} {resource} {} {}", dash(Some(group)), dash(namespace), dash(name)))
    };
    parsed().filter(|short| long(short).as_deref() == Some(message)).unwrap_or_else(|| message.to_owned())
}

/// The message again, to be sure that nothing was lost.
fn long(short: &str) -> Option<String> {
    let text = |part: &str| if part == "-" { String::new() } else { part.to_owned() };
    match short.split(' ').collect::<Vec<_>>()[..] {
        ["path", verb, path] => Some(format!("forbidden: User \"$user\" cannot {verb} path \"{path}\"")),
        [verb, group, resource, namespace, name] => {
            let plural = resource.split('/').next()?;
            let kind = if group == "-" { plural.to_owned() } else { format!("{plural}.{group}") };
            let name = if name == "-" { String::new() } else { format!(" \"{name}\"") };
            let scope = match namespace {
                "-" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace \"{namespace}\""),
            };
            let group = text(group);
            Some(format!(
                "{kind}{name} is forbidden: User \"$user\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {scope}"
            ))
        }
        _ => None,
    }
}

#[test]
fn every_request_needs_the_recorded_rights() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rights.txt");
    let all = requests::all();
    if let Some(kubeconfig) = std::env::var_os("WINDLASS_FIDELITY_RECORD") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let rows = runtime.block_on(async {
            let server = Server::real(Path::new(&kubeconfig)).await;
            Table::new(&server).await.ask(&all, None).await
        });
        std::fs::write(path, rows.iter().map(Row::write).collect::<String>()).unwrap();
        return;
    }
    let recorded: Vec<Row> = std::fs::read_to_string(&path).unwrap().lines().map(Row::read).collect();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let ours = runtime.block_on(async {
        let server = Server::ours();
        Table::new(&server).await.ask(&all, Some(&recorded)).await
    });
    let differences = differences(&recorded, &ours);
    assert!(
        differences.is_empty(),
        "{} answers differ from the recorded ones:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// Where ours judges differently.
fn differences(recorded: &[Row], ours: &[Row]) -> Vec<String> {
    let names = |rows: &[Row]| rows.iter().map(|row| row.request.clone()).collect::<Vec<_>>();
    assert_eq!(names(recorded), names(ours), "record again: `cargo xtask fidelity record rights`");
    let pairs = recorded.iter().zip(ours);
    let each = pairs.flat_map(|(recorded, ours)| {
        recorded
            .answers
            .iter()
            .map(move |(form, answer)| (&recorded.request, form, answer, ours.answers.get(form)))
    });
    let different = each.filter(|(request, _, answer, ours)| {
        Some(*answer) != *ours
            // The real server leaves its own classes out where ours refuses to remove them.
            && !request.starts_with("DELETE /apis/scheduling.k8s.io/v1/priorityclasses?")
    });
    different
        .map(|(request, form, answer, ours)| {
            format!(
                "{request} with {form:?}\n  recorded: {answer}\n  ours:     {}",
                ours.map_or("-", |ours| ours)
            )
        })
        .collect()
}

/// Everybody who asks: each has one set of rules in one form.
#[derive(Debug, Default)]
struct Users(BTreeMap<(Vec<Missing>, Form), String>);

impl Users {
    /// The user with these rules, and whether they are new.
    fn with(&mut self, prefix: &str, rules: &[Missing], form: Form) -> (String, bool) {
        let next = format!("{prefix}-user{}", self.0.len());
        let mut new = false;
        let name = self.0.entry((rules.to_vec(), form)).or_insert_with(|| {
            new = true;
            next
        });
        (name.clone(), new)
    }
}

/// One server under question.
struct Table<'a> {
    server: &'a Server,
    /// What the names in paths stand for.
    namespace: String,
    users: Users,
}

impl<'a> Table<'a> {
    /// A namespace of its own, and a custom resource.
    async fn new(server: &'a Server) -> Self {
        let namespace = server.fresh_name("rights");
        prepare(server, &namespace).await;
        let table = Self { server, namespace, users: Users::default() };
        let definition = json!({
            "metadata": {"name": table.fill("widgets.$group")},
            "spec": {
                "group": table.fill("$group"), "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        table.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
        table.settle().await;
        table
    }

    /// Asks everything in every form; the rules come from what was refused.
    async fn ask(&mut self, all: &[Asked], refusals: Option<&[Row]>) -> Vec<Row> {
        let mut rows: Vec<Row> =
            all.iter().map(|asked| Row { request: asked.name(), answers: BTreeMap::new() }).collect();
        let nobody =
            all.iter().enumerate().map(|(at, asked)| (at, asked, Form::Nothing, "nobody".to_owned()));
        self.round(nobody.collect(), &mut rows).await;

        // The same rules for both servers: those that the recorded refusals name.
        let missing = |rows: &[Row], at: usize, form| {
            let rows = refusals.unwrap_or(rows);
            rows[at].answers.get(&form).and_then(|answer| Missing::read(answer))
        };
        let mut plan = Vec::new();
        for (at, asked) in all.iter().enumerate() {
            let Some(missing) = missing(&rows, at, Form::Nothing) else { continue };
            let forms: &[Form] = if asked.whole { &Form::OF_A_RULE } else { &Form::OF_A_RULE[..1] };
            for form in forms.iter().copied().filter(|form| missing.has(*form)) {
                plan.push((at, asked, form, self.user(std::slice::from_ref(&missing), form).await));
            }
        }
        self.settle().await;
        self.round(plan, &mut rows).await;

        let mut plan = Vec::new();
        for (at, asked) in all.iter().enumerate() {
            let (first, second) = (missing(&rows, at, Form::Nothing), missing(&rows, at, Form::Rule));
            if let (Some(first), Some(second)) = (first, second) {
                plan.push((at, asked, Form::Both, self.user(&[first, second], Form::Rule).await));
            }
        }
        self.settle().await;
        self.round(plan, &mut rows).await;
        rows
    }

    async fn round(&self, plan: Vec<(usize, &Asked, Form, String)>, rows: &mut [Row]) {
        let answers = stream::iter(plan)
            .map(|(at, asked, form, user)| async move { (at, form, self.answer(asked, &user).await) });
        let mut answers = answers.buffer_unordered(AT_ONCE);
        while let Some((at, form, answer)) = answers.next().await {
            rows[at].answers.insert(form, answer);
        }
    }

    /// How the answer judges: `allowed`, whatever else was wrong, or what is missing.
    async fn answer(&self, asked: &Asked, user: &str) -> String {
        let body = if asked.body.is_null() { String::new() } else { self.fill(&asked.body.to_string()) };
        let mut request = Request::builder()
            .method(asked.method)
            .uri(self.fill(&asked.path))
            .header(header::ACCEPT, "application/json")
            .header("Impersonate-User", user);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, format!("application/{}", asked.media));
        }
        let (parts, body) = self.server.send(request.body(Bytes::from(body)).unwrap()).await;
        if parts.status != StatusCode::FORBIDDEN {
            return ALLOWED.to_owned();
        }
        let said = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        let message = said["message"].as_str().unwrap_or_default();
        let message = message.replace(&format!("\"{user}\""), "\"$user\"").replace(&self.namespace, "$ns");
        // The answer to a HEAD has no body; a server that is not asked over a socket may give one.
        if asked.method == "HEAD" { "refused".to_owned() } else { short(&message) }
    }

    fn fill(&self, text: &str) -> String {
        text.replace("$ns", &self.namespace).replace("$group", &format!("{}.example.com", self.namespace))
    }

    /// A user with these rules.
    async fn user(&mut self, rules: &[Missing], form: Form) -> String {
        let (user, new) = self.users.with(&self.namespace, rules, form);
        if !new {
            return user;
        }
        let root = match form {
            Form::Inside => format!("/namespaces/{}", self.namespace),
            Form::Elsewhere => "/namespaces/default".to_owned(),
            _ => String::new(),
        };
        let rules: Vec<Value> = rules.iter().map(|rule| rule.rule(form)).collect();
        let rules = self.fill(&json!(rules).to_string());
        let rules: Value = serde_json::from_str(&rules).unwrap();
        self.create(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": user}, "rules": rules}))
            .await;
        let bindings =
            if root.is_empty() { "/clusterrolebindings".to_owned() } else { format!("{root}/rolebindings") };
        let bindings = format!("{RBAC}{bindings}");
        let binding = json!({
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        self.create(&bindings, binding).await;
        user
    }

    async fn create(&self, path: &str, body: Value) {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Bytes::from(body.to_string()));
        let (parts, answer) = self.server.send(request.unwrap()).await;
        assert!(parts.status.is_success(), "{path} {body}: {}", String::from_utf8_lossy(&answer));
    }

    /// A real server knows of a binding a moment after it was written.
    async fn settle(&self) {
        if matches!(self.server, Server::Real(_)) {
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    }
}
