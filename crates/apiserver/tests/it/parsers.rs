//! Bytes from outside, bent in every way: whatever comes, no parser panics.
//!
//! Each target takes bytes to one parser: bodies, patches, selectors, tokens and paths through the server's own door,
//! expressions and the log on disk directly. Inputs are mutations of a small corpus (`tests/corpus`, one file for a
//! target, entries between lines of `%%`). `cargo test` runs a slice; `cargo xtask fuzz parsers` as many as one likes.

mod mutate;
mod targets;

use std::path::Path;

use self::{mutate::mutate, targets::Targets};
use crate::dice::Dice;

/// How many inputs are tried when nobody asks for more.
const SLICE: usize = 3_000;

/// The entries of a target's corpus.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.split("\n%%\n").map(|entry| entry.trim_end_matches('\n').as_bytes().to_vec()).collect()
}

fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn no_bytes_from_outside_end_in_a_panic() {
    let inputs = variable("WINDLASS_FUZZ_INPUTS", SLICE as u64);
    let mut dice = Dice::new(variable("WINDLASS_FUZZ_SEED", 1));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut targets = Targets::new().await;
        let mut counts = vec![0_u64; targets.all.len()];
        for done in 0..inputs {
            let index = targets.draw(&mut dice);
            let (name, entries) = (targets.all[index].name, &targets.all[index].entries);
            let input = mutate(&mut dice, entries);
            if let Err(why) = Box::pin(targets.send(index, &input)).await {
                panic!("{name}: {why}: {}", input.escape_ascii());
            }
            counts[index] += 1;
            if done % 1_000_000 == 999_999 {
                eprintln!("{} inputs", done + 1);
            }
        }
        for (target, count) in targets.all.iter().zip(counts) {
            eprintln!("{:>12} inputs: {}", count, target.name);
        }
    });
}
