//! What becomes of the definitions of custom kinds in an upgrade: in which form they are applied while the operator
//! rolls, what must happen to stored objects before that and after it, and whether these survive.
//!
//! Pure: a definition as it is and as it is to be enters, a [`Step`] leaves.

use serde_json::Value;
use windlass_crd::{
    Definition,
    diff::{self, Severity},
};

use crate::{error::Error, target::Target};

/// One definition on its way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) target: Target,
    /// The definition as it is in the cluster.
    pub(crate) live: Option<Value>,
    /// How it is to be while the old operator and the new one run side by side.
    pub(crate) during: During,
    /// How it is to be in the end.
    pub(crate) after: Value,
    /// What would break, and where.
    pub(crate) breaking: Vec<String>,
}

/// A definition while both operators run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum During {
    /// This is applied: the new one, which stores objects in the version in which they are until the new operator is
    /// there to convert them.
    Applied(Value),
    /// The old one stays, but stores objects in this version, and all are rewritten in it while the old operator is there
    /// to convert them: the new definition lacks the version in which they are.
    Stored(String),
    /// The old one stays as it is.
    Kept,
}

impl Step {
    /// What to do about a definition.
    pub(crate) fn new(live: Option<Value>, wanted: &Value) -> Result<Self, Error> {
        let target = Target::of(wanted);
        let mut step = Self {
            target,
            live,
            during: During::Applied(wanted.clone()),
            after: wanted.clone(),
            breaking: Vec::new(),
        };
        let Some(live) = &step.live else { return Ok(step) };
        step.breaking = breaking(live, wanted);
        let (storage, next) = (storage(live), storage(wanted));
        let lacking: Vec<String> = stored(live).into_iter().filter(|name| !has(wanted, name)).collect();
        if lacking.is_empty() {
            if let Some(storage) = storage.filter(|name| Some(name) != next.as_ref()) {
                step.during = During::Applied(storing(wanted, &storage));
            }
            return Ok(step);
        }
        let next = next.unwrap_or_default();
        if !served(live, &next) {
            let (what, stored) = (step.target.name, lacking.join(", "));
            return Err(Error::NoCommonVersion { what, stored, wanted: next });
        }
        step.during = During::Stored(next);
        Ok(step)
    }

    /// Leaves the definition as it is: whoever goes back to an older operator keeps what objects hold.
    pub(crate) fn keep(&mut self) {
        if let Some(live) = &self.live {
            self.after = live.clone();
            self.during = During::Kept;
            self.breaking.clear();
        }
    }

    /// Whether an operator for the wanted definition works with the one in the cluster: it finds its versions, reads what
    /// is stored, and nothing asks it for a conversion that it does not know.
    pub(crate) fn works_with_live(&self) -> bool {
        let Some(live) = &self.live else { return false };
        let versions = self.after["spec"]["versions"].as_array().into_iter().flatten();
        let mut wanted = versions
            .filter(|version| version["served"] == true)
            .filter_map(|version| version["name"].as_str());
        let strategy =
            |of: &Value| of["spec"]["conversion"]["strategy"].as_str().unwrap_or("None").to_owned();
        let same = ["/spec/scope", "/spec/names/kind", "/spec/names/plural"];
        wanted.all(|name| served(live, name))
            && stored(live).iter().all(|name| has(&self.after, name))
            && strategy(live) == strategy(&self.after)
            && same.iter().all(|pointer| live.pointer(pointer) == self.after.pointer(pointer))
    }

    /// Whether what it is to be in the end waits for an operator that converts.
    pub(crate) fn needs_the_operator(&self) -> bool {
        let changes = !matches!(&self.during, During::Applied(definition) if *definition == self.after);
        changes && self.after["spec"]["conversion"]["strategy"] == "Webhook"
    }

    /// The version in which objects are stored in the end, if some may be stored in another.
    pub(crate) fn rewrite(&self, live: &Value) -> Option<String> {
        let storage = storage(&self.after)?;
        stored(live).iter().any(|name| *name != storage).then_some(storage)
    }
}

