//! The files of a chart that are no objects: Chart.yaml, the README, the notes, the helpers, the test.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    settings::Settings,
    switch::CustomKind,
    template::{Gaps, INDENT},
};
use crate::{Error, Facts, Objects, RELEASE_NAMESPACE, objects::items, yaml};

/// Files that are no part of a packed chart.
pub(super) const IGNORED: &str = "\
.DS_Store
.git/
.gitignore
.windlass-generated
*.new
*.orig
*.swp
*~
";

/// What `helm` reads first.
pub(super) fn chart(facts: &Facts) -> Result<String, Error> {
    let maintainers: Vec<Value> = facts
        .maintainers
        .iter()
        .map(|maintainer| json!({ "name": maintainer.name, "email": maintainer.email }))
        .collect();
    let mut chart = json!({
        "apiVersion": "v2",
        "type": "application",
        "name": facts.name,
        "version": facts.version,
        "appVersion": facts.version,
        "description": facts.sentence(),
        // With prereleases, as which the versions of many providers count.
        "kubeVersion": format!(">= {}-0", facts.min_kube_version),
        "icon": facts.picture().url(),
        "annotations": { "artifacthub.io/operator": "true" },
    });
    if let Some(license) = &facts.license {
        chart["annotations"]["artifacthub.io/license"] = json!(license);
    }
    if !facts.keywords.is_empty() {
        chart["keywords"] = json!(facts.keywords);
    }
    if !maintainers.is_empty() {
        chart["maintainers"] = json!(maintainers);
    }
    let mut links = facts.links.iter();
    if let Some(first) = links.next() {
        chart["home"] = json!(first.url);
    }
    let others: Vec<&str> = links.map(|link| link.url.as_str()).collect();
    if !others.is_empty() {
        chart["sources"] = json!(others);
    }
    yaml::document("Chart.yaml", &chart)
}

/// What the templates share.
pub(super) fn helpers(facts: &Facts, account: &str, kinds: &[CustomKind]) -> String {
    let chart = &facts.name;
    let mut text = format!(
        "{{{{/* The image of the operator. */}}}}\n\
         {{{{- define \"{chart}.image\" -}}}}\n\
         {{{{- with $.Values.image -}}}}\n\
         {{{{- if .digest -}}}}\n{{{{ .repository }}}}@{{{{ .digest }}}}\n\
         {{{{- else -}}}}\n{{{{ .repository }}}}:{{{{ .tag | default $.Chart.AppVersion }}}}\n\
         {{{{- end -}}}}\n{{{{- end -}}}}\n{{{{- end }}}}\n\n\
         {{{{/* Who the operator runs as. */}}}}\n\
         {{{{- define \"{chart}.serviceAccountName\" -}}}}\n\
         {{{{- $.Values.serviceAccount.name | default \"{account}\" -}}}}\n\
         {{{{- end }}}}\n\n\
         {{{{/* The kinds that are switched off. */}}}}\n\
         {{{{- define \"{chart}.disabledKinds\" -}}}}\n\
         {{{{- $off := list -}}}}\n"
    );
    for kind in kinds {
        let _ = writeln!(
            text,
            "{{{{- if not $.Values.kinds.{} -}}}}{{{{- $off = append $off \"{}\" -}}}}{{{{- end -}}}}",
            kind.key, kind.crd
        );
    }
    text.push_str("{{- join \",\" $off -}}\n{{- end }}\n");
    text
}

/// What is told after an installation.
pub(super) fn notes(facts: &Facts, objects: &Objects) -> String {
    let (title, name) = (facts.title(), objects.name());
    let kinds: Vec<&str> = objects.crds().filter_map(|crd| crd["metadata"]["name"].as_str()).collect();
    let mut text = format!(
        "{title} {{{{ .Chart.AppVersion }}}} is in the namespace {{{{ .Release.Namespace }}}}.\n\n\
         Wait until it runs, and ask whether its kinds are served and a replica leads:\n\n\
         \x20 kubectl -n {{{{ .Release.Namespace }}}} rollout status deployment/{name}\n\
         \x20 helm test -n {{{{ .Release.Namespace }}}} {{{{ .Release.Name }}}}\n"
    );
    if !kinds.is_empty() {
        let _ = write!(
            text,
            "\nIts kinds: {}.\nThey and their objects stay when the release is uninstalled. To delete them with every object:\n\n\
             \x20 kubectl delete crd {}\n",
            kinds.join(", "),
            kinds.join(" ")
        );
    }
    text
}

