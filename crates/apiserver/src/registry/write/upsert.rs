//! Writes that create what is not there: server-side apply, and PUT of the kinds that allow it.
//!
//! The verb of such a request is `patch` or `update`. Who has that right only may change what exists; the right to
//! create is asked for when it turns out to be needed, as the real server does.

use serde_json::Value;

use super::{ATTEMPTS, Attempt, CreateRight, Target, Unwritten, Write};
use crate::{
    auth::rbac::Action,
    error::{Error, Result},
    registry::{Attributes, Presented, Registry},
};

impl Registry {
    /// Changes an object, or creates it where there is none; tells whether it is new. `make` is given the live object.
    pub(in crate::registry) async fn upsert(
        &self,
        write: &Write<'_>,
        make: &(dyn Fn(Option<&Value>) -> Result<Value> + Sync),
    ) -> Result<(Presented, bool)> {
        let mut last = Error::stale(write.target.resource.named(), write.target.name);
        for _ in 0..ATTEMPTS {
            match self.try_upsert(write, make).await {
                // It came or went between looking and writing: look again.
                Err(Unwritten::Taken(error) | Unwritten::Gone(error)) => last = error,
                Err(Unwritten::Moved(error) | Unwritten::Refused(error)) => return Err(error),
                Ok(written) => return Ok(written),
            }
        }
        Err(last)
    }

    async fn try_upsert(
        &self,
        write: &Write<'_>,
        make: &(dyn Fn(Option<&Value>) -> Result<Value> + Sync),
    ) -> Attempt<(Presented, bool)> {
        let Target { resource, namespace, name, .. } = write.target;
        if self.get(resource, namespace, name).is_ok() {
            let changed = self.change(write, &|live| make(Some(live))).await?;
            return Ok((changed, false));
        }
        let write = Write { right: CreateRight::Unchecked, ..*write };
        let created = self.insert(&write, make(None)?).await?;
        Ok((created, true))
    }

    /// Refuses to create for somebody who may only change.
    pub(super) fn check_create(&self, request: &Attributes<'_>) -> Result<()> {
        let Target { resource, name, .. } = request.target;
        let (group, plural, namespace) = (&*resource.group, &*resource.plural, request.namespace());
        let action = Action::Resource { verb: "create", group, resource: plural, namespace, name };
        if self.allows(request.user, action) {
            return Ok(());
        }
        Err(Error::forbidden(resource.named(), name, action.refusal(&request.user.name)))
    }
}
