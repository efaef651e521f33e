//! ControllerRevisions: the templates that a StatefulSet or a DaemonSet has had.
//!
//! What a revision holds and what it is called are pure; finding, creating and forgetting them makes requests.

use std::sync::Arc;

use windlass::{
    Context, Object,
    k8s_openapi::{
        api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
        apimachinery::pkg::{
            apis::meta::v1::{LabelSelector, ObjectMeta},
            runtime::RawExtension,
        },
    },
    owner,
    serde_json::{self, Value, json},
};

use crate::{pods, selector};

/// The label of a Pod with the revision that it was made from.
pub(crate) const HASH: &str = "controller-revision-hash";
/// The label of a StatefulSet's revision with its hash; those of DaemonSets have [`HASH`].
pub(crate) const REVISION_HASH: &str = "controller.kubernetes.io/hash";

/// Kubernetes' alphabet for generated names: no vowels and no look-alikes.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The longest name of an owner that fits before a hash.
const LONGEST_NAME: usize = 223;

/// What a revision holds: a strategic merge patch that puts the template back.
pub(crate) fn data(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).expect("a Pod template must be encodable as JSON");
    template["$patch"] = json!("replace");
    json!({ "spec": { "template": template } })
}

/// The template that a revision holds.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    windlass::from_value(&template).ok()
}

/// The hash of a revision: FNV-1 of its data, and of the number of collisions that it avoids.
pub(crate) fn hash(data: &Value, collisions: i32) -> String {
    let text = go_json(data) + &collisions.to_string();
    let sum = text.bytes().fold(0x811c_9dc5_u32, |sum, byte| sum.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    sum.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

/// JSON as Go writes it: keys in order, and nothing that HTML could mistake for markup.
fn go_json(value: &Value) -> String {
    let text = value.to_string();
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The revisions of a workload, oldest first. Those that nobody owns are adopted.
pub(crate) async fn list<R: Object>(
    owner: &ObjectMeta,
    wanted: &LabelSelector,
    ctx: &Context<R>,
) -> windlass::Result<Vec<Arc<ControllerRevision>>> {
    let mut all = Vec::new();
    for revision in ctx.list::<ControllerRevision>(owner.namespace.as_deref())? {
        if !selector::matches(wanted, revision.metadata.labels.as_ref()) {
            continue;
        }
        match owner::controller_of(&revision.metadata) {
            Some(controller) if Some(&controller.uid) == owner.uid.as_ref() => all.push(revision),
            Some(_) => {}
            None if pods::is_terminating(owner) || pods::is_terminating(&revision.metadata) => {}
            None => {
                let reference = ctx.controller_reference()?;
                let adopted = ctx
                    .modify(&*revision, |revision| owner::set_controller(&mut revision.metadata, reference));
                all.push(adopted.await?);
            }
        }
    }
    let created =
        |revision: &ControllerRevision| revision.metadata.creation_timestamp.as_ref().map(|time| time.0);
    all.sort_by_key(|one| (one.revision, created(one), one.metadata.name.clone()));
    Ok(all)
}

/// What a workload has had so far, and the label with which its revisions tell their hash.
#[derive(Clone, Copy)]
pub(crate) struct Revisions<'a> {
    pub(crate) all: &'a [Arc<ControllerRevision>],
    pub(crate) label: &'static str,
}

/// The revision of a template: the newest one, an older one brought to the front, or a new one. `collisions` grows
/// when a name is taken by another template.
pub(crate) async fn current<R: Object>(
    owner: &ObjectMeta,
    template: &PodTemplateSpec,
    revisions: &Revisions<'_>,
    collisions: &mut i32,
    ctx: &Context<R>,
) -> windlass::Result<Arc<ControllerRevision>> {
    let Revisions { all: revisions, label } = *revisions;
    let wanted = data(template);
    let next = revisions.last().and_then(|last| last.revision).unwrap_or(0).saturating_add(1);
    let equal = |revision: &&Arc<ControllerRevision>| {
        revision.data.0 == wanted || self::template(revision).as_ref() == Some(template)
    };
    match revisions.iter().rev().find(equal) {
        Some(found) if found.revision == Some(next - 1) => return Ok(found.clone()),
        Some(found) => return ctx.modify(&**found, |revision| revision.revision = Some(next)).await,
        None => {}
    }
    loop {
        let mut new = build(owner, template, &wanted, next);
        let hash = hash(&wanted, *collisions);
        new.metadata.name = Some(format!("{}-{hash}", prefix(owner)));
        new.metadata.labels.get_or_insert_default().insert(label.to_owned(), hash);
        let name = new.metadata.name.clone().unwrap_or_default();
        match ctx.create_child(new).await {
            Err(error) if error.is_already_exists() => {
                let there = ctx.fetch::<ControllerRevision>(owner.namespace.as_deref(), &name).await?;
                match there.filter(|there| there.data.0 == wanted) {
                    Some(there) => return Ok(Arc::new(there)),
                    None => *collisions = collisions.wrapping_add(1),
                }
            }
            other => return other,
        }
    }
}

fn prefix(owner: &ObjectMeta) -> String {
    owner.name.as_deref().unwrap_or_default().chars().take(LONGEST_NAME).collect()
}

fn build(owner: &ObjectMeta, template: &PodTemplateSpec, data: &Value, revision: i64) -> ControllerRevision {
    ControllerRevision {
        metadata: ObjectMeta {
            labels: template.metadata.as_ref().and_then(|meta| meta.labels.clone()),
            annotations: owner.annotations.clone(),
            ..ObjectMeta::default()
        },
        data: RawExtension(data.clone()),
        revision: Some(revision),
    }
}

/// Deletes the oldest revisions that nothing uses, down to the limit.
pub(crate) async fn truncate<R: Object>(
    revisions: &[Arc<ControllerRevision>],
    live: impl Fn(&str) -> bool,
    limit: i32,
    ctx: &Context<R>,
) -> windlass::Result<()> {
    let unused: Vec<_> = revisions
        .iter()
        .filter(|revision| !live(revision.metadata.name.as_deref().unwrap_or_default()))
        .collect();
    let keep = usize::try_from(limit).unwrap_or(usize::MAX);
    for revision in unused.iter().take(unused.len().saturating_sub(keep)) {
        ctx.delete(&***revision).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_gives_its_template_back() {
        let wanted: PodTemplateSpec = serde_json::from_value(json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx", "args": ["a<b"]}]},
        }))
        .unwrap();
        let data = data(&wanted);
        assert_eq!(data["spec"]["template"]["$patch"], "replace");
        let revision = ControllerRevision { data: RawExtension(data.clone()), ..Default::default() };
        assert_eq!(template(&revision), Some(wanted));
        assert_ne!(hash(&data, 0), hash(&data, 1));
        assert!(go_json(&data).contains(r"a\u003cb"));
    }
}
