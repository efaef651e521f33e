//! Role-based access: from the roles and bindings in the store to a yes or no.
//!
//! The policy is read from the store and kept until one of its four tables changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Identity;
use crate::store::{Store, TableName};

/// The group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
const TABLES: [&str; 4] = ["clusterrolebindings", "clusterroles", "rolebindings", "roles"];

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'a> {
    /// Something with a resource.
    Resource {
        /// The verb, such as `list`.
        verb: &'a str,
        /// The API group.
        group: &'a str,
        /// The plural name, with `/subresource` if there is one.
        resource: &'a str,
        /// The namespace, or empty.
        namespace: &'a str,
        /// The object's name, or empty.
        name: &'a str,
    },
    /// Something with a path outside of the resources.
    Path {
        /// The HTTP method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

impl Action<'_> {
    /// What somebody who may not do it is told.
    pub(crate) fn refusal(&self, user: &str) -> String {
        match self {
            Self::Resource { verb, group, resource, namespace, .. } => {
                let scope = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace \"{namespace}\"")
                };
                format!(
                    "User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {scope}"
                )
            }
            Self::Path { verb, path } => format!("User \"{user}\" cannot {verb} path \"{path}\""),
        }
    }
}

/// Answers from the roles and bindings of a store.
#[derive(Debug, Default)]
pub struct Authorizer {
    kept: Mutex<Option<Arc<Policy>>>,
    allows_everything: AtomicBool,
}

/// The policy at one moment.
#[derive(Debug)]
struct Policy {
    revisions: [u64; 4],
    grants: Vec<Grant>,
    /// The grants of each user and each group, by their place: nobody waits for the bindings of everybody else.
    users: BTreeMap<String, Vec<usize>>,
    groups: BTreeMap<String, Vec<usize>>,
}

/// Rules, everywhere or in one namespace.
#[derive(Debug)]
struct Grant {
    namespace: Option<String>,
    rules: Arc<[Rule]>,
    /// The binding and its role, in the words of a reason, and who is bound.
    origin: String,
    subjects: Vec<Subject>,
}

/// A rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Subject {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: String,
}

impl Authorizer {
    /// Whether the user may do it.
    pub fn allows(&self, store: &Store, who: &Identity, action: Action<'_>) -> bool {
        let everything = self.allows_everything.load(Ordering::Relaxed);
        everything || who.is_master() || self.policy(store).allows(who, action)
    }

    /// Why the user may do it, as the real server writes it into its audit log. Nothing needs to be said of masters.
    pub(crate) fn reason(&self, store: &Store, who: &Identity, action: Action<'_>) -> String {
        if who.is_master() || self.allows_everything.load(Ordering::Relaxed) {
            return String::new();
        }
        self.policy(store).reason(who, action).unwrap_or_default()
    }

    /// Lets everybody do everything, as the authorization mode `AlwaysAllow` does.
    pub(crate) fn allow_everything(&self) {
        self.allows_everything.store(true, Ordering::Relaxed);
    }

    /// Everything that the user may do in a namespace, or everywhere if that is empty.
    pub(crate) fn rules_for(&self, store: &Store, who: &Identity, namespace: &str) -> Vec<Rule> {
        let policy = self.policy(store);
        // In the order of the bindings, each once.
        let places: BTreeSet<usize> = policy.places(who).collect();
        let grants = places.into_iter().map(|place| &policy.grants[place]);
        let grants = grants.filter(|grant| grant.namespace.as_deref().is_none_or(|own| own == namespace));
        grants.flat_map(|grant| grant.rules.iter().cloned()).collect()
    }

    fn policy(&self, store: &Store) -> Arc<Policy> {
        // Asked for every request: the names are made once.
        static NAMES: LazyLock<[TableName; 4]> = LazyLock::new(|| TABLES.map(table));
        let revisions = NAMES.each_ref().map(|table| store.table_revision(table));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(policy) if policy.revisions == revisions => Arc::clone(policy),
            _ => {
                let policy = Arc::new(Policy::read(store, revisions));
                *kept = Some(Arc::clone(&policy));
                policy
            }
        }
    }
}

