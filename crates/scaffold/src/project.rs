//! The file PROJECT: what a project is and which kinds it has, in kubebuilder's words. Every scaffolded file follows
//! from it; keys that windlass does not know are kept.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{error::Error, names};

#[cfg(test)]
mod tests;

/// The name of the file.
pub const FILE: &str = "PROJECT";
/// What windlass calls the layout of its projects.
pub const LAYOUT: &str = "windlass.dev/v1";
const HEADER: &str = "# Written by windlass: it knows by this file what was scaffolded. Commit it; change it with the command.\n";

/// Keys that windlass does not know.
type Rest = BTreeMap<String, Value>;

/// A project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// The version of windlass that wrote it last.
    pub cli_version: String,
    /// What the groups of all kinds end with.
    pub domain: String,
    /// How the project is laid out.
    pub layout: Vec<String>,
    /// The licence: `none`, `mit` or `apache-2.0`.
    #[serde(default)]
    pub license: License,
    /// Who holds the copyright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The name of the package, the binary and the operator.
    pub project_name: String,
    /// Where the source is: `github.com/example/memcached-operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The kinds, one entry for each of their versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// Where the SDK comes from, unless it is the registry: a path or the URL of a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    /// The version of the format: kubebuilder's third.
    pub version: String,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// The licence of a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum License {
    /// No file says anything.
    #[default]
    None,
    /// MIT.
    Mit,
    /// Apache 2.0.
    #[serde(rename = "apache-2.0")]
    Apache,
}

/// One version of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// What the CRD says, if the kind is the project's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// Whether the project has a controller for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub controller: bool,
    /// Whether Kubernetes itself defines the kind.
    #[serde(default, skip_serializing_if = "is_false")]
    pub core: bool,
    /// What its group ends with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// Whether somebody else defines the kind.
    #[serde(default, skip_serializing_if = "is_false")]
    pub external: bool,
    /// Whether it holds on to objects until it has cleaned up after them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub finalizer: bool,
    /// Whether the types were made from somebody else's CRD.
    #[serde(default, skip_serializing_if = "is_false")]
    pub from_crd: bool,
    /// The group, without the domain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Whether this version is stored, and the others are converted through it. A version without others is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hub: bool,
    /// The image that the kind runs, if it was made to run one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The kind.
    pub kind: String,
    /// Where its code is: `memcached_operator::memcached`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Its name in URLs.
    #[serde(default)]
    pub plural: String,
    /// What was taken over from the Go project that the kind comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ported: Option<Ported>,
    /// The port that the image listens on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The user that the image runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<u32>,
    /// The version.
    pub version: String,
    /// What the API server asks about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Webhooks>,
    #[serde(flatten)]
    pub(crate) rest: Rest,
}

/// The CRD of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Api {
    /// The version of the CRD's own API.
    pub crd_version: String,
    /// Whether its objects are in namespaces.
    #[serde(default)]
    pub namespaced: bool,
}

/// What a kind had in Go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ported {
    /// Whether its status has conditions that can be reported.
    #[serde(default, skip_serializing_if = "is_false")]
    pub conditions: bool,
    /// Whether its status says which generation it describes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub observed_generation: bool,
    /// The kinds that its controller owns, as Rust finds them: below the SDK, or in this crate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owns: Vec<String>,
    /// The object in its sample, if the API server would take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleObject>,
}

