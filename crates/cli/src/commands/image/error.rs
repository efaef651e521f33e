//! What can go wrong with an image, and what to do about it.

use std::{io, path::PathBuf};

use windlass_image::{InvalidReference, LayoutError, Platform, ProgramError, registry};

use crate::{error::Explained, exit_status::ExitStatus, project};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to read an image")]
    Open(#[source] LayoutError),
    #[error("failed to write the image")]
    Write(#[source] LayoutError),
    #[error("failed to write {}", path.display())]
    WriteFile { path: PathBuf, source: io::Error },
    #[error("failed to pack {}", .0)]
    Pack(Platform, #[source] io::Error),
    #[error("failed to read the program {}", path.display())]
    ReadProgram { path: PathBuf, source: io::Error },
    #[error("failed to take {} into the image", path.display())]
    Program { path: PathBuf, source: ProgramError },
    #[error("failed to take {} into the image: it is a program for {found}, not for {wanted}", path.display())]
    Platform { path: PathBuf, found: String, wanted: String },
    #[error("failed to build for {platform}: Rust's standard library for {target} is not installed")]
    NoTarget { platform: Platform, target: &'static str },
    #[error("failed to build for {platform}: cargo ended with {status}")]
    Build { platform: Platform, status: std::process::ExitStatus, foreign: bool },
    #[error("the workspace has no package {0}")]
    NoPackage(String),
    #[error("failed to read what `cargo metadata` printed")]
    Metadata(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("failed to list the crates of {name}")]
    Sbom { name: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("failed to name the image after its package; give --image")]
    Name(#[source] InvalidReference),
    #[error("SOURCE_DATE_EPOCH is {0:?}, which is no number of seconds")]
    Epoch(String),
    #[error("a docker-archive holds one platform, and there are {0}")]
    Platforms(usize),
    #[error("failed to read the password from standard input")]
    Password(#[source] io::Error),
    #[error(transparent)]
    Registry(#[from] registry::Error),
    #[error("the last build wrote an image for docker load alone, which cannot be read here")]
    NotReadable,
    #[error("the image has no name")]
    Unnamed,
    #[error("failed to find anything that loads images: no containerd, docker or podman is here")]
    NoEngine,
    #[error("images can be loaded into more than one here: {}", .0.join(", "))]
    Engines(Vec<&'static str>),
    #[error("failed to run {program}")]
    Engine { program: &'static str, source: io::Error },
    #[error("`{command}` failed: {said}")]
    Load { command: String, said: String },
    #[error(transparent)]
    Project(#[from] project::Error),
}

impl Explained for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Open(LayoutError::Missing(_)) => {
                "build it with `windlass image build`, or say where it is with --from".into()
            }
            Self::Write(LayoutError::NotALayout(_)) => {
                "nothing else is overwritten; choose another place with --output oci:DIR".into()
            }
            Self::Program { source: ProgramError::Dynamic, .. } => {
                "build it for a musl target, as `windlass image build` does without --binary".into()
            }
            Self::NoTarget { target, .. } => format!("rustup target add {target}"),
            Self::Build { foreign: true, .. } => {
                "for another architecture, C code needs a compiler: `pip install cargo-zigbuild ziglang`, or clang".into()
            }
            Self::Build { .. } => "cargo has said why, above".into(),
            Self::NoPackage(_) => "`cargo metadata --no-deps` lists those that there are".into(),
            Self::Platforms(_) => "choose one with --platform, or write --output oci-archive:FILE".into(),
            Self::Registry(error) => return error.hint(),
            Self::NotReadable => {
                "build with --output oci:DIR or oci-archive:FILE as well, or say with --from which image is meant".into()
            }
            Self::Unnamed => "give it one with --image".into(),
            Self::NoEngine => {
                "push it to a registry with `windlass image push`, or write --output docker-archive:FILE".into()
            }
            Self::Engines(_) => "choose with --into".into(),
            Self::Engine { program, .. } => format!("is {program} installed, and in the PATH?"),
            Self::Project(error) => return error.hint(),
            _ => return None,
        })
    }

    fn status(&self) -> ExitStatus {
        match self {
            Self::Metadata(_) | Self::Pack(..) => ExitStatus::Error,
            Self::Project(error) => error.status(),
            _ => ExitStatus::Failure,
        }
    }
}
