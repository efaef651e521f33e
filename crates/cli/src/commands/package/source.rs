//! Whose objects are packed: a project's, whose program is built and asked, or those of the seven operators.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tokio::process::Command;
use windlass::{CertificateSource, ConfigTree, Placement};
use windlass_operators::manifests as seven;
use windlass_package::{Facts, Objects, RELEASE_NAMESPACE, WATCHED_NAMESPACE};

use super::{Error, facts, objects, printed};
use crate::{
    args::{FactsArgs, PlacedArgs, WriteArgs},
    error::Error as CommandError,
    operator::samples,
    printer::Printer,
    project::{self, Project, build, build::Manner},
};

/// What lets cert-manager issue the certificate of a project's webhooks.
const CERT_MANAGER: &str = "--cert-manager";

/// The folders of `config/` that are for an overlay, or by themselves.
const OPTIONAL: [&str; 3] = ["grafana", "network-policy", "prometheus"];

fn is_optional(path: &str) -> bool {
    let (folder, file) = path.split_once('/').unwrap_or_default();
    OPTIONAL.contains(&folder) && !file.starts_with("kustomization.")
}

/// The objects of files.
fn parsed<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<Value>, CommandError> {
    let mut found = Vec::new();
    for text in texts {
        let objects = serde_saphyr::from_multiple::<Value>(text);
        found.extend(objects.map_err(|error| CommandError::Encode(error.into()))?);
    }
    Ok(found)
}

/// Where objects come from.
pub(super) enum Source {
    Project { project: Project, program: PathBuf, arguments: Vec<OsString> },
    Operators { only: Vec<String>, placed: PlacedArgs },
}

impl Source {
    /// Builds the project around the working folder. Of its kinds only those are asked for that are named.
    pub(super) async fn project(only: &[String], arguments: &[OsString]) -> Result<Self, CommandError> {
        let project = Project::here()?;
        let program = project.build(Manner { quiet: true, ..Manner::default() }).await?;
        let mut arguments = arguments.to_vec();
        if !only.is_empty() {
            arguments.extend(disabled(&project, &program, only).await?);
        }
        Ok(Self::Project { project, program, arguments })
    }

    /// Where files belong that are given no place.
    pub(super) fn root(&self) -> PathBuf {
        match self {
            Self::Project { project, .. } => project.root.clone(),
            Self::Operators { .. } => PathBuf::from("."),
        }
    }

    /// What is told about the operator.
    pub(super) async fn facts(&self, args: &FactsArgs) -> Result<Facts, CommandError> {
        let mut facts = match self {
            Self::Project { project, .. } => {
                let package = cargo_package(&project.root).await?;
                let version = args.version.clone();
                let version =
                    version.unwrap_or_else(|| package["version"].as_str().unwrap_or_default().to_owned());
                let image = args.image.clone().or_else(|| named_image(&project.root));
                let image = image.unwrap_or_else(|| format!("{}:v{version}", project.name));
                let mut facts = Facts::new(&project.name, &version, image).map_err(Error::from)?;
                facts::from_cargo(&mut facts, &project.root, &package)?;
                facts
            }
            Self::Operators { only, .. } => {
                let name =
                    if only.is_empty() { "windlass-operators".to_owned() } else { seven::account(only) };
                let version = args.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
                let image = args.image.as_deref().unwrap_or(seven::IMAGE);
                let mut facts = Facts::new(name, version, image).map_err(Error::from)?;
                facts.namespace = seven::namespace(only);
                "Operators that prove Windlass, a toolkit for Kubernetes operators in Rust"
                    .clone_into(&mut facts.description);
                facts.provider = Some("Windlass".to_owned());
                facts.license = Some("MIT".to_owned());
                facts.keywords = vec!["operator".to_owned(), "windlass".to_owned()];
                facts
            }
        };
        facts::from_flags(&mut facts, args)?;
        Ok(facts)
    }

    /// The objects, with names in them that say where the namespaces stand. For OLM its certificates are somebody else's.
    pub(super) async fn objects(&self, facts: &Facts, certificates: bool) -> Result<Objects, CommandError> {
        match self {
            Self::Project { .. } => {
                let place = format!("--namespace={RELEASE_NAMESPACE}");
                let watched = format!("--watch-namespaces={WATCHED_NAMESPACE}");
                let mut flags = vec![place.as_str()];
                if certificates {
                    flags.push(CERT_MANAGER);
                }
                let all = self.ask(facts, &flags).await?;
                let issued = if certificates { None } else { Some(self.issued(facts, &place).await?) };
                flags.push(&watched);
                let objects = objects(all, self.ask(facts, &flags).await?)?;
                let objects = match issued {
                    Some(issued) => objects.cert_managed(issued, self.wants_cert_manager()),
                    None => objects,
                };
                Ok(objects.optional(self.optional(facts).await?))
            }
            Self::Operators { only, placed } => {
                let certificates =
                    if certificates { CertificateSource::CertManager } else { CertificateSource::Operator };
                let usual = seven::placement(RELEASE_NAMESPACE, &facts.image);
                let placement = Placement { certificates, ..placed.over(usual) };
                let issued = Placement { certificates: CertificateSource::CertManager, ..placement.clone() };
                let issued = seven::shipped(only).manifests(&issued);
                let all = seven::shipped(only).manifests(&placement);
                let restricted = seven::shipped(only).namespaces([WATCHED_NAMESPACE]).manifests(&placement);
                let tree = seven::shipped(only).config_tree(&placement);
                let files = tree.files().map_err(|error| CommandError::Config(error.into()))?;
                let texts =
                    files.iter().filter(|file| is_optional(&file.path)).map(|file| file.content.as_str());
                let objects = objects(all, restricted)?.optional(parsed(texts)?);
                Ok(objects.cert_managed(issued, placed.cert_manager))
            }
        }
    }

