//! What is refused in a policy: expressions that mean nothing, and what else the real server does not take.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{duplicate, items, one_of, text, validate_conditions, validate_rule};
use crate::{
    error::Cause,
    registry::names,
    schema::cel::{Outcome, Scope, is_identifier},
};

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MUTATED: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const PATCHES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];
const REINVOCATIONS: [&str; 2] = ["IfNeeded", "Never"];

/// How many annotations for the audit log a policy may make, and how long the expression of one may be.
const MAX_ANNOTATIONS: usize = 20;
const MAX_ANNOTATION: usize = 5 * 1024;

/// What is wrong with a policy that validates.
pub(super) fn validating(policy: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &policy["spec"];
    let mut check = Check::new(spec, old);
    check.beginning(spec);
    check.variables(spec);
    if items(spec, "validations").chain(items(spec, "auditAnnotations")).next().is_none() {
        let why = "validations or auditAnnotations must contain at least one item";
        check.causes.push(Cause::required("spec.validations", why));
        check.causes.push(Cause::required("spec.auditAnnotations", why));
    }
    for (index, validation) in items(spec, "validations").enumerate() {
        check.validation(validation, &format!("spec.validations[{index}]"));
    }
    check.annotations(spec, text(&policy["metadata"], "name"));
    check.causes
}

/// What is wrong with a policy that mutates.
pub(super) fn mutating(policy: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &policy["spec"];
    let mut check = Check::new(spec, old);
    // It has room for variables also where it has none.
    check.scope = check.scope.with_variables();
    check.mutates = true;
    check.beginning(spec);
    check.variables(spec);
    if items(spec, "mutations").next().is_none() {
        check.causes.push(Cause::required("spec.mutations", "mutations must contain at least one item"));
    }
    for (index, mutation) in items(spec, "mutations").enumerate() {
        check.mutation(mutation, &format!("spec.mutations[{index}]"));
    }
    match text(spec, "reinvocationPolicy") {
        "" => check.causes.push(Cause::required("spec.reinvocationPolicy", "")),
        known if REINVOCATIONS.contains(&known) => {}
        odd => check.causes.push(Cause::not_supported("spec.reinvocationPolicy", odd, &REINVOCATIONS)),
    }
    check.causes
}

struct Check<'a> {
    scope: Scope,
    /// The spec that is stored: what was accepted stays accepted.
    old: &'a Value,
    causes: Vec<Cause>,
    mutates: bool,
}

impl<'a> Check<'a> {
    fn new(spec: &Value, old: Option<&'a Value>) -> Self {
        let old = old.map_or(&Value::Null, |old| &old["spec"]);
        let mut scope = Scope::new(!spec["paramKind"].is_null());
        if items(spec, "variables").next().is_some() {
            scope = scope.with_variables();
        }
        Self { scope, old, causes: Vec::new(), mutates: false }
    }

    fn was_accepted(&self, list: &str, field: &str, expression: &str) -> bool {
        items(self.old, list).any(|one| text(one, field) == expression)
    }

    /// What both kinds of policy begin with.
    fn beginning(&mut self, spec: &Value) {
        one_of(spec, "spec", "failurePolicy", &["Fail", "Ignore"], &mut self.causes);
        self.param_kind(&spec["paramKind"]);
        self.constraints(spec);
        let known: BTreeSet<String> =
            items(self.old, "matchConditions").map(|one| text(one, "expression").to_owned()).collect();
        let scope = Scope::new(!spec["paramKind"].is_null());
        validate_conditions(spec, "spec.matchConditions", &known, &scope, &mut self.causes);
    }

