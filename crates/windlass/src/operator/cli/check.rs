//! `check`: whether an operator that is installed does its work, as seen through the API server alone.
//!
//! Its kinds are served in its versions, and its lease is being renewed: whoever renews it has reached the API server,
//! may do what it needs and has filled its caches. Needs no more than the operator itself may do, and trusts no clock: a
//! lease is looked at twice. `helm test` runs this.

use std::{collections::BTreeMap, io::Write, time::Duration};

use clap::Args;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client};
use tokio::time::Instant;

use super::{CliError, Connection, Operator};
use crate::{
    error::chain,
    operator::settings::{self, Kinds, Time},
};

/// How often the cluster is asked.
const ASK: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    connection: Connection,
    /// The namespace of the operator itself; that of the pod, or of the kubeconfig context, unless given
    #[arg(long, short, env = "POD_NAMESPACE")]
    namespace: Option<String>,
    /// The name of the lease; that of the operator unless given
    #[arg(long, env = "LEADER_ELECTION_ID")]
    leader_election_id: Option<String>,
    /// Kinds that the operator leaves alone, by the names of their CRDs
    #[arg(long, env = "DISABLE_KINDS", value_name = "CRDS")]
    disable_kinds: Option<Kinds>,
    /// For how long to wait until it does
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: Time,
}

pub(super) async fn check(mut operator: Operator, args: CheckArgs) -> Result<(), CliError> {
    settings::disable(&mut operator, args.disable_kinds.as_ref())?;
    let client = args.connection.connected(&operator).await?;
    let namespace = args.namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let lease = args.leader_election_id.unwrap_or_else(|| operator.name().to_owned());
    for line in running(&client, &operator, &namespace, &lease, args.timeout.0).await? {
        writeln!(std::io::stdout().lock(), "{line}").map_err(CliError::Stdout)?;
    }
    Ok(())
}

/// What was found, once all of it is well.
async fn running(
    client: &Client,
    operator: &Operator,
    namespace: &str,
    lease: &str,
    limit: Duration,
) -> Result<Vec<String>, CliError> {
    let deadline = Instant::now() + limit;
    let leases = Api::<Lease>::namespaced(client.clone(), namespace);
    let mut first: Option<LeaseSpec> = None;
    loop {
        let (mut well, mut wrong) = served(client, operator).await;
        match leases.get(lease).await {
            Err(error) => wrong.push(format!("the lease {namespace}/{lease}: {}", chain(&error))),
            Ok(found) => match led(found.spec.unwrap_or_default(), &mut first) {
                Some(holder) => well.push(format!("{holder} leads")),
                None => wrong.push(format!("nobody renews the lease {namespace}/{lease}")),
            },
        }
        if wrong.is_empty() {
            return Ok(well);
        }
        if Instant::now() >= deadline {
            return Err(CliError::NotRunning(wrong));
        }
        tokio::time::sleep(ASK).await;
    }
}

/// Who holds the lease, once it was renewed before our eyes.
fn led(spec: LeaseSpec, first: &mut Option<LeaseSpec>) -> Option<String> {
    let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty())?;
    let seen = first.get_or_insert_with(|| spec.clone());
    (seen.renew_time != spec.renew_time).then_some(holder)
}

/// Which kinds are served in every version of the operator's, and which are not.
async fn served(client: &Client, operator: &Operator) -> (Vec<String>, Vec<String>) {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for crd in operator.crds() {
        for version in crd.spec.versions.iter().filter(|version| version.served) {
            let api = format!("{}/{}", crd.spec.group, version.name);
            versions.entry(api).or_default().push(crd.spec.names.plural.clone());
        }
    }
    let (mut well, mut wrong) = (Vec::new(), Vec::new());
    for (api, plurals) in versions {
        let found = client.list_api_group_resources(&api).await;
        let found = found.map(|list| list.resources.into_iter().map(|one| one.name).collect::<Vec<_>>());
        for plural in plurals {
            if found.as_ref().is_ok_and(|found| found.contains(&plural)) {
                well.push(format!("{plural} are served in {api}"));
            } else {
                wrong.push(format!("{plural} are not served in {api}"));
            }
        }
    }
    (well, wrong)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::api::{Patch, PatchParams, PostParams};
    use serde_json::json;
    use windlass_apiserver::{ApiServer, auth::Identity, environment, registry::Registry, store::Store};

    use super::*;
    use crate::operator::manifests::tests::hooked;

    fn client() -> Client {
        let clock = environment::TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let environment = environment::Environment::new(clock, 7);
        let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
        Client::new(ApiServer::new(Arc::new(registry)).as_user(Identity::admin()), "default")
    }

    async fn ask(client: &Client) -> Result<Vec<String>, CliError> {
        running(client, &hooked(), "default", "box-operator", Duration::from_secs(10)).await
    }

    fn lease(second: i64) -> Lease {
        serde_json::from_value(json!({
            "metadata": {"name": "box-operator"},
            "spec": {
                "holderIdentity": "box-1", "leaseDurationSeconds": 15,
                "renewTime": format!("1970-01-01T00:00:{second:02}.000000Z"),
            },
        }))
        .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_runs_when_its_kinds_are_served_and_its_lease_is_renewed() {
        let client = client();
        let missing = ask(&client).await.unwrap_err().to_string();
        assert!(missing.contains("are not served in") && missing.contains("not found"), "{missing}");

        hooked().install(&client).await.unwrap();
        let leases = Api::<Lease>::default_namespaced(client.clone());
        leases.create(&PostParams::default(), &lease(1)).await.unwrap();
        let stale = ask(&client).await.unwrap_err().to_string();
        assert!(stale.ends_with("nobody renews the lease default/box-operator"), "{stale}");

        let renewed = tokio::spawn(async move {
            for second in 2..9 {
                tokio::time::sleep(Duration::from_secs(2)).await;
                let patch = Patch::Merge(lease(second));
                leases.patch("box-operator", &PatchParams::default(), &patch).await.unwrap();
            }
        });
        let well = ask(&client).await.unwrap();
        assert_eq!(well.last().map(String::as_str), Some("box-1 leads"));
        renewed.await.unwrap();
    }
}
