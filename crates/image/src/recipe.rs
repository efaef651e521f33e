//! Images: layers and settings come in, the blobs of an image leave. Nothing of the machine or the moment is in them.

use std::{collections::BTreeMap, io};

use bytes::Bytes;

use crate::{
    Config, Descriptor, Digest, Layer, Manifest, Platform, RuntimeConfig,
    archive::Exported,
    layer::compress,
    media_type,
    oci::{RootFs, encode},
};

/// The user and the group of operators: `nonroot` of distroless images, which pod security lets run.
pub const NONROOT: u32 = 65532;

/// What an image is made of.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Where it runs.
    pub platform: Platform,
    /// The files, lowest layer first.
    pub layers: Vec<Layer>,
    /// How it runs.
    pub config: RuntimeConfig,
    /// When it was made, in seconds since 1970: `SOURCE_DATE_EPOCH`, or 0.
    pub time: u64,
}

/// The image of an operator: its static program and a user to run as.
///
/// There are no certificate authorities in it: an operator speaks to its cluster, whose authority comes with the service
/// account. There is no `/tmp` and no shell either: nothing is written, so the root can be read-only.
pub fn operator(platform: Platform, name: &str, program: impl Into<Bytes>, time: u64) -> Recipe {
    let passwd =
        format!("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{NONROOT}:{NONROOT}:nonroot:/:/sbin/nologin\n");
    let group = format!("root:x:0:\nnonroot:x:{NONROOT}:\n");
    // Two layers: users are the same in every version, and registries and nodes keep them once.
    let users = Layer::default().file("etc/passwd", passwd, 0o644).file("etc/group", group, 0o644);
    let program = Layer::default().file(name, program, 0o755);
    Recipe {
        platform,
        layers: vec![users, program],
        config: RuntimeConfig {
            user: format!("{NONROOT}:{NONROOT}"),
            entrypoint: vec![format!("/{name}")],
            working_dir: "/".into(),
            ..RuntimeConfig::default()
        },
        time,
    }
}

/// An image of one platform.
#[derive(Clone, Debug)]
pub struct Image {
    /// Where it runs.
    pub platform: Platform,
    /// Its manifest.
    pub manifest: Bytes,
    /// All that the manifest names: the configuration and the compressed layers.
    pub blobs: Vec<(Descriptor, Bytes)>,
}

impl Recipe {
    /// Packs the layers and writes configuration and manifest.
    pub fn build(&self) -> io::Result<Image> {
        let mut layers = Vec::new();
        let mut diff_ids = Vec::new();
        for layer in &self.layers {
            let tar = layer.to_tar(self.time)?;
            diff_ids.push(Digest::of(&tar));
            let packed = compress(&tar)?;
            layers.push((Descriptor::of(media_type::LAYER, &packed), Bytes::from(packed)));
        }
        let config = encode(&self.configuration(diff_ids));
        let config = (Descriptor::of(media_type::CONFIG, &config), Bytes::from(config));
        let manifest = Manifest {
            schema_version: 2,
            media_type: Some(media_type::MANIFEST.into()),
            artifact_type: None,
            config: config.0.clone(),
            layers: layers.iter().map(|(descriptor, _)| descriptor.clone()).collect(),
            subject: None,
            annotations: BTreeMap::new(),
        };
        let blobs = std::iter::once(config).chain(layers).collect();
        Ok(Image { platform: self.platform.clone(), manifest: encode(&manifest).into(), blobs })
    }

    /// The image as docker's archives hold one, with its tags. Nothing is compressed.
    pub fn export(&self, tags: Vec<String>) -> io::Result<Exported> {
        let layers: Vec<Bytes> = self
            .layers
            .iter()
            .map(|layer| layer.to_tar(self.time).map(Bytes::from))
            .collect::<Result<_, _>>()?;
        let config = self.configuration(layers.iter().map(|layer| Digest::of(layer)).collect());
        Ok(Exported { tags, config: encode(&config).into(), layers })
    }

    fn configuration(&self, diff_ids: Vec<Digest>) -> Config {
        Config {
            created: Some(timestamp(self.time)),
            platform: self.platform.clone(),
            config: self.config.clone(),
            rootfs: RootFs { kind: "layers".into(), diff_ids },
        }
    }
}

/// Seconds since 1970 as RFC 3339 has them. A time that no calendar knows is 1970.
pub(crate) fn timestamp(time: u64) -> String {
    let time = i64::try_from(time).ok().and_then(|time| jiff::Timestamp::from_second(time).ok());
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_runs_as_nobody_and_knows_no_time() {
        let image = operator(Platform::amd64(), "shop", "program", 0).build().unwrap();
        let config: Config = serde_json::from_slice(&image.blobs[0].1).unwrap();
        assert_eq!(
            (config.config.user.as_str(), config.config.entrypoint),
            ("65532:65532", vec!["/shop".to_owned()])
        );
        assert_eq!(config.created.as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(config.platform, Platform::amd64());
    }

    #[test]
    fn another_time_gives_another_image_and_the_same_time_the_same() {
        let built = |time| operator(Platform::arm64(), "shop", "program", time).build().unwrap().manifest;
        assert_eq!(built(0), built(0));
        assert_ne!(built(0), built(1_700_000_000));
    }

    #[test]
    fn versions_of_a_program_share_the_layer_of_users() {
        let layers = |program: &'static str| {
            let image = operator(Platform::amd64(), "shop", program, 0).build().unwrap();
            image.blobs.iter().skip(1).map(|(layer, _)| layer.digest.clone()).collect::<Vec<_>>()
        };
        let (one, other) = (layers("one"), layers("other"));
        assert_eq!(one[0], other[0]);
        assert_ne!(one[1], other[1]);
    }
}
