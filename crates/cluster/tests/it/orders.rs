//! Every order in the controllers and the SDK is total.
//!
//! A comparison that is written by hand can contradict itself, and then a sort panics. So nothing here compares by hand:
//! what is sorted is sorted by a key, and keys are of types whose order the compiler derives. This is checked in the
//! sources, because a property test of each comparison would only look at those that somebody thought of.

use std::path::{Path, PathBuf};

/// What takes a comparison that somebody wrote, or is one.
const FORBIDDEN: [&str; 12] = [
    ".sort_by(",
    ".sort_unstable_by(",
    ".select_nth_unstable_by(",
    ".binary_search_by(",
    ".max_by(",
    ".min_by(",
    ".is_sorted_by(",
    ".sorted_by(",
    "impl Ord for",
    "impl PartialOrd for",
    "fn partial_cmp(",
    ".partial_cmp(",
];

/// Comparisons that were written by hand all the same, and what shows that they are orders.
const SHOWN: [(&str, &str); 2] = [
    ("quantity.rs", "a property test: the order is total, also between very large and very small ones"),
    ("labels.rs", "keys are compared, which are texts"),
];

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn nothing_is_compared_by_hand() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&here.join("src"), &mut files);
    sources(&here.join("../windlass/src"), &mut files);
    sources(&here.join("../apimachinery/src"), &mut files);
    assert!(files.len() > 150, "the sources must be found");
    let mut found = Vec::new();
    let shown = |file: &PathBuf| SHOWN.iter().any(|(name, _)| file.ends_with(name));
    for file in files.into_iter().filter(|file| !shown(file)) {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if FORBIDDEN.iter().any(|word| code.contains(word)) {
                found.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "sort by a key whose order is derived:\n{}", found.join("\n"));
}
