//! Draws cases: a few requests about one or two kinds.

use serde_json::{Map, Value, json};

use super::{
    custom,
    steps::{Case, Step},
    types::{Kind, Types},
    values::Values,
};
use crate::dice::Dice;

/// Draws the requests of one case.
pub(super) struct Draw<'a> {
    pub(super) values: Values<'a>,
    pub(super) dice: Dice,
}

impl<'a> Draw<'a> {
    pub(super) fn new(types: &'a Types, seed: u64) -> Self {
        Self { values: Values { types }, dice: Dice::new(seed) }
    }

    /// A case of a kind that is drawn too.
    pub(super) fn custom(&mut self, name: String) -> Case {
        let definition = custom::definition(&mut self.dice);
        let mut case = Case { name, managed: self.dice.chance(50), steps: Vec::new() };
        if self.dice.chance(75) {
            case.steps = (0..6).map(|_| custom::definition(&mut self.dice).tried(&mut self.dice)).collect();
            return case;
        }
        case.steps = definition.steps();
        let first = self.create(&definition.kind);
        case.steps.push(first);
        for _ in 0..10 + self.dice.below(15) {
            let step = self.step(&definition.kind);
            case.steps.push(step);
        }
        case.steps.push(super::custom::Definition::removal());
        case
    }

    pub(super) fn case(&mut self, kinds: &[Kind], name: String) -> Case {
        if kinds.is_empty() || self.dice.chance(8) {
            return self.custom(name);
        }
        let kind = self.dice.pick(kinds).clone();
        let mut case = Case { name, managed: self.dice.chance(50), steps: Vec::new() };
        case.steps.push(self.create(&kind));
        for _ in 0..3 + self.dice.below(7) {
            let step = self.step(&kind);
            case.steps.push(step);
        }
        if !kind.namespaced {
            // Nothing of a case that lives outside of its namespace stays.
            case.steps.push(Step::new("DELETE", kind.item(), None));
        }
        for step in &mut case.steps {
            excuse(&kind, step);
        }
        case
    }

    /// An object with a few things changed.
    fn object(&mut self, kind: &Kind, changes: usize) -> Value {
        let mut object = kind.base.clone();
        for _ in 0..changes {
            self.values.vary(&mut self.dice, &kind.schema, &mut object, true);
        }
        if self.dice.chance(3) {
            object["unknown"] = json!("field");
        }
        tame(&mut object);
        object
    }

    fn create(&mut self, kind: &Kind) -> Step {
        let changes = *self.dice.pick(&[0, 1, 1, 1, 2, 3]);
        let mut object = self.object(kind, changes);
        if self.dice.chance(5) {
            let name = object["metadata"]["name"].take();
            object["metadata"]["generateName"] = json!(format!("{}-", name.as_str().unwrap()));
            object["metadata"].as_object_mut().unwrap().remove("name");
        }
        let query = self.write_query(kind);
        Step::new("POST", format!("{}{query}", kind.collection()), Some(object))
    }

