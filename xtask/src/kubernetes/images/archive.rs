//! The images of a testbed: layers and settings come in, docker-archive files leave.

use std::io::Write;

use anyhow::{Context, Result};
use windlass_image::{Exported, Layer, Platform, Recipe, Reference, RuntimeConfig, write_docker_archive};

/// An image: its layers, lowest first, and how it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) tags: Vec<String>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) entrypoint: Vec<String>,
    pub(crate) command: Vec<String>,
    pub(crate) ports: Vec<u16>,
    /// Empty for root.
    pub(crate) user: String,
    /// The usual one unless given.
    pub(crate) path: Option<String>,
    /// Further variables, as `NAME=value`.
    pub(crate) environment: Vec<String>,
}

impl Image {
    fn export(&self) -> Result<Exported> {
        let path =
            self.path.as_deref().unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        let recipe = Recipe {
            platform: Platform::of_this_machine(),
            layers: self.layers.clone(),
            config: RuntimeConfig {
                user: self.user.clone(),
                exposed_ports: self
                    .ports
                    .iter()
                    .map(|port| (format!("{port}/tcp"), <_>::default()))
                    .collect(),
                env: std::iter::once(format!("PATH={path}"))
                    .chain(self.environment.iter().cloned())
                    .collect(),
                entrypoint: self.entrypoint.clone(),
                cmd: self.command.clone(),
                working_dir: "/".to_owned(),
                ..RuntimeConfig::default()
            },
            time: 0,
        };
        recipe.export(self.tags.clone()).context("failed to write a layer")
    }
}

/// Writes `images` as one docker-archive. Layers that several of them share are written once.
pub(crate) fn write_archive(out: impl Write, images: &[Image]) -> Result<()> {
    let exported: Vec<Exported> = images.iter().map(Image::export).collect::<Result<_>>()?;
    Ok(write_docker_archive(out, &exported)?)
}

/// Completes an image name as container runtimes do: `nginx:1` is `docker.io/library/nginx:1`. A tag must be there.
pub(super) fn parse_tag(text: &str) -> Result<String, String> {
    let reference: Reference = text.parse().map_err(|error| format!("{error}"))?;
    let tagged = text.rsplit_once(':').is_some_and(|(_, tag)| Some(tag) == reference.tag());
    if !tagged || reference.digest().is_some() {
        return Err("an image needs a name and a tag, such as webserver:0.1".to_owned());
    }
    Ok(reference.to_string())
}

#[cfg(test)]
mod tests;
