//! The built-in kinds, each in a room of its own or of its family.
//!
//! A room exports a [`Strategy`] for every kind in it: who wants to know what is special about a Service opens
//! `kinds/service.rs`. This is the one place that goes from a name to a kind; the catalogue comes here once for each
//! resource that it makes. A kind that is not listed is a plain one.

mod admission;
mod autoscaler;
pub(crate) mod cells;
mod certificates;
pub(super) mod check;
mod config_map;
mod data;
mod definition;
mod device;
mod disruption_budget;
mod endpoint_slice;
mod endpoints;
mod event;
mod flow_control;
pub(crate) mod format;
mod ingress;
mod ip_address;
mod lease;
mod limit_range;
mod namespace;
mod network_policy;
mod node;
mod pod;
mod priority_class;
mod rbac;
mod required;
mod resource_quota;
mod review;
mod secret;
pub(super) mod service;
mod service_cidr;
mod small;
mod storage;
mod volume;
mod volume_claim;
mod workload;

use super::{
    resource::text,
    strategy::{Strategy, copy_top, default},
};

/// All that is special about a built-in kind.
pub(super) fn built_in(group: &str, version: &str, plural: &str) -> &'static Strategy {
    match (group, plural) {
        ("", _) => core(plural),
        ("apps" | "batch", _) => workload::kind(plural),
        ("admissionregistration.k8s.io", _) => admission::kind(plural),
        ("apiextensions.k8s.io", "customresourcedefinitions") => &definition::DEFINITION,
        ("apiregistration.k8s.io", "apiservices") => &small::API_SERVICE,
        ("authentication.k8s.io" | "authorization.k8s.io", _) => review::kind(plural),
        ("autoscaling", "horizontalpodautoscalers") if version == "v1" => &autoscaler::AUTOSCALER_V1,
        ("autoscaling", "horizontalpodautoscalers") => &autoscaler::AUTOSCALER,
        ("certificates.k8s.io", "certificatesigningrequests") => &certificates::SIGNING_REQUEST,
        ("certificates.k8s.io", "podcertificaterequests") => &required::POD_CERTIFICATE_REQUEST,
        ("certificates.k8s.io", "clustertrustbundles") => &certificates::TRUST_BUNDLE,
        ("coordination.k8s.io", "leases") => &lease::LEASE,
        ("discovery.k8s.io", "endpointslices") => &endpoint_slice::ENDPOINT_SLICE,
        ("events.k8s.io", "events") => &event::MODERN_EVENT,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => &flow_control::FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => &flow_control::PRIORITY_LEVEL,
        ("networking.k8s.io", "ingresses") => &ingress::INGRESS,
        ("networking.k8s.io", "ingressclasses") => &ingress::INGRESS_CLASS,
        ("networking.k8s.io", "ipaddresses") => &ip_address::IP_ADDRESS,
        ("networking.k8s.io", "servicecidrs") => &service_cidr::SERVICE_CIDR,
        ("networking.k8s.io", "networkpolicies") => &network_policy::NETWORK_POLICY,
        ("node.k8s.io", "runtimeclasses") => &small::RUNTIME_CLASS,
        ("policy", "poddisruptionbudgets") => &disruption_budget::DISRUPTION_BUDGET,
        ("rbac.authorization.k8s.io", _) => rbac::kind(plural),
        ("resource.k8s.io", "devicetaintrules") => &required::DEVICE_TAINT_RULE,
        ("resource.k8s.io", _) => device::kind(plural),
        ("scheduling.k8s.io", "priorityclasses") => &priority_class::PRIORITY_CLASS,
        ("storage.k8s.io", _) => storage::kind(plural),
        ("storagemigration.k8s.io", "storageversionmigrations") => &small::MIGRATION,
        _ => &small::PLAIN,
    }
}

/// The kinds of the core group.
fn core(plural: &str) -> &'static Strategy {
    match plural {
        "componentstatuses" => &small::COMPONENT_STATUS,
        "configmaps" => &config_map::CONFIG_MAP,
        "endpoints" => &endpoints::ENDPOINTS,
        "events" => &event::EVENT,
        "limitranges" => &limit_range::LIMIT_RANGE,
        "namespaces" => &namespace::NAMESPACE,
        "nodes" => &node::NODE,
        "persistentvolumeclaims" => &volume_claim::CLAIM,
        "persistentvolumes" => &volume::VOLUME,
        "pods" => &pod::POD,
        "resourcequotas" => &resource_quota::RESOURCE_QUOTA,
        "secrets" => &secret::SECRET,
        "serviceaccounts" => &small::SERVICE_ACCOUNT,
        "services" => &service::SERVICE,
        "podtemplates" | "replicationcontrollers" => workload::kind(plural),
        _ => &small::PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Catalog;

    #[test]
    fn every_kind_with_a_room_is_served() {
        let catalog = Catalog::built_in();
        let special =
            catalog.resources().filter(|resource| !std::ptr::eq(resource.strategy, &raw const small::PLAIN));
        let names: Vec<String> =
            special.map(|resource| format!("{}/{}", resource.group, resource.plural)).collect();
        for name in ["/services", "/pods", "apps/deployments", "batch/jobs", "events.k8s.io/events"] {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
    }
}
