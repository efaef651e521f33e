//! The Deployment of the operator as a template, and the values that it takes.

use serde_json::{Value, json};

use super::{
    settings::Settings,
    template::{AT, Gaps, INDENT},
};
use crate::objects::{image_parts, items};

/// Opens the Deployment for everything that people change in one, and adds those values.
pub(super) fn open(deployment: &mut Value, chart: &str, gaps: &mut Gaps, settings: &mut Settings) {
    let spec = &mut deployment["spec"];
    settings.add_with(
        "replicas",
        spec["replicas"].clone(),
        "How many replicas; one of them leads",
        json!({ "type": "integer", "minimum": 0 }),
    );
    spec["replicas"] = json!(gaps.inline("{{ $.Values.replicas }}"));
    let pod = &mut spec["template"];
    settings.add("podLabels", json!({}), "Labels for the Pods, beside those that they have");
    gaps.entry(&mut pod["metadata"]["labels"], beside("podLabels"));
    settings.add("podAnnotations", json!({}), "Annotations for the Pods");
    annotations(&mut pod["metadata"], "podAnnotations", gaps);
    let pod = &mut pod["spec"];
    pod["serviceAccountName"] =
        json!(gaps.inline(format!("{{{{ include \"{chart}.serviceAccountName\" $ }}}}")));
    let container = &mut pod["containers"][0];
    image(container, chart, gaps, settings);
    arguments(container, chart, gaps, settings);
    let resources = std::mem::take(&mut container["resources"]);
    settings.add(
        "resources",
        if resources.is_object() { resources } else { json!({}) },
        "What the operator requests, and its limits",
    );
    container["resources"] =
        json!(gaps.inline(format!("{{{{- toYaml $.Values.resources | nindent {INDENT} }}}}")));
    placed(pod, gaps, settings);
}

/// What a value holds, beside what stands there already.
fn beside(value: &str) -> String {
    format!("{{{{- with $.Values.{value} }}}}\n{{{{- toYaml . | nindent {AT} }}}}\n{{{{- end }}}}")
}

fn annotations(metadata: &mut Value, value: &str, gaps: &mut Gaps) {
    // Those that the object has already stay where they are.
    if metadata["annotations"].is_object() {
        gaps.entry(&mut metadata["annotations"], beside(value));
        return;
    }
    let lines = format!(
        "{{{{- with $.Values.{value} }}}}\nannotations: {{{{- toYaml . | nindent {INDENT} }}}}\n{{{{- end }}}}"
    );
    gaps.entry(metadata, lines);
}

fn image(container: &mut Value, chart: &str, gaps: &mut Gaps, settings: &mut Settings) {
    let (name, tag, digest) = {
        let image = container["image"].as_str().unwrap_or_default();
        let (name, tag, digest) = image_parts(image);
        (name.to_owned(), tag.map(ToOwned::to_owned), digest.map(ToOwned::to_owned))
    };
    let tag = tag.unwrap_or_else(|| if digest.is_none() { "latest".to_owned() } else { String::new() });
    settings.add("image.repository", json!(name), "The image of the operator, without tag");
    settings.add("image.tag", json!(tag), "The tag of the image; the chart's appVersion if it is empty");
    settings.add(
        "image.digest",
        json!(digest.unwrap_or_default()),
        "The digest of the image, which wins over the tag",
    );
    settings.add_with(
        "image.pullPolicy",
        json!(""),
        "When the image is pulled; what Kubernetes does if it is empty",
        json!({ "type": "string", "enum": ["", "Always", "IfNotPresent", "Never"] }),
    );
    container["image"] = json!(gaps.inline(format!("{{{{ include \"{chart}.image\" $ | quote }}}}")));
    gaps.entry(container, "{{- with $.Values.image.pullPolicy }}\nimagePullPolicy: {{ . }}\n{{- end }}");
}

fn arguments(container: &mut Value, chart: &str, gaps: &mut Gaps, settings: &mut Settings) {
    let metrics = "--metrics-bind-address=";
    for argument in container["args"].as_array_mut().into_iter().flatten() {
        let address = argument.as_str().and_then(|text| text.strip_prefix(metrics)).map(ToOwned::to_owned);
        if let Some(address) = address {
            settings.switch("metrics.enabled", "Serve metrics, with TLS, to those who may read them");
            let gap = gaps.inline(format!("{{{{ ternary \"{address}\" \"0\" $.Values.metrics.enabled }}}}"));
            *argument = json!(format!("{metrics}{gap}"));
        }
    }
    let more = format!(
        "{{{{- with $.Values.watchNamespaces }}}}\n- --watch-namespaces={{{{ join \",\" . }}}}\n{{{{- end }}}}\n\
         {{{{- with include \"{chart}.disabledKinds\" $ }}}}\n- --disable-kinds={{{{ . }}}}\n{{{{- end }}}}\n\
         {{{{- range $.Values.extraArgs }}}}\n- {{{{ . | quote }}}}\n{{{{- end }}}}"
    );
    gaps.item(&mut container["args"], more);
    settings.add_with(
        "extraArgs",
        json!([]),
        "More arguments for the operator",
        json!({ "type": "array", "items": { "type": "string" } }),
    );
    settings.add(
        "extraEnv",
        json!([]),
        "More environment variables for the operator, as a container takes them",
    );
    // The list may be empty: then there is no key that items could be added to.
    if items(&container["env"]).next().is_some() {
        gaps.item(&mut container["env"], beside("extraEnv"));
    } else {
        let lines = format!(
            "{{{{- with $.Values.extraEnv }}}}\nenv: {{{{- toYaml . | nindent {INDENT} }}}}\n{{{{- end }}}}"
        );
        gaps.entry(container, lines);
    }
}

/// Where the Pods run. What the object says already is the default.
fn placed(pod: &mut Value, gaps: &mut Gaps, settings: &mut Settings) {
    let fields = [
        ("imagePullSecrets", json!([]), "Secrets with which the image is pulled"),
        ("nodeSelector", json!({}), "Labels of the nodes that the Pods run on"),
        ("tolerations", json!([]), "Taints of nodes that the Pods tolerate"),
        ("affinity", json!({}), "Where the Pods prefer to run, or must"),
        ("topologySpreadConstraints", json!([]), "How the Pods are spread"),
        ("priorityClassName", json!(""), "The priority of the Pods"),
    ];
    for (field, empty, about) in fields {
        let present = pod.as_object_mut().and_then(|pod| pod.remove(field));
        settings.add(field, present.unwrap_or(empty.clone()), about);
        let value = if empty.is_string() {
            " {{ . }}".to_owned()
        } else {
            format!(" {{{{- toYaml . | nindent {INDENT} }}}}")
        };
        gaps.entry(pod, format!("{{{{- with $.Values.{field} }}}}\n{field}:{value}\n{{{{- end }}}}"));
    }
}
