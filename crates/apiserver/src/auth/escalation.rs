//! Nobody may give away what they do not have: the check of roles and bindings.
//!
//! A rule is a product of four lists, and what somebody holds is a union of such products. Values that the same held
//! rules allow are not told apart, so the work follows the number of *different* values, not the product of the lists.

use std::collections::{BTreeMap, BTreeSet};

use super::rbac::Rule;

/// So many combinations of different values are compared. Only who holds thousands of rules comes near it.
const COMBINATIONS: usize = 1 << 20;

/// So many lines of what is missing are told, and so many verbs in them.
const TOLD: usize = 1000;
const TOLD_VERBS: usize = 10 * TOLD;

/// What the rules `wanted` allow beyond the rules `held`, as the real server words it; empty if nothing.
pub(crate) fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let held = Held::new(held);
    let mut found = Missing::default();
    for rule in wanted {
        found.resources(&held, rule);
        found.paths(&held, rule);
    }
    found.told()
}

/// A set of held rules, by their numbers.
type Rules = Vec<u64>;

fn insert(rules: &mut Rules, number: usize) {
    let word = number / 64;
    if rules.len() <= word {
        rules.resize(word + 1, 0);
    }
    rules[word] |= 1 << (number % 64);
}

fn join(rules: &mut Rules, other: &[u64]) {
    if rules.len() < other.len() {
        rules.resize(other.len(), 0);
    }
    for (word, other) in rules.iter_mut().zip(other) {
        *word |= other;
    }
}

/// Which of the held rules allow a value of one of their lists.
#[derive(Default)]
struct Allowing<'a> {
    all: Rules,
    by_value: BTreeMap<&'a str, Rules>,
}

impl<'a> Allowing<'a> {
    fn add(&mut self, number: usize, list: &'a [String]) {
        for value in list {
            insert(self.by_value.entry(value).or_default(), number);
        }
    }

    /// The rules that allow `value`, or everything.
    fn of(&self, value: &str) -> Rules {
        let mut rules = self.all.clone();
        self.join(&mut rules, value);
        rules
    }

    fn join(&self, rules: &mut Rules, value: &str) {
        if let Some(own) = self.by_value.get(value) {
            join(rules, own);
        }
    }
}

/// The held rules, by what they allow.
#[derive(Default)]
struct Held<'a> {
    verbs: Allowing<'a>,
    groups: Allowing<'a>,
    resources: Allowing<'a>,
    names: Allowing<'a>,
    paths: Allowing<'a>,
    /// Paths that end in a star, without it.
    prefixes: Allowing<'a>,
}

impl<'a> Held<'a> {
    fn new(rules: &'a [Rule]) -> Self {
        let mut held = Self::default();
        for (number, rule) in rules.iter().enumerate() {
            for (allowing, list) in [
                (&mut held.verbs, &rule.verbs),
                (&mut held.groups, &rule.api_groups),
                (&mut held.resources, &rule.resources),
            ] {
                allowing.add(number, list);
                if list.iter().any(|value| value == "*") {
                    insert(&mut allowing.all, number);
                }
            }
            held.names.add(number, &rule.resource_names);
            if rule.resource_names.is_empty() {
                insert(&mut held.names.all, number);
            }
            held.paths.add(number, &rule.paths);
            for prefix in rule.paths.iter().filter_map(|path| path.strip_suffix('*')) {
                insert(held.prefixes.by_value.entry(prefix.trim_end_matches('*')).or_default(), number);
            }
        }
        held
    }

    fn resource(&self, resource: &str) -> Rules {
        let mut rules = self.resources.of(resource);
        if let Some((_, part)) = resource.split_once('/') {
            self.resources.join(&mut rules, &format!("*/{part}"));
        }
        rules
    }

    fn path(&self, path: &str) -> Rules {
        let mut rules = self.paths.of(path);
        if !self.prefixes.by_value.is_empty() {
            let ends = path.char_indices().map(|(end, _)| end).chain([path.len()]);
            ends.for_each(|end| self.prefixes.join(&mut rules, &path[..end]));
        }
        rules
    }
}

