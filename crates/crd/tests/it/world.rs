//! Schemas, changes of schemas and objects by chance, all from one seed.

use serde_json::{Map, Value, json};

/// A small generator of numbers: the same seed, the same numbers.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % count
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len() as u64) as usize]
    }
}

const WORDS: [&str; 6] = ["a", "ab", "abc", "b1", "Zed", ""];
const PATTERNS: [&str; 3] = ["^[a-z]*$", "^a", "^[a-z0-9]{0,3}$"];
const NAMES: [&str; 5] = ["one", "two", "three", "four", "five"];

/// The schema of a whole object.
pub(crate) fn root(chance: &mut Chance) -> Value {
    json!({"type": "object", "properties": {"spec": object(chance, 3)}})
}

fn schema(chance: &mut Chance, depth: u64) -> Value {
    let kinds = if depth == 0 { 5 } else { 9 };
    let mut schema = match chance.below(kinds) {
        0 | 1 => string(chance),
        2 | 3 => number(chance),
        4 => match chance.below(3) {
            0 => json!({"type": "boolean"}),
            1 => json!({"x-kubernetes-int-or-string": true}),
            _ => json!({"x-kubernetes-preserve-unknown-fields": true}),
        },
        5 | 6 => object(chance, depth - 1),
        _ => array(chance, depth - 1),
    };
    if chance.one_in(6) {
        schema["nullable"] = json!(true);
    }
    schema
}

fn string(chance: &mut Chance) -> Value {
    let mut schema = json!({"type": "string"});
    match chance.below(6) {
        0 => schema["enum"] = json!(["a", "ab", "b1"]),
        1 => schema["pattern"] = json!(chance.pick(&PATTERNS)),
        2 => schema["maxLength"] = json!(1 + chance.below(4)),
        3 => schema["minLength"] = json!(chance.below(3)),
        4 => schema["format"] = json!(chance.pick(&["byte", "date-time", "uuid"])),
        _ => {}
    }
    schema
}

fn number(chance: &mut Chance) -> Value {
    let mut schema = json!({"type": chance.pick(&["integer", "number"])});
    if chance.one_in(2) {
        schema["minimum"] = json!(chance.below(5));
        if chance.one_in(3) {
            schema["exclusiveMinimum"] = json!(true);
        }
    }
    if chance.one_in(2) {
        schema["maximum"] = json!(3 + chance.below(5));
        if chance.one_in(3) {
            schema["exclusiveMaximum"] = json!(true);
        }
    }
    if chance.one_in(5) {
        schema["multipleOf"] = json!(1 + chance.below(3));
    }
    if schema["type"] == "integer" && chance.one_in(3) {
        schema["format"] = json!(chance.pick(&["int32", "int64"]));
    }
    schema
}

fn array(chance: &mut Chance, depth: u64) -> Value {
    let mut schema = json!({"type": "array", "items": self::schema(chance, depth)});
    if chance.one_in(4) {
        schema["maxItems"] = json!(1 + chance.below(3));
    }
    if chance.one_in(4) {
        schema["minItems"] = json!(chance.below(3));
    }
    if chance.one_in(4) && schema["items"]["type"] == "string" {
        schema["x-kubernetes-list-type"] = json!("set");
    }
    schema
}