fn table(plural: &str) -> TableName {
    TableName { group: GROUP.into(), plural: plural.into() }
}

fn objects(store: &Store, plural: &str) -> Vec<Value> {
    let objects = store.snapshot(&table(plural), None).objects;
    objects.iter().filter_map(|object| serde_json::from_slice(&object.bytes).ok()).collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Policy {
    fn read(store: &Store, revisions: [u64; 4]) -> Self {
        type Roles = BTreeMap<(String, String), Arc<[Rule]>>;
        let roles = |plural: &str| -> Roles {
            let role = |role: &Value| {
                let rules: Vec<Rule> = serde_json::from_value(role["rules"].clone()).unwrap_or_default();
                let key = (text(role, "/metadata/namespace").into(), text(role, "/metadata/name").into());
                (key, rules.into())
            };
            objects(store, plural).iter().map(role).collect()
        };
        let (everywhere, inside) = (roles("clusterroles"), roles("roles"));
        let mut policy =
            Self { revisions, grants: Vec::new(), users: BTreeMap::new(), groups: BTreeMap::new() };
        for binding in objects(store, "clusterrolebindings").into_iter().chain(objects(store, "rolebindings"))
        {
            let namespace = text(&binding, "/metadata/namespace");
            let name = text(&binding, "/roleRef/name").to_owned();
            let rules = match text(&binding, "/roleRef/kind") {
                "ClusterRole" => everywhere.get(&(String::new(), name)),
                // A Role is somewhere.
                _ if namespace.is_empty() => None,
                _ => inside.get(&(namespace.to_owned(), name)),
            };
            let Some(rules) = rules else { continue };
            let subjects: Vec<Subject> =
                serde_json::from_value(binding["subjects"].clone()).unwrap_or_default();
            let (own, role) = (text(&binding, "/metadata/name"), text(&binding, "/roleRef/name"));
            let kind = text(&binding, "/roleRef/kind");
            let origin = if namespace.is_empty() {
                format!("ClusterRoleBinding {own:?} of {kind} {role:?}")
            } else {
                format!("RoleBinding \"{own}/{namespace}\" of {kind} {role:?}")
            };
            let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
            let grant = Grant { namespace, rules: Arc::clone(rules), origin, subjects: subjects.clone() };
            policy.add(subjects, grant);
        }
        policy
    }

    fn add(&mut self, subjects: Vec<Subject>, grant: Grant) {
        let place = self.grants.len();
        self.grants.push(grant);
        for Subject { kind, name, namespace } in subjects {
            match kind.as_str() {
                "User" => self.users.entry(name).or_default().push(place),
                "Group" => self.groups.entry(name).or_default().push(place),
                "ServiceAccount" => {
                    let user = format!("system:serviceaccount:{namespace}:{name}");
                    self.users.entry(user).or_default().push(place);
                }
                _ => {}
            }
        }
    }

    /// Where the grants of somebody stand; one may come twice.
    fn places(&self, who: &Identity) -> impl Iterator<Item = usize> {
        let groups = who.groups.iter().filter_map(|group| self.groups.get(group));
        self.users.get(&who.name).into_iter().chain(groups).flatten().copied()
    }

    fn reason(&self, who: &Identity, action: Action<'_>) -> Option<String> {
        let places: BTreeSet<usize> = self.places(who).collect();
        let mut grants = places.into_iter().map(|place| &self.grants[place]);
        let grant = grants
            .find(|grant| grant.reaches(action) && grant.rules.iter().any(|rule| rule.covers(action)))?;
        let subject = grant.subjects.iter().find(|subject| subject.is(who))?;
        let name = match subject.kind.as_str() {
            "ServiceAccount" => format!("{}/{}", subject.name, subject.namespace),
            _ => subject.name.clone(),
        };
        Some(format!("RBAC: allowed by {} to {} {name:?}", grant.origin, subject.kind))
    }

    fn allows(&self, who: &Identity, action: Action<'_>) -> bool {
        self.places(who)
            .map(|place| &self.grants[place])
            .any(|grant| grant.reaches(action) && grant.rules.iter().any(|rule| rule.covers(action)))
    }
}

impl Subject {
    fn is(&self, who: &Identity) -> bool {
        match self.kind.as_str() {
            "User" => self.name == who.name,
            "Group" => who.groups.contains(&self.name),
            _ => who.name == format!("system:serviceaccount:{}:{}", self.namespace, self.name),
        }
    }
}

impl Grant {
    fn reaches(&self, action: Action<'_>) -> bool {
        match (&self.namespace, action) {
            (None, _) => true,
            (Some(own), Action::Resource { namespace, .. }) => own == namespace,
            (Some(_), Action::Path { .. }) => false,
        }
    }
}

fn listed(list: &[String], value: &str) -> bool {
    list.iter().any(|one| one == "*" || one == value)
}

impl Rule {
    fn covers(&self, action: Action<'_>) -> bool {
        match action {
            Action::Resource { verb, group, resource, name, .. } => {
                listed(&self.verbs, verb)
                    && listed(&self.api_groups, group)
                    && self.covers_resource(resource)
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|one| one == name))
            }
            Action::Path { verb, path } => {
                listed(&self.verbs, verb) && self.paths.iter().any(|pattern| covers_path(pattern, path))
            }
        }
    }

    fn covers_resource(&self, resource: &str) -> bool {
        let part = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        listed(&self.resources, resource) || part.is_some_and(|part| self.resources.contains(&part))
    }
}

