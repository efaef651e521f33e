//! Who has a say in a write before it is stored: given to the registry as a value, so that it knows no more of it.

mod times;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use self::times::Step;
pub(crate) use self::times::{AdmissionTimes, BOUNDS};

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
        let begin = Instant::now();
        let changed = self.admission.mutate(self, request, Some(object), old).await;
        self.count_admission(request, "admit", changed.is_err(), begin);
        let changed = changed?;
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
        let begin = Instant::now();
        let outcome = self.admission.validate(self, request, object, old).await;
        self.count_admission(request, "validate", outcome.is_err(), begin);
        outcome
    }

    fn count_admission(&self, request: &Attributes<'_>, kind: &'static str, rejected: bool, begin: Instant) {
        let step = Step { operation: request.operation.name(), kind, rejected };
        self.admission_times.add(step, begin.elapsed());
    }

    /// How long admission took.
    pub(crate) fn admission_times(&self) -> &AdmissionTimes {
        &self.admission_times
    }

    /// Fails if anybody refuses to have the object deleted.
    pub(super) async fn delete_by_admission(&self, request: &Attributes<'_>, old: &Value) -> Result<()> {
        let begin = Instant::now();
        let changed = self.admission.mutate(self, request, None, Some(old)).await;
        self.count_admission(request, "admit", changed.is_err(), begin);
        changed?;
        self.validate_by_admission(request, None, Some(old)).await
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