    fn write_query(&mut self, kind: &Kind) -> String {
        let mut query = Vec::new();
        if kind.only_tried || self.dice.chance(4) {
            query.push("dryRun=All");
        }
        if self.dice.chance(15) {
            query.push(*self.dice.pick(&[
                "fieldValidation=Strict",
                "fieldValidation=Warn",
                "fieldValidation=Ignore",
                "fieldValidation=Odd",
            ]));
        }
        if self.dice.chance(25) {
            query.push(*self.dice.pick(&["fieldManager=m1", "fieldManager=m2", "fieldManager=m3"]));
        }
        if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) }
    }

    fn step(&mut self, kind: &Kind) -> Step {
        let item = kind.item();
        match self.dice.below(100) {
            0..7 => self.create(kind),
            7..15 => Step::new(self.dice.pick::<&str>(&["GET", "GET", "TABLE", "META"]), item, None),
            15..24 => self.list(kind),
            24..36 => {
                let changes = *self.dice.pick(&[0, 1, 1, 2]);
                let mut object = self.object(kind, changes);
                if self.dice.chance(5) {
                    object["metadata"]["resourceVersion"] = json!(*self.dice.pick(&["0", "1", "x"]));
                }
                let query = self.write_query(kind);
                Step::new("PUT", format!("{item}{query}"), Some(object))
            }
            36..48 => {
                let (patch, query) = (self.patch(kind, "MERGE"), self.write_query(kind));
                Step::new("MERGE", format!("{item}{query}"), Some(patch))
            }
            48..59 => {
                let (patch, query) = (self.patch(kind, "STRATEGIC"), self.write_query(kind));
                Step::new("STRATEGIC", format!("{item}{query}"), Some(patch))
            }
            59..67 => {
                let (patch, query) = (self.operations(kind), self.write_query(kind));
                Step::new("JSON", format!("{item}{query}"), Some(patch))
            }
            67..82 => self.apply(kind),
            82..90 if kind.has("status") => self.status(kind),
            82..90 if kind.has("scale") => self.scale(kind),
            90..94 if kind.has("scale") => self.scale(kind),
            82..94 => Step::new("GET", item, None),
            _ => self.delete(kind),
        }
    }

    fn list(&mut self, kind: &Kind) -> Step {
        let mut query: Vec<String> = Vec::new();
        if !kind.namespaced {
            query.push("labelSelector=run=$id".into());
        } else if self.dice.chance(40) {
            let selectors = [
                "app=a",
                "app!=a",
                "app in (a,b)",
                "!app",
                "app",
                "app=a,zone notin (x)",
                "bad key=1",
                "a=b=c",
                "app%3E1",
            ];
            query.push(format!("labelSelector={}", self.dice.pick(&selectors)));
        }
        if self.dice.chance(30) {
            let selectors = [
                "metadata.name=a",
                "metadata.name!=a",
                "metadata.namespace=$ns",
                "status.phase=Pending",
                "spec.nodeName=",
                "type=Opaque",
                "odd.field=x",
                "metadata.name",
            ];
            query.push(format!("fieldSelector={}", self.dice.pick(&selectors)));
        }
        if self.dice.chance(30) {
            query.push((*self.dice.pick(&["limit=1", "limit=0", "limit=-1", "limit=x", "limit=500"])).into());
        }
        if self.dice.chance(20) {
            let revisions = [
                "resourceVersion=0",
                "resourceVersion=0&resourceVersionMatch=NotOlderThan",
                "resourceVersionMatch=Exact",
                "resourceVersion=x",
                "resourceVersion=0&resourceVersionMatch=Exact",
                "continue=x",
                "timeoutSeconds=x",
            ];
            query.push((*self.dice.pick(&revisions)).into());
        }
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        Step::new(
            self.dice.pick::<&str>(&["GET", "GET", "TABLE", "META"]),
            format!("{}{query}", kind.collection()),
            None,
        )
    }

    /// What leads from the base to another object, as a merge patch of either kind would say it.
    fn patch(&mut self, kind: &Kind, verb: &str) -> Value {
        let changes = 1 + self.dice.below(2);
        let wanted = self.object(kind, changes);
        let mut patch = difference(&kind.base, &wanted);
        if self.dice.chance(15) {
            nullify(&mut self.dice, &mut patch);
        }
        if verb == "STRATEGIC" && self.dice.chance(20) {
            direct(&mut self.dice, &mut patch);
        }
        patch
    }

    /// A JSON patch of places that the base has, or might have.
    fn operations(&mut self, kind: &Kind) -> Value {
        let wanted = self.object(kind, 1);
        let mut places = Vec::new();
        pointers(&wanted, "", &mut places);
        let operations = (0..=self.dice.below(3)).map(|_| {
            let place = self.dice.pick(&places).clone();
            let value = wanted.pointer(&place).cloned().unwrap_or_default();
            let other = self.dice.pick(&places).clone();
            match self.dice.below(12) {
                0..3 => json!({"op": "replace", "path": place, "value": value}),
                3..5 => json!({"op": "add", "path": place, "value": value}),
                5..7 => json!({"op": "remove", "path": place}),
                7 => json!({"op": "test", "path": place, "value": value}),
                8 => json!({"op": "copy", "from": other, "path": place}),
                9 => json!({"op": "move", "from": other, "path": place}),
                10 => json!({"op": "add", "path": format!("{place}/-"), "value": value}),
                _ => json!({"op": self.dice.pick(&["add", "replace", "remove", "odd"]), "path": format!("{place}/x"), "value": "y"}),
            }
        });
        Value::Array(operations.collect())
    }

    fn apply(&mut self, kind: &Kind) -> Step {
        let changes = self.dice.below(3);
        let wanted = self.object(kind, changes);
        let mut applied = wanted.clone();
        if self.dice.chance(50) {
            // One manager's part of it.
            applied = difference(&kind.base, &wanted);
            if !applied.is_object() {
                applied = json!({});
            }
            applied["apiVersion"] = kind.base["apiVersion"].clone();
            applied["kind"] = kind.base["kind"].clone();
            if !applied["metadata"].is_object() {
                applied["metadata"] = json!({});
            }
            applied["metadata"]["name"] = json!(kind.name());
        }
        let manager = *self.dice.pick(&["m1", "m2", "m3"]);
        let force = *self.dice.pick(&["", "", "&force=true", "&force=false"]);
        let dry = if kind.only_tried || self.dice.chance(4) { "&dryRun=All" } else { "" };
        let subresource = if kind.has("status") && self.dice.chance(10) { "/status" } else { "" };
        if !subresource.is_empty() {
            applied = self.with_status(kind);
        }
        let path = format!("{}{subresource}?fieldManager={manager}{force}{dry}", kind.item());
        Step::new("APPLY", path, Some(applied))
    }

    /// The base with a status, which is all that is drawn.
    fn with_status(&mut self, kind: &Kind) -> Value {
        let schema = self.values.types.resolve(&kind.schema).0["properties"]["status"].clone();
        let mut status = json!({});
        for _ in 0..=self.dice.below(2) {
            self.values.vary(&mut self.dice, &schema, &mut status, false);
        }
        let mut object = Map::new();
        object.insert("apiVersion".into(), kind.base["apiVersion"].clone());
        object.insert("kind".into(), kind.base["kind"].clone());
        object.insert("metadata".into(), json!({"name": kind.name()}));
        object.insert("status".into(), status);
        Value::Object(object)
    }

    fn status(&mut self, kind: &Kind) -> Step {
        let path = format!("{}/status{}", kind.item(), self.write_query(kind));
        let object = self.with_status(kind);
        match self.dice.below(4) {
            0 => {
                let mut whole = kind.base.clone();
                whole["status"] = object["status"].clone();
                Step::new("PUT", path, Some(whole))
            }
            1 => Step::new("STRATEGIC", path, Some(json!({"status": object["status"]}))),
            2 => Step::new("GET", format!("{}/status", kind.item()), None),
            _ => Step::new("MERGE", path, Some(json!({"status": object["status"]}))),
        }
    }

    fn scale(&mut self, kind: &Kind) -> Step {
        let path = format!("{}/scale{}", kind.item(), self.write_query(kind));
        let replicas = *self.dice.pick(&[0, 1, 3, 5, -1]);
        match self.dice.below(4) {
            0 => Step::new("GET", format!("{}/scale", kind.item()), None),
            1 => Step::new(
                "PUT",
                path,
                Some(
                    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": kind.name(), "namespace": "$ns"}, "spec": {"replicas": replicas}}),
                ),
            ),
            2 => Step::new(
                "JSON",
                path,
                Some(json!([{"op": "replace", "path": "/spec/replicas", "value": replicas}])),
            ),
            _ => Step::new("MERGE", path, Some(json!({"spec": {"replicas": replicas}}))),
        }
    }

    fn delete(&mut self, kind: &Kind) -> Step {
        let options: &[Value] = &[
            json!(null),
            json!({"propagationPolicy": "Foreground"}),
            json!({"propagationPolicy": "Orphan"}),
            json!({"propagationPolicy": "Background"}),
            json!({"propagationPolicy": "Odd"}),
            json!({"gracePeriodSeconds": 0}),
            json!({"gracePeriodSeconds": 5}),
            json!({"gracePeriodSeconds": -1}),
            json!({"preconditions": {"uid": "x"}}),
            json!({"preconditions": {"resourceVersion": "1"}}),
            json!({"dryRun": ["All"]}),
            json!({"dryRun": ["Odd"]}),
            json!({"orphanDependents": true}),
            json!({"orphanDependents": true, "propagationPolicy": "Orphan"}),
        ];
        let body = Some(self.dice.pick(options).clone()).filter(|options| !options.is_null());
        if self.dice.chance(20) && kind.plural != "namespaces" {
            let selector = if kind.namespaced { "" } else { "?labelSelector=run=$id" };
            return Step::new("DELETE", format!("{}{selector}", kind.collection()), body);
        }
        Step::new("DELETE", kind.item(), body)
    }
}

