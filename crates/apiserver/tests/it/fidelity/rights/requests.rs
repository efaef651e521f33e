//! Every request that the table of rights asks about, made from what is served.
//!
//! Enters the recorded list of resources; leaves methods and paths. All writes are dry runs, and nothing that they name
//! exists, so the answers depend on nothing but who asks.

use serde_json::{Value, json};

/// What the built-in API serves, as recorded from a real server.
const SERVED: &str = include_str!("../../../../src/registry/resources.txt");
/// Resources whose rights are asked for in every form; of the others only with and without the plain rule.
const WHOLE: [&str; 9] = [
    "configmaps",
    "pods",
    "services",
    "deployments",
    "serviceaccounts",
    "namespaces",
    "nodes",
    "certificatesigningrequests",
    "widgets",
];
/// Kinds of patches.
const PATCHES: [&str; 4] =
    ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"];

/// A request of the table.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: &'static str,
    pub(super) path: String,
    /// The type of its body, without `application/`.
    pub(super) media: &'static str,
    pub(super) body: Value,
    /// Whether every form of the rule is tried.
    pub(super) whole: bool,
}

impl Asked {
    /// How the table names it.
    pub(super) fn name(&self) -> String {
        match self.media.strip_suffix("+json").or_else(|| self.media.strip_suffix("+yaml")) {
            Some(patch) => format!("{} {} {patch}", self.method, self.path),
            None => format!("{} {}", self.method, self.path),
        }
    }
}

/// A resource and what it stands below.
struct Served {
    group_version: String,
    /// The path of the group version.
    root: String,
    resource: String,
    kind: String,
    namespaced: bool,
    subresources: Vec<String>,
}

/// All of them. `$ns` stands for a namespace, `$group` for a group of custom resources.
pub(super) fn all() -> Vec<Asked> {
    let mut out = Vec::new();
    for served in served() {
        served.ask(&mut out);
    }
    paths(&mut out);
    out
}

fn served() -> Vec<Served> {
    let mut all: Vec<Served> = SERVED.lines().map(read).collect();
    all.push(Served {
        group_version: "$group/v1".into(),
        root: "/apis/$group/v1".into(),
        resource: "widgets".into(),
        kind: "Widget".into(),
        namespaced: true,
        subresources: vec!["status".into(), "scale".into()],
    });
    all
}

fn read(line: &str) -> Served {
    let (group_version, facts) = line.split_once(' ').unwrap();
    let facts: Value = serde_json::from_str(facts).unwrap();
    let text = |pointer: &str| facts.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    let (group_version, root) = match group_version.strip_prefix("core/") {
        Some(version) => (version.to_owned(), format!("/api/{version}")),
        None => (group_version.to_owned(), format!("/apis/{group_version}")),
    };
    let subresources = facts["subresources"].as_array().into_iter().flatten();
    Served {
        group_version,
        root,
        resource: text("/resource"),
        kind: text("/responseKind/kind"),
        namespaced: text("/scope") == "Namespaced",
        subresources: subresources.map(|one| one["subresource"].as_str().unwrap().to_owned()).collect(),
    }
}

