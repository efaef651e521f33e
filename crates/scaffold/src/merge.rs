//! How a change of the scaffold reaches a file that a person may have changed. Texts come in, a text leaves.

use crate::error::Error;

/// A comment in a scaffolded file above which lines are registered.
pub(crate) const MARKER: &str = "// +windlass:scaffold:";

/// The three-way merge of two changes of one text; `Err` is the merge with marks where both touch the same lines.
pub(crate) fn three_way(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    if ours == base || ours == theirs {
        return Ok(theirs.to_owned());
    }
    if theirs == base {
        return Ok(ours.to_owned());
    }
    diffy::merge(base, ours, theirs)
}

/// The lines above each marker of a scaffolded file: from a text to (marker, lines).
fn registered(text: &str) -> Vec<(&str, Vec<&str>)> {
    let lines: Vec<&str> = text.lines().collect();
    let markers = lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with(MARKER));
    markers
        .map(|(at, marker)| {
            let first =
                lines[..at].iter().rposition(|line| !is_registration(line)).map_or(0, |before| before + 1);
            (marker.trim(), lines[first..at].to_vec())
        })
        .collect()
}

/// Whether a line registers something: `mod x;`, `pub mod x;` or `x::register,`.
fn is_registration(line: &str) -> bool {
    let line = line.trim();
    (line.ends_with(';') && (line.starts_with("mod ") || line.starts_with("pub mod ")))
        || line.ends_with("::register,")
}

/// Brings what is registered between two scaffolds of a file into a copy of it that a person may have changed: lines that
/// are new go above their marker, lines that have gone are taken out wherever they stand.
pub(crate) fn register(path: &str, old: &str, new: &str, ours: &str) -> Result<String, Error> {
    let (before, after) = (registered(old), registered(new));
    let mut lines: Vec<String> = ours.lines().map(ToOwned::to_owned).collect();
    for (marker, wanted) in &after {
        let had = before
            .iter()
            .find(|(known, _)| known == marker)
            .map(|(_, had)| had.as_slice())
            .unwrap_or_default();
        lines.retain(|line| {
            !had.iter().any(|gone| {
                gone.trim() == line.trim() && !wanted.iter().any(|kept| kept.trim() == line.trim())
            })
        });
        let missing: Vec<&str> = wanted
            .iter()
            .copied()
            .filter(|line| !had.contains(line) && !lines.iter().any(|known| known.trim() == line.trim()))
            .collect();
        if missing.is_empty() {
            continue;
        }
        let Some(at) = lines.iter().position(|line| line.trim() == *marker) else {
            let lines = missing.iter().map(|line| line.trim().to_owned()).collect();
            return Err(Error::NoMarker { path: path.into(), marker: (*marker).into(), lines });
        };
        insert(&mut lines, at, &missing);
    }
    let mut text = lines.join("\n");
    if ours.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Puts lines above a marker: modules in alphabetical order, as rustfmt wants them, anything else at the end.
fn insert(lines: &mut Vec<String>, mut marker: usize, missing: &[&str]) {
    for line in missing {
        let mut at = marker;
        if line.trim().ends_with(';') {
            let name = |line: &str| line.trim().trim_end_matches(';').to_owned();
            while at > 0 && is_registration(&lines[at - 1]) && name(&lines[at - 1]) > name(line) {
                at -= 1;
            }
        }
        lines.insert(at, (*line).to_owned());
        marker += 1;
    }
}

#[cfg(test)]
mod tests;
