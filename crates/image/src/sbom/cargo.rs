//! What cargo says of a program's crates.

use std::collections::{BTreeMap, BTreeSet};

use super::Package;

/// The crates of a program and who uses whom. The first is the program's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The crates.
    pub packages: Vec<Package>,
    /// Pairs of their places.
    pub edges: Vec<(usize, usize)>,
}

/// Output of `cargo tree` that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the line {0:?} of `cargo tree`")]
pub struct UnreadableTree(String);

/// The arguments with which cargo prints what [`Tree::parse`] reads: what is compiled into the program of `package` for
/// `target`, without build scripts, macros and what tests need, with the features that a build would have.
pub fn tree_arguments(package: &str, target: &str) -> Vec<String> {
    let fixed = ["tree", "--locked", "--quiet", "--edges", "normal,no-proc-macro", "--prefix", "depth"];
    let mut arguments: Vec<String> = fixed.map(str::to_owned).into();
    arguments
        .extend(["--format", "\t{p}\t{l}\t{r}", "--package", package, "--target", target].map(str::to_owned));
    arguments
}

impl Tree {
    /// Reads the output of `cargo tree` and the Cargo.lock beside it.
    pub fn parse(output: &str, lock: &str) -> Result<Self, UnreadableTree> {
        let checksums = checksums(lock);
        let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut tree = Self::default();
        let mut edges = BTreeSet::new();
        let mut above: Vec<usize> = Vec::new();
        for line in output.lines().filter(|line| !line.trim().is_empty()) {
            let (depth, package) = read(line).ok_or_else(|| UnreadableTree(line.to_owned()))?;
            let key = (package.name.clone(), package.version.clone());
            let place = *places.entry(key.clone()).or_insert_with(|| {
                let checksum = checksums.get(&key).cloned();
                tree.packages.push(Package { registry: checksum.is_some(), checksum, ..package });
                tree.packages.len() - 1
            });
            if depth > above.len() {
                return Err(UnreadableTree(line.to_owned()));
            }
            above.truncate(depth);
            edges.extend(above.last().map(|&parent| (parent, place)));
            above.push(place);
        }
        tree.edges = edges.into_iter().collect();
        Ok(tree.sorted())
    }

    /// The program's own package first, the others in the order of their names: how cargo walks is its own affair.
    fn sorted(self) -> Self {
        let mut order: Vec<usize> = (0..self.packages.len()).collect();
        order.sort_by_key(|&at| (at > 0, &self.packages[at]));
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        let mut edges: Vec<_> = self.edges.iter().map(|&(from, to)| (place[from], place[to])).collect();
        edges.sort_unstable();
        Self { packages: order.iter().map(|&at| self.packages[at].clone()).collect(), edges }
    }
}

/// A line: the depth, then tabs before `name vVERSION (where)`, the licence and the repository.
fn read(line: &str) -> Option<(usize, Package)> {
    let mut parts = line.split('\t');
    let depth = parts.next()?.parse().ok()?;
    let mut words = parts.next()?.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let said = |text: Option<&str>| {
        // A star marks what was shown above.
        let text = text.unwrap_or_default().trim_end_matches(" (*)").trim();
        (!text.is_empty() && text != "(*)").then(|| text.to_owned())
    };
    let (license, repository) = (said(parts.next()), said(parts.next()));
    Some((
        depth,
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            // An old way to write OR.
            license: license.map(|text| text.replace('/', " OR ")),
            repository,
            ..Package::default()
        },
    ))
}

/// The checksums of a lock file by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter_map(|text| {
            let value = |key: &str| {
                text.lines()
                    .find_map(|line| line.strip_prefix(key)?.trim().strip_prefix("= \"")?.strip_suffix('"'))
            };
            Some((
                (value("name ")?.to_owned(), value("version ")?.to_owned()),
                value("checksum ")?.to_owned(),
            ))
        })
        .collect()
}