fn covers_path(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => pattern == path,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::{Draft, Key};

    fn put(store: &Store, plural: &str, namespace: &str, name: &str, mut object: Value) {
        object["metadata"] = json!({"name": name, "namespace": namespace});
        let draft = Draft::encode(&object, Arc::from([]));
        store.create(&table(plural), Key::new(namespace, name), draft).unwrap();
    }

    fn get<'a>(resource: &'a str, namespace: &'a str, name: &'a str) -> Action<'a> {
        Action::Resource { verb: "get", group: "", resource, namespace, name }
    }

    #[test]
    fn a_binding_gives_what_its_role_says_and_no_more() {
        let (store, authorizer) = (Store::default(), Authorizer::default());
        let who = Identity::service_account("a", "robot");
        let may = |action| authorizer.allows(&store, &who, action);
        assert!(!may(get("pods", "a", "p")));
        let rules = json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/status"],
            "resourceNames": ["p"]}]});
        put(&store, "roles", "a", "reader", rules);
        let binding = json!({"roleRef": {"kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "a", "name": "robot"}]});
        put(&store, "rolebindings", "a", "reader", binding);
        assert!(may(get("pods", "a", "p")), "the kept policy must notice the change");
        assert!(may(get("services/status", "a", "p")));
        assert!(!may(get("pods", "a", "q")), "another name");
        assert!(!may(get("pods", "b", "p")), "another namespace");
        assert!(!may(get("pods/log", "a", "p")), "a subresource is not its parent");
        let delete =
            Action::Resource { verb: "delete", group: "", resource: "pods", namespace: "a", name: "p" };
        assert!(!may(delete), "another verb");
    }

    #[test]
    fn masters_need_no_binding_and_nobody_has_any() {
        let (store, authorizer) = (Store::default(), Authorizer::default());
        let path = Action::Path { verb: "get", path: "/apis/apps" };
        assert!(authorizer.allows(&store, &Identity::admin(), path));
        assert!(!authorizer.allows(&store, &Identity::anonymous(), path));
        put(
            &store,
            "clusterroles",
            "",
            "see",
            json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/apis/*"]}]}),
        );
        let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "see"},
            "subjects": [{"kind": "Group", "name": "system:unauthenticated"}]});
        put(&store, "clusterrolebindings", "", "see", binding);
        assert!(authorizer.allows(&store, &Identity::anonymous(), path));
    }
}
