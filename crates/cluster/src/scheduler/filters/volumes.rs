//! What the claims of a Pod mean for its scheduling.
//!
//! [`read`] takes them from the cache; [`Needs`] are pure: a node has the volumes of a Pod at hand, or can get them.

use std::{collections::BTreeSet, sync::Arc};

use windlass::{
    Context,
    k8s_openapi::api::{
        core::v1::{
            Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume,
            PersistentVolumeClaim, Pod, TopologySelectorTerm,
        },
        storage::v1::StorageClass,
    },
    owner,
};

use super::{
    super::host::{Host, Resident},
    Refusal,
};
use crate::{node_affinity, pods, volume};

const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Labels of volumes that name the places where they can be used; `__` stands between several.
const ZONES: [&str; 4] = [
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// The state of a Pod's claims.
pub(in super::super) enum Claims {
    /// The Pod cannot be scheduled, wherever.
    Refused(String),
    /// Nodes are to be asked.
    Usable(Needs),
}

/// What a node must have at hand.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Needs {
    /// The volumes of bound claims.
    volumes: Vec<Arc<PersistentVolume>>,
    /// A claim is bound to a volume that is not there.
    lost: bool,
    waiting: Vec<Waiting>,
    /// Claims that only one Pod at a time may use, as `namespace/name`.
    exclusive: BTreeSet<String>,
    /// The Pods that use one of these.
    users: BTreeSet<String>,
}

/// A claim that gets its volume when its Pod gets a node.
#[derive(Clone, Debug)]
struct Waiting {
    claim: Arc<PersistentVolumeClaim>,
    class: Arc<StorageClass>,
    /// Free volumes that fit, but for the node.
    fitting: Vec<Arc<PersistentVolume>>,
}

/// Looks at the claims of a Pod.
pub(in super::super) fn read(pod: &Pod, ctx: &Context<Pod>) -> windlass::Result<Claims> {
    let mut needs = Needs::default();
    for (name, own) in volume::claims_of(pod) {
        let Some(claim) = ctx.get::<PersistentVolumeClaim>(ctx.key().namespace(), &name)? else {
            return Ok(Claims::Refused(if own {
                format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""
                )
            } else {
                format!("persistentvolumeclaim \"{name}\" not found")
            }));
        };
        if own && !owner::is_controlled_by(&claim.metadata, pods::uid(pod)) {
            let (key, namespace) = (ctx.key(), ctx.key().namespace().unwrap_or_default());
            return Ok(Claims::Refused(format!(
                "PVC {namespace}/{name} was not created for pod {key} (pod is not owner)"
            )));
        }
        if pods::is_terminating(&claim.metadata) {
            return Ok(Claims::Refused(format!("persistentvolumeclaim \"{name}\" is being deleted")));
        }
        if claim
            .spec
            .iter()
            .flat_map(|spec| spec.access_modes.iter().flatten())
            .any(|m| m == "ReadWriteOncePod")
        {
            let key = format!("{}/{name}", ctx.key().namespace().unwrap_or_default());
            let users = ctx.indexed::<Pod>(volume::CLAIM_USERS, &key)?;
            let active = users.iter().filter(|user| pods::node(user).is_some() && !pods::is_finished(user));
            needs.users.extend(active.map(|user| pods::uid(user).to_owned()));
            needs.exclusive.insert(key);
        }
        if volume::is_bound(&claim) {
            let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
            match ctx.get::<PersistentVolume>(None, name)? {
                Some(volume) => needs.volumes.push(volume),
                None => needs.lost = true,
            }
            continue;
        }
        let class = volume::class_of(&claim, ctx.cache())?;
        let Some(class) = class.filter(|class| volume::waits_for_consumer(class)) else {
            return Ok(Claims::Refused("pod has unbound immediate PersistentVolumeClaims".into()));
        };
        let volumes = ctx.list::<PersistentVolume>(None)?;
        let fitting = volume::binding::fitting(&claim, &volumes);
        needs.waiting.push(Waiting { claim, class, fitting });
    }
    Ok(Claims::Usable(needs))
}

impl Needs {
    /// The claims that get their volumes as soon as a node is chosen.
    pub(in super::super) fn waiting(&self) -> impl Iterator<Item = &Arc<PersistentVolumeClaim>> {
        self.waiting.iter().map(|waiting| &waiting.claim)
    }