/// The breaking changes between two definitions, each in a line.
fn breaking(live: &Value, wanted: &Value) -> Vec<String> {
    let parse = |value: &Value| Definition::parse(&value.to_string()).ok()?.into_iter().next();
    let (Some(old), Some(new)) = (parse(live), parse(wanted)) else {
        tracing::debug!("a definition cannot be compared");
        return Vec::new();
    };
    let findings = diff::definition(&old, &new);
    let breaking = findings.iter().filter(|finding| finding.severity == Severity::Breaking);
    let line = |finding: &diff::Finding| {
        let version = finding.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
        let path = if finding.path.is_empty() { String::new() } else { format!(" {}", finding.path) };
        format!("{}{version}{path}: {}", finding.definition, finding.message)
    };
    breaking.map(line).collect()
}

/// The version in which a definition stores objects.
fn storage(definition: &Value) -> Option<String> {
    let versions = definition["spec"]["versions"].as_array()?;
    let stored = versions.iter().find(|version| version["storage"] == true)?;
    stored["name"].as_str().map(ToOwned::to_owned)
}

/// The versions in which objects may be stored, as the API server remembers.
pub(crate) fn stored(definition: &Value) -> Vec<String> {
    let remembered = definition["status"]["storedVersions"].as_array().into_iter().flatten();
    remembered.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

fn has(definition: &Value, version: &str) -> bool {
    let versions = definition["spec"]["versions"].as_array();
    versions.into_iter().flatten().any(|one| one["name"] == version)
}

fn served(definition: &Value, version: &str) -> bool {
    let versions = definition["spec"]["versions"].as_array();
    versions.into_iter().flatten().any(|one| one["name"] == version && one["served"] == true)
}

/// The definition, but that it stores objects in another version.
pub(crate) fn storing(definition: &Value, version: &str) -> Value {
    let mut changed = definition.clone();
    for one in changed["spec"]["versions"].as_array_mut().into_iter().flatten() {
        one["storage"] = (one["name"] == version).into();
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(versions: &[(&str, bool)], stored: &[&str]) -> Value {
        let versions: Vec<Value> = versions
            .iter()
            .map(|(name, storage)| {
                let schema = json!({"openAPIV3Schema": {"type": "object"}});
                json!({"name": name, "served": true, "storage": storage, "schema": schema})
            })
            .collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Box", "plural": "boxes"},
                "versions": versions},
            "status": {"storedVersions": stored},
        })
    }

    #[test]
    fn a_new_version_stores_nothing_before_somebody_converts_it() {
        let live = definition(&[("v1", true)], &["v1"]);
        let wanted = definition(&[("v1", false), ("v2", true)], &[]);
        let step = Step::new(Some(live.clone()), &wanted).unwrap();
        let During::Applied(during) = &step.during else { panic!("{step:?}") };
        assert_eq!(storage(during).as_deref(), Some("v1"));
        assert_eq!(storage(&step.after).as_deref(), Some("v2"));
        assert_eq!(step.rewrite(&live).as_deref(), Some("v2"));
    }

    #[test]
    fn a_version_that_goes_is_emptied_first() {
        let live = definition(&[("v1", false), ("v2", true)], &["v1", "v2"]);
        let wanted = definition(&[("v1", true)], &[]);
        let step = Step::new(Some(live), &wanted).unwrap();
        assert_eq!(step.during, During::Stored("v1".into()));
        assert!(!step.works_with_live() && !step.breaking.is_empty());
    }

    #[test]
    fn without_a_version_that_both_have_nothing_is_begun() {
        let live = definition(&[("v1", true)], &["v1"]);
        let error = Step::new(Some(live), &definition(&[("v2", true)], &[])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("stored in v1") && text.contains("and v2"), "{text}");
    }

    #[test]
    fn a_new_definition_and_an_equal_one_are_applied_as_they_are() {
        let wanted = definition(&[("v1", true)], &[]);
        assert_eq!(Step::new(None, &wanted).unwrap().during, During::Applied(wanted.clone()));
        let live = definition(&[("v1", true)], &["v1"]);
        let step = Step::new(Some(live.clone()), &wanted).unwrap();
        assert_eq!((&step.during, step.rewrite(&live)), (&During::Applied(wanted), None));
        assert!(step.breaking.is_empty() && step.works_with_live());
    }
}
