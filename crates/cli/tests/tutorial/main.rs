//! The tutorial, executed line by line: docs/tutorial.md and then docs/testing.md, in one empty folder, with the
//! `windlass` of this build. What a block is stands in the comment before it:
//!
//! | `<!-- test: … -->` | |
//! |---|---|
//! | `run [in TERMINAL]` | every command must succeed; what `cd` and `export` do stays for the terminal's next block |
//! | `fails [in TERMINAL]` | the command must fail |
//! | `until [in TERMINAL]` | repeated until the `output` block that follows is what is printed |
//! | `background NAME [in TERMINAL] until "TEXT"` | stays running, once the text was printed |
//! | `interrupt NAME` | Ctrl-C for what runs in the background |
//! | `file PATH`, `patch PATH` | the whole content of a file, or a diff of it |
//! | `output` | what the last block printed; `...` stands for any lines, and names, ages and addresses for others |
//! | `skip REASON` | not executed, which is told at the end |
//!
//! It compiles a project of its own, so `just tutorial` runs it and a plain `cargo test` does not.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod edit;
mod expected;
#[path = "../docs/markdown.rs"]
#[allow(dead_code, reason = "the quick tests of the pages look at links and headings too")]
mod markdown;
mod terminal;
mod world;

use std::{fs, path::Path};

use markdown::{Page, Step};
use world::World;

const PAGES: [&str; 2] = ["docs/tutorial.md", "docs/testing.md"];

#[test]
fn the_tutorial_does_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut world = World::new(&root);
    let mut skipped = Vec::new();
    for name in PAGES {
        let steps = Page::parse(&fs::read_to_string(root.join(name)).unwrap()).steps;
        for (index, step) in steps.iter().enumerate() {
            let place = format!("{name}:{}", step.line);
            if let Some(reason) = execute(&mut world, &place, step, steps.get(index + 1)) {
                skipped.push(format!("{place}: {reason}"));
            }
        }
    }
    world.end();
    eprintln!("not executed:\n  {}", skipped.join("\n  "));
}

/// Executes a step; the reason leaves if it says that it is not to be executed.
fn execute(world: &mut World, place: &str, step: &Step, next: Option<&Step>) -> Option<String> {
    let Some(directive) = &step.directive else { panic!("{place}: the block does not say what it is") };
    let (verb, rest) = directive.split_once(' ').unwrap_or((directive, ""));
    let text = step.block.as_ref().map_or("", |block| block.text.as_str());
    let terminal =
        rest.split_once("in ").map_or("first", |(_, name)| name.split(' ').next().unwrap_or_default());
    match verb {
        "run" => world.run(place, terminal, text),
        "fails" => world.fails(place, terminal, text),
        "until" => {
            let expected = next.filter(|next| next.directive.as_deref() == Some("output"));
            let expected = expected.and_then(|next| next.block.as_ref());
            world.until(place, terminal, text, &expected.expect("an output block must follow `until`").text);
        }
        "background" => {
            let name = rest.split(' ').next().unwrap_or_default();
            let awaited = rest.split('"').nth(1).expect("`background` must say until which \"text\"");
            world.start(place, name, terminal, text, awaited);
        }
        "interrupt" => world.interrupt(place, rest),
        "file" => edit::write(place, &world.folder("first").join(rest), text),
        "patch" => edit::patch(place, &world.folder("first").join(rest), text),
        "output" => world.expect(place, text),
        "skip" => return Some(rest.to_owned()),
        _ => panic!("{place}: {directive:?} is nothing that a block can be"),
    }
    None
}
