//! What cargo would build for a command, read from its unit graph.
//!
//! Enters a folder and a command; leaves each crate of others' with the features it is built with. Two builds are one if
//! package, features, profile and all that they stand on are the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Graph {
    units: Vec<Unit>,
}

#[derive(Deserialize)]
struct Unit {
    pkg_id: String,
    target: Target,
    profile: BTreeMap<String, serde_json::Value>,
    mode: String,
    features: Vec<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Dependency {
    index: usize,
}

/// The builds of a crate: their identities, and the features of each.
type Builds = BTreeMap<Vec<u8>, BTreeSet<String>>;

/// The builds of others' crates, by package, by what is built of it and how.
pub(super) struct Units(BTreeMap<String, Builds>);

impl Units {
    pub(super) fn of(folder: &Path, command: &[&str]) -> Result<Self> {
        // The flag is unstable; the format has been the same for six years, and a change would fail here, not pass.
        let printed = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(command)
            .args(["--offline", "--unit-graph", "-Zunstable-options"])
            .env("RUSTC_BOOTSTRAP", "1")
            .current_dir(folder)
            .output()
            .context("failed to start cargo")?;
        let said = String::from_utf8_lossy(&printed.stderr);
        ensure!(printed.status.success(), "cargo {} failed: {said}", command.join(" "));
        let graph = serde_json::from_slice(&printed.stdout).context("failed to read cargo's unit graph")?;
        Ok(Self::read(&graph))
    }

    fn read(graph: &Graph) -> Self {
        let mut known = vec![None; graph.units.len()];
        let mut builds = BTreeMap::<String, Builds>::new();
        for (index, unit) in graph.units.iter().enumerate() {
            if unit.pkg_id.starts_with("path+") {
                continue;
            }
            let package = unit.pkg_id.rsplit(['#', '/']).next().unwrap_or(&unit.pkg_id);
            let what = format!("{package} ({} {})", unit.mode, unit.target.kind.join(" "));
            let features = unit.features.iter().cloned().collect();
            builds.entry(what).or_default().insert(identity(graph, index, &mut known), features);
        }
        Self(builds)
    }

    /// The crates that both build, but not in the same way. If features differ somewhere, what merely stands on those
    /// crates is not named.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let both = self.0.iter().filter_map(|(what, ours)| Some((what, ours, other.0.get(what)?)));
        let differing: Vec<_> = both.filter(|(_, ours, theirs)| !ours.keys().eq(theirs.keys())).collect();
        let causes: Vec<String> = differing.iter().filter_map(|(what, a, b)| cause(what, a, b)).collect();
        if causes.is_empty() {
            return differing.iter().map(|(what, ..)| format!("{what}, in its profile")).collect();
        }
        causes
    }
}

fn cause(what: &str, ours: &Builds, theirs: &Builds) -> Option<String> {
    let sets = |builds: &Builds| builds.values().cloned().collect::<BTreeSet<_>>();
    if sets(ours) == sets(theirs) {
        return None;
    }
    let all = |builds: &Builds| builds.values().flatten().cloned().collect::<BTreeSet<_>>();
    let (ours, theirs) = (all(ours), all(theirs));
    let only: Vec<_> = ours.symmetric_difference(&theirs).map(String::as_str).collect();
    Some(format!("{what}, in the features [{}]", only.join(", ")))
}

/// The digest of all that makes a build what it is.
fn identity(graph: &Graph, index: usize, known: &mut [Option<Vec<u8>>]) -> Vec<u8> {
    if let Some(identity) = &known[index] {
        return identity.clone();
    }
    let unit = &graph.units[index];
    let mut digest = Sha256::new();
    for part in [&unit.pkg_id, &unit.mode, &unit.target.name]
        .into_iter()
        .chain(&unit.target.kind)
        .chain(&unit.features)
    {
        digest.update(part);
        digest.update([0]);
    }
    // `dev` and `test` are two names of one profile.
    for (key, value) in unit.profile.iter().filter(|(key, _)| *key != "name") {
        digest.update(format!("{key}={value}\0"));
    }
    let mut dependencies: Vec<_> =
        unit.dependencies.iter().map(|dependency| identity(graph, dependency.index, known)).collect();
    dependencies.sort();
    for dependency in &dependencies {
        digest.update(dependency);
    }
    let identity = digest.finalize().to_vec();
    known[index] = Some(identity.clone());
    identity
}
