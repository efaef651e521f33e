//! A cluster of the user's: as the flags say, or as kubectl would find it.

use std::{net::IpAddr, path::PathBuf};

use windlass::kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::error::Error;

/// Where the cluster is.
pub(crate) async fn config(kubeconfig: Option<&PathBuf>, context: Option<&str>) -> Result<Config, Error> {
    if kubeconfig.is_none() && context.is_none() {
        return Config::infer().await.map_err(|error| Error::FindCluster(error.into()));
    }
    let failed = |source: KubeconfigError| Error::ReadKubeconfig {
        path: kubeconfig.cloned().unwrap_or_else(|| "of the environment".into()),
        source: Box::new(source),
    };
    let read = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path).map_err(failed)?,
        None => Kubeconfig::read().map_err(failed)?,
    };
    let options =
        KubeConfigOptions { context: context.map(ToOwned::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(read, &options).await.map_err(failed)
}

/// The context that is used, by name.
pub(crate) fn context(kubeconfig: Option<&PathBuf>, context: Option<&str>) -> Option<String> {
    if let Some(context) = context {
        return Some(context.to_owned());
    }
    let read = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    read.ok()?.current_context
}

/// Whether an API server at this URL, in this context, reaches this machine by its loopback address. Local clusters in
/// containers and virtual machines are on loopback as well, but it is not theirs.
pub(crate) fn shares_loopback(url: &http::Uri, context: Option<&str>) -> bool {
    const ELSEWHERE: [&str; 6] = ["kind-", "k3d-", "minikube", "docker-desktop", "rancher-desktop", "colima"];
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let elsewhere = context.is_some_and(|name| ELSEWHERE.iter().any(|prefix| name.starts_with(prefix)));
    loopback && !elsewhere
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_shares_loopback_unless_it_is_elsewhere_or_in_a_container() {
        let shares = |url: &str, context| shares_loopback(&url.parse().unwrap(), context);
        assert!(shares("https://127.0.0.1:6443", None) && shares("https://localhost:6443", Some("windlass")));
        assert!(shares("https://[::1]:6443", None));
        assert!(!shares("https://10.0.0.1:6443", None) && !shares("https://k8s.example.com", None));
        assert!(!shares("https://127.0.0.1:40123", Some("kind-kind")));
    }
}
