//! The tree by owner: rows and filters enter, what is shown of them leaves, in order. Pure.
//!
//! The page's script does the same in the browser, where folding and filtering must not wait for anybody; `just browser`
//! compares the two.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use crate::{health::Health, kinds::Kind, row::Row};

/// How far a match looks for what leads to it: owners may be a circle.
const DEEPEST: usize = 50;

/// Which objects are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// A part of `Kind namespace/name`, in small letters.
    pub text: String,
    /// The kind, as somebody means it: `pods`, `deploy`, `webservers.example.org`.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// How they are.
    pub health: Option<Health>,
    /// Also those kinds that nobody runs things with.
    pub everything: bool,
}

impl Filter {
    /// Whether anything is left out by it, apart from kinds.
    pub(crate) fn is_set(&self) -> bool {
        !self.text.is_empty() || !self.kind.is_empty() || !self.namespace.is_empty() || self.health.is_some()
    }

    fn matches(&self, row: &Row, kind: &Kind) -> bool {
        (self.kind.is_empty() || kind.is_meant_by(&self.kind))
            && (self.namespace.is_empty() || *row.namespace == *self.namespace)
            && self.health.is_none_or(|health| row.health == health)
            && (self.text.is_empty()
                || format!("{} {}/{}", kind.kind, row.namespace, row.name)
                    .to_lowercase()
                    .contains(&self.text))
    }
}

/// A row in its place.
#[derive(Clone, Debug)]
pub(crate) struct Branch<'a> {
    pub(crate) row: &'a Row,
    pub(crate) kind: &'a Kind,
    pub(crate) depth: usize,
    /// Whether there is something below it.
    pub(crate) parent: bool,
    /// Whether that is shown.
    pub(crate) open: bool,
    /// Whether it is only there because it leads to a match.
    pub(crate) dim: bool,
}

/// Custom kinds first, then by kind, namespace and name.
fn order(a: (&Row, &Kind), b: (&Row, &Kind)) -> Ordering {
    let key = |(_, kind): (&Row, &Kind)| (!kind.custom, kind.kind.to_lowercase());
    let names = |(row, _): (&Row, &Kind)| (row.namespace.clone(), row.name.clone());
    key(a).cmp(&key(b)).then_with(|| names(a).cmp(&names(b)))
}

