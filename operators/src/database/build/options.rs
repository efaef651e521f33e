//! How `spec.pod` reaches every container of every Pod of a Database. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, PodTemplateSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};

use crate::{
    database::{api::Database, quantity},
    workload::PodOptions,
};

/// How much of `spec.pod.resources` a container gets. Each gets something of every resource that is named there, or a
/// quota or a limit range that asks for one would refuse the Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// All of it: the server, and what runs a server on the data.
    Whole,
    /// Its limits, and little of its requests: a client of the server, beside which there must be room for it.
    Client,
    /// Little of either, so that the Pod keeps its quality of service.
    Helper,
}

/// What a container asks for that does next to nothing.
const LITTLE: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "64Mi")];

/// The template of the server's Pods, changed as the user says. The first container is the server.
pub(super) fn of_server(db: &Database, template: PodTemplateSpec) -> PodTemplateSpec {
    let options = db.spec.pod.as_ref();
    let mut template = PodOptions::applied_to(options, template);
    if let (Some(options), Some(pod)) = (options, template.spec.as_mut()) {
        for container in pod.init_containers.iter_mut().flatten() {
            fit(options, container, Share::Whole);
        }
        for container in pod.containers.iter_mut().skip(1) {
            fit(options, container, Share::Helper);
        }
    }
    template
}

/// The template of a Job's Pods, changed as the user says.
pub(super) fn of_job(
    options: Option<&PodOptions>,
    share: Share,
    template: PodTemplateSpec,
) -> PodTemplateSpec {
    let options = options.map(|options| {
        let mut options = options.clone();
        // What makes the server's Pods fail on a simulated node, and how long a server may take to end, are no wishes
        // for the Jobs.
        options.annotations.retain(|name, _| !name.starts_with("windlass.dev/"));
        options.termination_grace_period_seconds = None;
        options
    });
    let mut template = PodOptions::applied_to(options.as_ref(), template);
    if let (Some(options), Some(pod)) = (&options, template.spec.as_mut()) {
        for container in &mut pod.containers {
            fit(options, container, share);
        }
    }
    template
}

fn fit(options: &PodOptions, container: &mut Container, share: Share) {
    if let Some(policy) = options.image_pull_policy {
        container.image_pull_policy = Some(policy.as_str().into());
    }
    if options.container_security_context.is_some() {
        container.security_context.clone_from(&options.container_security_context);
    }
    if let Some(resources) = &options.resources {
        container.resources = Some(shared(resources, share));
    }
}

fn shared(all: &ResourceRequirements, share: Share) -> ResourceRequirements {
    if share == Share::Whole {
        return all.clone();
    }
    let mut requests = all.requests.clone();
    // A limit without a request is a request of that size.
    for (name, limit) in all.limits.iter().flatten() {
        requests.get_or_insert_default().entry(name.clone()).or_insert_with(|| limit.clone());
    }
    let limits = if share == Share::Helper { all.limits.clone().map(little) } else { all.limits.clone() };
    ResourceRequirements { claims: None, limits, requests: requests.map(little) }
}

fn little(mut all: BTreeMap<String, Quantity>) -> BTreeMap<String, Quantity> {
    for (name, most) in LITTLE {
        if let Some(asked) = all.get_mut(name)
            && !quantity::is_less(&asked.0, most)
        {
            *asked = Quantity(most.to_owned());
        }
    }
    all
}