    fn param_kind(&mut self, kind: &Value) {
        if kind.is_null() {
            return;
        }
        let at = "spec.paramKind.apiVersion";
        let whole = text(kind, "apiVersion");
        let (group, version) = whole.split_once('/').unwrap_or(("", whole));
        if whole.is_empty() {
            self.causes.push(Cause::required(at, ""));
        } else if version.contains('/') {
            let why = format!("unexpected GroupVersion string: {whole}");
            self.causes.push(Cause::invalid(at, &json!(whole), why));
        } else {
            if let Some(why) = names::subdomain_error(group).filter(|_| !group.is_empty()) {
                self.causes.push(Cause::invalid(at, &json!(group), why));
            }
            if version.is_empty() {
                self.causes.push(Cause::invalid(at, &json!(whole), "version must be specified"));
            } else if let Some(why) = names::dns_1035_error(version) {
                self.causes.push(Cause::invalid(at, &json!(version), why));
            }
        }
        let (at, kind) = ("spec.paramKind.kind", text(kind, "kind"));
        if kind.is_empty() {
            self.causes.push(Cause::required(at, ""));
        } else if let Some(why) = names::dns_1035_error(&kind.to_lowercase()) {
            let why = format!("may have mixed case, but should otherwise match: {why}");
            self.causes.push(Cause::invalid(at, &json!(kind), why));
        }
    }

    fn constraints(&mut self, spec: &Value) {
        let (constraints, at) = (&spec["matchConstraints"], "spec.matchConstraints");
        if !constraints.is_object() {
            return self.causes.push(Cause::required(at, ""));
        }
        one_of(constraints, at, "matchPolicy", &["Equivalent", "Exact"], &mut self.causes);
        for (index, rule) in items(constraints, "resourceRules").enumerate() {
            let at = format!("{at}.resourceRules[{index}]");
            validate_rule(rule, &at, &mut self.causes);
            let names: Vec<&str> = items(rule, "resourceNames").filter_map(Value::as_str).collect();
            for (index, name) in
                names.iter().enumerate().filter(|(index, name)| names[..*index].contains(name))
            {
                self.causes.push(duplicate(&format!("{at}.resourceNames[{index}]"), name));
            }
        }
        let at = format!("{at}.resourceRules");
        if items(constraints, "resourceRules").next().is_none() {
            self.causes.push(Cause::required(at.clone(), ""));
        }
        for rule in items(constraints, "resourceRules").filter(|_| self.mutates) {
            for operation in items(rule, "operations").filter_map(Value::as_str) {
                if !MUTATED.contains(&operation) {
                    self.causes.push(Cause::not_supported(format!("{at}.operations"), operation, &MUTATED));
                }
            }
        }
    }

    fn variables(&mut self, spec: &Value) {
        for (index, variable) in items(spec, "variables").enumerate() {
            let (at, name) = (format!("spec.variables[{index}]"), text(variable, "name"));
            if name.trim().is_empty() {
                self.causes.push(Cause::required(format!("{at}.name"), "name is not specified"));
            } else if !is_identifier(name) {
                let why = "must be a valid CEL identifier";
                self.causes.push(Cause::invalid(format!("{at}.name"), &json!(name), why));
            }
            let (at, expression) = (format!("{at}.expression"), text(variable, "expression"));
            if expression.trim().is_empty() {
                self.causes.push(Cause::required(at, "expression is not specified"));
                continue;
            }
            let known = self.was_accepted("variables", "expression", expression);
            if let Err(error) = self.scope.declare(name, expression)
                && !known
            {
                self.causes.push(Cause::invalid(at, &json!(expression), error));
            }
        }
    }

