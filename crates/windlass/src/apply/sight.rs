//! Which of the watches that `owns` declared deliver a child.
//!
//! A child that none of them delivers could be deleted by hand, and nobody would notice: that is an error. Where only the
//! server can tell, it is asked, once for every write.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Client,
    api::{ListParams, ObjectList, Request},
    core::PartialObjectMeta,
};
use serde_json::Value;

use super::{OwnedKind, Shared, Trigger};
use crate::{
    cache::{Scope, Sight},
    error::{Error, Result},
    object::{Kind, ObjectKey},
};

/// The owned watches that may deliver a child.
pub(crate) struct Onlookers {
    candidates: Vec<Arc<dyn OwnedKind>>,
    /// Whether one of them delivers it for sure.
    certain: bool,
}

impl Onlookers {
    /// `meta` is that of the child as it is wanted. An error if the kind is owned and none of its watches sees the child.
    pub(crate) fn of(shared: &Shared, kind: &Kind, meta: &ObjectMeta) -> Result<Self> {
        let owned = shared.owned.of(kind);
        if owned.is_empty() {
            return Ok(Self { candidates: owned, certain: true });
        }
        let mut candidates = Vec::new();
        let mut certain = false;
        for one in &owned {
            let sight = one.sight(meta);
            certain |= sight == Sight::Seen;
            if sight != Sight::Unseen {
                candidates.push(one.clone());
            }
        }
        if candidates.is_empty() {
            return Err(unseen(shared, kind, &ObjectKey::of_meta(meta), &owned));
        }
        Ok(Self { candidates, certain })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<dyn OwnedKind>> {
        self.candidates.iter()
    }

    /// Whether one of them delivers the child for sure.
    pub(crate) fn are_certain(&self) -> bool {
        self.certain
    }

    /// Makes sure that one of the watches delivers `child`, which exists, and enters it where it will be delivered.
    pub(crate) async fn confirm(
        &self,
        shared: &Shared,
        kind: &Kind,
        child: &Value,
        run: &ObjectKey,
        trigger: Trigger,
    ) -> Result<()> {
        let key = key_of(child);
        if self.certain || shared.dry_run || self.candidates.iter().any(|one| one.holds(&key)) {
            return Ok(());
        }
        let mut seen = false;
        for one in &self.candidates {
            if delivers(&shared.client, kind, &key, one.scope()).await? {
                one.enter(shared, child.clone(), run, trigger, true);
                seen = true;
            }
        }
        if seen { Ok(()) } else { Err(unseen(shared, kind, &key, &self.candidates)) }
    }
}

fn key_of(child: &Value) -> ObjectKey {
    let meta = &child["metadata"];
    ObjectKey::new(meta["namespace"].as_str(), meta["name"].as_str().unwrap_or_default())
}

fn unseen(shared: &Shared, kind: &Kind, key: &ObjectKey, owned: &[Arc<dyn OwnedKind>]) -> Error {
    let scopes: Vec<String> = owned.iter().map(|one| one.scope().describe()).collect();
    Error::OutOfScope {
        kind: Box::new(kind.clone()),
        key: key.clone(),
        controller: shared.controller.to_string(),
        scope: scopes.join(", or "),
    }
}

/// Asks the server whether an object is in a scope.
async fn delivers(client: &Client, kind: &Kind, key: &ObjectKey, scope: &Scope) -> Result<bool> {
    let fail = |source: kube::Error| Error::Request {
        operation: "look for",
        kind: Box::new(kind.clone()),
        key: key.clone(),
        source: Box::new(source),
    };
    let name = format!("metadata.name={}", key.name());
    let fields = match &scope.fields {
        Some(fields) => format!("{fields},{name}"),
        None => name,
    };
    let params = ListParams {
        label_selector: scope.labels.clone(),
        field_selector: Some(fields),
        ..ListParams::default()
    };
    let request = Request::new(kind.path(key.namespace())).list_metadata(&params);
    let request = request.map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    let list: ObjectList<PartialObjectMeta> = client.request(request).await.map_err(fail)?;
    Ok(!list.items.is_empty())
}
