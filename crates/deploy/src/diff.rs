//! What would become of an object, line by line. Nobody sees what is in a Secret.

use serde_json::Value;
use windlass::kube::api::DynamicObject;

use crate::error::Error;

/// What the server keeps for itself.
const BOOKS: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];

/// The difference between an object as it is and as it would be, as a patch; empty where there is none.
pub(crate) fn unified(what: &str, found: Option<&DynamicObject>, would: &Value) -> Result<String, Error> {
    let before = found.map(|found| serde_json::to_value(found).unwrap_or_default());
    let (mut before, mut after) = (before.unwrap_or(Value::Null), would.clone());
    hide(&mut before, &mut after);
    for value in [&mut before, &mut after] {
        tidy(value);
    }
    let (before, after) = (yaml(what, &before)?, yaml(what, &after)?);
    if before == after {
        return Ok(String::new());
    }
    let patch = diffy::DiffOptions::new().create_patch(&before, &after).to_string();
    // Our own two lines say which object it is.
    let body: Vec<&str> = patch.lines().skip_while(|line| !line.starts_with("@@")).collect();
    Ok(format!("--- {what} (as it is)\n+++ {what} (as it would be)\n{}\n", body.join("\n")))
}

fn yaml(what: &str, value: &Value) -> Result<String, Error> {
    if value.is_null() {
        return Ok(String::new());
    }
    serde_saphyr::to_string(value)
        .map_err(|source| Error::Yaml { what: what.to_owned(), source: Box::new(source) })
}

fn tidy(value: &mut Value) {
    let Some(object) = value.as_object_mut() else { return };
    object.remove("status");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in BOOKS {
            metadata.remove(field);
        }
    }
}

/// Puts words in the place of a Secret's values: the same word where they are the same.
fn hide(before: &mut Value, after: &mut Value) {
    if before["kind"] != "Secret" && after["kind"] != "Secret" {
        return;
    }
    for section in ["data", "stringData"] {
        let old = before[section].as_object().cloned().unwrap_or_default();
        let new = after[section].as_object().cloned().unwrap_or_default();
        for (key, value) in &old {
            let same = new.get(key) == Some(value);
            before[section][key] = if same { "(hidden)" } else { "(hidden, before)" }.into();
        }
        for (key, value) in &new {
            let same = old.get(key) == Some(value);
            after[section][key] = if same { "(hidden)" } else { "(hidden, after)" }.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_change_is_shown_with_its_surroundings_and_the_servers_books_are_not() {
        let old = found(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "resourceVersion": "1", "managedFields": [], "uid": "x"}, "data": {"k": "1"},
        }));
        let new = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "2"}, "data": {"k": "2"},
        });
        let text = unified("ConfigMap a", Some(&old), &new).unwrap();
        assert!(
            text.starts_with("--- ConfigMap a (as it is)\n+++ ConfigMap a (as it would be)\n@@"),
            "{text}"
        );
        assert!(text.contains("-  k: \"1\"\n+  k: \"2\"\n"), "{text}");
        assert!(!text.contains("resourceVersion") && !text.contains("uid"), "{text}");
        let same =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}});
        assert_eq!(unified("ConfigMap a", Some(&old), &same).unwrap(), "");
    }

    #[test]
    fn nothing_of_a_secret_is_shown_but_which_keys_change() {
        let old = found(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "b2xk", "same": "c2FtZQ=="},
        }));
        let new = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
            "data": {"k": "bmV3", "same": "c2FtZQ=="}, "stringData": {"word": "secret"},
        });
        let text = unified("Secret a", Some(&old), &new).unwrap();
        for hidden in ["b2xk", "bmV3", "c2FtZQ", "secret\n"] {
            assert!(!text.contains(hidden), "{text}");
        }
        assert!(text.contains("-  k: (hidden, before)\n+  k: (hidden, after)\n"), "{text}");
        assert!(text.contains("   same: (hidden)\n"), "{text}");
    }
}