fn object(chance: &mut Chance, depth: u64) -> Value {
    if chance.one_in(5) {
        let mut schema = json!({"type": "object", "additionalProperties": self::schema(chance, depth)});
        if chance.one_in(3) {
            schema["maxProperties"] = json!(1 + chance.below(3));
        }
        return schema;
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for name in NAMES {
        if chance.one_in(2) {
            let mut property = self::schema(chance, depth);
            if chance.one_in(3) {
                required.push(name);
            }
            if chance.one_in(4) {
                let value = object_of(&property, chance);
                property["default"] = value;
            }
            properties.insert(name.to_owned(), property);
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if chance.one_in(5) {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if chance.one_in(6) {
        schema["maxProperties"] = json!(1 + chance.below(4));
    }
    if chance.one_in(8) {
        schema["minProperties"] = json!(chance.below(3));
    }
    if chance.one_in(8) {
        schema["not"] = json!({"required": ["one", "two"]});
    }
    schema
}

/// A value that the schema may well let through.
pub(crate) fn object_of(schema: &Value, chance: &mut Chance) -> Value {
    if schema["nullable"] == json!(true) && chance.one_in(4) {
        return Value::Null;
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[chance.below(values.len() as u64) as usize].clone();
    }
    match schema["type"].as_str() {
        Some("string") => match schema["format"].as_str() {
            Some("byte") => json!("aGk="),
            Some("date-time") => json!("2026-01-01T00:00:00Z"),
            Some("uuid") => json!("123e4567-e89b-12d3-a456-426614174000"),
            _ => json!(chance.pick(&WORDS)),
        },
        Some("integer") => json!(chance.below(9)),
        Some("number") => json!(chance.below(18) as f64 / 2.0),
        Some("boolean") => json!(chance.one_in(2)),
        Some("array") => (0..chance.below(4)).map(|_| object_of(&schema["items"], chance)).collect(),
        Some("object") => {
            let mut object = Map::new();
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if required.contains(&json!(name)) || chance.one_in(2) {
                    object.insert(name.clone(), object_of(property, chance));
                }
            }
            if schema["additionalProperties"].is_object() {
                for name in NAMES.iter().take(chance.below(4) as usize) {
                    object.insert((*name).to_owned(), object_of(&schema["additionalProperties"], chance));
                }
            } else if schema["x-kubernetes-preserve-unknown-fields"] == json!(true) && chance.one_in(2) {
                let name = chance.pick(&NAMES);
                if !object.contains_key(name) && schema["properties"][name].is_null() {
                    object.insert(name.to_owned(), anything(chance));
                }
            }
            Value::Object(object)
        }
        _ if schema["x-kubernetes-int-or-string"] == json!(true) => {
            if chance.one_in(2) {
                json!("text")
            } else {
                json!(chance.below(9))
            }
        }
        _ => anything(chance),
    }
}

fn anything(chance: &mut Chance) -> Value {
    match chance.below(4) {
        0 => json!(chance.pick(&WORDS)),
        1 => json!(chance.below(9)),
        2 => json!({"deep": [true]}),
        _ => json!(["x"]),
    }
}

/// The schema, changed in one place or a few.
pub(crate) fn changed(old: &Value, chance: &mut Chance) -> Value {
    let mut new = old.clone();
    for _ in 0..=chance.below(3) {
        let spec = &mut new["properties"]["spec"];
        change(spec, chance, 3);
    }
    new
}

fn change(schema: &mut Value, chance: &mut Chance, depth: u64) {
    let names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    // Go down, most of the time.
    if !chance.one_in(3) {
        if !names.is_empty() {
            let name = &names[chance.below(names.len() as u64) as usize];
            return change(&mut schema["properties"][name], chance, depth.saturating_sub(1));
        }
        for below in ["items", "additionalProperties"] {
            if schema[below].is_object() {
                return change(&mut schema[below], chance, depth.saturating_sub(1));
            }
        }
    }
    let keyword = chance.pick(&[
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "maxProperties",
        "minProperties",
        "pattern",
        "enum",
        "nullable",
        "required",
        "property",
        "property",
        "default",
        "type",
        "format",
        "not",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-list-type",
        "multipleOf",
        "exclusiveMinimum",
        "additionalProperties",
    ]);
    let fits = |kinds: &[&str]| kinds.contains(&schema["type"].as_str().unwrap_or_default());
    let count = chance.below(6);
    let value = match keyword {
        "minimum" | "maximum" | "multipleOf" if fits(&["integer", "number"]) => json!(1 + count),
        "exclusiveMinimum" if schema.get("minimum").is_some() => json!(count.is_multiple_of(2)),
        "minLength" | "maxLength" if fits(&["string"]) => json!(count),
        "minItems" | "maxItems" if fits(&["array"]) => json!(count),
        "minProperties" | "maxProperties" if fits(&["object"]) => json!(count),
        "pattern" if fits(&["string"]) => json!(chance.pick(&PATTERNS)),
        "format" if fits(&["string"]) => json!("byte"),
        "format" if fits(&["integer"]) => json!("int32"),
        "enum" if fits(&["string"]) => json!(["a", "ab", "abc", "b1", "Zed", ""][..=count as usize]),
        "nullable" => json!(count.is_multiple_of(2)),
        "not" if fits(&["object"]) => json!({"required": ["three"]}),
        "x-kubernetes-preserve-unknown-fields" if fits(&["object"]) => json!(count.is_multiple_of(2)),
        "x-kubernetes-list-type" if fits(&["array"]) && schema["items"]["type"] == "string" => json!("set"),
        "type" if fits(&["integer"]) => json!("number"),
        "type" => {
            *schema = self::schema(chance, depth);
            return;
        }
        "additionalProperties" if fits(&["object"]) && names.is_empty() => self::schema(chance, 1),
        "default" => object_of(schema, chance),
        "required" if !names.is_empty() => json!([names[0]]),
        "property" if fits(&["object"]) && schema.get("additionalProperties").is_none() => {
            let name = chance.pick(&NAMES);
            if chance.one_in(3) {
                if let Some(properties) = schema["properties"].as_object_mut() {
                    properties.remove(name);
                }
            } else {
                schema["properties"][name] = self::schema(chance, depth.min(1));
            }
            return;
        }
        _ => return,
    };
    // Half of the time what is there goes instead.
    if chance.one_in(2) && !matches!(keyword, "type") {
        schema.as_object_mut().unwrap().remove(keyword);
    } else {
        schema[keyword] = value;
    }
}
