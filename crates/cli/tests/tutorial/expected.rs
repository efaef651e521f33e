//! Whether what was printed is what the page shows. Ages, suffixes of Pods, addresses and the like are different every
//! time and stand for any of their kind; `...` stands for any number of lines.

use regex::Regex;

/// What differs from run to run, and the word that it is compared by.
const VARIABLE: [(&str, &str); 7] = [
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"-[0-9a-z]{6,10}-[0-9a-z]{5}\b", "-POD"),
    (r"\b\d+\.\d+\.\d+\.\d+(:\d+)?\b", "ADDRESS"),
    (r"\b(\d+(\.\d+)?(ms|[smhd]))+\b", "TIME"),
    (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"[ \t]+", " "),
];

fn comparable(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        VARIABLE.iter().fold(line.trim_end().to_owned(), |line, (pattern, word)| {
            Regex::new(pattern).unwrap().replace_all(&line, *word).into_owned()
        })
    });
    lines.collect()
}

/// The first shown line that was not printed where it should have been.
pub(crate) fn mismatch(shown: &str, printed: &str) -> Option<String> {
    let (shown, printed) = (comparable(shown), comparable(printed));
    follow(&shown, &printed).err().map(str::to_owned)
}

fn follow<'a>(shown: &'a [String], printed: &[String]) -> Result<(), &'a str> {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err("(the end)"),
        (Some((dots, rest)), _) if dots.trim() == "..." => {
            let mut furthest = Err("...");
            for start in 0..=printed.len() {
                furthest = follow(rest, &printed[start..]);
                if furthest.is_ok() {
                    return Ok(());
                }
            }
            furthest
        }
        (Some((line, rest)), Some((seen, others))) if line == seen => follow(rest, others),
        (Some((line, _)), _) => Err(line),
    }
}

#[test]
fn what_differs_from_run_to_run_stands_for_its_kind() {
    let shown = "NAME   READY AGE\nweb-5d4f9c7b6-x2x4z 1/1 3s\n...\nlast\n";
    assert_eq!(mismatch(shown, "NAME READY  AGE\nweb-7c9d8f6b5-abcde  1/1  1m2s\nmore\nmore\nlast\n"), None);
    assert_eq!(
        mismatch(shown, "NAME READY AGE\nweb-7c9d8f6b5-abcde 0/1 1s\nlast\n").unwrap(),
        "web-POD 1/1 TIME"
    );
    assert_eq!(mismatch("one\n", "one\ntwo\n").unwrap(), "(the end)");
    assert_eq!(mismatch("...\nlast\n", "first\n").unwrap(), "last");
}