/// What people read about the chart.
pub(super) fn readme(facts: &Facts, objects: &Objects, settings: &Settings) -> String {
    let Facts { name: chart, namespace, command, .. } = facts;
    let title = facts.title();
    let mut text = format!(
        "# {title}\n\n{}\n\n\
         ## Install\n\n```sh\nhelm install {chart} . --namespace {namespace} --create-namespace\n\
         helm test {chart} --namespace {namespace}\n```\n\n\
         The test runs the operator's own program, which asks the cluster whether the kinds are served and a replica\n\
         leads. The Pods fulfil Pod Security \"restricted\"; to have that enforced:\n\n\
         ```sh\nkubectl label namespace {namespace} pod-security.kubernetes.io/enforce=restricted\n```\n\n\
         ## Upgrade, roll back, uninstall\n\n```sh\nhelm upgrade {chart} . --namespace {namespace}\n\
         helm rollback {chart} --namespace {namespace}\nhelm uninstall {chart} --namespace {namespace}\n```\n\n\
         CRDs are upgraded with the chart. Uninstalling leaves them and every object of their kinds; a later installation\n\
         of the same name in the same namespace takes them over again. A rollback brings back the CRDs of the older chart:\n\
         the API server refuses that if objects are stored in a version that these do not have.\n",
        facts.sentence()
    );
    let kinds: Vec<&Value> = objects.crds().collect();
    if !kinds.is_empty() {
        text.push_str("\n## Kinds\n\n| Kind | CRD | Versions |\n|---|---|---|\n");
        for crd in kinds {
            let versions: Vec<&str> =
                items(&crd["spec"]["versions"]).filter_map(|version| version["name"].as_str()).collect();
            let _ = writeln!(
                text,
                "| {} | `{}` | {} |",
                crd["spec"]["names"]["kind"].as_str().unwrap_or_default(),
                crd["metadata"]["name"].as_str().unwrap_or_default(),
                versions.join(", ")
            );
        }
    }
    let _ = write!(text, "\n## Values\n\n{}", settings.table());
    let _ = write!(
        text,
        "\nThis chart was written by `{command}`. A file of it that you change stays as you leave it when the command runs\n\
         again, which then says so; `--force` replaces it.\n"
    );
    text
}

/// What `helm test` runs: the operator's own program, as the operator's own account.
pub(super) fn test(facts: &Facts, objects: &Objects) -> Result<String, Error> {
    let chart = &facts.name;
    let deployment = objects.deployment()?;
    let pod = &deployment["spec"]["template"]["spec"];
    let mut gaps = Gaps::default();
    let image = gaps.inline(format!("{{{{ include \"{chart}.image\" $ | quote }}}}"));
    let account = gaps.inline(format!("{{{{ include \"{chart}.serviceAccountName\" $ }}}}"));
    let resources = gaps.inline(format!("{{{{- toYaml $.Values.resources | nindent {INDENT} }}}}"));
    let mut container = json!({
        "name": "check",
        "image": image,
        "args": ["check", format!("--namespace={RELEASE_NAMESPACE}"), "--timeout=60s"],
        "resources": resources,
        "securityContext": pod["containers"][0]["securityContext"],
    });
    // What an author's own arguments decide must be decided in the same way here.
    for argument in items(&pod["containers"][0]["args"]).filter(|argument| is_authors(argument)) {
        if let Some(list) = container["args"].as_array_mut() {
            list.push(argument.clone());
        }
    }
    gaps.item(
        &mut container["args"],
        format!("{{{{- with include \"{chart}.disabledKinds\" $ }}}}\n- --disable-kinds={{{{ . }}}}\n{{{{- end }}}}"),
    );
    gaps.entry(&mut container, "{{- with $.Values.image.pullPolicy }}\nimagePullPolicy: {{ . }}\n{{- end }}");
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{}-test", objects.name()),
            "namespace": RELEASE_NAMESPACE,
            "labels": { "app.kubernetes.io/name": format!("{}-test", objects.name()) },
            "annotations": {
                "helm.sh/hook": "test",
                "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": account,
            "securityContext": pod["securityContext"],
            "containers": [container],
        },
    });
    for field in ["imagePullSecrets", "nodeSelector", "tolerations"] {
        let lines = format!(
            "{{{{- with $.Values.{field} }}}}\n{field}: {{{{- toYaml . | nindent {INDENT} }}}}\n{{{{- end }}}}"
        );
        gaps.entry(&mut object["spec"], lines);
    }
    gaps.fill("templates/tests/check.yaml", &object)
}

/// Arguments beside those of every operator, which begin with `run` and are known.
fn is_authors(argument: &Value) -> bool {
    const KNOWN: [&str; 6] = [
        "--leader-elect",
        "--metrics-bind-address",
        "--health-probe-bind-address",
        "--watch-namespaces",
        "--webhook-port",
        "--webhook-cert-path",
    ];
    let text = argument.as_str().unwrap_or_default();
    let flag = text.split('=').next().unwrap_or_default();
    flag.starts_with("--") && !KNOWN.contains(&flag)
}