/// Values that the same held rules allow.
type Alike<'a> = Vec<(Rules, Vec<&'a str>)>;

fn alike(values: &[String], allowed: impl Fn(&str) -> Rules) -> Alike<'_> {
    let mut classes: BTreeMap<Rules, Vec<&str>> = BTreeMap::new();
    let values: BTreeSet<&str> = values.iter().map(String::as_str).collect();
    for value in values {
        classes.entry(allowed(value)).or_default().push(value);
    }
    classes.into_iter().collect()
}

/// Whether some rule is in all of the sets.
fn meet(sets: &[&Rules]) -> bool {
    let words = sets.iter().map(|set| set.len()).min().unwrap_or(0);
    (0..words).any(|word| sets.iter().fold(u64::MAX, |all, set| all & set[word]) != 0)
}

/// What is wanted and not held.
#[derive(Default)]
struct Missing<'a> {
    /// The verbs for each group, resource and name, in the order in which they are wanted.
    resources: BTreeMap<(&'a str, &'a str, Option<&'a str>), Vec<&'a str>>,
    verbs: usize,
    paths: BTreeSet<(&'a str, &'a str)>,
    untold: usize,
    uncompared: bool,
}

impl<'a> Missing<'a> {
    fn resources(&mut self, held: &Held<'_>, rule: &'a Rule) {
        let groups = alike(&rule.api_groups, |group| held.groups.of(group));
        let resources = alike(&rule.resources, |resource| held.resource(resource));
        let verbs = alike(&rule.verbs, |verb| held.verbs.of(verb));
        let names: Vec<(Rules, Vec<Option<&str>>)> = if rule.resource_names.is_empty() {
            vec![(held.names.all.clone(), vec![None])]
        } else {
            let classes = alike(&rule.resource_names, |name| held.names.of(name)).into_iter();
            classes.map(|(rules, names)| (rules, names.into_iter().map(Some).collect())).collect()
        };
        let lengths = [groups.len(), resources.len(), verbs.len(), names.len()];
        if lengths.iter().fold(1_usize, |product, length| product.saturating_mul(*length)) > COMBINATIONS {
            self.uncompared = true;
            return;
        }
        for (in_group, groups) in &groups {
            for (in_resource, resources) in &resources {
                for (in_name, names) in &names {
                    let without: BTreeSet<&str> = verbs
                        .iter()
                        .filter(|(in_verb, _)| !meet(&[in_group, in_resource, in_name, in_verb]))
                        .flat_map(|(_, verbs)| verbs.iter().copied())
                        .collect();
                    if !without.is_empty() {
                        let mut seen = BTreeSet::new();
                        let all = rule.verbs.iter().map(String::as_str);
                        let ordered: Vec<&str> =
                            all.filter(|verb| without.contains(verb) && seen.insert(*verb)).collect();
                        self.add(groups, resources, names, &ordered);
                    }
                }
            }
        }
    }