    fn validation(&mut self, validation: &Value, at: &str) {
        let expression = text(validation, "expression");
        if expression.trim().is_empty() {
            self.causes.push(Cause::required(format!("{at}.expression"), "expression is not specified"));
        } else if !self.was_accepted("validations", "expression", expression) {
            let at = format!("{at}.expression");
            self.causes.extend(wrong(&self.scope, at, expression, Outcome::Truth));
        }
        let not_empty = "must be non-empty if specified";
        let expression = text(validation, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let at = format!("{at}.messageExpression");
            self.causes.push(Cause::invalid(at, &json!(expression), not_empty));
        } else if !expression.is_empty() && !self.was_accepted("validations", "messageExpression", expression)
        {
            let (scope, at) = (self.scope.without_authorizer(), format!("{at}.messageExpression"));
            self.causes.extend(wrong(&scope, at, expression, Outcome::Text));
        }
        let message = text(validation, "message");
        if !message.is_empty() && message.trim().is_empty() {
            self.causes.push(Cause::invalid(format!("{at}.message"), &json!(message), not_empty));
        } else if message.trim().contains(['\n', '\r']) {
            let why = "must not contain line breaks";
            self.causes.push(Cause::invalid(format!("{at}.message"), &json!(message), why));
        }
        if let Some(reason) = validation["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
            self.causes.push(Cause::not_supported(format!("{at}.reason"), reason, &REASONS));
        }
    }

    fn annotations(&mut self, spec: &Value, policy: &str) {
        let all: Vec<&Value> = items(spec, "auditAnnotations").collect();
        if all.len() > MAX_ANNOTATIONS {
            let why = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
            self.causes.push(Cause::invalid("spec.auditAnnotations", &spec["auditAnnotations"], why));
        }
        let mut seen = BTreeSet::new();
        for (index, annotation) in all.iter().enumerate() {
            let (at, key) = (format!("spec.auditAnnotations[{index}]"), text(annotation, "key"));
            let whole = format!("{policy}/{key}");
            for why in names::qualified_name_errors(&whole) {
                self.causes.push(Cause::invalid(format!("{at}.key"), &json!(whole), why));
            }
            let expression = text(annotation, "valueExpression");
            let place = format!("{at}.valueExpression");
            if expression.trim().is_empty() {
                self.causes.push(Cause::required(place, "valueExpression is not specified"));
            } else if expression.trim().len() > MAX_ANNOTATION {
                let why = format!("must not exceed {MAX_ANNOTATION} bytes in length");
                self.causes.push(Cause::required(place, &why));
            } else if !self.was_accepted("auditAnnotations", "valueExpression", expression) {
                self.causes.extend(wrong(&self.scope, place, expression, Outcome::TextOrNull));
            }
            if !seen.insert(key) {
                self.causes.push(duplicate(&format!("{at}.key"), key));
            }
        }
    }

    fn mutation(&mut self, mutation: &Value, at: &str) {
        let kind = text(mutation, "patchType");
        let (own, other, wanted) = match kind {
            "" => return self.causes.push(Cause::required(format!("{at}.patchType"), "")),
            "JSONPatch" => ("jsonPatch", "applyConfiguration", Outcome::Patches),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Outcome::Object),
            odd => {
                return self.causes.push(Cause::not_supported(format!("{at}.patchType"), odd, &PATCHES));
            }
        };
        if mutation.get(own).is_none() {
            let why = format!("must be specified when patchType is {kind}");
            self.causes.push(Cause::required(format!("{at}.{own}"), &why));
        } else {
            let expression = text(&mutation[own], "expression").trim();
            let known =
                items(self.old, "mutations").any(|one| text(&one[own], "expression").trim() == expression);
            if expression.is_empty() {
                self.causes.push(Cause::required(format!("{at}.{own}.expression"), ""));
            } else if !known {
                let at = format!("{at}.{own}.expression");
                self.causes.extend(wrong(&self.scope, at, expression, wanted));
            }
        }
        if mutation.get(other).is_some() {
            let why = format!("must not be specified when patchType is {kind}");
            self.causes.push(Cause::invalid(format!("{at}.{other}"), &json!(format!("{{{other}}}")), why));
        }
    }
}

/// What is wrong with an expression, if anything is.
fn wrong(scope: &Scope, at: String, expression: &str, wanted: Outcome) -> Option<Cause> {
    let error = scope.check(expression, wanted).err()?;
    Some(Cause::invalid(at, &json!(expression), error))
}
