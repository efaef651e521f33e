//! What a reader does in an editor: whole files, and changes that the page shows as a diff.

use std::{fs, path::Path};

pub(crate) fn write(place: &str, path: &Path, text: &str) {
    eprintln!("{place}: write {}", path.display());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Applies a diff whose hunks are told apart by `@@`. Lines that stay or go must be in the file, once.
pub(crate) fn patch(place: &str, path: &Path, diff: &str) {
    eprintln!("{place}: change {}", path.display());
    let mut text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{place}: {}: {error}", path.display()));
    for hunk in diff.split("@@\n") {
        text = patched(&text, hunk)
            .unwrap_or_else(|problem| panic!("{place}: {}: {problem}\n{hunk}", path.display()));
    }
    fs::write(path, text).unwrap();
}

fn patched(text: &str, hunk: &str) -> Result<String, &'static str> {
    let side = |dropped: char| -> Vec<&str> {
        let kept = hunk.lines().filter(|line| !line.starts_with(dropped));
        kept.map(|line| line.get(1..).unwrap_or_default()).collect()
    };
    let (before, after, lines) = (side('+'), side('-'), text.lines().collect::<Vec<_>>());
    let places = lines.windows(before.len()).enumerate().filter(|(_, window)| *window == before);
    match places.map(|(place, _)| place).collect::<Vec<_>>()[..] {
        [place] => {
            let all = [&lines[..place], &after, &lines[place + before.len()..]].concat();
            Ok(all.into_iter().flat_map(|line| [line, "\n"]).collect())
        }
        [] => Err("the lines that the change starts from are not there"),
        _ => Err("the lines that the change starts from are there more than once"),
    }
}

#[test]
fn a_change_needs_the_lines_that_it_starts_from() {
    assert_eq!(patched("a\nb\nc\n", " a\n-b\n+d\n c\n").unwrap(), "a\nd\nc\n");
    assert!(patched("a\nb\n", "-c\n+d\n").is_err());
    assert!(patched("a\na\n", "-a\n+d\n").unwrap_err().contains("more than once"));
}
