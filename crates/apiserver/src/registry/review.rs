//! Reviews: questions in the shape of objects. They are answered, not stored.

use serde_json::{Value, json};

use super::{Registry, Resource, resource::text};
use crate::{
    auth::{Identity, rbac::Action},
    error::{Cause, Error, Result},
};

/// Whether objects of the resource are questions.
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(
        (&*resource.group, &*resource.plural),
        (
            "authorization.k8s.io",
            "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
                | "localsubjectaccessreviews"
        ) | ("authentication.k8s.io", "selfsubjectreviews" | "tokenreviews")
    )
}

impl Registry {
    /// Answers a review that `asker` has sent.
    pub fn review(&self, resource: &Resource, asker: &Identity, mut review: Value) -> Result<Value> {
        review["apiVersion"] = json!(resource.api_version());
        review["kind"] = json!(resource.kind);
        if !review["metadata"].is_object() {
            review["metadata"] = json!({});
        }
        match &*resource.plural {
            "selfsubjectreviews" => {
                review["metadata"]["creationTimestamp"] = json!(self.environment().now_text());
                review["status"] = json!({"userInfo": asker.to_json()});
            }
            "selfsubjectrulesreviews" => {
                let status = self.rules_review(asker, &review)?;
                review["spec"] = json!({});
                review["status"] = status;
            }
            "tokenreviews" => {
                let status = self.review_token(&review)?;
                review["status"] = status;
            }
            "selfsubjectaccessreviews" => {
                let status = self.access(resource, asker, &review)?;
                review["status"] = status;
            }
            _ => {
                let groups = review.pointer("/spec/groups").and_then(Value::as_array).into_iter().flatten();
                let subject = Identity {
                    name: text(&review, "/spec/user").to_owned(),
                    groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
                    ..Identity::default()
                };
                let status = self.access(resource, &subject, &review)?;
                review["status"] = status;
            }
        }
        Ok(review)
    }

    /// Everything that the asker may do in a namespace.
    fn rules_review(&self, asker: &Identity, review: &Value) -> Result<Value> {
        let namespace = text(review, "/spec/namespace");
        if namespace.is_empty() {
            return Err(Error::bad_request("no namespace on request"));
        }
        let rules = self.rules_for(asker, namespace);
        let (paths, resources): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| !rule.paths.is_empty());
        Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
    }

    fn access(&self, resource: &Resource, who: &Identity, review: &Value) -> Result<Value> {
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
        Ok(json!({"allowed": self.allows(who, action)}))
    }
}
