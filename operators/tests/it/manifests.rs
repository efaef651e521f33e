//! The committed files of `config/` are what the code generates, no more and no less.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use windlass_operators::manifests::manifests;

const FIX: &str = "run: cargo run -p windlass-operators --example manifests";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn files_below(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}; {FIX}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.insert(path);
        }
    }
}

#[test]
fn the_committed_manifests_are_the_generated_ones() {
    for manifest in manifests().unwrap() {
        let path = root().join(&manifest.path);
        let committed =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}; {FIX}", manifest.path));
        assert!(committed == manifest.content, "{} is not what the code generates; {FIX}", manifest.path);
    }
}

#[test]
fn no_manifest_is_left_over() {
    let generated: BTreeSet<PathBuf> =
        manifests().unwrap().into_iter().map(|manifest| root().join(manifest.path)).collect();
    let mut found = BTreeSet::new();
    files_below(&root().join("config"), &mut found);
    let left: Vec<_> = found.difference(&generated).collect();
    assert!(left.is_empty(), "nothing generates these files, delete them: {left:#?}");
}

#[test]
fn the_kinds_are_not_deleted_with_the_operators() {
    let files = manifests().unwrap();
    let default = files.iter().find(|file| file.path == "config/default/kustomization.yaml").unwrap();
    let listed = |folder: &str| default.content.contains(&format!("- ../{folder}\n"));
    assert!(!listed("crd") && listed("rbac"), "{}", default.content);
    let kinds = files.iter().filter(|file| file.content.contains("kind: CustomResourceDefinition"));
    let outside: Vec<_> = kinds.filter(|file| !file.path.starts_with("config/crd/")).collect();
    assert!(outside.is_empty(), "{outside:#?}");
}
