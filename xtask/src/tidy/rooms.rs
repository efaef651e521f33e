//! How long files are. A file of more than 500 lines, its tests not counted, is to be split.

use std::path::Path;

use super::source::Crate;

const MOST: usize = 500;

/// Files that are longer, and why they may be.
const LONG: &[(&str, &str)] = &[
    ("crates/apiserver/src/store/disk/faults.rs", "a disk with every fault, for tests alone"),
    ("operators/src/webapp/api.rs", "the types of one kind, which are read together"),
];

/// Files of a crate that are too long, and exceptions that are none any more.
pub(super) fn check(sources: &Crate) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in &sources.files {
        let path = format!("{}/{path}", sources.folder);
        let lines = text.lines().count();
        match (lines > MOST, LONG.iter().any(|(known, _)| *known == path)) {
            (true, false) => problems.push(format!("{path} has {lines} lines without its tests: split it")),
            (false, true) => problems.push(format!("{path} has {lines} lines: strike the exception")),
            _ => {}
        }
    }
    problems
}

/// Exceptions for files that are not there.
pub(super) fn missing(root: &Path) -> Vec<String> {
    let gone = LONG.iter().filter(|(path, _)| !root.join(path).exists());
    gone.map(|(path, _)| format!("{path} is not there: strike the exception")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let long = "fn f() {}\n".repeat(MOST + 1);
        let tested = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
        let told = check(&Crate::of("x", [("src/a.rs", long.as_str()), ("src/b.rs", tested.as_str())]));
        assert_eq!(told, ["x/src/a.rs has 501 lines without its tests: split it"]);
    }
}
