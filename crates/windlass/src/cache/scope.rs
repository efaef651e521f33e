//! Which objects of a kind are watched, and whether that can be said of an object without asking the server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use windlass_apimachinery::{fields, labels};

/// Which objects of a kind are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope {
    /// The namespaces, or all of them if there are none here.
    pub(crate) namespaces: Vec<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

/// Whether a watch delivers an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Seen,
    Unseen,
    /// Only the server can tell: the scope selects by a field that it alone knows how to read.
    Unknown,
}

impl Scope {
    /// Whether a selector keeps objects out of the namespaces that are watched.
    pub(super) fn selects(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    /// What is watched by one request each: every namespace, or all at once.
    pub(super) fn parts(&self) -> Vec<Option<String>> {
        if self.namespaces.is_empty() {
            return vec![None];
        }
        self.namespaces.iter().cloned().map(Some).collect()
    }

    /// What is wrong with the label selector, and the selector.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        match &self.labels {
            Some(labels) => match labels::Selector::parse(labels) {
                Ok(_) => Ok(()),
                Err(why) => Err((labels.clone(), why.to_string())),
            },
            None => Ok(()),
        }
    }

    /// In words, for a message.
    pub(crate) fn describe(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.labels.iter().map(|labels| format!("labels {labels:?}")));
        words.extend(self.fields.iter().map(|fields| format!("fields {fields:?}")));
        if !self.namespaces.is_empty() {
            words.push(format!("namespaces {}", self.namespaces.join(", ")));
        }
        words.join(" and ")
    }
}

/// A scope that is ready to be asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Lens {
    namespaces: Vec<String>,
    labels: labels::Selector,
    fields: Vec<FieldTest>,
    /// Whether a part of the scope can be read by the server alone.
    pub(super) unknown: bool,
}

#[derive(Clone, Debug)]
struct FieldTest {
    name: bool,
    value: String,
    equal: bool,
}

impl Lens {
    pub(super) fn new(scope: &Scope) -> Self {
        let labels = labels::Selector::parse(scope.labels.as_deref().unwrap_or_default());
        let fields = fields::Selector::parse(scope.fields.as_deref().unwrap_or_default());
        let mut lens = Self {
            namespaces: scope.namespaces.clone(),
            unknown: labels.is_err() || fields.is_err(),
            labels: labels.unwrap_or_default(),
            fields: Vec::new(),
        };
        for requirement in fields.unwrap_or_default().requirements() {
            match FieldTest::of(requirement) {
                Some(test) => lens.fields.push(test),
                None => lens.unknown = true,
            }
        }
        lens
    }

    pub(super) fn sight(&self, meta: &ObjectMeta) -> Sight {
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let watched = self.namespaces.is_empty() || self.namespaces.iter().any(|one| one == namespace);
        if !watched
            || !self.labels.matches_map(meta.labels.as_ref())
            || !self.fields.iter().all(|test| test.passes(meta))
        {
            return Sight::Unseen;
        }
        if self.unknown { Sight::Unknown } else { Sight::Seen }
    }
}

impl FieldTest {
    /// `None` for a field that is not part of every object's metadata.
    fn of(requirement: &fields::Requirement) -> Option<Self> {
        let name = match requirement.field.as_str() {
            "metadata.name" => true,
            "metadata.namespace" => false,
            _ => return None,
        };
        Some(Self { name, equal: requirement.equal, value: requirement.value.clone() })
    }

    fn passes(&self, meta: &ObjectMeta) -> bool {
        let value = if self.name { &meta.name } else { &meta.namespace };
        (value.as_deref().unwrap_or_default() == self.value) == self.equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(fields: &str, namespace: &str, name: &str) -> Sight {
        let scope = Scope { fields: Some(fields.to_owned()), ..Scope::default() };
        let meta = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        Lens::new(&scope).sight(&meta)
    }

    #[test]
    fn names_and_namespaces_are_told_and_other_fields_are_not_guessed_at() {
        assert_eq!(sight("metadata.name=a", "ns", "a"), Sight::Seen);
        assert_eq!(sight("metadata.name==a,metadata.namespace!=kube-system", "ns", "a"), Sight::Seen);
        assert_eq!(sight("metadata.name!=a", "ns", "a"), Sight::Unseen);
        assert_eq!(sight("metadata.namespace=other,spec.nodeName=n", "ns", "a"), Sight::Unseen);
        assert_eq!(sight("spec.nodeName=n", "ns", "a"), Sight::Unknown);
        assert_eq!(sight("no selector at all", "ns", "a"), Sight::Unknown);
        assert_eq!(sight("", "ns", "a"), Sight::Seen);
    }

    #[test]
    fn labels_and_namespaces_are_told() {
        let scope = Scope {
            namespaces: vec!["a".into(), "b".into()],
            labels: Some("app in (web, db)".into()),
            fields: None,
        };
        let lens = Lens::new(&scope);
        let of = |namespace: &str, app: Option<&str>| {
            let labels = app.map(|app| [("app".to_owned(), app.to_owned())].into());
            lens.sight(&ObjectMeta { namespace: Some(namespace.to_owned()), labels, ..ObjectMeta::default() })
        };
        assert_eq!(of("b", Some("db")), Sight::Seen);
        assert_eq!(of("b", None), Sight::Unseen);
        assert_eq!(of("c", Some("web")), Sight::Unseen);
        let broken = Scope { labels: Some("app in".into()), ..Scope::default() };
        assert_eq!(Lens::new(&broken).sight(&ObjectMeta::default()), Sight::Unknown);
        assert!(broken.check().is_err() && scope.check().is_ok());
    }
}
