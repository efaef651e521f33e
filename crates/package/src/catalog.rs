//! A file-based catalogue: the versions of an operator, and the way from one to the next.
//!
//! Enters: a catalogue as it was, and bundles to add. Leaves: the catalogue with them; what was in it stays. A bundle is
//! in it by its image, which OLM pulls, or with everything that it holds, for which no image is needed.

use std::path::Path;

use fs_err as fs;
use serde_json::{Value, json};

use crate::{
    Error, Files, Version,
    objects::{items, text},
    yaml,
};

mod source;

pub use source::Source;

/// A catalogue of one package.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    documents: Vec<Value>,
}

impl Catalog {
    /// Reads what is in a catalogue of this package, which may be nothing yet.
    pub fn read(folder: &Path, package: &str) -> Result<Self, Error> {
        let path = folder.join(package).join("catalog.yaml");
        if !path.exists() {
            return Ok(Self::default());
        }
        Ok(Self { documents: documents(&path)? })
    }

    /// Adds a version; the others stay. Added again it changes nothing. Without an image all that the bundle holds is part
    /// of the catalogue.
    ///
    /// # Errors
    ///
    /// When the same version is there with another content, unless it is forced.
    pub fn add(&mut self, source: &Source, image: Option<&str>, force: bool) -> Result<(), Error> {
        let mut bundle = source.document(image);
        yaml::tidy(&mut bundle);
        match self.documents.iter_mut().find(|other| is(other, "olm.bundle", source.name())) {
            Some(present) if *present == bundle => {}
            Some(present) if force => *present = bundle,
            Some(_) => return Err(Error::Present { bundle: source.name().to_owned() }),
            None => self.documents.push(bundle),
        }
        for channel in &source.channels {
            self.channel(source, channel);
        }
        self.package(source);
        self.order();
        Ok(())
    }

    /// What is known of the package as a whole, as its newest version says it.
    fn package(&mut self, source: &Source) {
        let newest = self.versions().into_iter().max();
        let older = newest
            .is_some_and(|newest| Version::parse(source.version()).is_ok_and(|version| version < newest));
        let present = self.documents.iter().position(|other| is(other, "olm.package", &source.package));
        if older && present.is_some() {
            return;
        }
        let mut package = json!({
            "schema": "olm.package",
            "name": source.package,
            "defaultChannel": source.default_channel,
            "description": text(&source.csv, "/metadata/annotations/description"),
        });
        if let Some(icon) = items(&source.csv["spec"]["icon"]).next() {
            package["icon"] = icon.clone();
        }
        match present {
            Some(at) => self.documents[at] = package,
            None => self.documents.push(package),
        }
    }

    fn versions(&self) -> Vec<Version> {
        let bundles = self.documents.iter().filter(|document| document["schema"] == "olm.bundle");
        bundles.filter_map(|bundle| Version::parse(version_of(name_of(bundle))).ok()).collect()
    }

    /// Puts a version into a channel: behind the one that it says, or behind the next older one.
    fn channel(&mut self, source: &Source, channel: &str) {
        if !self.documents.iter().any(|other| is(other, "olm.channel", channel)) {
            let document =
                json!({ "schema": "olm.channel", "package": source.package, "name": channel, "entries": [] });
            self.documents.push(document);
        }
        let found = self.documents.iter_mut().find(|other| is(other, "olm.channel", channel));
        let Some(entries) = found.and_then(|channel| channel["entries"].as_array_mut()) else { return };
        entries.retain(|entry| name_of(entry) != source.name());
        let own = Version::parse(source.version()).ok();
        let version = |entry: &Value| Version::parse(version_of(name_of(entry))).ok();
        let older = entries.iter().filter(|entry| version(entry) < own).max_by_key(|entry| version(entry));
        let said = source.csv["spec"]["replaces"].as_str().map(ToOwned::to_owned);
        let replaces = said.or_else(|| older.map(|entry| name_of(entry).to_owned()));
        // One that is added between two others leads from the one to the other.
        let newer = entries.iter_mut().filter(|entry| version(entry) > own);
        if let (Some(next), Some(replaces)) = (newer.min_by_key(|entry| version(entry)), &replaces)
            && next["replaces"] == replaces.as_str()
        {
            next["replaces"] = json!(source.name());
        }
        let mut entry = json!({ "name": source.name() });
        if let Some(replaces) = replaces {
            entry["replaces"] = json!(replaces);
        }
        if items(&source.csv["spec"]["skips"]).next().is_some() {
            entry["skips"] = source.csv["spec"]["skips"].clone();
        }
        if let Some(range) = source.csv.pointer("/metadata/annotations/olm.skipRange") {
            entry["skipRange"] = range.clone();
        }
        entries.push(entry);
        entries.sort_by_key(version);
    }

