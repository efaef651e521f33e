//! Reviews: questions in the shape of objects. They are answered, not stored.

use serde_json::{Value, json};

use super::{Strategy, small, text};
use crate::{
    auth::{Identity, rbac::Action},
    error::{Cause, Error, Result},
    registry::{Registry, Resource},
};

/// SelfSubjectReview: who am I.
static SELF_SUBJECT: Strategy = Strategy {
    review: Some(|registry, _, user, review| {
        review["metadata"]["creationTimestamp"] = json!(registry.environment().now_text());
        review["status"] = json!({"userInfo": user.to_json()});
        Ok(())
    }),
    ..Strategy::PLAIN
};

/// SelfSubjectRulesReview: what may I do in a namespace.
static SELF_RULES: Strategy = Strategy {
    review: Some(|registry, _, user, review| {
        let status = rules(registry, user, review)?;
        review["spec"] = json!({});
        review["status"] = status;
        Ok(())
    }),
    ..Strategy::PLAIN
};

/// TokenReview: whose token is this.
static TOKEN: Strategy = Strategy {
    review: Some(|registry, _, _, review| {
        review["status"] = registry.review_token(review)?;
        Ok(())
    }),
    ..Strategy::PLAIN
};

/// SelfSubjectAccessReview: may I do this.
static SELF_ACCESS: Strategy = Strategy {
    review: Some(|registry, resource, user, review| {
        review["status"] = access(registry, resource, user, review)?;
        Ok(())
    }),
    ..Strategy::PLAIN
};

/// SubjectAccessReview and LocalSubjectAccessReview: may somebody else do this.
static ACCESS: Strategy = Strategy {
    review: Some(|registry, resource, _, review| {
        let groups = review.pointer("/spec/groups").and_then(Value::as_array).into_iter().flatten();
        let subject = Identity {
            name: text(review, "/spec/user").to_owned(),
            groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
            ..Identity::default()
        };
        review["status"] = access(registry, resource, &subject, review)?;
        Ok(())
    }),
    ..Strategy::PLAIN
};

/// The kinds of `authentication.k8s.io` and `authorization.k8s.io`.
pub(super) fn kind(plural: &str) -> &'static Strategy {
    match plural {
        "selfsubjectreviews" => &SELF_SUBJECT,
        "selfsubjectrulesreviews" => &SELF_RULES,
        "tokenreviews" => &TOKEN,
        "selfsubjectaccessreviews" => &SELF_ACCESS,
        "subjectaccessreviews" | "localsubjectaccessreviews" => &ACCESS,
        _ => &small::PLAIN,
    }
}

impl Resource {
    /// Whether its objects are questions, which are answered and not stored.
    pub(crate) fn is_review(&self) -> bool {
        self.strategy.review.is_some()
    }
}

impl Registry {
    /// Answers a question that a user has sent.
    pub(crate) fn review(&self, resource: &Resource, user: &Identity, mut review: Value) -> Result<Value> {
        let answer = resource.strategy.review.ok_or_else(Error::no_such_path)?;
        review["apiVersion"] = json!(resource.api_version());
        review["kind"] = json!(resource.kind);
        if !review["metadata"].is_object() {
            review["metadata"] = json!({});
        }
        answer(self, resource, user, &mut review)?;
        Ok(review)
    }
}

/// Everything that a user may do in a namespace.
fn rules(registry: &Registry, user: &Identity, review: &Value) -> Result<Value> {
    let namespace = text(review, "/spec/namespace");
    if namespace.is_empty() {
        return Err(Error::bad_request("no namespace on request"));
    }
    let rules = registry.rules_for(user, namespace);
    let (paths, resources): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| !rule.paths.is_empty());
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}

fn access(registry: &Registry, resource: &Resource, user: &Identity, review: &Value) -> Result<Value> {
    let spec = &review["spec"];
    let joined;
    let action = match (spec.get("resourceAttributes"), spec.get("nonResourceAttributes")) {
        (Some(attributes), None) => {
            joined = match text(attributes, "/subresource") {
                "" => text(attributes, "/resource").to_owned(),
                subresource => format!("{}/{subresource}", text(attributes, "/resource")),
            };
            Action::Resource {
                verb: text(attributes, "/verb"),
                group: text(attributes, "/group"),
                resource: &joined,
                namespace: text(attributes, "/namespace"),
                name: text(attributes, "/name"),
            }
        }
        (None, Some(attributes)) => {
            Action::Path { verb: text(attributes, "/verb"), path: text(attributes, "/path") }
        }
        _ => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let cause = Cause::invalid("spec.resourceAttributes", &spec["resourceAttributes"], why);
            return Err(Error::invalid(resource.named_kind(), "", vec![cause]));
        }
    };
    Ok(json!({"allowed": registry.allows(user, action)}))
}
