//! Go files, read as text: what a controller declares to watch, and the functions that are left to port.

use std::path::{Path, PathBuf};

use super::{Error, Project, entries, text_of};

/// A Go file that is left to port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoFile {
    /// The file, below the project.
    pub file: PathBuf,
    /// How many lines it has.
    pub lines: usize,
    /// What `For` names.
    pub reconciles: Vec<GoKind>,
    /// What `Owns` names.
    pub owns: Vec<GoKind>,
    /// What `Watches` and `WatchesMetadata` name.
    pub watches: Vec<GoKind>,
    /// Its functions.
    pub functions: Vec<Function>,
}

/// A kind as Go names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoKind {
    /// The package's path, such as `k8s.io/api/apps/v1`; empty where its import was not found.
    pub package: String,
    /// The kind.
    pub kind: String,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line that it begins at, from 1.
    pub line: usize,
}

/// Groups whose names are longer than the package's.
const GROUPS: [(&str, &str); 8] = [
    ("core", ""),
    ("networking", "networking.k8s.io"),
    ("rbac", "rbac.authorization.k8s.io"),
    ("storage", "storage.k8s.io"),
    ("coordination", "coordination.k8s.io"),
    ("discovery", "discovery.k8s.io"),
    ("scheduling", "scheduling.k8s.io"),
    ("certificates", "certificates.k8s.io"),
];

impl GoKind {
    /// The API group and the version of a kind of Kubernetes' own.
    fn own(&self) -> Option<(&str, &str)> {
        self.package.strip_prefix("k8s.io/api/")?.split_once('/')
    }

    /// The API group, for a kind of Kubernetes' own.
    pub fn group(&self) -> Option<&str> {
        let (group, _) = self.own()?;
        Some(GROUPS.iter().find(|(package, _)| *package == group).map_or(group, |(_, name)| *name))
    }

    /// Where k8s-openapi has it, for a kind of Kubernetes' own: `k8s_openapi::api::apps::v1::Deployment`.
    pub fn rust_path(&self) -> Option<String> {
        let (group, version) = self.own()?;
        Some(format!("k8s_openapi::api::{group}::{version}::{}", self.kind))
    }
}

/// Directories in which nothing is to be ported.
const ELSEWHERE: [&str; 7] = ["vendor", "bin", "test", "testdata", "hack", "node_modules", "docs"];

/// Finds the controllers and the webhooks of a project's kinds, and the rest.
pub(super) fn find(dir: &Path, project: &mut Project) -> Result<(), Error> {
    let mut files = Vec::new();
    walk(dir, dir, 0, &mut files)?;
    for file in files {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let generated = name.starts_with("zz_generated") || name.ends_with("_test.go");
        let declared = name.ends_with("_types.go")
            || name == "groupversion_info.go"
            || name == "main.go"
            || name == "doc.go";
        if generated || declared {
            continue;
        }
        let Some(text) = text_of(&dir.join(&file))? else { continue };
        if !assign(project, &file, &name, &text) {
            project.other_files.push(file);
        }
    }
    Ok(())
}

/// Gives a file to the kinds that it belongs to. Says whether there are any.
fn assign(project: &mut Project, file: &Path, name: &str, text: &str) -> bool {
    let parts: Vec<String> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let mut found = false;
    let multigroup = project.multigroup;
    for resource in &mut project.resources {
        let kind = resource.kind.to_lowercase();
        let in_group = !multigroup || resource.group.is_empty() || parts.contains(&resource.group);
        if !in_group {
            continue;
        }
        if resource.has_controller && name == format!("{kind}_controller.go") {
            resource.controller = Some(read(file, text));
            found = true;
        }
        let webhook = name == format!("{kind}_webhook.go") || name == format!("{kind}_conversion.go");
        if webhook && parts.contains(&resource.version) {
            resource.webhook_files.push(read(file, text));
            found = true;
        }
    }
    found
}