    /// Whether a chart lets cert-manager issue certificates unless told otherwise.
    fn wants_cert_manager(&self) -> bool {
        match self {
            Self::Project { arguments, .. } => arguments.iter().any(|argument| argument == CERT_MANAGER),
            Self::Operators { placed, .. } => placed.cert_manager,
        }
    }

    /// The objects of a project whose certificate cert-manager issues.
    async fn issued(&self, facts: &Facts, place: &str) -> Result<Vec<Value>, CommandError> {
        self.ask(facts, &[place, CERT_MANAGER]).await
    }

    /// What the project's program writes to folders that nothing else of `config/` needs.
    async fn optional(&self, facts: &Facts) -> Result<Vec<Value>, CommandError> {
        let Self::Project { project, program, arguments } = self else { return Ok(Vec::new()) };
        let failed = |source| project::Error::Read { path: project.root.clone(), source };
        let folder = tempfile::tempdir().map_err(failed)?;
        let (out, image) = (folder.path().display().to_string(), format!("--image={}", facts.image));
        let place = format!("--namespace={RELEASE_NAMESPACE}");
        let own: Vec<String> =
            arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let mut line = vec!["manifests", "--out", out.as_str(), image.as_str(), place.as_str()];
        line.extend(own.iter().map(String::as_str));
        build::printed(program, &project.root, &line).await?;
        let mut texts = Vec::new();
        for part in OPTIONAL {
            for path in samples::files(&folder.path().join(part)) {
                let text = fs_err::read_to_string(&path);
                texts.push(text.map_err(|source| project::Error::Read { path: path.clone(), source })?);
            }
        }
        parsed(texts.iter().map(String::as_str))
    }

    /// The objects as they are applied.
    pub(super) async fn placed(&self, facts: &Facts) -> Result<Vec<Value>, CommandError> {
        match self {
            Self::Project { .. } => self.ask(facts, &[]).await,
            Self::Operators { only, placed } => {
                let placement = placed.over(seven::placement(&facts.namespace, &facts.image));
                Ok(seven::shipped(only).manifests(&placement))
            }
        }
    }

    /// What the project's program prints.
    async fn ask(&self, facts: &Facts, flags: &[&str]) -> Result<Vec<Value>, CommandError> {
        let Self::Project { project, program, arguments } = self else { return Ok(Vec::new()) };
        let image = format!("--image={}", facts.image);
        // In a chart it is a value, and said once for a bundle.
        let asked = |argument: &&OsString| flags.is_empty() || **argument != CERT_MANAGER;
        let own = arguments.iter().filter(asked);
        let own: Vec<String> = own.map(|argument| argument.to_string_lossy().into_owned()).collect();
        let mut line = vec!["manifests", "--output=json", image.as_str()];
        line.extend(flags);
        line.extend(own.iter().map(String::as_str));
        let text = build::printed(program, &project.root, &line).await?;
        Ok(printed(&format!("{} manifests", project.name), &text)?)
    }

    /// Objects to try the kinds with.
    pub(super) fn samples(&self) -> Result<Vec<Value>, CommandError> {
        match self {
            Self::Project { project, .. } => {
                let mut found = Vec::new();
                for path in samples::files(&project.samples()) {
                    found.extend(samples::read(&path)?);
                }
                Ok(found)
            }
            Self::Operators { only, .. } => {
                let found = seven::samples(only).map_err(|error| CommandError::Generate(error.into()))?;
                Ok(found.into_iter().map(|(_, sample)| sample).collect())
            }
        }
    }

