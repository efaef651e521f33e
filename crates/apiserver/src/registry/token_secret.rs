//! Secrets that hold the token of a service account.
//!
//! The real server has a controller for this; here it is part of the write. A token names its Secret, so it is made before
//! the write where the writer gave the name, and right after it where the server makes the name.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    Registry, catalog, decode,
    resource::text,
    write::{Target, Write, WriteOptions},
};
use crate::store::{Key, Object};

/// The type of such a Secret.
const KIND: &str = "kubernetes.io/service-account-token";

impl Registry {
    /// Fills a Secret that was made to hold a token. An account that is missing leaves the Secret empty.
    pub(crate) fn fill_token(&self, namespace: &str, name: &str, secret: &mut Value) {
        if name.is_empty() || text(secret, "/type") != KIND || secret["data"]["token"].is_string() {
            return;
        }
        let annotations = &secret["metadata"]["annotations"];
        let account =
            annotations["kubernetes.io/service-account.name"].as_str().unwrap_or_default().to_owned();
        let Some((token, uid)) = self.legacy_token(namespace, name, &account) else { return };
        secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] = json!(uid);
        if !secret["data"].is_object() {
            secret["data"] = json!({});
        }
        secret["data"]["token"] = json!(STANDARD.encode(token));
        secret["data"]["namespace"] = json!(STANDARD.encode(namespace));
        let published =
            self.store().get(&catalog::table_of("", "configmaps"), &Key::new(namespace, "kube-root-ca.crt"));
        let published = published.map(|map| decode::stored(&map));
        if let Some(authority) = published.as_ref().and_then(|map| map["data"]["ca.crt"].as_str()) {
            secret["data"]["ca.crt"] = json!(STANDARD.encode(authority));
        }
    }

    /// Fills a Secret that was stored without its token.
    pub(super) fn fill_stored_token(&self, object: &Object) {
        // Its type is the one field that a Secret can be selected by, so most need not be read.
        if object.fields.first().is_none_or(|kind| &**kind != KIND) {
            return;
        }
        let secret = decode::stored(object);
        let (namespace, name) = (&*object.key.namespace, &*object.key.name);
        let Ok(secrets) = self.resource("", "v1", "secrets") else { return };
        let target = Target { resource: &secrets, namespace, name, subresource: "" };
        let fill = |old: &Value| {
            let mut new = old.clone();
            self.fill_token(namespace, name, &mut new);
            Ok(new)
        };
        let mut filled = secret.clone();
        self.fill_token(namespace, name, &mut filled);
        if filled == secret {
            return;
        }
        let own = WriteOptions { manager: "kube-controller-manager".into(), ..WriteOptions::default() };
        // Somebody who was faster has filled it, changed it or taken it away.
        if let Err(error) = Self::at_once(self.change(&Write::of_server(target, &own), &fill)) {
            tracing::debug!(?error, name, "failed to fill a Secret with its token");
        }
    }
}
