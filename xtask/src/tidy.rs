//! The shape of the house: modules of a crate know each other in one direction, files are small, every
//! dependency is used, ARCHITECTURE.md names every crate.
//!
//! Enters the sources of the workspace, as text; leaves what is out of shape, one line each. Nothing is compiled and
//! nothing is fetched, so it takes a moment.

mod cycles;
mod dependencies;
mod fields;
mod rooms;
mod source;
mod tree;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail};

use self::source::Crate;

/// The SDK's modules from the bottom to the top: each may use those before it, and none that come after it.
/// Modules that are not named here stand on no other, or only on those that do.
const SDK: &str = "crates/windlass";
const SDK_ORDER: &[&str] = &[
    "object",
    "error",
    "wire",
    "runs",
    "request",
    "cache",
    "metrics",
    "client",
    "events",
    "apply",
    "watches",
    "context",
    "reconciler",
    "controller",
    "operator",
];

/// Two modules that use each other, and are known to: each line goes when its cycle does.
const KNOWN_CYCLES: &[(&str, &str, &str)] = &[];

pub(crate) fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let mut problems = tree::check(root)?;
    for folder in tree::crates(root)? {
        let sources = Crate::read(root, &folder)?;
        problems.extend(order(&sources));
        problems.extend(rooms::check(&sources));
        problems.extend(dependencies::check(root, &folder)?);
    }
    problems.extend(rooms::missing(root));
    problems.extend(fields::check(root)?);
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}\n  hint: ARCHITECTURE.md and xtask/src/tidy.rs say what the shape is", problems.join("\n"))
}

/// The cycles between a crate's modules that are not known, known ones that are gone, and uses against the SDK's order.
fn order(sources: &Crate) -> Vec<String> {
    let uses = sources.uses();
    let known = |from: &str, to: &str| {
        KNOWN_CYCLES.iter().any(|(folder, one, other)| {
            *folder == sources.folder && ([*one, *other] == [from, to] || [*other, *one] == [from, to])
        })
    };
    let mut graph: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in uses.keys().filter(|(from, to)| !known(from, to)) {
        graph.entry(from).or_default().push(to);
    }
    let mut problems: Vec<String> = cycles::find(&graph)
        .into_iter()
        .map(|cycle| {
            let steps: Vec<String> = cycle
                .iter()
                .zip(cycle.iter().cycle().skip(1))
                .map(|(from, to)| {
                    format!("{from} uses {to} in {}", uses[&((*from).to_owned(), (*to).to_owned())])
                })
                .collect();
            format!("{}: modules use each other in a circle: {}", sources.folder, steps.join("; "))
        })
        .collect();
    for (folder, one, other) in KNOWN_CYCLES.iter().filter(|(folder, ..)| *folder == sources.folder) {
        let used = |from: &str, to: &str| uses.contains_key(&(from.to_owned(), to.to_owned()));
        if !used(one, other) || !used(other, one) {
            problems.push(format!(
                "{folder}: {one} and {other} do not use each other any more: strike the exception"
            ));
        }
    }
    if sources.folder == SDK {
        let place = |module: &str| SDK_ORDER.iter().position(|known| *known == module);
        for ((from, to), file) in &uses {
            if let (Some(below), Some(above)) = (place(from), place(to))
                && below < above
            {
                problems.push(format!("{SDK}: {file} uses {to}, which stands above {from}"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_in_shape() {
        run().unwrap();
    }

    #[test]
    fn a_cycle_and_a_use_against_the_order_are_told_with_their_files() {
        let files = [
            ("src/lib.rs", "mod cache; mod object; mod other;\npub use cache::Store;\n"),
            ("src/cache.rs", "use crate::{object::Kind, other};\n"),
            ("src/object.rs", "fn f() { crate::cache::read() }\n"),
            ("src/other.rs", "use super::Store;\n#[cfg(test)]\nmod tests { use crate::object::Kind; }\n"),
        ];
        let told = order(&Crate::of(SDK, files));
        assert_eq!(told.len(), 3, "{told:#?}");
        assert!(
            told[0].contains("cache uses object in src/cache.rs") && told[0].contains("object uses cache")
        );
        assert!(told[1].contains("other uses cache in src/other.rs"));
        assert_eq!(told[2], "crates/windlass: src/object.rs uses cache, which stands above object");
    }
}
