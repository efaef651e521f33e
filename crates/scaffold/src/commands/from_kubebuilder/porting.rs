//! `PORTING.md`: what is left to port, as a list to tick off.

use std::fmt::Write;

use windlass_crd::kubebuilder::{self, GoFile, GoKind};

use super::{Findings, slashed};
use crate::Project;

/// The page.
pub(super) fn page(go: &kubebuilder::Project, project: &Project, found: &Findings) -> String {
    let mut page = format!(
        "# Porting {}\n\nWhat was taken over from the Go project `{}`: types, names, samples, permissions. What is left is \
         written in Go, and listed here with its files there. Delete this file when nothing is left.\n\n\
         Compare the CRDs before you install the new ones: `windlass crd diff GO/config/crd/bases config/crd/bases`.\n",
        project.project_name, go.name
    );
    for entry in &go.resources {
        let home = project
            .resources
            .iter()
            .find(|known| known.kind == entry.kind && known.api_group() == entry.api_group());
        let module = home.map(crate::project::Resource::module);
        let has_more = entry.has_controller || !entry.webhook_files.is_empty();
        if !has_more {
            continue;
        }
        let _ = write!(page, "\n## {} {}/{}\n", entry.kind, entry.api_group(), entry.version);
        if let Some(file) = &entry.controller {
            let to = module.as_ref().map(|module| format!("src/{module}/controller.rs"));
            section(&mut page, "Controller", file, to);
            for kind in &file.watches {
                let _ = writeln!(page, "- [ ] watch {} with `.watches`", name(kind));
            }
        } else if entry.has_controller {
            page.push_str("\n- [ ] the controller, whose file was not found\n");
        }
        for file in &entry.webhook_files {
            let is_conversion = slashed(&file.file).ends_with("_conversion.go");
            let end = if is_conversion { format!("api/{}.rs", entry.version) } else { "webhook.rs".into() };
            let to = module.as_ref().map(|module| format!("src/{module}/{end}"));
            section(&mut page, if is_conversion { "Conversion" } else { "Webhooks" }, file, to);
        }
    }
    let others: Vec<String> = go.other_files.iter().map(|file| format!("[ ] `{}`", slashed(file))).collect();
    list(&mut page, "Other Go files", &others);
    let left: Vec<String> = found.left.iter().map(|left| format!("[ ] {left}")).collect();
    list(&mut page, "Not taken over", &left);
    list(&mut page, "Notes", &go.notes);
    for (kind, sentences) in &found.lost {
        list(&mut page, &format!("What the CRD of {kind} says and its Rust types do not"), sentences);
    }
    page
}

fn section(page: &mut String, title: &str, file: &GoFile, to: Option<String>) {
    let to = to.map(|to| format!(", to `{to}`")).unwrap_or_default();
    let path = slashed(&file.file);
    let _ = write!(page, "\n{title}: `{path}` ({} lines){to}\n\n", file.lines);
    for function in &file.functions {
        let _ = writeln!(page, "- [ ] `{}` ({path}:{})", function.name, function.line);
    }
}

fn name(kind: &GoKind) -> String {
    kind.rust_path()
        .map_or_else(|| format!("`{}` of `{}`", kind.kind, kind.package), |path| format!("`{path}`"))
}

fn list(page: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = write!(page, "\n## {title}\n\n");
    for item in items {
        let _ = writeln!(page, "- {item}");
    }
}
