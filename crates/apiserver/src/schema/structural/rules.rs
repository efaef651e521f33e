//! `x-kubernetes-validations`: rules that do not compile, that do not fit the types around them, that could take too
//! long, or that look back where there is nothing to look back to.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::{FieldError, additional, properties, text};
use crate::schema::{
    cel::{self, CelError},
    json::escaped,
};

/// The most that one rule, and all rules of a version, may cost.
const LIMIT: u64 = 10_000_000;
const LIMIT_OF_ALL: u64 = 100_000_000;

/// What is wrong with the rules of a whole resource. `unchanged`: the schema is stored as it is, and what it costs was
/// accepted then.
pub(super) fn errors(schema: &Value, path: &str, unchanged: bool) -> Vec<FieldError> {
    let mut rules = Rules { errors: Vec::new(), unchanged, total: 0, dearest: Vec::new() };
    rules.collect(schema, path, Around { root: true, uncorrelated: None, repeated: Some(1) });
    rules.sum_up(path)
}

/// Where a schema stands.
#[derive(Clone, Copy)]
struct Around<'a> {
    root: bool,
    /// The path of the list or map around whose parts have no old values.
    uncorrelated: Option<&'a str>,
    /// How often its value can be in an object, if the lists and maps around have limits.
    repeated: Option<u64>,
}

struct Rules {
    errors: Vec<FieldError>,
    unchanged: bool,
    total: u64,
    /// The rules that cost the most, and what.
    dearest: Vec<(String, u64)>,
}

impl Rules {
    fn collect(&mut self, schema: &Value, path: &str, around: Around<'_>) {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        for (index, rule) in rules.into_iter().flatten().enumerate() {
            self.rule(schema, rule, &format!("{path}.x-kubernetes-validations[{index}]"), around);
        }
        let repeated = || Some(around.repeated?.saturating_mul(most_parts(schema)?));
        let inside = Around { root: false, repeated: repeated(), ..around };
        let beside = around.uncorrelated.or(Some(path));
        let atomic_map = text(schema, "x-kubernetes-map-type") == "atomic";
        let uncorrelated = if atomic_map { beside } else { around.uncorrelated };
        for (name, property) in properties(schema).into_iter().flatten() {
            self.collect(property, &format!("{path}.properties[{name}]"), Around { uncorrelated, ..inside });
        }
        if let Some(additional) = additional(schema) {
            self.collect(additional, &format!("{path}.additionalProperties"), inside);
        }
        if let Some(items) = schema.get("items") {
            let keyed = text(schema, "x-kubernetes-list-type") == "map";
            let uncorrelated = if keyed { around.uncorrelated } else { beside };
            self.collect(items, &format!("{path}.items"), Around { uncorrelated, ..inside });
        }
    }

    fn rule(&mut self, schema: &Value, rule: &Value, at: &str, around: Around<'_>) {
        let optional_old = rule.get("optionalOldSelf") == Some(&Value::Bool(true));
        let compile = |text: &str, wanted| cel::compile_rule(text, schema, around.root, optional_old, wanted);
        let compiled = compile(text(rule, "rule"), cel::Wanted::Rule);
        match &compiled {
            Err(error) => {
                let why = error.to_string();
                self.errors.push(FieldError::invalid_shown(&format!("{at}.rule"), &go_rule(rule), &why));
            }
            Ok(checked) => {
                let repeated = around.repeated.unwrap_or_else(|| cel::most_in_a_request(schema, around.root));
                let cost = checked.most.map_or(0, |most| most.saturating_mul(repeated));
                self.pays(&format!("{at}.rule"), "estimated rule cost", cost);
            }
        }
        let message = text(rule, "messageExpression");
        // Nobody looks at the message of a rule that does not compile.
        let is_checked = !message.is_empty() && compiled.is_ok();
        match is_checked.then(|| compile(message, cel::Wanted::Message)) {
            None => {}
            Some(Ok(checked)) => {
                let cost = checked.most.unwrap_or(0);
                self.pays(&format!("{at}.messageExpression"), "estimated messageExpression cost", cost);
            }
            Some(Err(error)) => {
                let why = match &error {
                    CelError::Compile(_) => format!("messageExpression {error}"),
                    _ => error.to_string(),
                };
                let at = format!("{at}.messageExpression");
                self.errors.push(FieldError::invalid_shown(&at, &go_rule(rule), &why));
            }
        }
        if let (Ok(checked), Some(around)) = (&compiled, around.uncorrelated)
            && checked.expression.uses_old_self()
        {
            let why =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {around}");
            let given = Value::String(text(rule, "rule").to_owned());
            self.errors.push(FieldError::invalid(&format!("{at}.rule"), &given, &why));
        }
    }

    /// Notes what an expression can cost.
    fn pays(&mut self, at: &str, what: &str, cost: u64) {
        if cost > LIMIT && !self.unchanged {
            self.errors.push(FieldError::forbidden(at, &exceeded(what, cost, LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= LIMIT_OF_ALL / 100 {
            self.dearest.push((at.to_owned(), cost));
            self.dearest.sort_by_key(|(_, cost)| Reverse(*cost));
            self.dearest.truncate(4);
        }
    }

    fn sum_up(mut self, path: &str) -> Vec<FieldError> {
        if self.total > LIMIT_OF_ALL {
            let why =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.extend(self.dearest.iter().map(|(at, _)| FieldError::forbidden(at, why)));
            let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            self.errors.push(FieldError::forbidden(path, &exceeded(what, self.total, LIMIT_OF_ALL)));
        }
        self.errors
    }
}

/// How many parts a value has at most; `None` if there is no limit.
fn most_parts(schema: &Value) -> Option<u64> {
    let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_f64).map(cel::whole);
    match text(schema, "type") {
        "array" => limit("maxItems"),
        "object" if schema.get("additionalProperties").is_some() => limit("maxProperties"),
        _ => Some(1),
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is a factor for people to read")]
fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let shown = match factor {
        // That would be one digit for "not at all".
        ..1.5 => format!("{factor:.6}x"),
        ..=100.0 => format!("{factor:.1}x"),
        _ => "more than 100x".to_owned(),
    };
    format!(
        "{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as the real server prints the Go struct that holds it, in the order of its fields.
fn go_rule(rule: &Value) -> String {
    let fields = [
        ("Rule", "rule", json!("")),
        ("Message", "message", json!("")),
        ("MessageExpression", "messageExpression", json!("")),
        ("Reason", "reason", Value::Null),
        ("FieldPath", "fieldPath", json!("")),
        ("OptionalOldSelf", "optionalOldSelf", Value::Null),
    ];
    let shown = fields
        .map(|(name, field, default)| format!("\"{name}\":{}", escaped(rule.get(field).unwrap_or(&default))));
    format!("{{{}}}", shown.join(","))
}
