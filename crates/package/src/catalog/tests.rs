//! A catalogue that grows. That opm reads and serves it is shown with opm itself: `just packaging`.

use super::*;
use crate::{
    objects::is_crd,
    olm::{self, Options},
    shop::{facts, sample, shop_with},
};

/// A bundle of a version in a folder of its own.
fn source(version: &str, options: &Options) -> Source {
    let folder = tempfile::tempdir().unwrap();
    let bundle = olm::bundle(&facts(version), &shop_with(&[]), &[sample("v1")], options).unwrap();
    bundle.files.plan(folder.path(), false).unwrap().apply().unwrap();
    Source::read(&folder.path().join("bundle")).unwrap()
}

fn stable(version: &str) -> Source {
    source(version, &Options { channels: vec!["stable".into()], ..Options::default() })
}

fn catalog(versions: &[&str]) -> Catalog {
    let mut catalog = Catalog::default();
    for version in versions {
        catalog.add(&stable(version), None, false).unwrap();
    }
    catalog
}

fn edges(catalog: &Catalog) -> Vec<(String, String)> {
    let channel = catalog.documents.iter().find(|one| one["schema"] == "olm.channel").unwrap();
    let edge = |entry: &Value| (name_of(entry).to_owned(), text(entry, "/replaces").to_owned());
    items(&channel["entries"]).map(edge).collect()
}

#[test]
fn a_version_that_is_added_keeps_the_others_and_follows_the_last() {
    let catalog = catalog(&["1.0.0", "1.1.0", "1.10.0"]);
    assert_eq!(catalog.bundles().collect::<Vec<_>>(), ["shop.v1.0.0", "shop.v1.1.0", "shop.v1.10.0"]);
    let wanted = [("shop.v1.0.0", ""), ("shop.v1.1.0", "shop.v1.0.0"), ("shop.v1.10.0", "shop.v1.1.0")];
    assert_eq!(edges(&catalog), wanted.map(|(name, of)| (name.to_owned(), of.to_owned())));
    catalog.validate().unwrap();
}

#[test]
fn the_order_in_which_versions_are_added_does_not_matter() {
    assert_eq!(catalog(&["1.0.0", "1.2.0", "1.1.0"]), catalog(&["1.0.0", "1.1.0", "1.2.0"]));
}

#[test]
fn a_version_that_is_added_again_changes_nothing_and_another_of_its_name_is_refused() {
    let mut catalog = catalog(&["1.0.0", "1.1.0"]);
    let before = catalog.clone();
    catalog.add(&stable("1.1.0"), None, false).unwrap();
    assert_eq!(catalog, before);
    let error = catalog.add(&stable("1.1.0"), Some("shop-bundle:1.1.0"), false).unwrap_err();
    assert!(error.hint().unwrap().contains("--force"), "{error}");
    catalog.add(&stable("1.1.0"), Some("shop-bundle:1.1.0"), true).unwrap();
    assert_eq!(catalog.documents[3]["image"], "shop-bundle:1.1.0");
}

#[test]
fn it_is_the_same_after_it_was_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&["1.0.0", "1.1.0"]);
    catalog.files().unwrap().plan(folder.path(), false).unwrap().apply().unwrap();
    let mut read = Catalog::read(folder.path(), "shop").unwrap();
    read.add(&stable("1.1.0"), None, false).unwrap();
    assert!(read.files().unwrap().plan(folder.path(), false).unwrap().changes().is_empty());
    assert_eq!(Catalog::read(folder.path(), "other").unwrap(), Catalog::default());
}

#[test]
fn a_channel_with_two_ends_and_one_without_its_version_are_found() {
    let mut catalog = catalog(&["1.0.0", "1.1.0"]);
    let channel = catalog.documents.iter_mut().find(|one| one["schema"] == "olm.channel").unwrap();
    channel["entries"][1] = json!({"name": "shop.v9.0.0"});
    let error = catalog.validate().unwrap_err().to_string();
    assert!(
        error.contains("ends in [shop.v1.0.0, shop.v9.0.0]")
            && error.contains("shop.v9.0.0, which is not in it"),
        "{error}"
    );
}

#[test]
fn a_bundle_that_is_not_whole_is_told_in_one_line() {
    let mut source = stable("1.0.0");
    source.validate().unwrap();
    source.objects.retain(|object| !is_crd(object));
    source.default_channel = "fast".to_owned();
    let error = source.validate().unwrap_err().to_string();
    assert!(
        error.starts_with("2 of the checks failed: the default channel")
            && error.contains("carts.shop.com v1"),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Source::read(folder.path()), Err(Error::Read { .. })));
}
