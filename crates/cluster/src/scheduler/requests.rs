//! What Pods ask of the resources of a node. Pure.

use std::collections::BTreeMap;

use windlass::k8s_openapi::{
    api::core::v1::{Container, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};

use crate::quantity;

/// Amounts of resources, in thousandths.
pub(super) type Amounts = BTreeMap<String, i128>;

/// What a container is taken to need of processor time and memory when nodes are compared and it does not say.
const ASSUMED: [(&str, i128); 2] = [("cpu", 100), ("memory", 200 * 1024 * 1024 * 1000)];

/// What a Pod asks of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// What must be there.
    pub(super) amounts: Amounts,
    /// Processor time and memory as they count when nodes are compared.
    pub(super) compared: [i128; 2],
}

impl Demand {
    pub(super) fn of(spec: &PodSpec) -> Self {
        let assumed = total(spec, &ASSUMED);
        let compared = ASSUMED.map(|(name, _)| assumed.get(name).copied().unwrap_or(0));
        Self { amounts: total(spec, &[]), compared }
    }
}

/// The amounts that quantities stand for; text that is no quantity counts as nothing.
pub(super) fn amounts(quantities: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let parsed = |(name, amount): (&String, &Quantity)| Some((name.clone(), quantity::thousandths(amount)?));
    quantities.into_iter().flatten().filter_map(parsed).collect()
}

fn requested(resources: Option<&ResourceRequirements>) -> Amounts {
    amounts(resources.and_then(|resources| resources.requests.as_ref()))
}

/// The containers together with the sidecars, or the hungriest moment of the start if that asks for more. What the
/// Pod says of itself as a whole goes before what its containers say.
fn total(spec: &PodSpec, assumed: &[(&str, i128)]) -> Amounts {
    let own = requested(spec.resources.as_ref());
    let of = |container: &Container| {
        let mut amounts = requested(container.resources.as_ref());
        for (name, amount) in assumed.iter().filter(|(name, _)| !own.contains_key(*name)) {
            amounts.entry((*name).to_owned()).or_insert(*amount);
        }
        amounts
    };
    let mut running = Amounts::new();
    spec.containers.iter().for_each(|container| add(&mut running, &of(container)));
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for init in spec.init_containers.iter().flatten() {
        let mut moment = of(init);
        if init.restart_policy.as_deref() == Some("Always") {
            add(&mut running, &moment);
            add(&mut sidecars, &moment);
            moment.clone_from(&sidecars);
        } else {
            add(&mut moment, &sidecars);
        }
        raise(&mut starting, &moment);
    }
    raise(&mut running, &starting);
    running.extend(own);
    add(&mut running, &amounts(spec.overhead.as_ref()));
    running
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
}

fn raise(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = most.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

/// What the Pods on a node ask for together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) pods: i128,
    pub(super) amounts: Amounts,
    pub(super) compared: [i128; 2],
}

impl Used {
    pub(super) fn add(&mut self, demand: &Demand) {
        self.change(demand, 1);
    }

    pub(super) fn remove(&mut self, demand: &Demand) {
        self.change(demand, -1);
    }

    fn change(&mut self, demand: &Demand, sign: i128) {
        self.pods += sign;
        for (name, amount) in &demand.amounts {
            *self.amounts.entry(name.clone()).or_default() += sign * amount;
        }
        for (sum, amount) in self.compared.iter_mut().zip(demand.compared) {
            *sum += sign * amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;

    fn demand(spec: Value) -> Demand {
        Demand::of(&from_value(spec).unwrap())
    }

    fn asking(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    fn sidecar(cpu: &str) -> Value {
        json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn containers_add_up_and_the_start_may_ask_for_more() {
        let cpu = |spec: Value| demand(spec).amounts["cpu"];
        assert_eq!(cpu(json!({"containers": [asking("1"), asking("500m")]})), 1500);
        assert_eq!(cpu(json!({"containers": [asking("1")], "initContainers": [asking("3")]})), 3000);
        assert_eq!(cpu(json!({"containers": [asking("1")], "initContainers": [sidecar("2")]})), 3000);
        // The second init container runs beside the sidecar that was started before it.
        let both = json!([sidecar("2"), asking("3")]);
        assert_eq!(cpu(json!({"containers": [asking("1")], "initContainers": both})), 5000);
        let overhead = json!({"containers": [asking("1")], "overhead": {"cpu": "250m"}});
        assert_eq!(cpu(overhead), 1250);
    }

    #[test]
    fn what_a_pod_says_as_a_whole_goes_first() {
        let spec =
            json!({"containers": [asking("1")], "resources": {"requests": {"cpu": "4", "memory": "1Ki"}}});
        let demand = demand(spec);
        assert_eq!((demand.amounts["cpu"], demand.amounts["memory"]), (4000, 1_024_000));
        assert_eq!(demand.compared, [4000, 1_024_000]);
    }

    #[test]
    fn who_says_nothing_counts_when_nodes_are_compared() {
        let silent = demand(json!({"containers": [{"name": "c"}, {"name": "d"}]}));
        assert!(silent.amounts.is_empty());
        assert_eq!(silent.compared, [200, 400 * 1024 * 1024 * 1000]);
    }
}