/// Takes out what would change how the real server treats others.
fn tame(object: &mut Value) {
    if object["globalDefault"] == true {
        object["globalDefault"] = json!(false);
    }
}

/// Says what is known to differ, and why.
fn excuse(kind: &Kind, step: &mut Step) {
    let list = step.path.split('?').next().unwrap() == kind.collection() && step.verb != "POST";
    let mut except = |pointer: &str, why: &str| {
        let pointer = if list { format!("/items/*{pointer}") } else { pointer.to_owned() };
        step.directives.push(format!("@except {pointer} {why}"));
    };
    if kind.plural == "nodes" {
        except("/spec/taints", "an admission plug-in there adds a taint that its node controller takes away");
        except(
            "/metadata/managedFields",
            "an admission plug-in there adds a taint that its node controller takes away",
        );
    }
}

/// The parts of `wanted` that `base` does not have; lists whole.
fn difference(base: &Value, wanted: &Value) -> Value {
    let (Some(old), Some(new)) = (base.as_object(), wanted.as_object()) else { return wanted.clone() };
    let mut out = Map::new();
    for (key, value) in new.iter().filter(|(key, value)| old.get(*key) != Some(*value)) {
        let inner = old.get(key).map_or_else(|| value.clone(), |old| difference(old, value));
        out.insert(key.clone(), inner);
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        out.insert(key.clone(), Value::Null);
    }
    Value::Object(out)
}

