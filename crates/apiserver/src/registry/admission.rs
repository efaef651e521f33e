//! Who has a say in a write before it is stored: given to the registry as a value, so that it knows no more of it.

use futures::future::BoxFuture;
use serde_json::Value;

use super::{Attributes, Registry};
use crate::{error::Result, store::Other};

/// Everybody who has a say in a write.
pub(crate) trait Admission: std::fmt::Debug + Send + Sync {
    /// Whether anybody has a say in this one.
    fn is_needed(&self, registry: &Registry, request: &Attributes<'_>) -> bool;

    /// The object after everybody who may change it did. A deletion has no object.
    fn mutate<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a Attributes<'a>,
        object: Option<Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Option<Value>>>;

    /// Fails if anybody refuses the object. A deletion has no object.
    fn validate<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a Attributes<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>>;

    /// What has to be written together with a write, so that quotas stay true; fails where they do not allow it.
    fn charge(
        &self,
        registry: &Registry,
        request: &Attributes<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Other>>;
}

impl Registry {
    /// Whether anybody has a say in the request.
    pub(super) fn needs_admission(&self, request: &Attributes<'_>) -> bool {
        self.admission.is_needed(self, request)
    }

    /// The object after everybody who may change it did.
    pub(crate) async fn mutate_by_admission(
        &self,
        request: &Attributes<'_>,
        object: Value,
        old: Option<&Value>,
    ) -> Result<Value> {
        if !self.needs_admission(request) {
            return Ok(object);
        }
        let changed = self.admission.mutate(self, request, Some(object), old).await?;
        Ok(changed.expect("an object must come back for an object"))
    }

    /// Fails if anybody refuses the object.
    pub(crate) async fn validate_by_admission(
        &self,
        request: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<()> {
        if !self.needs_admission(request) {
            return Ok(());
        }
        self.admission.validate(self, request, object, old).await
    }

    /// Fails if anybody refuses to have the object deleted.
    pub(super) async fn delete_by_admission(&self, request: &Attributes<'_>, old: &Value) -> Result<()> {
        self.admission.mutate(self, request, None, Some(old)).await?;
        self.admission.validate(self, request, None, Some(old)).await
    }

    /// What has to be written together with a write, so that quotas stay true.
    pub(super) fn charge(
        &self,
        request: &Attributes<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Other>> {
        self.admission.charge(self, request, object, old)
    }
}
