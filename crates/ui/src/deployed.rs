//! Operators in the cluster: its Pods enter, those that serve their runs leave, and what they tell.
//!
//! An operator's Pods bear the label of every kubebuilder project, and have a port called `metrics`. They are asked through
//! the API server, which takes a user's token away; so they are sent one of their own account, for whoever may have
//! that: it is asked for by the TokenRequest API, is for a few minutes, and is kept nowhere.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;
use windlass::{
    kube::{self, Client},
    runs::Looked,
};

use crate::detail::text;

/// By this the Pods of operators are known.
const LABEL: &str = "control-plane=controller-manager";
/// The port by name.
const PORT: &str = "metrics";
/// For so many seconds a token is asked for, and for so long it is used.
const SECONDS: u32 = 600;
const USED: Duration = Duration::from_mins(5);
/// How long an operator that does not serve its runs, or not to us, is left alone.
const REFUSED: Duration = Duration::from_secs(30);

/// A Pod of an operator.
#[derive(Debug, Default)]
pub(crate) struct Deployed {
    pub(crate) uid: String,
    namespace: String,
    pod: String,
    port: u64,
    account: String,
    state: Mutex<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    token: Option<(Instant, String)>,
    refused: Option<Instant>,
}

/// The Pods of operators that run.
pub(crate) async fn find(client: &Client) -> Result<Vec<Deployed>, kube::Error> {
    let path = format!("/api/v1/pods?labelSelector={}", LABEL.replace('=', "%3D"));
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let list: Value = client.request(request).await?;
    Ok(list["items"].as_array().into_iter().flatten().filter_map(of_pod).collect())
}

/// A running Pod with such a port, served with TLS and to those who may: another one tells its runs to its own machine alone.
fn of_pod(pod: &Value) -> Option<Deployed> {
    let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
    if pod["status"]["phase"] != "Running" || !metadata["deletionTimestamp"].is_null() {
        return None;
    }
    let containers = || spec["containers"].as_array().into_iter().flatten();
    let open = |container: &Value| {
        let arguments = container["args"].as_array().into_iter().flatten();
        arguments.map(text).any(|argument| argument == "--metrics-secure=false")
    };
    let has_port = |container: &Value| {
        let mut ports = container["ports"].as_array().into_iter().flatten();
        ports.any(|port| port["name"] == PORT)
    };
    let container = containers().find(|container| has_port(container) && !open(container))?;
    let port = container["ports"].as_array()?.iter().find(|port| port["name"] == PORT)?;
    Some(Deployed {
        uid: text(&metadata["uid"]).to_owned(),
        namespace: text(&metadata["namespace"]).to_owned(),
        pod: text(&metadata["name"]).to_owned(),
        port: port["containerPort"].as_u64()?,
        account: spec["serviceAccountName"].as_str().unwrap_or("default").to_owned(),
        state: Mutex::default(),
    })
}

impl Deployed {
    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What is new since a run.
    pub(crate) async fn ask(&self, client: &Client, since: u64) -> Option<Looked> {
        if self.state().refused.is_some_and(|refused| refused.elapsed() < REFUSED) {
            return None;
        }
        let answer = self.request(client, since).await;
        if let Err(error) = &answer {
            tracing::debug!(%error, pod = self.pod, "failed to ask an operator for its runs");
            self.remember(|state| *state = State { token: None, refused: Some(Instant::now()) });
        }
        answer.ok()
    }

    async fn request(&self, client: &Client, since: u64) -> Result<Looked, kube::Error> {
        let token = self.token(client).await?;
        let Self { namespace, pod, port, .. } = self;
        let path =
            format!("/api/v1/namespaces/{namespace}/pods/https:{pod}:{port}/proxy/debug/runs?since={since}");
        let request = http::Request::get(path).header("x-windlass-token", token).body(Vec::new());
        client.request(request.map_err(kube::Error::HttpError)?).await
    }

    async fn token(&self, client: &Client) -> Result<String, kube::Error> {
        if let Some((_, token)) = self.state().token.filter(|(made, _)| made.elapsed() < USED) {
            return Ok(token);
        }
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{}/token", self.namespace, self.account);
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "audiences": [], "expirationSeconds": SECONDS },
        });
        let body = serde_json::to_vec(&body).map_err(kube::Error::SerdeError)?;
        let request = http::Request::post(path).header("content-type", "application/json").body(body);
        let made: Value = client.request(request.map_err(kube::Error::HttpError)?).await?;
        let token = text(&made["status"]["token"]).to_owned();
        self.remember(|state| state.token = Some((Instant::now(), token.clone())));
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_a_running_pod_whose_metrics_are_guarded() {
        let pod = |phase: &str, port: &str, argument: &str| {
            json!({
                "metadata": {"uid": "1", "namespace": "sys", "name": "op-1"},
                "spec": {"serviceAccountName": "op", "containers": [
                    {"name": "side"},
                    {"name": "manager", "args": ["run", argument], "ports": [{"name": "probes", "containerPort": 8081}, {"name": port, "containerPort": 8443}]},
                ]},
                "status": {"phase": phase},
            })
        };
        let found = of_pod(&pod("Running", "metrics", "--leader-elect")).unwrap();
        assert_eq!((found.port, found.account.as_str(), found.pod.as_str()), (8443, "op", "op-1"));
        for other in [
            pod("Pending", "metrics", ""),
            pod("Running", "http", ""),
            pod("Running", "metrics", "--metrics-secure=false"),
            json!({}),
        ] {
            assert!(of_pod(&other).is_none(), "{other}");
        }
    }
}
