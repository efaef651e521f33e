//! The versions of a kind that are not stored. Each begins as a copy of the stored one, as that is now, so that whoever
//! has fields of their own finds them there.

use minijinja::{Value, context, value::Serde};

use super::{Files, Renderer, kinds::Spoke};
use crate::{error::Error, render::Kind};

const TEMPLATE: &str = include_str!("../../templates/version/spoke.rs.j2");

/// Whether a file is made once, from what a person has written, and never again.
pub(crate) fn is_derived(kinds: &[Kind], path: &str) -> bool {
    kinds.iter().any(|kind| {
        let is_types = path == types_path(kind);
        if (kind.typed && is_types)
            || (kind.ported.is_some() && (is_types || path == sample_path(&kind.sample)))
        {
            return true;
        }
        kind.spokes.iter().any(|spoke| path == spoke_path(kind, spoke) || path == sample_path(&spoke.sample))
    })
}

/// The files of a kind that comes from Go which follow from what is there and not from `PROJECT`: types and samples.
pub(crate) fn ported_paths(kind: &Kind) -> Vec<String> {
    let mut paths = vec![types_path(kind), sample_path(&kind.sample)];
    for spoke in &kind.spokes {
        paths.extend([spoke_path(kind, spoke), sample_path(&spoke.sample)]);
    }
    paths
}

fn types_path(kind: &Kind) -> String {
    format!("src/{}/api.rs", kind.module)
}

fn spoke_path(kind: &Kind, spoke: &Spoke) -> String {
    format!("src/{}/api/{}.rs", kind.module, spoke.module)
}

fn sample_path(sample: &str) -> String {
    format!("config/samples/{sample}")
}

impl Renderer {
    /// Adds the spokes of all kinds, made from the scaffolded form of the stored versions.
    pub(super) fn add_spokes(&self, files: &mut Files) -> Result<(), Error> {
        for kind in self.kinds.iter().filter(|kind| kind.ported.is_none()) {
            for spoke in &kind.spokes {
                let types = files.get(&types_path(kind)).unwrap_or_default().to_owned();
                let (path, text) = spoke_types(self, kind, spoke, &types)?;
                files.0.insert(path, text);
                let sample = files.get(&sample_path(&kind.sample)).unwrap_or_default().to_owned();
                let (path, text) = spoke_sample(kind, spoke, &sample);
                files.0.insert(path, text);
            }
        }
        Ok(())
    }
}

/// The file of another version, from the text of the stored one's.
pub(crate) fn spoke_types(
    renderer: &Renderer,
    kind: &Kind,
    spoke: &Spoke,
    api: &str,
) -> Result<(String, String), Error> {
    let is_mod =
        |line: &str| line.ends_with(';') && (line.starts_with("mod ") || line.starts_with("pub mod "));
    let body = api.lines().filter(|line| !line.starts_with("//!") && !is_mod(line));
    // Whatever version the text speaks of, it becomes this one: only in the attribute that says so.
    let mut body: Vec<String> = body.map(ToOwned::to_owned).collect();
    for line in &mut body {
        if line.trim_start().starts_with("version = \"v") || line.contains(", version = \"v") {
            *line = with_version(line, &spoke.version);
        }
    }
    let header = format!(
        "//! The types of `{}/{}`, which are served beside `{}`, and converted to and from it.\n\n",
        kind.api_group, spoke.version, kind.version
    );
    let types = format!("{header}{}\n", body.join("\n").trim());
    let path = spoke_path(kind, spoke);
    let context = context! { types, kind => Value::from(Serde(kind)), spoke => Value::from(Serde(spoke)) };
    let text = renderer.render("version/spoke.rs", TEMPLATE, &path, context)?;
    Ok((path, text))
}

/// The text of the stored version's types, with the version and the modules of the others that a kind has by now.
pub(crate) fn with_versions(api: &str, kind: &Kind) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in api.lines() {
        let module = line.strip_prefix("pub mod v").and_then(|rest| rest.strip_suffix(';'));
        if module.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            continue;
        }
        let is_version = line.trim_start().starts_with("version = \"v") || line.contains(", version = \"v");
        lines.push(if is_version { with_version(line, &kind.version) } else { line.to_owned() });
    }
    let after =
        lines.iter().rposition(|line| line.starts_with("use ") && line.ends_with(';')).map_or(0, |at| at + 1);
    let modules = kind.spokes.iter().map(|spoke| format!("pub mod {};", spoke.module));
    let modules: Vec<String> = std::iter::once(String::new()).chain(modules).collect();
    if modules.len() > 1 {
        lines.splice(after..after, modules);
    }
    crate::format::rust(&(lines.join("\n") + "\n"))
}

fn with_version(line: &str, version: &str) -> String {
    let key = "version = \"";
    let Some(at) = line.find(key) else { return line.to_owned() };
    let begin = at + key.len();
    let end = line[begin..].find('"').map_or(line.len(), |length| begin + length);
    format!("{}{version}{}", &line[..begin], &line[end..])
}

/// The sample of another version, from the text of the stored one's.
pub(crate) fn spoke_sample(kind: &Kind, spoke: &Spoke, sample: &str) -> (String, String) {
    let name = format!("{}-sample", kind.singular);
    let other = format!("{}-{}-sample", kind.singular, spoke.version);
    let lines = sample.lines().map(|line| match line {
        _ if line.starts_with("apiVersion:") => format!("apiVersion: {}/{}", kind.api_group, spoke.version),
        _ if line.trim() == format!("name: {name}") => line.replace(&name, &other),
        _ => line.to_owned(),
    });
    let text: Vec<String> = lines.collect();
    (sample_path(&spoke.sample), text.join("\n") + "\n")
}
