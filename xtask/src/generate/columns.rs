//! The columns of the built-in kinds, from the recorded answers of `tables/columns.http`.
//!
//! Enters the recording; leaves a table of descriptions, each once, and a line per resource that refers to them.

use anyhow::{Context, Result};
use serde_json::Value;

/// The recording that the table is made from.
pub(super) const RECORDING: &str = "crates/apiserver/tests/fidelity/tables/columns.json";

/// The text of the table.
pub(super) fn table(recording: &str) -> Result<String> {
    let answers: Vec<Value> =
        serde_json::from_str(recording).context("failed to read the recorded columns")?;
    let mut descriptions: Vec<String> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for answer in &answers {
        let path = answer["request"].as_str().unwrap_or_default();
        let line = format!("{} {}", resource(path), columns(&answer["body"], &mut descriptions));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let described = descriptions.iter().map(|text| format!("= {text}"));
    Ok(described.chain(lines).map(|line| line + "\n").collect())
}

/// `apps/deployments` from `TABLE /apis/apps/v1/namespaces/$ns/deployments?…`.
fn resource(request: &str) -> String {
    let path = request.split('?').next().unwrap_or_default().trim_start_matches("TABLE /");
    let segments: Vec<&str> = path.split('/').collect();
    let group =
        if segments.first() == Some(&"apis") { segments.get(1).copied().unwrap_or_default() } else { "" };
    format!("{group}/{}", segments.last().copied().unwrap_or_default())
}

/// `Name:string:name:0:1` for each column; the last number is that of its description.
fn columns(table: &Value, descriptions: &mut Vec<String>) -> String {
    let columns = table["columnDefinitions"].as_array().into_iter().flatten();
    let shown: Vec<String> = columns
        .map(|column| {
            let part = |field: &str| column[field].as_str().unwrap_or_default();
            let text = part("description").replace('\n', "\\n");
            let index = descriptions.iter().position(|known| *known == text).unwrap_or_else(|| {
                descriptions.push(text);
                descriptions.len() - 1
            });
            format!("{}:{}:{}:{}:{index}", part("name"), part("type"), part("format"), column["priority"])
        })
        .collect();
    shown.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_written_once() {
        let answer = |plural: &str| {
            format!(
                r#"{{"request":"TABLE /apis/apps/v1/{plural}?x","body":{{"columnDefinitions":[
                    {{"name":"Age","type":"string","format":"","priority":0,"description":"How old."}}]}}}}"#
            )
        };
        let text = table(&format!("[{},{}]", answer("as"), answer("bs"))).unwrap();
        assert_eq!(text, "= How old.\napps/as Age:string::0:0\napps/bs Age:string::0:0\n");
    }
}
