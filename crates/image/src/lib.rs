#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod archive;
mod digest;
mod elf;
mod layer;
mod layout;
mod oci;
mod recipe;
mod reference;
pub mod registry;
pub mod sbom;
mod target;

pub use self::{
    archive::{Exported, write_docker_archive},
    digest::{Digest, InvalidDigest},
    elf::{Program, ProgramError, inspect},
    layer::Layer,
    layout::{Error as LayoutError, Layout},
    oci::{Config, Descriptor, Index, Manifest, RuntimeConfig, TITLE, media_type},
    recipe::{Image, NONROOT, Recipe, operator},
    reference::{InvalidReference, Reference},
    target::{InvalidPlatform, Platform},
};
