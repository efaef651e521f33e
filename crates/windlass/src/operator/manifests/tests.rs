//! Manifests: their order, the least of permissions, and golden files of the whole.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::{
    Action, Context, Controller, Reconciler,
    webhook::{Conversion, ConversionError, Defaulter, Request, Spoke, Validator, Verdict, Webhook},
};

pub(in crate::operator) struct Maps;

impl Reconciler for Maps {
    type Resource = ConfigMap;
    type Error = crate::Error;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context<ConfigMap>) -> crate::Result<Action> {
        Ok(Action::await_change())
    }
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v2", kind = "Box", plural = "boxes", namespaced)]
pub(crate) struct BoxSpec {
    size: i64,
}

mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Box", plural = "boxes", namespaced)]
    pub(crate) struct BoxSpec {
        size: String,
    }

    impl Spoke for Box {
        type Hub = super::Box;

        fn into_hub(self) -> Result<super::Box, ConversionError> {
            let size = self.spec.size.parse().map_err(ConversionError::new)?;
            Ok(super::Box { metadata: self.metadata, spec: super::BoxSpec { size } })
        }

        fn from_hub(hub: super::Box) -> Result<Self, ConversionError> {
            Ok(Self { metadata: hub.metadata, spec: BoxSpec { size: hub.spec.size.to_string() } })
        }
    }
}

struct Rules;

impl Validator for Rules {
    type Resource = Box;

    async fn validate_create(&self, _: &Box, _: &Request) -> Verdict {
        Verdict::allow()
    }
}

impl Defaulter for Rules {
    type Resource = Box;

    async fn default(&self, _: &mut Box, _: &Request) -> Verdict {
        Verdict::allow()
    }
}

/// An operator with every kind of webhook.
pub(in crate::operator) fn hooked() -> Operator {
    Operator::new("box-operator")
        .crd::<v1::Box>()
        .crd::<Box>()
        .controller(Controller::new(Maps))
        .webhook(Webhook::validating(Rules).on_delete())
        .defaults(Rules)
        .converts(Conversion::hub::<Box>().spoke::<v1::Box>())
}

fn kinds(manifests: &[Value]) -> Vec<&str> {
    manifests.iter().filter_map(|manifest| manifest["kind"].as_str()).collect()
}

/// Compares with a file in `golden/`. `UPDATE_GOLDEN=1` writes it.
fn golden(name: &str, manifests: &[Value]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/operator/manifests/golden")
        .join(format!("{name}.yaml"));
    let actual = to_yaml(manifests).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(actual == expected, "{} differs; UPDATE_GOLDEN=1 writes it anew:\n{actual}", path.display());
}

#[test]
fn an_operator_with_webhooks_is_installed_whole() {
    golden("webhooks", &hooked().manifests(&Placement::new("boxes", "box-operator:1")));
}

#[test]
fn with_cert_manager_the_operator_mounts_what_it_issues() {
    let placement = Placement {
        certificates: CertificateSource::CertManager,
        ..Placement::new("boxes", "box-operator:1")
    };
    golden("cert-manager", &hooked().manifests(&placement));
}

#[test]
fn the_image_is_pulled_with_the_secrets_that_are_named() {
    let secrets = |names: &[&str]| {
        let image_pull_secrets = names.iter().map(|name| (*name).to_owned()).collect();
        let placement = Placement { image_pull_secrets, ..Placement::new("boxes", "r.example.com/box:1") };
        let manifests = hooked().manifests(&placement);
        let deployment = manifests.iter().find(|manifest| manifest["kind"] == "Deployment").unwrap();
        deployment["spec"]["template"]["spec"]["imagePullSecrets"].clone()
    };
    assert_eq!(secrets(&[]), Value::Null);
    assert_eq!(secrets(&["one", "two"]), serde_json::json!([{ "name": "one" }, { "name": "two" }]));
}

#[test]
fn an_operator_without_webhooks_has_nothing_of_them() {
    let operator = Operator::new("op").controller(Controller::new(Maps).owns::<Deployment>());
    golden("plain", &operator.manifests(&Placement::new("sys", "op:1")));
}

#[test]
fn certificates_need_one_secret_and_named_objects_only() {
    let manifests = hooked().rbac_manifests("boxes");
    let of = |kind: &str| {
        let named = |m: &&Value| {
            m["kind"] == kind && m["metadata"]["name"] == "box-operator-webhook-certificates-role"
        };
        manifests.iter().find(named).unwrap()["rules"].as_array().unwrap().clone()
    };
    assert_eq!(of("ClusterRole").len(), 3);
    assert!(of("ClusterRole").iter().all(|rule| rule["resourceNames"].is_array()));
    let unnamed: Vec<Value> = of("Role").into_iter().filter(|rule| rule["resourceNames"].is_null()).collect();
    assert_eq!(unnamed, [json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] })]);
}

