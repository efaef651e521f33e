//! What a new cluster has before anybody asks for it.

use serde_json::json;

use super::{
    Registry, decode,
    write::{Target, WriteOptions},
};
use crate::error::{Error, Reason, Result};

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl Registry {
    /// Creates the namespaces and the Service of the API itself, where they are not there already.
    pub(super) fn bootstrap(&self) -> Result<()> {
        for name in NAMESPACES {
            self.ensure("namespaces", "", json!({"metadata": {"name": name}}))?;
        }
        self.ensure(
            "services",
            "default",
            json!({
                "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
                "spec": {"clusterIP": "10.96.0.1", "ports": [
                    {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
            }),
        )
    }

    fn ensure(&self, plural: &str, namespace: &str, value: serde_json::Value) -> Result<()> {
        let resource = self.resource("", "v1", plural)?;
        let target = Target { resource: &resource, namespace, name: "", subresource: "" };
        let options = WriteOptions { manager: "kube-apiserver".into(), ..WriteOptions::default() };
        match self.create(target, decode::Body { value, duplicates: Vec::new() }, &options) {
            Err(Error { reason: Some(Reason::AlreadyExists), .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
