//! Rust as text, in the layout that rustfmt gives it at 110 columns: attributes, doc comments, literals, JSON.

use serde_json::Value;

/// The width that lines are broken at.
pub(super) const WIDTH: usize = 110;

/// An attribute of items that rustfmt understands, such as `name = "value"` and `name(..)`: on one line where it fits.
pub(super) fn attribute(indent: usize, path: &str, items: &[String]) -> String {
    let pad = " ".repeat(indent);
    let line = format!("{pad}#[{path}({})]\n", items.join(", "));
    // As rustfmt counts: one column less inside of a struct, and one less for a list inside of a list.
    let nested = items.iter().any(|item| item.ends_with(')'));
    if line.chars().count() <= WIDTH + 1 - usize::from(indent > 0) - usize::from(nested) {
        return line;
    }
    if let [only] = items
        && let Some((name, inner)) = only.strip_suffix(')').and_then(|only| only.split_once('('))
    {
        let inner = split(inner).join(&format!(",\n{pad}    "));
        return format!("{pad}#[{path}({name}(\n{pad}    {inner}\n{pad}))]\n");
    }
    let items = items.join(&format!(",\n{pad}    "));
    format!("{pad}#[{path}(\n{pad}    {items}\n{pad})]\n")
}

/// An attribute with expressions in it, which rustfmt leaves as it is.
pub(super) fn verbatim(indent: usize, path: &str, items: &[String]) -> String {
    let pad = " ".repeat(indent);
    let line = format!("{pad}#[{path}({})]\n", items.join(", "));
    if line.chars().count() <= WIDTH + 1 {
        return line;
    }
    let items = items.join(&format!(",\n{pad}    "));
    format!("{pad}#[{path}(\n{pad}    {items}\n{pad})]\n")
}

/// The items of a list at its commas, those inside of strings left alone.
fn split(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut quoted = false;
    let mut escaped = false;
    for character in text.chars() {
        let last = items.last_mut().expect("a list must have an item");
        match character {
            ',' if !quoted => {
                items.push(String::new());
                continue;
            }
            ' ' if last.is_empty() => continue,
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = character == '\\' && !escaped;
        last.push(character);
    }
    items
}

/// A description as doc comments: no line is taken for code or for a list that goes on, and long ones are broken.
pub(super) fn docs(indent: usize, description: &str) -> String {
    let pad = " ".repeat(indent);
    let width = WIDTH - indent - 4;
    let mut docs = String::new();
    let mut fenced = false;
    for line in description.trim().lines() {
        let mut text = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(rest) = text.strip_prefix("```") {
            fenced = !fenced;
            // A fence without a language would be compiled as a test.
            if fenced {
                text = if rest.is_empty() { "```text".to_owned() } else { format!("```text {rest}") };
            }
        }
        // `#` would make the line a title.
        if text.starts_with('#') && docs.is_empty() {
            text.insert(0, '\\');
        }
        for part in wrap(&text, if fenced { usize::MAX } else { width }) {
            let line = format!("{pad}/// {part}");
            docs.push_str(line.trim_end());
            docs.push('\n');
        }
    }
    if fenced {
        docs.push_str(&format!("{pad}/// ```\n"));
    }
    docs
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there must be a line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// A call and what is said when it fails, as the body of a function.
pub(super) fn expect(call: &str, text: &str) -> String {
    let expect = format!(".expect({text:?})");
    if 4 + call.len() + expect.len() <= WIDTH {
        call.to_owned() + &expect
    } else {
        format!("{call}\n        {expect}")
    }
}

/// A string literal, raw where that is easier to read.
pub(super) fn string(text: &str) -> String {
    let plain = text.chars().all(|character| character == '\t' || !character.is_control());
    if !plain || !text.contains(['\\', '"']) || text.contains('\t') {
        return format!("{text:?}");
    }
    raw(text)
}

/// A raw string literal, with as many hashes as it takes.
pub(super) fn raw(text: &str) -> String {
    let fits = |hashes: &String| !text.contains(&format!("\"{hashes}"));
    let hashes = (0..=text.len() + 1).map(|count| "#".repeat(count)).find(fits);
    let hashes = hashes.expect("more hashes than the text has characters must do");
    format!("r{hashes}\"{text}\"{hashes}")
}

/// A JSON value as `json!` takes it, keys in order.
pub(super) fn tokens(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Array(items) => format!("[{}]", items.iter().map(tokens).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entries: Vec<_> =
                entries.iter().map(|(key, value)| format!("{}: {}", string(key), tokens(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        _ => value.to_string(),
    }
}

/// A JSON document, keys in order, filled into lines.
pub(super) fn document(value: &Value) -> String {
    let mut pieces = Vec::new();
    collect(value, "", &mut pieces);
    let mut lines = vec![String::new()];
    for piece in pieces {
        let last = lines.last_mut().expect("there must be a line");
        if last.is_empty() || last.chars().count() + piece.chars().count() <= WIDTH {
            last.push_str(&piece);
        } else {
            lines.push(piece);
        }
    }
    lines.join("\n")
}

/// Takes a document apart where a line may end; `after` follows the value.
fn collect(value: &Value, after: &str, pieces: &mut Vec<String>) {
    let comma = |index: usize, length: usize| if index + 1 < length { "," } else { "" };
    match value {
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            pieces.push("[".to_owned());
            for (index, item) in items.iter().enumerate() {
                collect(item, comma(index, items.len()), pieces);
            }
            pieces.push(format!("]{after}"));
        }
        Value::Object(object) if !object.is_empty() => {
            pieces.push("{".to_owned());
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            for (index, (key, value)) in entries.iter().enumerate() {
                pieces.push(format!("{}:", Value::from(key.as_str())));
                let from = pieces.len() - 1;
                collect(value, comma(index, entries.len()), pieces);
                // A key stays with what begins its value.
                let first = pieces.remove(from + 1);
                pieces[from].push_str(&first);
            }
            pieces.push(format!("}}{after}"));
        }
        _ => pieces.push(format!("{value}{after}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_description_becomes_a_test_that_is_compiled() {
        let docs = docs(0, "Use it:\n\n\ttype Foo struct{\n```\ncode\n```\nthe end");
        assert_eq!(
            docs,
            "/// Use it:\n///\n/// type Foo struct{\n/// ```text\n/// code\n/// ```\n/// the end\n"
        );
    }

    #[test]
    fn strings_are_raw_only_where_that_helps() {
        assert_eq!(string("plain"), "\"plain\"");
        assert_eq!(string(r"^\d+$"), r#"r"^\d+$""#);
        assert_eq!(string(r##"say "#hi""##), "r##\"say \"#hi\"\"##");
        assert_eq!(string("two\nlines\\"), r#""two\nlines\\""#);
    }

    #[test]
    fn a_document_is_json_whatever_its_lines() {
        let value = json!({"b": [{"x": 1}, {}], "a": {"long": "x".repeat(100), "z": [1, 2]}, "c": null});
        let text = document(&value);
        assert!(text.lines().count() > 1);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
