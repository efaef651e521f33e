//! `windlass image`: what is built, where it goes, and how a registry is spoken to.

use std::{path::PathBuf, str::FromStr};

use clap::{Args, Subcommand, ValueEnum};
use windlass_image::{Platform, Reference};

use super::output::OutputArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Build the operator as a static program and pack it into an image
    ///
    /// The same sources give the same bytes, on any machine. SOURCE_DATE_EPOCH sets the image's time, else it is 1970.
    #[command(after_help = BUILD_EXAMPLES)]
    Build(ImageBuildArgs),
    /// Push an image to a registry; what is there already is not sent, and the tag comes last
    #[command(after_help = PUSH_EXAMPLES)]
    Push(ImagePushArgs),
    /// Load an image into containerd, docker or podman on this machine
    #[command(after_help = LOAD_EXAMPLES)]
    Load(ImageLoadArgs),
}

const BUILD_EXAMPLES: &str = "\
Examples:
  windlass image build
  windlass image build --image example.com/shop:v1
  windlass image build --platform linux/amd64,linux/arm64
  windlass image build --output docker-archive:shop.tar
  windlass image build --package windlass-operators";

const PUSH_EXAMPLES: &str = "\
Examples:
  windlass image push example.com/shop:v1
  windlass image push registry.lan:5000/shop:v1 --insecure
  windlass image push example.com/shop:v1 --dry-run
  windlass image push example.com/shop:v1 -o json";

const LOAD_EXAMPLES: &str = "\
Examples:
  windlass image load
  windlass image load --into docker
  windlass image load --image shop:dev --into containerd";

#[derive(Debug, Args)]
pub(crate) struct ImageBuildArgs {
    /// The platforms: linux/amd64, linux/arm64; if unset, this machine's
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    pub(crate) platform: Vec<Platform>,

    /// The image's name; if unset, the package's name and version
    #[arg(long, value_name = "REF")]
    pub(crate) image: Option<Reference>,

    /// Where it goes: oci:DIR, oci-archive:FILE or docker-archive:FILE; more than once for more than one
    ///
    /// If unset, oci:dist/image, where `push` and `load` look.
    #[arg(long, value_name = "WHERE")]
    pub(crate) output: Vec<Destination>,

    /// A program that is built already, as linux/amd64=PATH
    #[arg(long, value_name = "PLATFORM=PATH", value_parser = binary)]
    pub(crate) binary: Vec<(Platform, PathBuf)>,

    /// Cargo's profile
    #[arg(long, value_name = "NAME", default_value = "release")]
    pub(crate) profile: String,

    /// A package of the workspace around the working folder, rather than the project
    #[arg(long, short, value_name = "NAME")]
    pub(crate) package: Option<String>,

    /// The package's program, if it has several
    #[arg(long, value_name = "NAME")]
    pub(crate) bin: Option<String>,

    /// A label, as org.opencontainers.image.revision=1a2b3c
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) label: Vec<(String, String)>,

    /// Without a list of the crates that the program is made of (SPDX)
    #[arg(long)]
    pub(crate) no_sbom: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImagePushArgs {
    /// The name to push to, as example.com/shop:v1
    #[arg(value_name = "REF")]
    pub(crate) reference: Reference,

    #[command(flatten)]
    pub(crate) from: FromArgs,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,

    /// Fail if the tag is there with other content
    #[arg(long)]
    pub(crate) no_clobber: bool,

    /// Send in parts of so many MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) chunk_size: Option<u32>,

    /// Take what is there from another repository of the registry
    #[arg(long, value_name = "REPOSITORY")]
    pub(crate) mount_from: Option<String>,

    /// Ask the registry, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImageLoadArgs {
    #[command(flatten)]
    pub(crate) from: FromArgs,

    /// The name to load it under; if unset, the one that it was built with
    #[arg(long, value_name = "REF")]
    pub(crate) image: Option<Reference>,

    /// Where to; if unset, the one that is here
    #[arg(long, value_enum)]
    pub(crate) into: Option<Engine>,

    /// The platform to load; if unset, this machine's
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) platform: Option<Platform>,

    /// containerd's namespace; Kubernetes looks into k8s.io
    #[arg(long, value_name = "NAME", default_value = "k8s.io")]
    pub(crate) namespace: String,

    /// containerd's socket
    #[arg(long, value_name = "PATH", default_value = "/run/containerd/containerd.sock")]
    pub(crate) address: PathBuf,

    /// Print the command that would load it, and load nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Where an image is read from.
#[derive(Debug, Args)]
pub(crate) struct FromArgs {
    /// Where the image is: oci:DIR or oci-archive:FILE; if unset, what the last build made
    #[arg(long, value_name = "WHERE")]
    pub(crate) from: Option<Source>,
}

/// How a registry is spoken to. Without a name, docker's and podman's logins are used.
#[derive(Debug, Args)]
pub(crate) struct RegistryArgs {
    /// Log in with this name, rather than as docker or podman did
    #[arg(long, value_name = "NAME", requires = "password_stdin")]
    pub(crate) username: Option<String>,

    /// Read the password from standard input
    #[arg(long, requires = "username")]
    pub(crate) password_stdin: bool,

    /// Trust these authorities beside the system's (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Trust any certificate, and speak plain HTTP where TLS is not served
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// What loads images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    Containerd,
    Docker,
    Podman,
}

/// A place and the format to write there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Layout(PathBuf),
    Archive(PathBuf),
    DockerArchive(PathBuf),
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place =
            |path: &str| if path.is_empty() { Err("a path is missing".to_owned()) } else { Ok(path.into()) };
        match text.split_once(':') {
            Some(("oci", path)) => place(path).map(Self::Layout),
            Some(("oci-archive", path)) => place(path).map(Self::Archive),
            Some(("docker-archive", path)) => place(path).map(Self::DockerArchive),
            _ => Err("begin with oci:, oci-archive: or docker-archive:".into()),
        }
    }
}

/// A layout, as a directory or as a tar file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source(pub(crate) PathBuf);

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(Destination::Layout(path) | Destination::Archive(path)) => Ok(Self(path)),
            _ => Err("begin with oci: or oci-archive:".into()),
        }
    }
}

fn binary(text: &str) -> Result<(Platform, PathBuf), String> {
    let (platform, path) = pair(text)?;
    let platform = platform.parse::<Platform>().map_err(|error| error.to_string())?;
    Ok((platform, path.into()))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a = is missing")?;
    if key.is_empty() || value.is_empty() {
        return Err("both sides of the = must be there".into());
    }
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_says_its_format() {
        assert_eq!("oci:dist/image".parse(), Ok(Destination::Layout("dist/image".into())));
        assert_eq!("docker-archive:a:b.tar".parse(), Ok(Destination::DockerArchive("a:b.tar".into())));
        for text in ["dist/image", "oci:", "tar:x"] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
        assert!("docker-archive:x".parse::<Source>().is_err(), "it is not read, only written");
    }

    #[test]
    fn a_program_is_given_for_a_platform() {
        assert_eq!(binary("linux/arm64=a=b"), Ok((Platform::arm64(), "a=b".into())));
        assert!(binary("windows/amd64=x").unwrap_err().contains("linux/arm64"));
        assert!(binary("x").is_err() && binary("linux/amd64=").is_err());
    }
}
