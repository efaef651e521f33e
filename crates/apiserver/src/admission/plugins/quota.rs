//! ResourceQuotas: a write that they allow is charged to them, in the same step in which it is committed.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::forbidden;
use crate::{
    admission::{Attributes, Operation},
    error::Result,
    quota::{self, Amount, Usage, amounts},
    registry::{Registry, Target, WriteOptions},
    store::{Draft, Object, Other, TableName},
};

/// Kinds that come and go too fast to be counted.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

impl Registry {
    /// What has to be written together with a write, so that quotas stay true; fails where they do not allow it.
    pub(in crate::admission) fn charge_quotas(
        &self,
        request: &Attributes<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Other>> {
        static QUOTAS: LazyLock<TableName> =
            LazyLock::new(|| TableName { group: "".into(), plural: "resourcequotas".into() });
        let namespace = request.target.namespace;
        if namespace.is_empty() || self.store().count(&QUOTAS) == 0 || !handles(request, object, old) {
            return Ok(Vec::new());
        }
        let quotas = self.store().snapshot(&QUOTAS, Some(namespace)).objects;
        let mut others = Vec::new();
        for stored in quotas {
            let Ok(quota) = serde_json::from_slice::<Value>(&stored.bytes) else { continue };
            let Some(used) = self.after(request, &quota, object, old)? else { continue };
            if !request.dry_run {
                others.push(self.charged(&QUOTAS, &stored, quota, &used)?);
            }
        }
        Ok(others)
    }

    /// What a quota will have given away once the write is done; nothing if that changes nothing.
    fn after(
        &self,
        request: &Attributes<'_>,
        quota: &Value,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Option<Usage>> {
        let (group, plural) = (&*request.target.resource.group, &*request.target.resource.plural);
        let (hard, used) = (amounts(&quota["status"]["hard"]), amounts(&quota["status"]["used"]));
        let bounded: Vec<String> =
            hard.keys().filter(|name| quota::tracks(group, plural, name)).cloned().collect();
        if bounded.is_empty() || !quota::in_scope(&quota["spec"], group, plural, object) {
            return Ok(None);
        }
        let name = quota["metadata"]["name"].as_str().unwrap_or_default();
        if (group, plural) == ("", "pods")
            && let Some(why) = quota::missing(object, &bounded)
        {
            return Err(forbidden(request, object, format!("failed quota: {name}: {why}")));
        }
        if bounded.iter().any(|name| !used.contains_key(name)) {
            let why = format!("status unknown for quota: {name}, resources: {}", bounded.join(","));
            return Err(forbidden(request, object, why));
        }
        let now = self.environment().now();
        let mut wanted = quota::usage(group, plural, object, now);
        let negative: Vec<&str> =
            wanted.iter().filter(|(_, amount)| amount.is_negative()).map(|(name, _)| name.as_str()).collect();
        if !negative.is_empty() {
            let why = format!("quota usage is negative for resource(s): {}", negative.join(","));
            return Err(forbidden(request, object, why));
        }
        if let Some(old) = old.filter(|old| quota::in_scope(&quota["spec"], group, plural, old)) {
            for (name, before) in quota::usage(group, plural, old, now) {
                wanted.entry(name).and_modify(|amount| *amount = (*amount - before).max(Amount::ZERO));
            }
        }
        wanted.retain(|name, amount| !amount.is_zero() && hard.contains_key(name));
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut total = used.clone();
        quota::add(&mut total, wanted.clone());
        if request.target.subresource != "status" {
            let exceeded: Vec<&String> = wanted.keys().filter(|name| total[*name] > hard[*name]).collect();
            if !exceeded.is_empty() {
                let shown = |usage: &Usage| {
                    let parts = exceeded.iter().map(|name| format!("{name}={}", usage[*name]));
                    parts.collect::<Vec<_>>().join(",")
                };
                let (wanted, used, hard) = (shown(&wanted), shown(&used), shown(&hard));
                let why =
                    format!("exceeded quota: {name}, requested: {wanted}, used: {used}, limited: {hard}");
                return Err(forbidden(request, object, why));
            }
        }
        Ok(Some(total))
    }

    /// The write that charges a quota.
    fn charged(&self, table: &TableName, stored: &Object, old: Value, used: &Usage) -> Result<Other> {
        let resource = self.resource("", "v1", "resourcequotas")?;
        let mut quota = old.clone();
        for (name, amount) in used {
            quota["status"]["used"][name] = json!(amount.to_string());
        }
        let (namespace, name) = (&*stored.key.namespace, &*stored.key.name);
        let target = Target { resource: &resource, namespace, name, subresource: "status" };
        let options = WriteOptions { manager: "kube-apiserver".into(), ..WriteOptions::default() };
        self.track(target, Some(&old), &mut quota, &options);
        let draft = Draft::encode(&quota, stored.fields.clone());
        Ok(Other { table: table.clone(), key: stored.key.clone(), read: stored.revision, draft })
    }
}

/// Whether the write can change what its object uses.
fn handles(request: &Attributes<'_>, object: &Value, old: Option<&Value>) -> bool {
    let resource = request.target.resource;
    let kind = (&*resource.group, &*resource.plural);
    if IGNORED.contains(&kind) {
        return false;
    }
    let creates = request.operation == Operation::Create;
    match (kind, request.target.subresource) {
        (("", "pods"), "") => {
            let ends = |pod: &Value| pod["spec"]["activeDeadlineSeconds"].is_i64();
            creates || old.is_some_and(|old| ends(old) != ends(object))
        }
        (("", "pods"), "resize") => true,
        (("", "services" | "persistentvolumeclaims"), "") => true,
        (("", "persistentvolumeclaims"), "status") => old.is_some_and(|old| {
            let given = |claim: &Value| claim["status"]["allocatedResources"].clone();
            given(old) != given(object)
        }),
        (_, "") => creates,
        _ => false,
    }
}
