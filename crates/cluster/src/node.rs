//! The simulated node: a Node object that says what it is, and Pods that run without containers.
//!
//! [`register`] writes the Node and keeps its Lease alive; [`kubelet`] takes Pods through their lives. What a Pod's
//! status is at a given time follows from the Pod, its annotations and the clock alone ([`lifecycle`]).

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use windlass::{
    Clock,
    jiff::Timestamp,
    k8s_openapi::{
        api::{
            coordination::v1::{Lease, LeaseSpec},
            core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo},
        },
        apimachinery::pkg::{
            api::resource::Quantity,
            apis::meta::v1::{MicroTime, ObjectMeta, Time},
        },
    },
    kube::{
        Api, Client, Error,
        api::{Patch, PatchParams, PostParams},
    },
    owner,
    serde_json::json,
};

mod addresses;
mod behaviour;
mod command;
mod conditions;
mod containers;
pub(crate) mod exec;
pub(crate) mod health;
pub(crate) mod kubelet;
mod lifecycle;
mod references;

/// Marks a Node whose Pods are simulated.
pub const SIMULATED: &str = "windlass.dev/simulated";

const LEASES: &str = "kube-node-lease";
const MANAGER: &str = "kubelet";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// How long the steps of a Pod's life take. All zero unless set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// From being scheduled to running: the image pull and the start of the containers.
    pub start: Duration,
    /// From running to ready.
    pub ready: Duration,
    /// How long containers run that end by themselves, such as those of Jobs.
    pub run: Duration,
    /// From being asked to stop to being gone.
    pub stop: Duration,
    /// From a node's going down to its being noticed.
    pub unreachable: Duration,
}

/// The nodes of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    pub(crate) count: usize,
    /// How often the Lease is renewed; never with `None`.
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) max_pods: u32,
}

/// Registers the nodes, and renews their Leases until the task is dropped.
pub(crate) async fn run(nodes: Nodes, client: Client, clock: Arc<dyn Clock>) {
    for index in 0..nodes.count {
        let node = node(index, nodes.max_pods, clock.now());
        if let Err(error) = register(&client, &node).await {
            tracing::error!(%error, node = node.metadata.name, "failed to register a node");
        }
    }
    let Some(period) = nodes.heartbeat else { return std::future::pending().await };
    loop {
        for index in 0..nodes.count {
            let node = Api::<Node>::all(client.clone()).get_opt(&name(index)).await;
            if node.is_ok_and(|node| node.is_some_and(|node| health::is_down(&node))) {
                continue;
            }
            if let Err(error) = beat(&client, &name(index), clock.now()).await {
                tracing::warn!(%error, node = name(index), "failed to renew a node's lease");
            }
        }
        tokio::time::sleep(period).await;
    }
}

/// The name of the node with an index.
pub(crate) fn name(index: usize) -> String {
    format!("windlass-{}", index + 1)
}

/// Addresses for documentation (RFC 5737): nothing can be reached there, and nobody expects to.
fn address(index: usize) -> Ipv4Addr {
    let number = u32::from(Ipv4Addr::new(192, 0, 2, 1)).wrapping_add(u32::try_from(index % 254).unwrap_or(0));
    Ipv4Addr::from(number)
}

fn node(index: usize, max_pods: u32, now: Timestamp) -> Node {
    let name = name(index);
    let labels = [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/os", "linux"),
        (SIMULATED, "true"),
    ];
    let note = "Pods on this node are simulated by Windlass: no container runs.";
    Node {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            annotations: Some([("windlass.dev/note".to_owned(), note.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec { provider_id: Some(format!("windlass://{name}")), ..NodeSpec::default() }),
        status: Some(status(index, &name, max_pods, now)),
    }
}

fn status(index: usize, name: &str, max_pods: u32, now: Timestamp) -> NodeStatus {
    let resources: BTreeMap<String, Quantity> =
        [("cpu", "64".to_owned()), ("memory", "256Gi".to_owned()), ("pods", max_pods.to_string())]
            .map(|(name, amount)| (name.to_owned(), Quantity(amount)))
            .into();
    let address = |type_: &str, address: String| NodeAddress { type_: type_.into(), address };
    NodeStatus {
        addresses: Some(vec![
            address("InternalIP", self::address(index).to_string()),
            address("Hostname", name.to_owned()),
        ]),
        capacity: Some(resources.clone()),
        allocatable: Some(resources),
        conditions: Some(conditions(now)),
        node_info: Some(NodeSystemInfo {
            architecture: "amd64".into(),
            operating_system: "linux".into(),
            kubelet_version: "v1.37.1-windlass".into(),
            container_runtime_version: concat!("windlass://", env!("CARGO_PKG_VERSION")).into(),
            kernel_version: "simulated".into(),
            os_image: "Windlass simulated node".into(),
            machine_id: name.to_owned(),
            system_uuid: name.to_owned(),
            boot_id: name.to_owned(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

fn conditions(now: Timestamp) -> Vec<NodeCondition> {
    let facts = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "the simulated kubelet is ready"),
    ];
    let condition = |(type_, status, reason, message): (&str, &str, &str, &str)| NodeCondition {
        type_: type_.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    facts.map(condition).into()
}

/// Creates the Node, or brings an existing one's status up to date, and opens it for Pods.
async fn register(client: &Client, node: &Node) -> Result<(), Error> {
    let api: Api<Node> = Api::all(client.clone());
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
    let created = match api.create(&params, node).await {
        Ok(created) => Some(created),
        Err(Error::Api(status)) if status.is_already_exists() => None,
        Err(error) => return Err(error),
    };
    // The API server may or may not take the status of a new object.
    let has_status = |node: &Node| node.status.as_ref().is_some_and(|status| status.conditions.is_some());
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    let registered = match created.filter(has_status) {
        Some(created) => created,
        None => api.patch_status(name, &params, &Patch::Merge(json!({ "status": node.status }))).await?,
    };
    // A real API server closes every new node until the node lifecycle controller has seen it ready.
    let mut taints = registered.spec.and_then(|spec| spec.taints).unwrap_or_default();
    if !taints.iter().any(|taint| taint.key == NOT_READY) {
        return Ok(());
    }
    taints.retain(|taint| taint.key != NOT_READY);
    let taints = if taints.is_empty() { json!(null) } else { json!(taints) };
    api.patch(name, &params, &Patch::Merge(json!({ "spec": { "taints": taints } }))).await.map(drop)
}

/// Renews the Lease of a node.
async fn beat(client: &Client, node: &str, now: Timestamp) -> Result<(), Error> {
    let api: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let patch = Patch::Merge(json!({ "spec": { "renewTime": MicroTime(now) } }));
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    match api.patch(node, &params, &patch).await {
        Err(Error::Api(status)) if status.is_not_found() => {}
        other => return other.map(drop),
    }
    let owner = Api::<Node>::all(client.clone()).get_opt(node).await?;
    // A Lease belongs to its node as a dependent, not as something that the node controls.
    let reference = owner.as_ref().and_then(owner::controller_reference).map(|mut reference| {
        (reference.controller, reference.block_owner_deletion) = (None, None);
        reference
    });
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(node.to_owned()),
            owner_references: reference.map(|reference| vec![reference]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(node.to_owned()),
            lease_duration_seconds: Some(40),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    };
    let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
    api.create(&params, &lease).await.map(drop)
}
