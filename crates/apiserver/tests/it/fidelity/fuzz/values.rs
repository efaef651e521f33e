//! Values drawn from a type: mostly such that a server would take them, sometimes not.

use serde_json::{Map, Value, json};

use super::types::Types;
use crate::dice::Dice;

/// Draws values of the types of one set.
pub(super) struct Values<'a> {
    pub(super) types: &'a Types,
}

/// Fields that the server writes over or that no two servers hold alike.
const LEFT_ALONE: [&str; 9] = [
    "managedFields",
    "uid",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "apiVersion",
    "kind",
];

impl Values<'_> {
    /// Changes one thing somewhere in a value of the type.
    pub(super) fn vary(&self, dice: &mut Dice, schema: &Value, value: &mut Value, top: bool) {
        let (schema, name) = self.types.resolve(schema);
        if let Some(properties) = schema["properties"].as_object()
            && let Some(object) = value.as_object_mut()
        {
            let free: Vec<&String> = properties
                .keys()
                .filter(|key| !(LEFT_ALONE.contains(&key.as_str()) || top && *key == "status"))
                .filter(|key| !(top && *key == "metadata") || dice.chance(25))
                .collect();
            if free.is_empty() {
                return;
            }
            let there: Vec<&&String> = free.iter().filter(|key| object.contains_key(key.as_str())).collect();
            let key = if dice.chance(55) && !there.is_empty() {
                (**dice.pick(&there)).clone()
            } else {
                (*dice.pick(&free)).clone()
            };
            if key == "name" && name.ends_with("ObjectMeta") {
                return;
            }
            match object.get_mut(&key) {
                Some(_) if !top && dice.chance(8) => {
                    object.remove(&key);
                }
                Some(inner) => self.vary(dice, &properties[&key], inner, false),
                None => {
                    let made = self.make(dice, &properties[&key], &key, 0);
                    object.insert(key, made);
                }
            }
            return;
        }
        match (schema["type"].as_str(), value) {
            (Some("object"), Value::Object(map)) if schema.get("additionalProperties").is_some() => {
                let key = Self::key(dice, name);
                let made = self.make(dice, &schema["additionalProperties"], &key, 1);
                map.insert(key, made);
            }
            (Some("array"), Value::Array(list)) => match dice.below(10) {
                0 => {
                    list.pop();
                }
                1 if !list.is_empty() => {
                    let again = dice.pick(list).clone();
                    list.push(again);
                }
                2..5 => list.push(self.make(dice, &schema["items"], "", 1)),
                _ if list.is_empty() => list.push(self.make(dice, &schema["items"], "", 1)),
                _ => {
                    let index = dice.below(list.len());
                    self.vary(dice, &schema["items"], &mut list[index], false);
                }
            },
            (_, value) => *value = self.make(dice, schema, name, 1),
        }
    }

    /// A value of the type, for the field of this name.
    pub(super) fn make(&self, dice: &mut Dice, schema: &Value, field: &str, depth: usize) -> Value {
        let (schema, name) = self.types.resolve(schema);
        if dice.chance(1) {
            return dice
                .pick(&[json!(null), json!(1), json!("x"), json!({}), json!([]), json!(true)])
                .clone();
        }
        if let Some(known) = known_type(dice, name) {
            return known;
        }
        if let Some(properties) = schema["properties"].as_object() {
            return self.object(dice, schema, properties, depth);
        }
        match schema["type"].as_str() {
            Some("object") => {
                let mut map = Map::new();
                for _ in 0..dice.below(3) {
                    let key = Self::key(dice, field);
                    map.insert(
                        key.clone(),
                        self.make(dice, &schema["additionalProperties"], &key, depth + 1),
                    );
                }
                Value::Object(map)
            }
            Some("array") => {
                let count = *dice.pick(&[0, 1, 1, 1, 2]);
                (0..count).map(|_| self.make(dice, &schema["items"], field, depth + 1)).collect()
            }
            Some("boolean") => json!(dice.chance(60)),
            Some("integer" | "number") => integer(dice, field),
            Some("string") => string(dice, schema, field),
            _ => dice.pick(&[json!({"a": "b"}), json!("x"), json!(1)]).clone(),
        }
    }

    fn object(
        &self,
        dice: &mut Dice,
        schema: &Value,
        properties: &Map<String, Value>,
        depth: usize,
    ) -> Value {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut map = Map::new();
        let keys: Vec<&String> =
            properties.keys().filter(|key| !LEFT_ALONE.contains(&key.as_str())).collect();
        if keys.is_empty() {
            return Value::Object(map);
        }
        let chosen = dice.pick(&keys).as_str();
        for key in properties.keys() {
            let optional = if depth > 3 { 0 } else { (20 / keys.len()).min(10) };
            let wanted = required.contains(&key.as_str()) && !dice.chance(4)
                || key == chosen && (required.is_empty() || dice.chance(50)) && depth < 6
                || !LEFT_ALONE.contains(&key.as_str()) && dice.chance(optional);
            if wanted {
                map.insert(key.clone(), self.make(dice, &properties[key], key, depth + 1));
            }
        }
        Value::Object(map)
    }

    fn key(dice: &mut Dice, field: &str) -> String {
        let pool: &[&str] = match field {
            "requests"
            | "limits"
            | "capacity"
            | "allocatable"
            | "max"
            | "min"
            | "default"
            | "defaultRequest"
            | "overhead"
            | "maxLimitRequestRatio" => &[
                "cpu",
                "memory",
                "ephemeral-storage",
                "storage",
                "example.com/gpu",
                "hugepages-2Mi",
                "gpu",
                "pods",
            ],
            "hard" | "used" => &[
                "pods",
                "cpu",
                "requests.memory",
                "services",
                "count/jobs.batch",
                "limits.cpu",
                "x",
                "configmaps",
            ],
            "nodeSelector" | "matchLabels" | "labels" | "selector" => {
                &["app", "zone", "example.com/a", "bad key", "tier"]
            }
            _ => &["a", "b", "k", "app", "example.com/a", "bad key", "A_B", "-x"],
        };
        let plain = pool.len().saturating_sub(2).max(1);
        if dice.chance(85) { pool[dice.below(plain)] } else { *dice.pick(pool) }.to_owned()
    }
}

