//! Samples of a Go project: files leave, and whether the API server would take what is in them.

use std::path::Path;

use serde_json::Value;
use windlass_crd::{Version, kubebuilder};

use super::{Findings, slashed, text};
use crate::{
    Error,
    project::{Resource, SampleObject},
    render,
};

/// Copies the samples of a version of a kind. The first one gets the name that Windlass knows it by; if it is one object
/// that fits the schema, the object is what leaves.
pub(super) fn take_over(
    go: &kubebuilder::Project,
    source: &Path,
    resource: &Resource,
    version: &Version,
    found: &mut Findings,
) -> Result<Option<SampleObject>, Error> {
    let mut object = None;
    let mut is_first = true;
    let of_kind = |sample: &&kubebuilder::Sample| {
        sample.kind == resource.kind && sample.api_version == resource.api_version()
    };
    for sample in go.samples.iter().filter(of_kind) {
        let content = text(source, &sample.file)?;
        if !is_first {
            let name = sample.file.file_name().map(|name| name.to_string_lossy().into_owned());
            found.samples.push((format!("config/samples/{}", name.unwrap_or_default()), content));
            continue;
        }
        is_first = false;
        found.files.0.insert(format!("config/samples/{}", render::sample(resource)), content);
        if go.samples.iter().filter(|other| other.file == sample.file).count() > 1 {
            continue;
        }
        match fit(version, &sample.object) {
            Ok(fitting) => object = Some(fitting),
            Err(problem) => found.left.push(format!(
                "the sample `{}` is not used in tests, since the CRD does not allow it: {problem}",
                slashed(&sample.file)
            )),
        }
    }
    Ok(object)
}

/// The name of an object that the schema allows, as far as that can be seen without an API server.
fn fit(version: &Version, object: &Value) -> Result<SampleObject, String> {
    let text = |name: &str| object["metadata"][name].as_str().map(str::to_owned);
    let name = text("name").ok_or("it has no name")?;
    let mut schema = version.schema().cloned().unwrap_or_default();
    schema.remove("description");
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.remove("metadata");
    }
    let mut body = object.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|name, _| !["metadata", "apiVersion", "kind", "status"].contains(&name.as_str()));
    }
    check(&Value::Object(schema), &body, "")?;
    Ok(SampleObject { name, namespace: text("namespace").filter(|namespace| namespace != "default") })
}

fn check(schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let shown = if path.is_empty() { "the object" } else { path };
    let wrong = |what: String| Err(format!("{shown} {what}"));
    if schema["x-kubernetes-int-or-string"] == true {
        return if value.is_string() || value.is_i64() {
            Ok(())
        } else {
            wrong("is no number and no string".into())
        };
    }
    if value.is_null() && schema["nullable"] == true {
        return Ok(());
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => true,
    };
    if !fits {
        return wrong(format!("is not of type {}", schema["type"].as_str().unwrap_or_default()));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return wrong("is not one of the values that are allowed".into());
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], item, &format!("{path}[{at}]"))?;
    }
    let Some(fields) = value.as_object() else { return Ok(()) };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !["metadata", "apiVersion", "kind"].contains(&name) && !fields.contains_key(name) {
            return wrong(format!("lacks the field {name}"));
        }
    }
    for (name, value) in fields {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some(schema) = schema["properties"].get(name) {
            check(schema, value, &below)?;
        } else if schema["additionalProperties"].is_object() {
            check(&schema["additionalProperties"], value, &below)?;
        } else if schema["x-kubernetes-preserve-unknown-fields"] != true && schema["type"] == "object" {
            // Metadata inside of a spec is declared as an object of nothing, and pruned.
            if schema["properties"].is_object() {
                return Err(format!("the CRD has no field {below}"));
            }
        }
    }
    Ok(())
}
