//! `windlass upgrade`: the scaffold of this windlass, with what was changed by hand left as it is.

use windlass_scaffold::commands::upgrade;

use super::scaffold::{carry_out, here};
use crate::{args::scaffold::UpgradeArgs, error::Error, printer::Printer};

pub(super) fn run(args: &UpgradeArgs, printer: Printer) -> Result<(), Error> {
    let plan = upgrade(&here()?, args.conflict_markers)?;
    if plan.is_empty() && plan.conflicts.is_empty() {
        return printer.line("the project is up to date");
    }
    carry_out(&plan, args.dry_run, printer)?;
    if plan.conflicts.is_empty() {
        return Ok(());
    }
    for (path, merged) in &plan.conflicts {
        printer.fact("conflict", path)?;
        if !args.conflict_markers {
            printer.line(conflicts(merged).trim_end())?;
        }
    }
    let paths = plan.conflicts.into_iter().map(|(path, _)| path).collect();
    Err(Error::Conflicts { paths, written: args.conflict_markers && !args.dry_run })
}

/// The places of a merge where both sides touch the same lines.
fn conflicts(merged: &str) -> String {
    let mut shown = String::new();
    let mut inside = false;
    for line in merged.lines() {
        inside |= line.starts_with("<<<<<<<");
        if inside {
            shown.push_str(line);
            shown.push('\n');
        }
        inside &= !line.starts_with(">>>>>>>");
    }
    shown
}