/// Makes one of the values null.
fn nullify(dice: &mut Dice, value: &mut Value) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let index = dice.below(map.len());
            let inner = map.values_mut().nth(index).unwrap();
            if dice.chance(50) { *inner = Value::Null } else { nullify(dice, inner) }
        }
        other => *other = Value::Null,
    }
}

/// Adds a directive of strategic merge somewhere.
fn direct(dice: &mut Dice, value: &mut Value) {
    match value {
        Value::Object(map) => {
            if !map.is_empty() && dice.chance(60) {
                let index = dice.below(map.len());
                return direct(dice, map.values_mut().nth(index).unwrap());
            }
            let key = map.keys().next().cloned().unwrap_or_else(|| "x".into());
            match dice.below(5) {
                0 => map.insert("$patch".into(), json!("delete")),
                1 => map.insert("$patch".into(), json!("replace")),
                2 => map.insert("$patch".into(), json!("odd")),
                3 => map.insert("$retainKeys".into(), json!([key])),
                _ => map.insert(format!("$setElementOrder/{key}"), json!([{"name": "c"}])),
            };
        }
        Value::Array(list) if !list.is_empty() => {
            let index = dice.below(list.len());
            direct(dice, &mut list[index]);
        }
        _ => {}
    }
}

/// The JSON pointers to everything in a value.
fn pointers(value: &Value, path: &str, out: &mut Vec<String>) {
    let mut visit = |key: &str, inner: &Value| {
        let place = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        pointers(inner, &place, out);
        out.push(place);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| visit(key, inner)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, inner)| visit(&index.to_string(), inner));
        }
        _ => {}
    }
}
