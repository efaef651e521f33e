//! The cluster of the current kubeconfig: whether it answers, in which version, and what one may do there.

use std::time::Duration;

use futures::future::join_all;
use windlass::{
    k8s_openapi::api::authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    },
    kube::{Api, Client, api::PostParams},
};

use super::{Check, tools::skew};
use crate::{args::ConnectionArgs, commands::KUBERNETES, connection};

/// How long an API server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How many minor versions an API server may be away from the API that operators are built for.
const SKEW: u64 = 3;

/// What `install` does: group, resource, verb.
const NEEDED: [(&str, &str, &str); 7] = [
    ("apiextensions.k8s.io", "customresourcedefinitions", "patch"),
    ("", "namespaces", "patch"),
    ("", "serviceaccounts", "patch"),
    ("apps", "deployments", "patch"),
    ("rbac.authorization.k8s.io", "clusterroles", "patch"),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "patch"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "patch"),
];

/// None of this fails: `windlass dev` brings a cluster of its own.
pub(super) async fn checks(args: &ConnectionArgs) -> Vec<Check> {
    const NAME: &str = "cluster";
    const FIX: &str = "start one with `windlass cluster up --detach`, or name another with --context";
    let config = match connection::config(args.kubeconfig.as_ref(), args.context.as_deref()).await {
        Ok(config) => config,
        Err(error) => return vec![Check::warn("kubeconfig", error.to_string(), FIX)],
    };
    let context = connection::context(args.kubeconfig.as_ref(), args.context.as_deref());
    let url = config.cluster_url.to_string();
    let named = context.map_or_else(|| url.clone(), |context| format!("{context} ({url})"));
    let client = match Client::try_from(config) {
        Ok(client) => client,
        Err(error) => return vec![Check::warn("kubeconfig", format!("{named}: {error}"), FIX)],
    };
    let mut checks = vec![Check::ok("kubeconfig", named)];
    let version = match tokio::time::timeout(TIMEOUT, client.apiserver_version()).await {
        Ok(Ok(version)) => version.git_version,
        Ok(Err(error)) => {
            checks.push(Check::warn(NAME, format!("not reachable: {error}"), FIX));
            return checks;
        }
        Err(_) => {
            let limit = TIMEOUT.as_secs();
            checks.push(Check::warn(NAME, format!("not reachable: no answer within {limit} s"), FIX));
            return checks;
        }
    };
    checks.push(match skew(&version, KUBERNETES) {
        Some(0..=SKEW) => Check::ok(NAME, format!("reachable, {version}")),
        _ => Check::warn(
            NAME,
            format!("{version} is far from {KUBERNETES}, which operators are built for"),
            "try the operator there before you rely on it",
        ),
    });
    checks.push(permissions(&client).await);
    checks
}

async fn permissions(client: &Client) -> Check {
    const NAME: &str = "permissions";
    let answers =
        join_all(NEEDED.iter().map(|(group, resource, verb)| may(client, group, resource, verb))).await;
    let missing: Vec<String> = NEEDED
        .iter()
        .zip(answers)
        .filter(|(_, allowed)| !allowed)
        .map(|((_, resource, verb), _)| format!("{verb} {resource}"))
        .collect();
    if missing.is_empty() {
        return Check::ok(NAME, "all that `install` needs");
    }
    Check::warn(
        NAME,
        format!("not allowed: {}", missing.join(", ")),
        "ask whoever runs the cluster to install the operator, or for these permissions",
    )
}

async fn may(client: &Client, group: &str, resource: &str, verb: &str) -> bool {
    let attributes = ResourceAttributes {
        group: Some(group.into()),
        resource: Some(resource.into()),
        verb: Some(verb.into()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let api = Api::<SelfSubjectAccessReview>::all(client.clone());
    let answer = tokio::time::timeout(TIMEOUT, api.create(&PostParams::default(), &review)).await;
    answer.is_ok_and(|answer| answer.is_ok_and(|review| review.status.is_some_and(|status| status.allowed)))
}
