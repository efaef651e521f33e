//! Subresources with a life of their own: scale and binding.

use serde_json::{Value, json};

use super::{
    Attributes, Operation, Presented, Registry, Resource,
    resource::text,
    scale,
    write::{Ownership, Target, Write, WriteOptions},
};
use crate::error::{Error, Result};

impl Registry {
    /// The scale of an object.
    pub async fn scale(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Value> {
        scale::of(resource, &self.get_value(resource, namespace, name).await?)
    }

    /// Replaces the scale of an object.
    pub async fn set_scale(
        &self,
        target: Target<'_>,
        wanted: &Value,
        options: &WriteOptions,
    ) -> Result<Value> {
        let resource = target.resource;
        let change = |old: &Value| scale::set(resource, old, wanted);
        let object = self.change(&Write::new(target, options).with(Ownership::Scale), &change).await?;
        scale::of(resource, &object.into_value())
    }

    /// Puts a Pod on a node.
    pub async fn bind(
        &self,
        target: Target<'_>,
        binding: &Value,
        options: &WriteOptions,
    ) -> Result<Presented> {
        let request = Attributes::of_write(Operation::Create, target, target.name, options);
        let binding = &self.mutate_by_admission(&request, binding.clone(), None).await?;
        self.validate_by_admission(&request, Some(binding), None).await?;
        let node = text(binding, "/target/name").to_owned();
        if node.is_empty() {
            return Err(Error::bad_request("the target of a binding must name a node: set target.name"));
        }
        let now = self.environment().now_text();
        let change = |old: &Value| {
            let bound = text(old, "/spec/nodeName");
            if !bound.is_empty() {
                let why = format!("pod {} is already assigned to node \"{bound}\"", target.name);
                return Err(Error::conflict(super::catalog_named("pods/binding"), target.name, why));
            }
            let mut pod = old.clone();
            pod["spec"]["nodeName"] = json!(node);
            let scheduled = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now,
                "lastProbeTime": null});
            let conditions = &mut pod["status"]["conditions"];
            match conditions.as_array_mut() {
                Some(list) => {
                    list.retain(|one| text(one, "/type") != "PodScheduled");
                    list.push(scheduled);
                }
                None => *conditions = json!([scheduled]),
            }
            Ok(pod)
        };
        Ok(self.change(&Write::new(target, options), &change).await?)
    }
}