    pub(super) fn check(&self, host: &Host) -> Result<(), Refusal> {
        if !self.users.is_empty() {
            return Err(Refusal::for_now(
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use \
                 by another pod",
            ));
        }
        if self.lost {
            return Err(Refusal::for_good(
                "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            ));
        }
        if !self.volumes.iter().all(|volume| volume::reaches(volume, &host.node)) {
            return Err(Refusal::for_good("node(s) didn't match PersistentVolume's node affinity"));
        }
        if !self.finds_volumes(host) {
            return Err(Refusal::for_good("node(s) didn't find available persistent volumes to bind"));
        }
        if !self.volumes.iter().all(|volume| is_in_zone(volume, &host.node)) {
            return Err(Refusal::for_good("node(s) had no available volume zone"));
        }
        Ok(())
    }

    /// Whether every waiting claim finds a volume of its own for the node, or gets one made.
    fn finds_volumes(&self, host: &Host) -> bool {
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        self.waiting.iter().all(|waiting| {
            if let Some(selected) = volume::annotation(&waiting.claim.metadata, volume::SELECTED_NODE) {
                return selected == host.name();
            }
            let name = |volume: &Arc<PersistentVolume>| volume.metadata.name.clone().unwrap_or_default();
            let free = waiting
                .fitting
                .iter()
                .find(|volume| volume::reaches(volume, &host.node) && !taken.contains(name(volume).as_str()));
            match free.and_then(|volume| volume.metadata.name.as_deref()) {
                Some(name) => taken.insert(name),
                None => {
                    waiting.class.provisioner != NO_PROVISIONER
                        && is_allowed(waiting.class.allowed_topologies.as_deref(), &host.node)
                }
            }
        })
    }

    /// A Pod comes that may use a claim which only one may use.
    pub(super) fn arrives(&mut self, other: &Resident) {
        if !self.exclusive.is_empty()
            && volume::claim_users(&other.pod).iter().any(|claim| self.exclusive.contains(claim))
        {
            self.users.insert(other.uid().to_owned());
        }
    }

    /// A Pod leaves that may have used such a claim.
    pub(super) fn leaves(&mut self, other: &Resident) {
        self.users.remove(other.uid());
    }
}

/// Whether a class makes volumes for a node.
fn is_allowed(topologies: Option<&[TopologySelectorTerm]>, node: &Node) -> bool {
    let Some(terms) = topologies.filter(|terms| !terms.is_empty()) else { return true };
    let terms = terms.iter().map(|term| {
        let expressions = term.match_label_expressions.iter().flatten().map(|one| NodeSelectorRequirement {
            key: one.key.clone(),
            operator: "In".into(),
            values: Some(one.values.clone()),
        });
        NodeSelectorTerm { match_expressions: Some(expressions.collect()), ..NodeSelectorTerm::default() }
    });
    node_affinity::selects(&NodeSelector { node_selector_terms: terms.collect() }, node)
}

/// Whether a volume that says where it is can be used on a node. A node that does not say where it is has no zones.
fn is_in_zone(volume: &PersistentVolume, node: &Node) -> bool {
    let label = |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    if ZONES.iter().all(|key| label(key).is_none()) {
        return true;
    }
    ZONES.iter().all(|key| {
        let Some(zones) = volume.metadata.labels.as_ref().and_then(|labels| labels.get(*key)) else {
            return true;
        };
        label(key).is_some_and(|zone| zones.split("__").any(|one| one == zone))
    })
}

/// Asks for the volumes of a Pod that will run on a node.
pub(in super::super) async fn select(
    claims: &[Arc<PersistentVolumeClaim>],
    node: &str,
    ctx: &Context<Pod>,
) -> windlass::Result<()> {
    for claim in claims {
        let key = volume::SELECTED_NODE.to_owned();
        let selected = ctx.modify(&**claim, |claim| {
            claim.metadata.annotations.get_or_insert_default().entry(key).or_insert_with(|| node.to_owned());
        });
        match selected.await {
            // Another Pod's claim too, or gone: the watch leads back here.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            other => drop(other?),
        }
    }
    Ok(())
}
