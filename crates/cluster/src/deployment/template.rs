//! Pod templates: whether two are the same, and the short hash that names a ReplicaSet. Pure.

use windlass::{k8s_openapi::api::core::v1::PodTemplateSpec, serde_json};

/// The label that tells the Pods of one template from those of another.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// Kubernetes' alphabet for generated names: no vowels and no look-alikes.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A hash of a template, at most ten characters long. After a collision the count makes it another one.
///
/// The characters differ from those that kube-controller-manager gives to the same template: it hashes a dump of
/// Go structures.
pub(super) fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let encoded =
        serde_json::to_value(template).expect("a Pod template must be encodable as JSON").to_string();
    let mut sum = fnv1a(0x811c_9dc5, encoded.as_bytes());
    if let Some(collisions) = collisions {
        sum = fnv1a(sum, &collisions.to_le_bytes());
    }
    sum.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

fn fnv1a(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Whether two templates are the same, apart from the hash label that a ReplicaSet's copy has.
pub(super) fn same(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    without_hash(a) == without_hash(b)
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let meta = template.metadata.get_or_insert_default();
    if let Some(labels) = &mut meta.labels {
        labels.remove(HASH_LABEL);
    }
    meta.labels = meta.labels.take().filter(|labels| !labels.is_empty());
    meta.annotations = meta.annotations.take().filter(|annotations| !annotations.is_empty());
    template
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(image: &str) -> PodTemplateSpec {
        let json = serde_json::json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": image}]},
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_hash_depends_on_the_template_and_the_collisions_only() {
        assert_eq!(hash(&template("a"), None), hash(&template("a"), None));
        assert_ne!(hash(&template("a"), None), hash(&template("b"), None));
        assert_ne!(hash(&template("a"), None), hash(&template("a"), Some(1)));
        assert!(hash(&template("a"), None).bytes().all(|letter| ALPHABET.contains(&letter)));
    }

    #[test]
    fn the_hash_label_makes_no_difference() {
        let mut labelled = template("a");
        let meta = labelled.metadata.as_mut().unwrap();
        meta.labels.as_mut().unwrap().insert(HASH_LABEL.into(), "x".into());
        assert!(same(&template("a"), &labelled));
        assert!(!same(&template("b"), &labelled));
    }
}
