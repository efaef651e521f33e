//! How an answer that is data is printed.

use clap::{Args, ValueEnum};

/// `-o`, for commands whose answer is data.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Print the answer as data
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Yaml,
}
