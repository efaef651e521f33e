//! `manifests`: everything as one stream of YAML, or as the files of `config/`.

use std::{ffi::OsString, io::Write, path::Path};

use super::{CliError, ManifestsArgs, Operator, print};
use crate::operator::{ConfigChanges, ConfigTree, settings};

pub(super) fn manifests(
    mut operator: Operator,
    args: ManifestsArgs,
    line: &[OsString],
) -> Result<(), CliError> {
    if let Some(kinds) = args.disable_kinds.filter(|kinds| !kinds.0.is_empty()) {
        settings::disable(&mut operator, Some(&kinds))?;
        for kind in &kinds.0 {
            operator.drop_webhooks(kind);
        }
        // The Deployment runs the same program, which has the kinds in it.
        operator.arguments.push(format!("--disable-kinds={}", kinds.0.join(",")));
    }
    let placed = args.placement;
    let keep_images = placed.image.is_none();
    let placement = placed.place.placement(&mut operator, placed.image, placed.replicas);
    let Some(out) = args.out else { return print(&operator.manifests(&placement), placed.print.output) };
    let tree = operator.config_tree(&placement).keep_images(keep_images);
    if args.check {
        return check(&tree, &out, line);
    }
    if args.dry_run {
        return tell(&tree.changes(&out)?, &out, "would write", "would remove");
    }
    tell(&tree.write(&out)?, &out, "wrote", "removed")
}

/// Names what is stale, and how to write it.
fn check(tree: &ConfigTree, out: &Path, line: &[OsString]) -> Result<(), CliError> {
    let changes = tree.changes(out)?;
    if changes.is_empty() {
        return Ok(());
    }
    tell(&changes, out, "stale", "left over")?;
    let words = line.iter().filter(|word| *word != "--check").map(|word| word.to_string_lossy());
    let command: Vec<_> = words.collect();
    Err(CliError::Stale {
        files: changes.written.len() + changes.removed.len(),
        folder: out.to_owned(),
        command: command.join(" "),
    })
}

fn tell(changes: &ConfigChanges, out: &Path, written: &str, removed: &str) -> Result<(), CliError> {
    let mut stdout = std::io::stdout().lock();
    let kept = "kept (not generated, so not touched)";
    for (verb, paths) in [(written, &changes.written), (removed, &changes.removed), (kept, &changes.kept)] {
        for path in paths {
            writeln!(stdout, "{verb} {}", out.join(path).display()).map_err(CliError::Stdout)?;
        }
    }
    Ok(())
}
