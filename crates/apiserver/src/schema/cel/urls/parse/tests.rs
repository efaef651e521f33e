//! What Go 1.26 makes of the same texts: text, scheme, host, hostname, port, path and query, or its error.

use std::collections::BTreeMap;

use super::*;

const RECORDED: &str = include_str!("../recorded.txt");

fn described(text: &str) -> String {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(problem) => return format!("!\tparse {text:?}: {problem}"),
    };
    let mut query = BTreeMap::<_, Vec<_>>::new();
    for (key, value) in url.query_pairs() {
        query.entry(key).or_default().push(value);
    }
    let query: Vec<String> =
        query.iter().map(|(key, values)| format!("{key}=[{}] ", values.join(" "))).collect();
    let query = query.concat();
    [&url.scheme, &url.host, url.hostname(), url.port(), &url.path, &query].join("\t")
}

#[test]
fn urls_are_read_as_go_reads_them() {
    for line in RECORDED.lines() {
        let (text, recorded) = line.split_once('\t').unwrap();
        let text: String = serde_json::from_str(text).unwrap();
        assert_eq!(described(&text), recorded, "{text:?}");
    }
}

#[test]
fn urls_are_equal_if_all_their_parts_are() {
    let url = |text| Url::parse(text).unwrap();
    assert_eq!(url("HTTP://h/p?q"), url("http://h/p?q"));
    for other in ["http://h/p", "http://h/p?q#f", "http://u@h/p?q", "http://h:80/p?q", "http:h/p?q"] {
        assert_ne!(url(other), url("http://h/p?q"));
    }
}