    /// The package, its channels, its versions from the oldest to the newest.
    fn order(&mut self) {
        let rank = |document: &Value| match text(document, "/schema") {
            "olm.package" => 0,
            "olm.channel" => 1,
            "olm.bundle" => 2,
            _ => 3,
        };
        let version = |document: &Value| Version::parse(version_of(name_of(document))).ok();
        self.documents.sort_by(|left, right| {
            let key = |document: &Value| (rank(document), version(document));
            key(left).cmp(&key(right)).then_with(|| name_of(left).cmp(name_of(right)))
        });
    }

    /// The names of the versions, from the oldest to the newest.
    pub fn bundles(&self) -> impl Iterator<Item = &str> {
        self.documents.iter().filter(|document| document["schema"] == "olm.bundle").map(name_of)
    }

    /// The documents of the catalogue.
    pub fn documents(&self) -> &[Value] {
        &self.documents
    }

    /// What is wrong with the catalogue.
    ///
    /// # Errors
    ///
    /// All that was found, together.
    pub fn validate(&self) -> Result<(), Error> {
        let mut found = Vec::new();
        let packages: Vec<&Value> =
            self.documents.iter().filter(|one| one["schema"] == "olm.package").collect();
        if packages.len() != 1 {
            found.push(format!("there are {} packages in it, not one", packages.len()));
        }
        let channels: Vec<&Value> =
            self.documents.iter().filter(|one| one["schema"] == "olm.channel").collect();
        for package in &packages {
            let default = text(package, "/defaultChannel");
            if !channels.iter().any(|channel| name_of(channel) == default) {
                found.push(format!("the default channel {default:?} is not in it"));
            }
        }
        for channel in channels {
            let entries: Vec<&Value> = items(&channel["entries"]).collect();
            for entry in &entries {
                if !self.bundles().any(|bundle| bundle == name_of(entry)) {
                    found.push(format!(
                        "the channel {} has {}, which is not in it",
                        name_of(channel),
                        name_of(entry)
                    ));
                }
            }
            let passed = |entry: &Value| {
                entries.iter().any(|other| {
                    text(other, "/replaces") == name_of(entry)
                        || items(&other["skips"]).any(|skip| skip == name_of(entry))
                })
            };
            let heads: Vec<&str> =
                entries.iter().filter(|entry| !passed(entry)).map(|entry| name_of(entry)).collect();
            if heads.len() != 1 {
                found.push(format!(
                    "the channel {} ends in [{}], not in one version",
                    name_of(channel),
                    heads.join(", ")
                ));
            }
        }
        if found.is_empty() { Ok(()) } else { Err(Error::Invalid(found)) }
    }

    /// The files of the catalogue, below its folder.
    pub fn files(&self) -> Result<Files, Error> {
        let package = self.documents.iter().find(|document| document["schema"] == "olm.package");
        let package = package.map(name_of).ok_or(Error::Missing("package"))?;
        let path = format!("{package}/catalog.yaml");
        let mut files = Files::continued();
        files.insert(path.clone(), yaml::stream(&path, &self.documents)?);
        Ok(files)
    }
}

fn is(document: &Value, schema: &str, wanted: &str) -> bool {
    document["schema"] == schema && document["name"] == wanted
}

fn name_of(document: &Value) -> &str {
    text(document, "/name")
}

/// The version at the end of a bundle's name.
fn version_of(name: &str) -> &str {
    name.split_once(".v").map_or(name, |(_, version)| version)
}

fn documents(path: &Path) -> Result<Vec<Value>, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let documents = serde_saphyr::from_multiple::<Value>(&text);
    documents.map_err(|error| Error::Content { path: path.to_owned(), why: error.to_string() })
}

#[cfg(test)]
mod tests;
