//! `windlass crd diff`: two sets of definitions come in, what breaks between them is printed, and the exit code says
//! whether anything does.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use windlass_crd::{
    Definition,
    diff::{self, Finding, Severity},
};

use crate::{
    args::{DiffArgs, Output},
    error::Explained,
    exit_status::ExitStatus,
    printer::Printer,
};

/// Why definitions could not be compared, or should not be installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("failed to read stdin")]
    Stdin(#[source] io::Error),
    #[error("failed to read both sides from stdin")]
    StdinTwice,
    #[error("failed to understand {}", path.display())]
    Parse { path: PathBuf, source: Box<windlass_crd::Error> },
    #[error("failed to find a CustomResourceDefinition in {}", .0.display())]
    Nothing(PathBuf),
    #[error("failed to compare {}: it has the CustomResourceDefinition {name} twice", path.display())]
    Twice { path: PathBuf, name: String },
    #[error("failed to write the findings as {0}")]
    Write(&'static str, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{0} of the changes {verb} stored objects or clients", verb = if *.0 == 1 { "breaks" } else { "break" })]
    Breaking(usize),
}

impl Explained for Error {
    fn status(&self) -> ExitStatus {
        if matches!(self, Self::Breaking(_)) { ExitStatus::Failure } else { ExitStatus::Error }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Read { .. } | Self::Nothing(_) => {
                "name a file or a directory of CustomResourceDefinitions in YAML or JSON, or - for stdin"
            }
            Self::StdinTwice => "name a file or a directory for one of them",
            Self::Parse { source, .. } => match **source {
                windlass_crd::Error::ApiVersion { .. } => {
                    "let a cluster convert it: kubectl get crd NAME -o yaml"
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// All that was found, for programs.
#[derive(Serialize)]
struct Report<'f> {
    breaking: usize,
    warnings: usize,
    infos: usize,
    findings: &'f [Finding],
}

pub(super) fn diff(args: &DiffArgs, printer: Printer) -> Result<(), crate::error::Error> {
    let stdin = Path::new("-");
    if args.old == stdin && args.new == stdin {
        return Err(Error::StdinTwice.into());
    }
    let findings = diff::definitions(&definitions(&args.old)?, &definitions(&args.new)?);
    let count = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let report = Report {
        breaking: count(Severity::Breaking),
        warnings: count(Severity::Warning),
        infos: count(Severity::Info),
        findings: &findings,
    };
    match args.output {
        Output::Text => text(&report, printer)?,
        Output::Json => {
            let json =
                serde_json::to_string_pretty(&report).map_err(|error| Error::Write("JSON", error.into()))?;
            printer.answer(format!("{json}\n").as_bytes())?;
        }
        Output::Yaml => {
            let yaml =
                serde_saphyr::to_string(&report).map_err(|error| Error::Write("YAML", error.into()))?;
            printer.answer(yaml.as_bytes())?;
        }
    }
    match report.breaking {
        0 => Ok(()),
        count => Err(Error::Breaking(count).into()),
    }
}

fn text(report: &Report<'_>, printer: Printer) -> Result<(), crate::error::Error> {
    let faint = Style::new().dimmed();
    let mut definition = "";
    for finding in report.findings {
        if finding.definition != definition {
            definition = &finding.definition;
            printer.line(definition)?;
        }
        let style = match finding.severity {
            Severity::Breaking => AnsiColor::Red.on_default().bold(),
            Severity::Warning => AnsiColor::Yellow.on_default(),
            Severity::Info => Style::new(),
        };
        let place: Vec<&str> = finding
            .version
            .as_deref()
            .into_iter()
            .chain([finding.path.as_str()])
            .filter(|text| !text.is_empty())
            .collect();
        let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(" ")) };
        printer.line(format_args!("  {style}{:8}{style:#}  {place}{}", finding.severity, finding.message))?;
        if !finding.hint.is_empty() {
            printer.line(format_args!("            {faint}{}{faint:#}", finding.hint))?;
        }
    }
    if report.findings.is_empty() {
        return printer.line("no differences");
    }
    let Report { breaking, warnings, infos, .. } = report;
    printer.line(format_args!("{breaking} breaking, {warnings} warnings, {infos} harmless"))
}

/// The definitions of a file, of all files below a directory, or of stdin.
fn definitions(path: &Path) -> Result<Vec<Definition>, Error> {
    let mut found = Vec::new();
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(Error::Stdin)?;
        found.extend(parse(Path::new("stdin"), &text)?);
    } else {
        for file in files(path)? {
            let text = std::fs::read_to_string(&file)
                .map_err(|source| Error::Read { path: file.clone(), source })?;
            found.extend(parse(&file, &text)?);
        }
    }
    if found.is_empty() {
        return Err(Error::Nothing(path.to_owned()));
    }
    let mut names: Vec<&str> = found.iter().map(|definition| definition.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::Twice { path: path.to_owned(), name: twice[0].to_owned() });
    }
    Ok(found)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Definition>, Error> {
    Definition::parse(text).map_err(|source| Error::Parse { path: path.to_owned(), source: source.into() })
}

/// The file itself, or the YAML and JSON files below the directory, in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let below = entry.path();
        let known = below.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        // A link is not followed into a directory, which may be one above.
        if entry.file_type().map_err(failed)?.is_dir() {
            files.extend(self::files(&below)?);
        } else if known && below.is_file() {
            files.push(below);
        }
    }
    files.sort();
    Ok(files)
}