    fn add(
        &mut self,
        groups: &[&'a str],
        resources: &[&'a str],
        names: &[Option<&'a str>],
        verbs: &[&'a str],
    ) {
        for group in groups {
            for resource in resources {
                for name in names {
                    let place = (*group, *resource, *name);
                    let full = self.resources.len() >= TOLD || self.verbs >= TOLD_VERBS;
                    if full && !self.resources.contains_key(&place) {
                        self.untold += 1;
                        if self.untold >= COMBINATIONS {
                            return;
                        }
                        continue;
                    }
                    let known = self.resources.entry(place).or_default();
                    let before: BTreeSet<&str> = known.iter().copied().collect();
                    known.extend(verbs.iter().filter(|verb| !before.contains(*verb)));
                    self.verbs += verbs.len();
                }
            }
        }
    }

    fn paths(&mut self, held: &Held<'_>, rule: &'a Rule) {
        let verbs = alike(&rule.verbs, |verb| held.verbs.of(verb));
        for (in_path, paths) in alike(&rule.paths, |path| held.path(path)) {
            for (in_verb, verbs) in &verbs {
                if meet(&[&in_path, in_verb, &held.names.all]) {
                    continue;
                }
                for path in &paths {
                    for verb in verbs {
                        if self.paths.len() < TOLD {
                            self.paths.insert((path, verb));
                        } else {
                            self.untold += 1;
                        }
                    }
                }
            }
        }
    }

    fn told(self) -> Vec<String> {
        let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let resources = self.resources.iter().map(|((group, resource, name), verbs)| Rule {
            verbs: owned(verbs),
            api_groups: owned(&[group]),
            resources: owned(&[resource]),
            resource_names: owned(name.as_slice()),
            paths: Vec::new(),
        });
        let paths = self.paths.iter().map(|(path, verb)| Rule {
            verbs: owned(&[verb]),
            paths: owned(&[path]),
            ..Rule::default()
        });
        let lines: BTreeSet<String> = resources.chain(paths).map(|rule| describe(&rule)).collect();
        let mut lines: Vec<String> = lines.into_iter().collect();
        if self.untold > 0 {
            lines.push("and more".to_owned());
        }
        if self.uncompared {
            lines.push("a rule with too many combinations to compare: split it into several".to_owned());
        }
        lines
    }
}

fn describe(rule: &Rule) -> String {
    let parts = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.paths),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}

/// A list as Go prints it with `%q`.
pub(crate) fn quoted(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", items.join(" "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rule(value: serde_json::Value) -> Rule {
        serde_json::from_value(value).unwrap()
    }

    /// A rule as rules for one verb, one resource and one name each.
    fn single(rule: &Rule) -> Vec<Rule> {
        let mut out = Vec::new();
        let names: Vec<Vec<String>> = match rule.resource_names.as_slice() {
            [] => vec![Vec::new()],
            names => names.iter().map(|name| vec![name.clone()]).collect(),
        };
        for verb in &rule.verbs {
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    out.extend(names.iter().map(|name| Rule {
                        verbs: vec![verb.clone()],
                        api_groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        resource_names: name.clone(),
                        paths: Vec::new(),
                    }));
                }
            }
            out.extend(rule.paths.iter().map(|path| Rule {
                verbs: vec![verb.clone()],
                paths: vec![path.clone()],
                ..Rule::default()
            }));
        }
        out
    }

    /// Whether one rule allows what another, single one does.
    fn covers(own: &Rule, rule: &Rule) -> bool {
        let has = |list: &[String], value: &str| list.iter().any(|one| one == value);
        let every =
            |list: &[String], wanted: &[String]| has(list, "*") || wanted.iter().all(|one| has(list, one));
        let resource = |one: &String| {
            let part = one.split_once('/').map(|(_, part)| format!("*/{part}"));
            has(&own.resources, one) || part.is_some_and(|part| has(&own.resources, &part))
        };
        let path = |one: &String| {
            let starts =
                |known: &String| known.ends_with('*') && one.starts_with(known.trim_end_matches('*'));
            own.paths.iter().any(|known| known == one || starts(known))
        };
        every(&own.verbs, &rule.verbs)
            && every(&own.api_groups, &rule.api_groups)
            && (has(&own.resources, "*") || rule.resources.iter().all(resource))
            && rule.paths.iter().all(path)
            && (own.resource_names.is_empty()
                || (!rule.resource_names.is_empty()
                    && rule.resource_names.iter().all(|one| has(&own.resource_names, one))))
    }

    fn lists(values: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(prop::sample::select(values).prop_map(str::to_owned), 0..=most)
    }

