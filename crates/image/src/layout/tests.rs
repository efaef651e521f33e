use std::fs;

use super::*;
use crate::{elf, operator};

fn layout() -> Layout {
    let reference = "example.com/shop:1.2".parse().unwrap();
    let images = [(Platform::amd64(), 62), (Platform::arm64(), 183)].map(|(platform, machine)| {
        operator(platform, "shop", elf::tests::program(machine, &[1]), 0).build().unwrap()
    });
    let document = sbom::Document { name: "shop".into(), ..sbom::Document::default() };
    Layout::new(&reference, images.to_vec(), vec![Some(document.clone()), Some(document)])
}

fn files(folder: &std::path::Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn two_layouts_in_two_directories_are_equal_byte_for_byte() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    layout().write_directory(&one.path().join("a")).unwrap();
    layout().write_directory(&other.path().join("b")).unwrap();
    let found = files(&one.path().join("a"));
    assert!(found.len() > 10, "{:?}", found.keys());
    assert_eq!(found, files(&other.path().join("b")));
    let mut archives = [Vec::new(), Vec::new()];
    for archive in &mut archives {
        layout().write_archive(archive).unwrap();
    }
    assert_eq!(archives[0], archives[1]);
}

#[test]
fn a_directory_and_an_archive_give_back_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, archive) = (folder.path().join("image"), folder.path().join("image.tar"));
    layout().write_directory(&directory).unwrap();
    layout().write_archive(fs::File::create(&archive).unwrap()).unwrap();
    for path in [directory, archive] {
        let back = Layout::open(&path).unwrap();
        assert_eq!(back.index(), layout().index());
        for digest in layout().blobs.keys() {
            assert_eq!(back.blob(digest).unwrap(), layout().blob(digest).unwrap());
        }
        let image = back.image(Some("1.2")).unwrap();
        assert_eq!(Layout::name(image), Some("example.com/shop:1.2"));
        let platforms: Vec<_> =
            back.manifests(image).unwrap().into_iter().filter_map(|one| one.platform).collect();
        assert_eq!(platforms, [Platform::amd64(), Platform::arm64()]);
    }
}

#[test]
fn every_platform_has_its_sbom_as_a_referrer() {
    let layout = layout();
    let manifests = layout.manifests(layout.image(None).unwrap()).unwrap();
    for manifest in &manifests {
        let referrers = layout.referrers(std::slice::from_ref(manifest)).unwrap();
        assert_eq!(referrers.len(), 1);
        let (descriptor, referrer) = &referrers[0];
        assert_eq!(descriptor.artifact_type.as_deref(), Some(media_type::SPDX));
        let subject = referrer.subject.as_ref().unwrap();
        assert_eq!((&subject.digest, subject.size), (&manifest.digest, manifest.size));
    }
}

#[test]
fn a_layout_is_replaced_and_anything_else_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    layout().write_directory(&path).unwrap();
    fs::write(path.join("blobs/sha256").join("0".repeat(64)), "of an older image").unwrap();
    layout().write_directory(&path).unwrap();
    assert!(!path.join("blobs/sha256").join("0".repeat(64)).exists());

    let other = folder.path().join("photos");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("cat.jpg"), "cat").unwrap();
    assert!(matches!(layout().write_directory(&other), Err(Error::NotALayout(_))));
    assert_eq!(fs::read(other.join("cat.jpg")).unwrap(), b"cat");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing unfinished is left");
}

#[test]
fn a_damaged_blob_is_never_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    layout().write_directory(&path).unwrap();
    let digest = layout().image(None).unwrap().digest.clone();
    fs::write(path.join("blobs/sha256").join(digest.hex()), "{}").unwrap();
    assert!(matches!(Layout::open(&path).unwrap().blob(&digest), Err(Error::Damaged { .. })));
}

#[test]
fn what_is_no_layout_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Layout::open(folder.path()), Err(Error::NotALayout(_))));
    assert!(matches!(Layout::open(&folder.path().join("nothing")), Err(Error::Missing(_))));
    let file = folder.path().join("file.tar");
    fs::write(&file, "no tar file at all, but longer than one block of it".repeat(20)).unwrap();
    assert!(matches!(Layout::open(&file), Err(Error::NotALayout(_))));
}

#[test]
fn one_platform_is_exported_unpacked() {
    let exported = layout().export(None, &Platform::arm64(), vec!["shop:1".into()]).unwrap();
    let config: crate::Config = serde_json::from_slice(&exported.config).unwrap();
    assert_eq!(config.platform, Platform::arm64());
    let digests: Vec<_> = exported.layers.iter().map(|layer| Digest::of(layer)).collect();
    assert_eq!(digests, config.rootfs.diff_ids);
    let riscv = Platform { architecture: "riscv64".into(), ..Platform::amd64() };
    let error = layout().export(None, &riscv, Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "the image is not for linux/riscv64; it is for linux/amd64, linux/arm64");
}