/// The rows in the order of the tree: children below their owners, and what leads to a match with it.
pub(crate) fn flatten<'a>(
    rows: &'a BTreeMap<String, Row>,
    kinds: &'a [Kind],
    filter: &Filter,
    folded: &BTreeSet<String>,
) -> Vec<Branch<'a>> {
    let mut children: HashMap<&str, Vec<(&Row, &Kind)>> = HashMap::new();
    let mut roots = Vec::new();
    // What is kept, and whether for itself.
    let mut keep: HashMap<&str, bool> = HashMap::new();
    let filtered = filter.is_set();
    for row in rows.values() {
        let Some(kind) = kinds.get(row.kind) else { continue };
        let owned = !row.owner.is_empty() && *row.owner != *row.uid && rows.contains_key(&*row.owner);
        if owned {
            children.entry(&row.owner).or_default().push((row, kind));
        } else {
            roots.push((row, kind));
        }
        if filtered && filter.matches(row, kind) {
            keep.insert(&row.uid, true);
            let mut up = rows.get(&*row.owner);
            for _ in 0..DEEPEST {
                let Some(owner) = up else { break };
                keep.entry(&owner.uid).or_insert(false);
                up = rows.get(&*owner.owner);
            }
        }
    }
    let everything = filter.everything || !filter.kind.is_empty();
    roots.retain(|(_, kind)| everything || kind.workload);
    roots.sort_unstable_by(|a, b| order(*a, *b));
    for below in children.values_mut() {
        below.sort_unstable_by(|a, b| order(*a, *b));
    }
    let mut shown = Vec::new();
    let mut seen = HashSet::new();
    let mut ahead: Vec<(&Row, &Kind, usize)> =
        roots.into_iter().rev().map(|(row, kind)| (row, kind, 0)).collect();
    while let Some((row, kind, depth)) = ahead.pop() {
        let uid = row.uid.as_str();
        if (filtered && !keep.contains_key(uid)) || !seen.insert(uid) {
            continue;
        }
        let below = children.get(uid);
        let open = below.is_some() && !folded.contains(uid);
        let dim = filtered && keep.get(uid) == Some(&false);
        shown.push(Branch { row, kind, depth, parent: below.is_some(), open, dim });
        if open {
            let below = below.into_iter().flatten().rev();
            ahead.extend(below.map(|(row, kind)| (*row, *kind, depth + 1)));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(name: &str, workload: bool) -> Kind {
        Kind {
            group: String::new(),
            version: "v1".into(),
            kind: name.into(),
            plural: format!("{}s", name.to_lowercase()),
            namespaced: true,
            custom: name == "Demo",
            workload,
        }
    }

    fn kinds() -> Vec<Kind> {
        vec![kind("Pod", true), kind("Demo", true), kind("Secret", false)]
    }

    fn row(uid: usize, kind: usize, owner: Option<usize>, health: Health) -> Row {
        Row {
            uid: uid.to_string(),
            kind,
            namespace: if uid.is_multiple_of(2) { "even" } else { "odd" }.into(),
            name: format!("n{uid}").into(),
            health,
            message: "".into(),
            owner: owner.map(|owner| owner.to_string()).unwrap_or_default().into(),
            created: 0,
            revision: "1".into(),
        }
    }

    fn names(rows: &BTreeMap<String, Row>, filter: &Filter, folded: &[&str]) -> Vec<String> {
        let folded = folded.iter().map(|uid| (*uid).to_owned()).collect();
        let branch = |branch: Branch<'_>| {
            format!(
                "{}{}{}",
                "  ".repeat(branch.depth),
                branch.row.name,
                if branch.dim { " dim" } else { "" }
            )
        };
        flatten(rows, &kinds(), filter, &folded).into_iter().map(branch).collect()
    }

    #[test]
    fn children_are_below_their_owners_and_what_leads_to_a_match_stays() {
        use Health::{Current, Failed};
        let all = [row(1, 1, None, Current), row(2, 0, Some(1), Failed), row(3, 0, None, Current)];
        let mut rows: BTreeMap<String, Row> = all.into_iter().map(|row| (row.uid.clone(), row)).collect();
        let secret = row(4, 2, None, Current);
        rows.insert(secret.uid.clone(), secret);
        assert_eq!(names(&rows, &Filter::default(), &[]), ["n1", "  n2", "n3"]);
        assert_eq!(names(&rows, &Filter::default(), &["1"]), ["n1", "n3"]);
        let failed = Filter { health: Some(Failed), ..Filter::default() };
        assert_eq!(names(&rows, &failed, &[]), ["n1 dim", "  n2"]);
        let pods = Filter { kind: "po".into(), namespace: "odd".into(), ..Filter::default() };
        assert_eq!(names(&rows, &pods, &[]), ["n3"]);
        let secrets = Filter { kind: "secrets".into(), ..Filter::default() };
        assert_eq!(names(&rows, &secrets, &[]), ["n4"]);
        let everything = Filter { everything: true, ..Filter::default() };
        assert_eq!(names(&rows, &everything, &[]), ["n1", "  n2", "n3", "n4"]);
        let text = Filter { text: "pod even/n2".into(), ..Filter::default() };
        assert_eq!(names(&rows, &text, &[]), ["n1 dim", "  n2"]);
    }

    proptest! {
        /// Whoever owns whom, in circles or not: nobody is shown twice, nobody before its owner, and the end is reached.
        #[test]
        fn a_tree_has_every_row_once(owners in proptest::collection::vec((0..12_usize, any::<bool>(), 0..3_usize), 0..12)) {
            let all = owners.iter().enumerate().map(|(uid, (owner, owned, kind))| {
                row(uid, *kind, owned.then_some(*owner), Health::Current)
            });
            let rows: BTreeMap<String, Row> = all.map(|row| (row.uid.clone(), row)).collect();
            let (kinds, folded) = (kinds(), BTreeSet::new());
            let shown = flatten(&rows, &kinds, &Filter { everything: true, ..Filter::default() }, &folded);
            let mut seen = BTreeSet::new();
            for branch in &shown {
                prop_assert!(branch.depth == 0 || seen.contains(&*branch.row.owner));
                prop_assert!(seen.insert(branch.row.uid.as_str()));
            }
            // Only those whose owners are a circle are not reached, as they have no root.
            let rootless = |row: &Row| {
                let mut at = row;
                for _ in 0..20 {
                    match rows.get(&*at.owner) {
                        Some(owner) if at.uid != *at.owner => at = owner,
                        _ => return false,
                    }
                }
                true
            };
            prop_assert_eq!(shown.len(), rows.values().filter(|row| !rootless(row)).count());
        }
    }
}
