//! What a program is made of, as SPDX 2.3 says it.
//!
//! Enters what `cargo tree` prints of the crates that are compiled into a program (not of build scripts, macros and
//! tests), and Cargo.lock with their checksums. Leaves a document that is the same every time.

mod cargo;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use self::cargo::{Tree, UnreadableTree, tree_arguments};
use crate::{Digest, recipe::timestamp};

/// A crate in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence as Cargo.toml has it, if that is an SPDX expression.
    pub license: Option<String>,
    /// Where its source is.
    pub repository: Option<String>,
    /// Whether it is from crates.io.
    pub registry: bool,
    /// The SHA-256 of what crates.io has.
    pub checksum: Option<String>,
}

/// An SBOM.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The program.
    pub name: String,
    /// When it was made, as RFC 3339 has it.
    pub created: String,
    /// The digest of the program's file.
    pub program: Option<Digest>,
    /// The program's own package, and all that it is compiled from.
    pub packages: Vec<Package>,
    /// Who uses whom, by their places in `packages`. The first package is the program's own.
    pub edges: Vec<(usize, usize)>,
}

impl Document {
    /// The SBOM of a program.
    pub fn new(name: &str, program: &[u8], tree: Tree, time: u64) -> Self {
        let Tree { packages, edges } = tree;
        Self {
            name: name.into(),
            created: timestamp(time),
            program: Some(Digest::of(program)),
            packages,
            edges,
        }
    }

    /// The document in SPDX's JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let mut packages: Vec<Value> =
            self.packages.iter().enumerate().map(|(at, package)| package.json(at)).collect();
        if let Some((program, first)) = self.program.as_ref().zip(packages.first_mut()) {
            first["packageFileName"] = json!(self.name);
            first["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": program.hex()}]);
        }
        let mut relationships = vec![];
        if !self.packages.is_empty() {
            relationships.push(relationship("SPDXRef-DOCUMENT", "DESCRIBES", &id(0, &self.packages[0])));
        }
        let uses = self.edges.iter();
        relationships.extend(uses.map(|&(from, to)| {
            relationship(&id(from, &self.packages[from]), "DEPENDS_ON", &id(to, &self.packages[to]))
        }));
        let document = BTreeMap::from([
            ("spdxVersion", json!("SPDX-2.3")),
            ("dataLicense", json!("CC0-1.0")),
            ("SPDXID", json!("SPDXRef-DOCUMENT")),
            ("name", json!(self.name)),
            ("documentNamespace", json!(self.namespace())),
            (
                "creationInfo",
                json!({"created": self.created, "creators": [format!("Tool: windlass-{}", env!("CARGO_PKG_VERSION"))]}),
            ),
            ("packages", json!(packages)),
            ("relationships", json!(relationships)),
        ]);
        let mut text = serde_json::to_vec_pretty(&document).expect("a document of strings must become JSON");
        text.push(b'\n');
        text
    }

    /// A name that another document has only if it says the same of the same program.
    fn namespace(&self) -> String {
        let content = format!("{:?}{:?}{:?}", self.program, self.packages, self.edges);
        format!("https://spdx.org/spdxdocs/{}-{}", self.name, Digest::of(content.as_bytes()).hex())
    }
}

impl Package {
    fn json(&self, at: usize) -> Value {
        let none = || "NOASSERTION".to_owned();
        let location = self
            .registry
            .then(|| format!("https://static.crates.io/crates/{0}/{0}-{1}.crate", self.name, self.version));
        let mut value = json!({
            "SPDXID": id(at, self),
            "name": self.name,
            "versionInfo": self.version,
            "downloadLocation": location.unwrap_or_else(none),
            "filesAnalyzed": false,
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": self.license.clone().unwrap_or_else(none),
            "copyrightText": "NOASSERTION",
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": format!("pkg:cargo/{}@{}", self.name, self.version.replace('+', "%2B")),
            }],
        });
        if at == 0 {
            value["primaryPackagePurpose"] = json!("APPLICATION");
        }
        if let Some(repository) = &self.repository {
            value["homepage"] = json!(repository);
        }
        if let Some(checksum) = &self.checksum {
            value["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": checksum}]);
        }
        value
    }
}

fn id(at: usize, package: &Package) -> String {
    let text = format!("{}-{}", package.name, package.version);
    let text = text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-', "-");
    format!("SPDXRef-Package-{at}-{text}")
}

fn relationship(from: &str, kind: &str, to: &str) -> Value {
    json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to})
}

#[cfg(test)]
mod tests;
