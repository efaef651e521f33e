//! The types of `test.example.com/v1`, kind `Everything`.

#![allow(unreachable_pub, reason = "KubeSchema makes a public copy of each struct inside a function")]
#![allow(
    clippy::doc_lazy_continuation,
    rustdoc::bare_urls,
    rustdoc::broken_intra_doc_links,
    reason = "the descriptions are the definition's"
)]
#![allow(clippy::duplicated_attributes, reason = "two columns may be of the same type")]

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use windlass::k8s_openapi::ByteString;
use windlass::k8s_openapi::api::core::v1::LocalObjectReference;
use windlass::k8s_openapi::api::core::v1::ResourceRequirements;
use windlass::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass::k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use windlass::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass::kube::{CustomResource, KubeSchema};
use windlass::serde_json::Value;

/// What it should be.
///
/// # a title
///
/// indented code
/// ```text
/// fenced code
/// ```
/// [a link] and <b>tags</b>
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "test.example.com", version = "v1", kind = "Everything")]
#[kube(
    plural = "everythings",
    singular = "everything",
    shortname = "ev",
    shortname = "every",
    category = "all",
    category = "tests"
)]
#[kube(status = "EverythingStatus")]
#[kube(derive = "PartialEq")]
#[kube(doc = r#"Everything \ has "everything"."#)]
#[kube(scale(
    spec_replicas_path = ".spec.replicas",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn(
    name = "Replicas",
    type_ = "integer",
    json_path = ".spec.replicas",
    format = "int32",
    description = r#"How "many""#,
    priority = 1
))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "string",
    json_path = r#".status.conditions[?(@.type=="Ready")].status"#
))]
#[kube(selectable = ".spec.name")]
#[kube(label("team", "blue"))]
#[kube(annotation("api-approved.kubernetes.io", "unapproved, a test"))]
#[kube(attr = r#"x_kube(crates(kube_core = "windlass::kube::core"))"#)]
#[kube(validation = Rule::new("self.metadata.name.size() < 50").message("the name is too long"))]
#[kube(
    validation = Rule::new("!has(self.status) || self.status.replicas >= 0").message(Message::Expression("'replicas ' + string(self.status.replicas)".into())).reason(Reason::FieldValueForbidden)
)]
#[kube(crates(
    kube = "windlass::kube",
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[schemars(
    extend("x-kubernetes-validations" = [{"fieldPath": ".replicas", "message": r#"a "message""#, "optionalOldSelf": true, "rule": "self.replicas <= 10 || has(self.left)"}, {"message": "both", "messageExpression": "'both'", "rule": "self.name == oldSelf.name"}], "maxProperties" = 200, "minProperties" = 1, "oneOf" = [{"required": ["left"]}, {"required": ["right"]}])
)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[serde(rename_all = "camelCase")]
pub struct EverythingSpec {
    #[serde(rename = "$ref", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub r#ref: Option<String>,

    #[serde(rename = "1st", default = "default_n1st")]
    pub n1st: bool,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(
        extend("allOf" = [{"minLength": 1}], "anyOf" = [{"pattern": "^a"}, {"maxLength": 3}], "not" = {"pattern": "z$"})
    )]
    pub any_of_text: Option<String>,

    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub anything: Value,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_name: BTreeMap<String, ByName>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 64))]
    #[schemars(extend("format" = "byte"))]
    pub bytes: Option<ByteString>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub choices: Vec<Choice>,

    #[serde(rename = "clusterIPs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    #[schemars(extend("items" = {"format": "ipv4", "type": "string"}))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub cluster_ips: Vec<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub count: Option<i64>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub crate_: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(extend("format" = "duration"))]
    pub duration: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RawExtension")]
    #[schemars(
        extend("x-kubernetes-embedded-resource" = true, "x-kubernetes-preserve-unknown-fields" = true)
    )]
    pub embedded: Option<RawExtension>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EmbeddedTyped")]
    pub embedded_typed: Option<EmbeddedTyped>,

    #[serde(default = "default_empty")]
    #[schemars(extend("default" = {}))]
    pub empty: Empty,

    #[serde(default = "default_exclusive")]
    #[schemars(range(min = 0, max = 1.5))]
    #[schemars(extend("exclusiveMinimum" = true, "multipleOf" = 0.5))]
    pub exclusive: f64,

    #[serde(default)]
    pub flag: bool,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f32")]
    pub float: Option<f32>,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "additionalProperties" = null))]
    pub free: BTreeMap<String, Value>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HalfOpen")]
    pub half_open: Option<HalfOpen>,

    #[serde(default = "default_huge")]
    pub huge: i64,

    #[serde(default = "default_integers")]
    #[schemars(extend("enum" = [1, 2, 3]))]
    pub integers: i64,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into(), "protocol".into()]))]
    pub items: Vec<Item>,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 10))]
    pub labels: BTreeMap<String, String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub left: Option<bool>,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("additionalProperties" = {"maxLength": 10, "pattern": r"^\d+$", "type": "string"}))]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub limits: BTreeMap<String, String>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    #[schemars(inner(length(max = 3), inner(range(min = -1, max = 1))))]
    pub matrix: Vec<Vec<f64>>,

    #[schemars(length(min = 1, max = 63), regex(pattern = r#"^[a-z]\w*"?$"#))]
    pub name: String,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nested: BTreeMap<String, Vec<BTreeMap<String, bool>>>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(extend("enum" = ["x", null], "nullable" = true))]
    pub null_enum: Option<String>,

    #[serde(default = "default_nullable_default")]
    #[schemars(with = "String")]
    #[schemars(extend("nullable" = true))]
    pub nullable_default: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    #[schemars(extend("nullable" = true))]
    pub nullable_enum: Option<Choice>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nullable_items: Vec<Option<String>>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<i64>")]
    #[schemars(extend("nullable" = true))]
    pub nullable_list: Option<Vec<i64>>,

    #[schemars(with = "String")]
    #[schemars(extend("nullable" = true))]
    pub nullable_required: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(extend("nullable" = true))]
    pub nullable_string: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NullableStruct")]
    #[schemars(extend("nullable" = true))]
    pub nullable_struct: Option<NullableStruct>,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("additionalProperties" = null))]
    pub opaque: BTreeMap<String, Value>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OtherRef")]
    pub other_ref: Option<OtherRef>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u16", range(min = 1))]
    pub port: Option<u16>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    #[schemars(extend("nullable" = false))]
    pub port2: Option<IntOrString>,

    #[serde(default = "default_port3")]
    #[schemars(extend("pattern" = "^[a-z]*$", "nullable" = false))]
    pub port3: IntOrString,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    #[schemars(extend("nullable" = true))]
    pub port4: Option<IntOrString>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<IntOrString>,

    #[serde(default = "default_replicas")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resources_schema")]
    pub resources: Option<ResourceRequirements>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub right: Option<bool>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 9))]
    #[x_kube(validation = Rule::new("self != 'no'").message("not no").reason(Reason::FieldValueRequired))]
    pub ruled: Option<String>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    #[schemars(
        extend("items" = {"maxLength": 9, "type": "string", "x-kubernetes-validations": [{"rule": "self != 'no'"}]})
    )]
    pub rules: Vec<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "secret_ref_schema")]
    pub secret_ref: Option<LocalObjectReference>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelSelector")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub selector: Option<LabelSelector>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub self_: Option<String>,

    #[serde(default = "default_size")]
    #[schemars(
        extend("pattern" = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$", "default" = "1Gi", "nullable" = false)
    )]
    pub size: Quantity,

    #[serde(default = "default_tree")]
    #[schemars(extend("default" = {"branch": {"leaf": "fallen"}}))]
    pub tree: Tree,

    #[serde(default)]
    pub r#type: Type,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(extend("format" = "uuid"))]
    pub uid: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    #[schemars(extend("format" = "uint32"))]
    pub unsigned: Option<i64>,

    #[serde(default = "default_when")]
    #[schemars(extend("default" = "2020-01-01T00:00:00Z"))]
    pub when: Time,

    #[serde(default = "default_with_default_required")]
    pub with_default_required: String,

    #[serde(default = "default_words")]
    #[schemars(length(min = 1), inner(length(min = 1), regex(pattern = r"^\S+$")))]
    pub words: Vec<String>,

    #[serde(rename = "x-dashed", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub x_dashed: Option<String>,

    #[serde(rename = "x_dashed", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub x_dashed2: Option<String>,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ByName {
    #[schemars(range(min = 1))]
    pub v: i32,
}

