//! What built-in kinds and their fields mean, in the words of the Kubernetes API itself.
//!
//! The types that controllers are written with carry them: a schema is made of each kind when a client asks for the
//! document of its group, and forgotten when the document is sent.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use windlass::{
    k8s_openapi::{
        api::{
            admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
            authorization::v1 as authorization, autoscaling, batch::v1 as batch,
            certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
            discovery::v1 as discovery, events::v1 as events, flowcontrol::v1 as flowcontrol,
            networking::v1 as networking, node::v1 as node, policy::v1 as policy, rbac::v1 as rbac,
            resource::v1 as resource, scheduling::v1 as scheduling, storage::v1 as storage,
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions,
        apimachinery::pkg::apis::meta::v1 as meta,
        kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration,
    },
    serde_json::Value,
};

/// Makes schemas of the types that k8s-openapi has.
#[derive(Debug)]
pub(crate) struct Descriptions {
    /// Whether somebody acts on objects: without controllers nobody does, and nobody expects it.
    pub(crate) with_controllers: bool,
}

macro_rules! add {
    ($generator:ident: $($kind:path),+ $(,)?) => {{ $( $generator.subschema_for::<$kind>(); )+ }};
}

impl windlass_apiserver::descriptions::Descriptions for Descriptions {
    fn schemas(&self, group: &str, version: &str) -> BTreeMap<String, Value> {
        let mut generator = SchemaGenerator::default();
        add!(generator: meta::ObjectMeta, meta::DeleteOptions, meta::Status, meta::ListMeta);
        add_kinds(&mut generator, group, version);
        generator.take_definitions(true).into_iter().collect()
    }

    fn warnings(&self, definition: &str, object: &Value) -> Vec<String> {
        if self.with_controllers { crate::fields::warnings(definition, object) } else { Vec::new() }
    }
}

fn add_kinds(generator: &mut SchemaGenerator, group: &str, version: &str) {
    match (group, version) {
        ("", "v1") => add!(generator:
            core::Binding, core::ComponentStatus, core::ConfigMap, core::Endpoints, core::Event, core::LimitRange,
            core::Namespace, core::Node, core::PersistentVolumeClaim, core::PersistentVolume, core::Pod,
            core::PodTemplate, core::ReplicationController, core::ResourceQuota, core::Secret,
            core::ServiceAccount, core::Service,
        ),
        ("apps", "v1") => add!(generator:
            apps::ControllerRevision, apps::DaemonSet, apps::Deployment, apps::ReplicaSet, apps::StatefulSet,
        ),
        ("batch", "v1") => add!(generator: batch::CronJob, batch::Job),
        ("networking.k8s.io", "v1") => add!(generator:
            networking::IngressClass, networking::Ingress, networking::IPAddress, networking::NetworkPolicy,
            networking::ServiceCIDR,
        ),
        ("rbac.authorization.k8s.io", "v1") => add!(generator:
            rbac::ClusterRoleBinding, rbac::ClusterRole, rbac::RoleBinding, rbac::Role,
        ),
        ("storage.k8s.io", "v1") => add!(generator:
            storage::CSIDriver, storage::CSINode, storage::CSIStorageCapacity, storage::StorageClass,
            storage::VolumeAttachment, storage::VolumeAttributesClass,
        ),
        ("admissionregistration.k8s.io", "v1") => add!(generator:
            admission::MutatingWebhookConfiguration, admission::ValidatingAdmissionPolicy,
            admission::ValidatingAdmissionPolicyBinding, admission::ValidatingWebhookConfiguration,
            admission::MutatingAdmissionPolicy, admission::MutatingAdmissionPolicyBinding,
        ),
        ("autoscaling", "v1") => {
            add!(generator: autoscaling::v1::HorizontalPodAutoscaler, autoscaling::v1::Scale);
        }
        ("autoscaling", "v2") => add!(generator: autoscaling::v2::HorizontalPodAutoscaler),
        _ => add_seldom_asked(generator, group, version),
    }
}

fn add_seldom_asked(generator: &mut SchemaGenerator, group: &str, version: &str) {
    match (group, version) {
        ("authentication.k8s.io", "v1") => add!(generator:
            authentication::SelfSubjectReview, authentication::TokenReview, authentication::TokenRequest,
        ),
        ("authorization.k8s.io", "v1") => add!(generator:
            authorization::LocalSubjectAccessReview, authorization::SelfSubjectAccessReview,
            authorization::SelfSubjectRulesReview, authorization::SubjectAccessReview,
        ),
        ("certificates.k8s.io", "v1") => add!(generator: certificates::CertificateSigningRequest),
        ("coordination.k8s.io", "v1") => add!(generator: coordination::Lease),
        ("discovery.k8s.io", "v1") => add!(generator: discovery::EndpointSlice),
        ("events.k8s.io", "v1") => add!(generator: events::Event),
        ("flowcontrol.apiserver.k8s.io", "v1") => add!(generator:
            flowcontrol::FlowSchema, flowcontrol::PriorityLevelConfiguration,
        ),
        ("node.k8s.io", "v1") => add!(generator: node::RuntimeClass),
        ("policy", "v1") => add!(generator: policy::PodDisruptionBudget, policy::Eviction),
        ("resource.k8s.io", "v1") => add!(generator:
            resource::DeviceClass, resource::ResourceClaim, resource::ResourceClaimTemplate, resource::ResourceSlice,
        ),
        ("scheduling.k8s.io", "v1") => add!(generator: scheduling::PriorityClass),
        ("apiextensions.k8s.io", "v1") => add!(generator: apiextensions::CustomResourceDefinition),
        ("apiregistration.k8s.io", "v1") => add!(generator: apiregistration::APIService),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use windlass_apiserver::descriptions::Descriptions as _;

    use super::*;

    #[test]
    fn fields_of_a_deployment_are_described() {
        let told = Descriptions { with_controllers: true }.schemas("apps", "v1");
        let strategy = &told["io.k8s.api.apps.v1.DeploymentStrategy"];
        assert!(strategy["description"].as_str().is_some_and(|text| !text.is_empty()));
        assert!(strategy["properties"]["rollingUpdate"]["description"].is_string());
        assert!(told.contains_key("io.k8s.api.core.v1.PodSpec"));
    }

    #[test]
    fn custom_groups_get_what_all_kinds_share() {
        let told = Descriptions { with_controllers: true }.schemas("example.com", "v1");
        assert!(told["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["description"].is_string());
        assert!(!told.contains_key("io.k8s.api.core.v1.PodSpec"));
    }
}