    /// The files of `config/`, which an operator's own program knows.
    pub(super) async fn kustomize(
        &self,
        facts: &Facts,
        out: Option<PathBuf>,
        write: &WriteArgs,
        printer: Printer,
    ) -> Result<(), CommandError> {
        if write.force || write.output.output.is_some() {
            return Err(Error::NotForced("kustomize").into());
        }
        match self {
            Self::Project { project, program, arguments } => {
                let mut command = Command::new(program);
                command
                    .arg("manifests")
                    .arg("--out")
                    .arg(out.unwrap_or_else(|| "config".into()))
                    .args(arguments);
                for (flag, on) in [("--check", write.check), ("--dry-run", write.dry_run)] {
                    command.args(on.then_some(flag));
                }
                command.current_dir(&project.root).stdin(Stdio::null()).kill_on_drop(true);
                let failed = |source| project::Error::Run { program: program.clone(), source };
                let status = command.status().await.map_err(failed)?;
                match status.code() {
                    Some(0) => Ok(()),
                    Some(code) => Err(CommandError::Passed(u8::try_from(code).unwrap_or(1))),
                    None => {
                        let (name, status) = (project.name.clone(), status.to_string());
                        Err(project::Error::Ended { name, status }.into())
                    }
                }
            }
            Self::Operators { only, placed } => {
                let out = out.unwrap_or_else(|| "config".into());
                let placement = placed.over(seven::placement(&facts.namespace, &facts.image));
                let tree = seven::tree_of(only, &placement);
                let tree = tree.map_err(|error| CommandError::Generate(error.into()))?;
                operators_tree(&tree, facts, &out, write, printer)
            }
        }
    }
}

fn operators_tree(
    tree: &ConfigTree,
    facts: &Facts,
    out: &Path,
    write: &WriteArgs,
    printer: Printer,
) -> Result<(), CommandError> {
    let failed = |error: windlass::ConfigError| CommandError::Config(error.into());
    let count = tree.files().map_err(failed)?.len();
    if write.dry_run {
        let changes = tree.changes(out).map_err(failed)?;
        for (verb, paths) in [("would write", &changes.written), ("would remove", &changes.removed)] {
            for path in paths {
                printer.line(format_args!("{verb} {}", out.join(path).display()))?;
            }
        }
        if changes.is_empty() {
            printer.aside(format_args!("{} is up to date", out.display()))?;
        }
        return Ok(());
    }
    if write.check {
        let changes = tree.changes(out).map_err(failed)?;
        let names: Vec<String> = changes.written.into_iter().chain(changes.removed).collect();
        if names.is_empty() {
            return Ok(());
        }
        let command = format!("{} --out {}", facts.command, out.display());
        return Err(Error::Stale { folder: out.to_owned(), count: names.len(), names, command }.into());
    }
    tree.write(out).map_err(failed)?;
    printer.fact("manifests", format_args!("{count} files in {}", out.display()))?;
    printer.command(format_args!("kubectl apply --server-side -k {}/crd", out.display()))?;
    printer.command(format_args!("kubectl apply -k {}/default", out.display()))
}

/// What makes the program leave all kinds out but the chosen ones.
async fn disabled(
    project: &Project,
    program: &Path,
    only: &[String],
) -> Result<Option<OsString>, CommandError> {
    let text = build::printed(program, &project.root, &["crds", "--output=json"]).await?;
    let crds = printed(&format!("{} crds", project.name), &text)?;
    let kind = |crd: &Value| crd["spec"]["names"]["kind"].as_str().unwrap_or_default().to_lowercase();
    let name = |crd: &Value| crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let is = |crd: &Value, wanted: &String| kind(crd) == wanted.to_lowercase() || name(crd) == *wanted;
    if let Some(unknown) = only.iter().find(|wanted| !crds.iter().any(|crd| is(crd, wanted))) {
        let known = crds.iter().map(kind).collect();
        return Err(Error::UnknownKind { name: unknown.clone(), known }.into());
    }
    let others: Vec<String> =
        crds.iter().filter(|crd| !only.iter().any(|wanted| is(crd, wanted))).map(name).collect();
    Ok((!others.is_empty()).then(|| format!("--disable-kinds={}", others.join(",")).into()))
}

/// What cargo says of the project's package.
async fn cargo_package(root: &Path) -> Result<Value, CommandError> {
    let program = build::cargo();
    let mut command = Command::new(&program);
    command.args(["metadata", "--no-deps", "--format-version=1"]).current_dir(root).stdin(Stdio::null());
    let output = command.kill_on_drop(true).output().await;
    let output = output.map_err(|source| project::Error::NoCargo { program, source })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(project::Error::Failed { command: "cargo metadata".to_owned(), said }.into());
    }
    let found: Value = serde_json::from_slice(&output.stdout).map_err(Error::Metadata)?;
    let packages = found["packages"].as_array().cloned().unwrap_or_default();
    let manifest = root.join("Cargo.toml");
    let own = packages
        .iter()
        .find(|package| package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest));
    Ok(own.or(packages.first()).cloned().unwrap_or_default())
}

/// The image that `config/manager` names: what was set by `make manifests IMG=` or `kustomize edit set image`.
fn named_image(root: &Path) -> Option<String> {
    let text = fs_err::read_to_string(root.join("config/manager/kustomization.yaml")).ok()?;
    let file: Value = serde_saphyr::from_str(&text).ok()?;
    let image = file["images"].as_array()?.iter().find(|image| image["name"] == "controller")?;
    let name = image["newName"].as_str()?;
    match (image["digest"].as_str(), image["newTag"].as_str()) {
        (Some(digest), _) => Some(format!("{name}@{digest}")),
        (None, Some(tag)) => Some(format!("{name}:{tag}")),
        (None, None) => Some(name.to_owned()),
    }
}
