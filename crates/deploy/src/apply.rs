//! Applies objects, and looks before that whether they can be.

use serde_json::{Value, json};
use windlass::kube::{
    self, Client,
    api::{DynamicObject, Patch, PatchParams},
};

use crate::{error::Error, owners, target::Target};

/// Who applies, and whether others are overruled.
#[derive(Clone)]
pub(crate) struct Applier<'a> {
    pub(crate) client: &'a Client,
    pub(crate) operator: &'a str,
    pub(crate) force: bool,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Created,
    Changed,
    Unchanged,
}

impl Outcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        }
    }
}

impl Applier<'_> {
    /// Whether an object could be applied: nobody else has it, and the API server would take it. Changes nothing.
    /// Returns the object as it is, and as it would be.
    pub(crate) async fn rehearse(
        &self,
        manifest: &Value,
    ) -> Result<(Option<DynamicObject>, Option<DynamicObject>), Error> {
        let target = Target::of(manifest);
        let found = target.found(self.client).await?;
        if let (Some(found), false) = (&found, self.force)
            && let Some(owner) = owners::stranger(found, self.operator)
        {
            return Err(Error::Taken { what: target.to_string(), owner });
        }
        if found.as_ref().is_some_and(|found| owners::left_url(found, manifest)) {
            // It is put right when it is applied, and could not be rehearsed as it is.
            return Ok((found, None));
        }
        match self.send(&target, manifest, found.as_ref(), true).await {
            Ok(would) => Ok((found, Some(would))),
            // What it stands in, or refers to, is applied before it.
            Err(Error::Request { source, .. }) if source.code == 404 => Ok((found, None)),
            Err(error) => Err(error),
        }
    }

    /// Applies an object.
    pub(crate) async fn apply(&self, manifest: &Value) -> Result<Outcome, Error> {
        let target = Target::of(manifest);
        let found = target.found(self.client).await?;
        if found.as_ref().is_some_and(|found| owners::left_url(found, manifest)) {
            // An operator that ran outside the cluster has left its address.
            let forget = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
            let params =
                PatchParams { field_manager: Some(self.operator.to_owned()), ..PatchParams::default() };
            let sent = target.api(self.client).patch(&target.name, &params, &Patch::Merge(forget)).await;
            sent.map_err(|error| target.failed("apply", error))?;
        }
        let applied = self.send(&target, manifest, found.as_ref(), false).await?;
        Ok(match found {
            None => Outcome::Created,
            Some(found) if found.metadata.resource_version == applied.metadata.resource_version => {
                Outcome::Unchanged
            }
            Some(_) => Outcome::Changed,
        })
    }

    /// Sends an object, and once more with force if those in its way are no strangers.
    async fn send(
        &self,
        target: &Target,
        manifest: &Value,
        found: Option<&DynamicObject>,
        dry_run: bool,
    ) -> Result<DynamicObject, Error> {
        let api = target.api(self.client);
        let mut params = PatchParams::apply(self.operator);
        params.dry_run = dry_run;
        params.force = self.force;
        // A field that the API server does not know is a manifest for another cluster, not something to drop.
        params.field_validation = Some(kube::api::ValidationDirective::Strict);
        let error = match api.patch(&target.name, &params, &Patch::Apply(manifest)).await {
            Ok(applied) => return Ok(applied),
            Err(error) => error,
        };
        let labelled = found.is_some_and(|found| owners::labelled(found, self.operator));
        match owners::rivals(&error, self.operator, labelled) {
            Some(rivals) if rivals.is_empty() => {
                params.force = true;
                let sent = api.patch(&target.name, &params, &Patch::Apply(manifest)).await;
                sent.map_err(|error| target.failed("apply", error))
            }
            Some(rivals) => Err(Error::Taken { what: target.to_string(), owner: rivals.join(", ") }),
            None => Err(target.failed("apply", error)),
        }
    }
}