/// Types whose meaning their schema does not tell.
fn known_type(dice: &mut Dice, name: &str) -> Option<Value> {
    let pool: &[Value] = match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => &[
            json!("1"),
            json!("100m"),
            json!("1Gi"),
            json!(2),
            json!("0"),
            json!("1.5"),
            json!("500Mi"),
            json!("-1"),
            json!("1e3"),
            json!("2000m"),
            json!("x"),
        ],
        "IntOrString" => &[
            json!(1),
            json!("50%"),
            json!(0),
            json!("web"),
            json!(80),
            json!("25%"),
            json!(-1),
            json!("101%"),
            json!(70000),
            json!("x_"),
        ],
        "Time" => {
            &[json!("2020-01-01T00:00:00Z"), json!("2021-02-03T04:05:06Z"), json!("2020-01-01"), json!(null)]
        }
        "MicroTime" => &[
            json!("2020-01-01T00:00:00.000000Z"),
            json!("2021-02-03T04:05:06.123456Z"),
            json!("2020-01-01T00:00:00Z"),
        ],
        "RawExtension" | "JSON" => &[json!({"a": "b"}), json!({}), json!({"apiVersion": "v1", "kind": "X"})],
        "FieldsV1" => &[json!({})],
        _ => return None,
    };
    Some(dice.pick(pool).clone())
}

fn integer(dice: &mut Dice, field: &str) -> Value {
    let small = [0, 1, 1, 2, 3, 5, 10, 30, 60];
    let pool: &[i64] = match field {
        _ if field.to_lowercase().contains("port") => &[80, 443, 8080, 8443, 0, 1, 65535, 65536, 30080, -1],
        "defaultMode" | "mode" => &[0o644, 0o400, 0, 0o777, 512, -1],
        _ if dice.chance(75) => &small,
        _ => &[
            -1,
            0,
            100,
            101,
            1000,
            65536,
            86400,
            604_800,
            i64::from(i32::MAX),
            i64::from(i32::MAX) + 1,
            i64::MAX,
            -2,
        ],
    };
    json!(dice.pick(pool))
}

