//! `windlass crd`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum CrdCommand {
    /// Say what breaks stored objects or clients between two sets of CustomResourceDefinitions
    ///
    /// Exits with 0 when nothing does, with 1 when something does, and with 2 when they cannot be compared.
    #[command(after_help = EXAMPLES)]
    Diff(DiffArgs),
}

const EXAMPLES: &str = "\
Examples:
  windlass crd diff old.yaml config/crd/bases
  git show main:config/crd/bases/example.com_things.yaml | windlass crd diff - config/crd/bases/example.com_things.yaml
  kubectl get crds -o yaml | windlass crd diff - config/crd -o json";

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The definitions as they are: a file, a directory, or - for stdin
    pub(crate) old: PathBuf,

    /// The definitions as they will be: a file, a directory, or - for stdin
    pub(crate) new: PathBuf,

    /// How to print what is found
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// For programs
    Json,
    /// For programs
    Yaml,
}