fn walk(dir: &Path, at: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    // Deeper than any layout, and no link leads around in circles.
    if depth > 8 {
        return Ok(());
    }
    for path in entries(at)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_dir = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_dir && !name.starts_with('.') && !ELSEWHERE.contains(&name.as_str()) {
            walk(dir, &path, depth + 1, files)?;
        } else if !is_dir && path.extension().is_some_and(|end| end == "go") {
            files.push(path.strip_prefix(dir).unwrap_or(&path).to_owned());
        }
    }
    Ok(())
}

fn read(file: &Path, text: &str) -> GoFile {
    let code = without_comments(text);
    let imports = imports(&code);
    let calls = |names: &[&str]| {
        let mut kinds: Vec<GoKind> = Vec::new();
        for name in names {
            for kind in named(&code, &format!("{name}("), &imports) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
        kinds
    };
    GoFile {
        file: file.to_owned(),
        lines: text.lines().count(),
        reconciles: calls(&["For"]),
        owns: calls(&["Owns"]),
        watches: calls(&["Watches", "WatchesMetadata", "WatchesRawSource"]),
        functions: functions(&code),
    }
}

/// The text with spaces where its comments were, so that lines stay what they are.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut quote = None;
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some('"' | '\''), '\\') => {
                code.push(character);
                code.extend(characters.next());
            }
            (Some(open), character) => {
                code.push(character);
                if open == character || (character == '\n' && open != '`') {
                    quote = None;
                }
            }
            (None, '"' | '`' | '\'') => {
                quote = Some(character);
                code.push(character);
            }
            (None, '/') if characters.peek() == Some(&'/') => {
                while characters.peek().is_some_and(|next| *next != '\n') {
                    characters.next();
                }
            }
            (None, '/') if characters.peek() == Some(&'*') => {
                let mut before = ' ';
                for next in characters.by_ref() {
                    if next == '\n' {
                        code.push('\n');
                    }
                    if before == '*' && next == '/' {
                        break;
                    }
                    before = next;
                }
            }
            (None, character) => code.push(character),
        }
    }
    code
}

/// The imports, by the names that the file gives them.
fn imports(code: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in code.lines() {
        let line = line.trim().trim_start_matches("import").trim();
        let Some((before, rest)) = line.split_once('"') else { continue };
        let Some(path) = rest.strip_suffix('"') else { continue };
        if before.split_whitespace().count() > 1 || path.contains(' ') {
            continue;
        }
        let alias = match before.trim() {
            "" => path.rsplit('/').next().unwrap_or(path),
            alias => alias,
        };
        found.push((alias.to_owned(), path.to_owned()));
    }
    found
}

/// The first kind that each call of the method `call` names: `&appsv1.Deployment{}`, wherever in its arguments.
fn named(code: &str, call: &str, imports: &[(String, String)]) -> Vec<GoKind> {
    let mut found = Vec::new();
    for (index, _) in code.match_indices(call) {
        // A builder's calls stand on lines of their own, behind a dot that ends the line before.
        if !code[..index].trim_end().ends_with('.') {
            continue;
        }
        let arguments = &code[index + call.len()..];
        let mut depth = 1usize;
        let end = arguments.find(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let arguments = &arguments[..end.unwrap_or(arguments.len())];
        found.extend(arguments.split('&').skip(1).find_map(|text| kind(text, imports)));
    }
    found
}

/// `appsv1.Deployment{` at the beginning of the text.
fn kind(text: &str, imports: &[(String, String)]) -> Option<GoKind> {
    let (name, _) = text.split_once('{')?;
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let (alias, kind) = name.trim().split_once('.').unwrap_or(("", name.trim()));
    // `&source.Kind{Type: &..}` and the handlers are no kinds.
    if !is_name(kind) || ["source", "handler", "builder", "predicate"].contains(&alias) {
        return None;
    }
    let package = imports.iter().find(|(known, _)| known == alias).map(|(_, path)| path.clone());
    Some(GoKind { package: package.unwrap_or_default(), kind: kind.to_owned() })
}

fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let Some(rest) = line.strip_prefix("func ") else { continue };
        // A method has its receiver first.
        let rest =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
        let name: String =
            rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !name.is_empty() {
            found.push(Function { name, line: index + 1 });
        }
    }
    found
}