#[test]
fn a_controller_of_one_namespace_needs_no_cluster_role_for_its_work() {
    let wide = Operator::new("op").controller(Controller::new(Maps).owns::<Deployment>());
    let (account, role) = ("ServiceAccount", "Role");
    let metrics = ["ClusterRole", "ClusterRoleBinding", "ClusterRole"];
    let expected = |own: [&'static str; 2]| -> Vec<&str> {
        [account].into_iter().chain(own).chain([role, "RoleBinding"]).chain(metrics).collect()
    };
    assert_eq!(kinds(&wide.rbac_manifests("sys")), expected(["ClusterRole", "ClusterRoleBinding"]));
    let narrow = Operator::new("op").controller(Controller::new(Maps).namespace("shop"));
    let manifests = narrow.rbac_manifests("sys");
    assert_eq!(kinds(&manifests), expected([role, "RoleBinding"]));
    assert_eq!(manifests[1]["metadata"]["namespace"], "shop");
    assert_eq!(manifests[2]["subjects"][0]["namespace"], "sys");
}

#[test]
fn namespaces_reach_the_roles_and_the_process_and_cluster_kinds_keep_a_cluster_role() {
    use k8s_openapi::api::core::v1::Node;
    let operator =
        Operator::new("op").namespaces(["a", "b"]).controller(Controller::new(Maps).reads::<Node>());
    let manifests = operator.manifests(&Placement::new("sys", "op:1"));
    let roles: Vec<(&str, Option<&str>)> = manifests
        .iter()
        .filter(|m| {
            m["metadata"]["name"] == "op-manager-role" && m["kind"].as_str().unwrap().ends_with("Role")
        })
        .map(|m| (m["kind"].as_str().unwrap(), m["metadata"]["namespace"].as_str()))
        .collect();
    assert_eq!(roles, [("Role", Some("a")), ("Role", Some("b")), ("ClusterRole", None)]);
    let cluster = manifests.iter().find(|m| m["kind"] == "ClusterRole").unwrap();
    let read = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]});
    assert_eq!(cluster["rules"], json!([read]));
    let deployment = manifests.iter().find(|m| m["kind"] == "Deployment").unwrap();
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(args.as_array().unwrap().last().unwrap(), "--watch-namespaces=a,b");
}

#[test]
fn the_role_holds_exactly_what_is_computed() {
    let operator = Operator::new("op").controller(Controller::new(Maps).owns::<Deployment>());
    let manifests = operator.rbac_manifests("sys");
    assert_eq!(manifests[1]["rules"], serde_json::to_value(operator.rbac()).unwrap());
}

#[test]
fn what_makes_the_api_server_ask_comes_after_what_answers() {
    let manifests = hooked().manifests(&Placement::new("sys", "op:1"));
    let kinds = kinds(&manifests);
    let place = |kind: &str| kinds.iter().position(|one| *one == kind).unwrap();
    assert_eq!(kinds[0], "Namespace");
    assert!(place("CustomResourceDefinition") < place("Deployment"));
    assert!(place("Deployment") < place("ValidatingWebhookConfiguration"));
}

#[test]
fn what_lives_in_no_namespace_is_permitted_in_a_cluster_role_also_in_namespaced_mode() {
    let urls = PolicyRule {
        non_resource_urls: Some(vec!["/version".into()]),
        verbs: vec!["get".into()],
        ..PolicyRule::default()
    };
    let operator = Operator::new("op").namespaces(["a"]).controller(
        Controller::new(Maps)
            .permits([crate::rbac::rule("", ["nodes", "secrets"], ["get"]), urls])
            .permits([crate::rbac::cluster_wide(crate::rbac::rule("x.io", ["worlds"], ["get"]))]),
    );
    let manifests = operator.rbac_manifests("sys");
    let rules = |kind: &str, name: &str| {
        let found = manifests.iter().find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
        found.map_or(String::new(), |role| role["rules"].to_string())
    };
    let (role, cluster) = (rules("Role", "op-manager-role"), rules("ClusterRole", "op-manager-role"));
    assert!(role.contains("secrets") && !role.contains("nodes") && !role.contains("/version"), "{role}");
    for text in ["nodes", "/version", "worlds"] {
        assert!(cluster.contains(text), "{text}: {cluster}");
    }
    assert!(!cluster.contains("secrets") && !role.contains("worlds"), "{role} {cluster}");
    assert!(manifests.iter().any(
        |one| one["kind"] == "ClusterRoleBinding" && one["metadata"]["name"] == "op-manager-rolebinding"
    ));
}