#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    #[serde(rename = "x")]
    X,
    #[serde(rename = "z")]
    Z,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-embedded-resource" = true))]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedTyped {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub api_version: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub kind: Option<String>,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("additionalProperties" = null))]
    pub metadata: BTreeMap<String, Value>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Spec")]
    pub spec: Option<Spec>,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub x: Option<i32>,
}

#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Empty {
    #[serde(default = "default_a")]
    pub a: String,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HalfOpen {
    pub known: String,

    /// Fields that the schema does not name.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[schemars(extend("not" = {"required": ["bad"]}))]
#[serde(rename_all = "camelCase")]
pub struct Item {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub bad: Option<String>,

    pub name: String,

    #[serde(default)]
    pub protocol: Protocol,
}

#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    #[default]
    #[serde(rename = "TCP")]
    Tcp,
    #[serde(rename = "UDP")]
    Udp,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NullableStruct {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub a: Option<String>,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherRef {
    pub name: String,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Branch")]
    pub branch: Option<Branch>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TreeTree")]
    pub tree: Option<TreeTree>,
}

#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    #[serde(default)]
    pub count: i64,

    #[serde(default = "default_leaf")]
    pub leaf: String,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeTree {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub branch: Option<String>,
}

#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    #[default]
    A,
    #[serde(rename = "a")]
    A2,
    #[serde(rename = "")]
    Empty,
    #[serde(rename = "1x")]
    N1x,
    #[serde(rename = "self")]
    SelfValue,
    #[serde(rename = "two words")]
    TwoWords,
    #[serde(rename = "Ünder")]
    Nder,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EverythingStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub at: Option<Time>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub replicas: Option<i32>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub selector: Option<String>,
}

fn default_a() -> String {
    "b".to_owned()
}

fn default_empty() -> Empty {
    windlass::serde_json::from_str("{}").expect("the default must fit its type")
}

fn default_exclusive() -> f64 {
    1.5
}

fn default_huge() -> i64 {
    -9007199254740993
}

fn default_integers() -> i64 {
    2
}

fn default_leaf() -> String {
    "green".to_owned()
}

fn default_n1st() -> bool {
    true
}

fn default_nullable_default() -> Option<String> {
    Some("x".to_owned())
}

fn default_port3() -> IntOrString {
    IntOrString::Int(8080)
}

fn default_replicas() -> i32 {
    3
}

fn default_size() -> Quantity {
    Quantity("1Gi".to_owned())
}

fn default_tree() -> Tree {
    windlass::serde_json::from_str(r#"{"branch":{"leaf":"fallen"}}"#).expect("the default must fit its type")
}

fn default_when() -> Time {
    windlass::serde_json::from_str(r#""2020-01-01T00:00:00Z""#).expect("the default must fit its type")
}

fn default_with_default_required() -> String {
    "here".to_owned()
}

fn default_words() -> Vec<String> {
    vec!["one".to_owned(), "two".to_owned()]
}

/// The schema of `spec.resources`, as the definition has it.
fn resources_schema(_: &mut SchemaGenerator) -> Schema {
    windlass::serde_json::from_str(RESOURCES_SCHEMA).expect("the schema must be JSON")
}

/// The schema of `spec.secretRef`, as the definition has it.
fn secret_ref_schema(_: &mut SchemaGenerator) -> Schema {
    windlass::serde_json::from_str(SECRET_REF_SCHEMA).expect("the schema must be JSON")
}

const RESOURCES_SCHEMA: &str = r#"
{"properties":{"claims":{"items":{"properties":{"name":{"type":"string"},"request":{"type":"string"}},
"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"limits":{"additionalProperties":{"x-kubernetes-int-or-string":true},
"type":"object"},"requests":{"additionalProperties":{"x-kubernetes-int-or-string":true},"type":"object"}},
"type":"object"}
"#;

const SECRET_REF_SCHEMA: &str = r#"
{"properties":{"name":{"default":"","type":"string"}},"type":"object","x-kubernetes-map-type":"atomic"}
"#;