impl Served {
    fn ask(&self, out: &mut Vec<Asked>) {
        let Self { root, resource, .. } = self;
        let everywhere = format!("{root}/{resource}");
        let base =
            if self.namespaced { format!("{root}/namespaces/$ns/{resource}") } else { everywhere.clone() };
        let watch = "watch=true&timeoutSeconds=1";
        for get in [
            base.clone(),
            format!("{base}?{watch}"),
            format!("{base}?fieldSelector=metadata.name%3Done"),
            format!("{base}?fieldSelector=metadata.name%3Done&{watch}"),
            format!("{base}?fieldSelector=metadata.name%21%3Done"),
            format!("{base}/one"),
            format!("{base}/one?{watch}"),
            format!("{base}/one/nothing"),
            base.replacen(root, &format!("{root}/watch"), 1) + "?timeoutSeconds=1",
            base.replacen(root, &format!("{root}/watch"), 1) + "/one?timeoutSeconds=1",
        ] {
            self.add(out, "GET", get);
        }
        if self.namespaced {
            self.add(out, "GET", everywhere.clone());
            self.add(out, "GET", format!("{everywhere}?{watch}"));
            self.add(out, "GET", format!("{everywhere}?fieldSelector=metadata.namespace%3D$ns"));
            self.add(out, "POST", format!("{everywhere}?dryRun=All"));
            self.add(out, "DELETE", format!("{everywhere}?dryRun=All"));
            self.add(out, "GET", format!("{everywhere}/one"));
        }
        for method in ["HEAD", "PUT", "DELETE", "POST", "OPTIONS"] {
            self.add(out, method, format!("{base}/one?dryRun=All"));
        }
        for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
            self.add(out, method, format!("{base}?dryRun=All"));
        }
        for media in PATCHES {
            self.patch(out, media, &format!("{base}/one"));
        }
        for subresource in &self.subresources {
            for method in ["GET", "POST", "PUT", "DELETE"] {
                self.add(out, method, format!("{base}/one/{subresource}?dryRun=All"));
            }
            self.patch(out, "merge-patch+json", &format!("{base}/one/{subresource}"));
        }
    }

    fn body(&self) -> Value {
        json!({"apiVersion": self.group_version, "kind": self.kind, "metadata": {"name": "one"}})
    }

    fn add(&self, out: &mut Vec<Asked>, method: &'static str, path: String) {
        let body = if matches!(method, "POST" | "PUT") { self.body() } else { Value::Null };
        out.push(Asked { method, path, media: "json", body, whole: self.whole() });
    }

    fn patch(&self, out: &mut Vec<Asked>, media: &'static str, path: &str) {
        let body = match media {
            "json-patch+json" => json!([]),
            "apply-patch+yaml" => self.body(),
            _ => json!({}),
        };
        let path = format!("{path}?dryRun=All&fieldManager=rights");
        out.push(Asked { method: "PATCH", path, media, body, whole: self.whole() });
    }

    fn whole(&self) -> bool {
        WHOLE.contains(&self.resource.as_str())
    }
}

/// Paths that name no resource, and odd spellings of those that do.
fn paths(out: &mut Vec<Asked>) {
    let mut add = |method, path: &str| {
        out.push(Asked { method, path: path.to_owned(), media: "json", body: Value::Null, whole: true });
    };
    for path in [
        "/",
        "/api",
        "/apis",
        "/api/",
        "/apis/",
        "/apis/apps",
        "/apis/apps/",
        "/apis/apps/v1",
        "/api/v1",
        "/api/v1/",
        "/apis/none.example.com",
        "/apis/none.example.com/v1",
        "/version",
        "/version/",
        "/healthz",
        "/healthz/",
        "/healthz/ping",
        "/livez",
        "/livez/ping",
        "/readyz",
        "/readyz/ping",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/api/v1",
        "/openid/v1/jwks",
        "/.well-known/openid-configuration",
        "/logs",
        "/none",
        "/none/below",
        "/swagger.json",
        "/debug/none",
    ] {
        add("GET", path);
        add("POST", path);
    }
    add("HEAD", "/version");
    add("DELETE", "/version");
    for path in [
        "/api/v1/namespaces/$ns/configmaps/",
        "/api/v1/namespaces/$ns/configmaps/one/",
        "/api/v1/namespaces/$ns/configmaps/one/two/three",
        "/api/v1/namespaces/$ns/%63onfigmaps/one",
        "/api/v1/namespaces/$ns/nothings",
        "/api/v1/namespaces/$ns/nothings/one",
        "/api/v1/nothings",
        "/api/v1/namespaces/$ns/deployments/one",
        "/apis/apps/v1/namespaces/$ns/pods/one",
        "/apis/apps/v9/namespaces/$ns/deployments/one",
        "/api/v2/namespaces/$ns/configmaps/one",
        "/apis/none.example.com/v1/namespaces/$ns/things/one",
        "/api/v1/namespaces/$ns/",
        "/api/v1/watch/namespaces/$ns?timeoutSeconds=1",
        "/api/v1/namespaces/$ns/status",
        "/api/v1/namespaces/$ns/finalize",
        "/api/v1/namespaces/$ns/nodes/one",
        "/api/v1/namespaces/other/configmaps/one",
        "/api/v1/namespaces/$ns/pods/one/proxy/a/b?c=d",
        "/api/v1/namespaces/$ns/pods/one:8080/proxy/a",
        "/api/v1/namespaces/$ns/services/one/proxy/a/b",
        "/api/v1/namespaces/$ns/services/https:one:443/proxy/",
        "/api/v1/nodes/one/proxy/metrics",
        "/api/v1/nodes/one/proxy/logs/a",
    ] {
        add("GET", path);
        let joint = if path.contains('?') { '&' } else { '?' };
        add("DELETE", &format!("{path}{joint}dryRun=All"));
    }
}