    fn rules() -> impl Strategy<Value = Vec<Rule>> {
        let verbs = lists(&["get", "list", "watch", "*"], 3);
        let groups = lists(&["", "apps", "*"], 2);
        let resources = lists(&["pods", "pods/log", "jobs/log", "*/log", "*"], 3);
        let names = lists(&["a", "b"], 2);
        let paths = lists(&["/a", "/a/b", "/a/*", "*", "/c"], 2);
        let rule = (verbs, groups, resources, names, paths, any::<bool>()).prop_map(
            |(verbs, api_groups, resources, resource_names, paths, of_paths)| {
                if of_paths {
                    Rule { verbs, paths, ..Rule::default() }
                } else {
                    Rule { verbs, api_groups, resources, resource_names, paths: Vec::new() }
                }
            },
        );
        prop::collection::vec(rule, 0..4)
    }

    proptest! {
        #[test]
        fn the_same_is_missing_as_when_every_combination_is_looked_at(held in rules(), wanted in rules()) {
            let uncovered: Vec<Rule> = wanted
                .iter()
                .flat_map(single)
                .filter(|rule| !held.iter().any(|own| covers(own, rule)))
                .collect();
            let mut joined: BTreeMap<_, Vec<String>> = BTreeMap::new();
            for rule in uncovered {
                let apart = if rule.paths.is_empty() { Vec::new() } else { rule.verbs.clone() };
                let place = (rule.api_groups, rule.resources, rule.resource_names, rule.paths, apart);
                let verbs = joined.entry(place).or_default();
                let new: Vec<String> = rule.verbs.into_iter().filter(|verb| !verbs.contains(verb)).collect();
                verbs.extend(new);
            }
            let expected: BTreeSet<String> = joined
                .into_iter()
                .map(|((api_groups, resources, resource_names, paths, _), verbs)| {
                    describe(&Rule { verbs, api_groups, resources, resource_names, paths })
                })
                .collect();
            prop_assert_eq!(missing(&held, &wanted), expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn lists_whose_product_is_astronomic_are_compared_at_once() {
        let many = |what: &str| (0..3000).map(|number| format!("{what}{number}")).collect::<Vec<_>>();
        let wanted = Rule {
            verbs: many("v"),
            api_groups: many("g"),
            resources: many("r"),
            resource_names: many("n"),
            paths: Vec::new(),
        };
        let all: Rule = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        assert!(missing(&[all], std::slice::from_ref(&wanted)).is_empty());
        assert!(missing(std::slice::from_ref(&wanted), std::slice::from_ref(&wanted)).is_empty());
        let half = Rule { verbs: many("v").split_off(1), ..wanted.clone() };
        let lines = missing(&[half], std::slice::from_ref(&wanted));
        assert_eq!(lines.len(), TOLD + 1, "what is told has an end");
        assert!(lines[0].ends_with("Verbs:[\"v0\"]}"), "{}", lines[0]);
    }

    #[test]
    fn what_is_held_covers_what_is_given() {
        let held = [
            rule(json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/status"]})),
            rule(json!({"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"], "resourceNames": ["a"]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]})),
        ];
        let missing = |value| missing(&held, &[rule(value)]);
        assert!(
            missing(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes/status"]}))
                .is_empty()
        );
        assert!(
            missing(
                json!({"verbs": ["x"], "apiGroups": ["apps"], "resources": ["d"], "resourceNames": ["a"]})
            )
            .is_empty()
        );
        assert!(missing(json!({"verbs": ["get"], "nonResourceURLs": ["/apis/apps"]})).is_empty());
        assert_eq!(
            missing(json!({"verbs": ["get", "watch", "delete"], "apiGroups": [""], "resources": ["pods"]})),
            ["{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}"]
        );
        assert_eq!(
            missing(json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["d"]})),
            ["{APIGroups:[\"apps\"], Resources:[\"d\"], Verbs:[\"get\"]}"],
            "every name is more than one name"
        );
        assert_eq!(
            missing(json!({"verbs": ["*"], "nonResourceURLs": ["*"]})),
            ["{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"]
        );
    }
}