fn string(dice: &mut Dice, schema: &Value, field: &str) -> Value {
    if let Some(allowed) = schema["enum"].as_array()
        && !dice.chance(6)
    {
        return dice.pick(allowed).clone();
    }
    match schema["format"].as_str() {
        Some("byte") => return dice.pick(&[json!("dg=="), json!(""), json!("aGVsbG8="), json!("!")]).clone(),
        Some("date-time") => return json!("2020-01-01T00:00:00Z"),
        Some("int-or-string") => return dice.pick(&[json!(1), json!("50%"), json!("x")]).clone(),
        _ => {}
    }
    let lower = field.to_lowercase();
    let has = |part: &str| lower.contains(part);
    let pool: &[&str] = match lower.as_str() {
        "namespace" => &["$ns", "$ns", "default", "Bad_NS", ""],
        "image" => &["nginx:1", "i", "example.com/a:b", " x", ""],
        "imagepullpolicy" => &["Always", "Never", "IfNotPresent", "Odd"],
        "operator" => &["In", "NotIn", "Exists", "DoesNotExist", "Equal", "Gt", "Odd"],
        "expression" | "rule" | "messageexpression" | "valueexpression" => &[
            "true",
            "object.metadata.name == 'a'",
            "'x'",
            "1 + 1",
            "object.nothing",
            "has(",
            "device.driver == 'd'",
        ],
        "resources" | "resource" => &["pods", "configmaps", "*", "pods/status", "*/*", "x"],
        "verbs" | "verb" => &["get", "list", "*", "create"],
        "apigroups" | "apigroup" | "group" => &["", "apps", "*", "rbac.authorization.k8s.io", "Bad_G"],
        "operations" => &["CREATE", "UPDATE", "*", "DELETE", "Odd"],
        "url" => &["https://example.com/x", "http://x", "x"],
        "timezone" => &["UTC", "Europe/Berlin", "Nowhere/X", "Local"],
        "schedule" => &["* * * * *", "@daily", "0 0 31 2 *", "bad", "TZ=UTC * * * * *"],
        "type" => &["Opaque", "kubernetes.io/tls", "Ready", "RuntimeDefault", "x"],
        "status" => &["True", "False", "Unknown", "x"],
        "sessionaffinity" => &["None", "ClientIP", "x"],
        "restartpolicy" => &["Always", "OnFailure", "Never", "x"],
        "finalizers" => &["example.com/f", "kubernetes", "orphan", "bad"],
        "accessmodes" => &["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "x"],
        "add" | "drop" => &["NET_ADMIN", "ALL", "CAP_SYS_ADMIN", "x"],
        "topologykey" => &["zone", "kubernetes.io/hostname", "bad key", ""],
        "effect" => &["NoSchedule", "NoExecute", "PreferNoSchedule", "x", ""],
        "fieldpath" => {
            &["metadata.name", "metadata.labels['a']", "status.podIP", "spec.x", "metadata.annotations"]
        }
        "medium" => &["", "Memory", "HugePages", "x"],
        "hostnetwork" => &["x"],
        _ if has("cidr") || lower == "except" => {
            &["10.0.0.0/8", "192.168.0.0/16", "fd00::/64", "10.0.0.1/8", "x"]
        }
        _ if has("ip") && lower.len() < 16 && !has("script") && !has("recip") => {
            &["192.168.9.1", "10.1.2.3", "fd00::1", "256.1.1.1", "x", "127.0.0.1"]
        }
        _ if has("host") || has("domain") || has("searches") => {
            &["a.example.com", "*.example.com", "a", "Bad_Host", "192.168.1.1", "a."]
        }
        _ if has("path") => &["/a", "/a/b", "a", "../x", "/", ""],
        _ if has("mode") => &["Filesystem", "Block", "Strict", "x"],
        _ if has("class") => &["fast", "", "Bad_Class", "system-node-critical", "a.b"],
        _ if has("name") => &[
            "a",
            "b",
            "web",
            "my-name",
            "a.b",
            "Bad_Name",
            "",
            "long-name-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on",
            "c",
        ],
        _ if has("key") => &["app", "a", "example.com/a", "bad key", "zone", ""],
        _ if has("policy") => &["None", "Always", "Cluster", "Local", "x"],
        _ => &["a", "b", "x y", "", "v1", "example.com/a", "A", "é", "1"],
    };
    // The later half is where the doubtful ones are.
    let end = if dice.chance(80) { pool.len().div_ceil(2).max(1) } else { pool.len() };
    json!(pool[dice.below(end)])
}