/// An object by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleObject {
    /// The name.
    pub name: String,
    /// The namespace, if it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The webhooks of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhooks {
    /// Whether versions are converted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub conversion: bool,
    /// Whether missing fields are filled in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub defaulting: bool,
    /// Whether objects are judged.
    #[serde(default, skip_serializing_if = "is_false")]
    pub validation: bool,
    /// The version of the webhooks' own API.
    #[serde(default)]
    pub webhook_version: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Resource {
    /// The API group: with the domain, or one of them alone.
    pub fn api_group(&self) -> String {
        match (self.group.as_str(), self.domain.as_str()) {
            ("", domain) => domain.to_owned(),
            (group, "") => group.to_owned(),
            (group, domain) => format!("{group}.{domain}"),
        }
    }

    /// Its module.
    pub fn module(&self) -> String {
        match self.path.rsplit_once("::") {
            Some((_, module)) => module.to_owned(),
            None => names::module(&self.kind),
        }
    }

    /// Whether two are versions of one kind.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        self.kind == other.kind && self.api_group() == other.api_group()
    }

    /// `cache.example.com/v1, kind Memcached`, in the order in which people say it.
    pub fn describe(&self) -> String {
        format!("{} in {}", self.kind, self.api_version())
    }

    /// Group and version, as `apiVersion` has them.
    pub fn api_version(&self) -> String {
        match self.api_group().as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl Project {
    /// A project without kinds.
    pub fn new(name: &str, domain: &str) -> Result<Self, Error> {
        names::project(name)?;
        names::domain(domain)?;
        Ok(Self {
            cli_version: env!("CARGO_PKG_VERSION").into(),
            domain: domain.into(),
            layout: vec![LAYOUT.into()],
            license: License::None,
            owner: None,
            project_name: name.into(),
            repo: None,
            resources: Vec::new(),
            sdk: None,
            version: "3".into(),
            rest: Rest::new(),
        })
    }

    /// The project of a folder: that of the folder itself or of the nearest one above it.
    pub fn find(folder: &Path) -> Result<(PathBuf, Self), Error> {
        let read = |source| Error::Read { path: folder.to_owned(), source };
        let absolute = std::path::absolute(folder).map_err(read)?;
        let root = absolute.ancestors().find(|folder| folder.join(FILE).is_file());
        let root = root.ok_or_else(|| Error::NoProject(folder.to_owned()))?;
        Ok((root.to_owned(), Self::read(root)?))
    }

    /// Reads the PROJECT file of a folder.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let path = root.join(FILE);
        let text = fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        Self::parse(&text, &path)
    }

    /// Reads the text of a PROJECT file; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        // Before all else: what another tool or a newer version wrote is not to be judged by our types.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            #[serde(default)]
            layout: Vec<String>,
            #[serde(default)]
            cli_version: String,
        }
        let wrong = |error: serde_saphyr::Error| Error::ReadProject {
            path: path.to_owned(),
            message: error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        let head: Head = serde_saphyr::from_str(text).map_err(wrong)?;
        if head.layout != [LAYOUT] {
            let theirs = head.layout.iter().find_map(|layout| layout.strip_prefix("windlass.dev/v"));
            let newer = theirs.and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number > 1);
            if newer {
                return Err(Error::NewerProject {
                    theirs: head.cli_version,
                    ours: env!("CARGO_PKG_VERSION").into(),
                });
            }
            let layout = if head.layout.is_empty() { "not said".into() } else { head.layout.join(", ") };
            return Err(Error::OtherLayout { path: path.to_owned(), layout });
        }
        if is_newer(&head.cli_version, env!("CARGO_PKG_VERSION")) {
            return Err(Error::NewerProject {
                theirs: head.cli_version,
                ours: env!("CARGO_PKG_VERSION").into(),
            });
        }
        let project: Self = serde_saphyr::from_str(text).map_err(wrong)?;
        names::project(&project.project_name)?;
        names::domain(&project.domain)?;
        for resource in &project.resources {
            let untyped = resource.external && !resource.from_crd;
            let check = if untyped { names::external_kind } else { names::kind };
            check(&resource.kind)?;
            names::version(&resource.version)?;
        }
        Ok(project)
    }

    /// The text of the PROJECT file.
    pub fn to_yaml(&self) -> String {
        let body = serde_saphyr::to_string(self).expect("a project must serialise");
        format!("{HEADER}{body}")
    }
}

/// Whether a version comes after another. What is no version comes before all.
fn is_newer(theirs: &str, ours: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> {
        let core = text.split(['-', '+']).next().unwrap_or_default();
        core.split('.').map_while(|part| part.parse().ok()).collect()
    };
    numbers(theirs) > numbers(ours)
}
