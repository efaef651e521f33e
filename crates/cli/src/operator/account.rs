//! The service account of an operator outside the cluster: a token, and a kubeconfig with nothing else in it.
//!
//! So that what the operator may do in the cluster is what its own roles say, as when it runs there.

use std::path::Path;

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::ServiceAccount,
    },
    kube::{Api, Client, api::PostParams},
};

use super::manifests::Manifests;
use crate::{error::Error, kubeconfig::Kubeconfig, project};

/// As long as anybody works without a restart.
const LIFETIME: i64 = 30 * 24 * 3600;

/// Writes a kubeconfig for the operator's service account, made from the administrator's.
pub(crate) async fn kubeconfig(
    client: &Client,
    manifests: &Manifests,
    admin: &Path,
    path: &Path,
) -> Result<Kubeconfig, Error> {
    let (name, namespace) = (&manifests.name, &manifests.namespace);
    let account = format!("{namespace}/{name}");
    let api = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    let spec = TokenRequestSpec { expiration_seconds: Some(LIFETIME), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answer = api.create_token_request(name, &PostParams::default(), &request).await;
    let answer = answer.map_err(|source| project::Error::Token { account, source: source.into() })?;
    let token = answer.status.and_then(|status| status.token).unwrap_or_default();
    let read = |source| project::Error::Read { path: admin.to_owned(), source };
    let text = fs_err::read_to_string(admin).map_err(read)?;
    let parsed = serde_saphyr::from_str(&text);
    let parsed: Value = parsed
        .map_err(|source| project::Error::Parse { path: admin.to_owned(), source: Box::new(source) })?;
    Kubeconfig::write(path, limited(&parsed, &token, name, namespace).to_string())
}

/// The same cluster, for somebody else. JSON is YAML too.
fn limited(admin: &Value, token: &str, name: &str, namespace: &str) -> Value {
    let cluster = &admin["clusters"][0];
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{
            "name": name,
            "context": {"cluster": cluster["name"], "user": name, "namespace": namespace},
        }],
        "current-context": name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_gets_the_cluster_and_its_own_token_and_no_key_of_the_administrators() {
        let admin = json!({
            "clusters": [{"name": "windlass", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "admin", "user": {"client-key-data": "secret"}}],
        });
        let made = limited(&admin, "token", "shop", "shop-system");
        assert_eq!(made["clusters"][0]["cluster"]["server"], "https://127.0.0.1:1");
        assert_eq!(made["contexts"][0]["context"]["namespace"], "shop-system");
        assert_eq!(made["users"][0]["user"], json!({"token": "token"}));
        assert!(!made.to_string().contains("secret"));
    }
}
