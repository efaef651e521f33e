//! What the expressions of admission can see, and whether they make sense of it.
//!
//! Objects can be anything there, but what the request says about itself is known, and so are the variables of a policy
//! once they are declared.

use std::sync::{Arc, LazyLock};

use serde_json::{Value as Json, json};

use super::{
    CelError, Expression,
    check::{OBJECT, PATCH, types_of},
    convert::RESERVED,
    functions::AUTHORIZER,
    on_large_stack,
    syntax::{self, Form},
    types::{BUILT_IN, Type},
};

static REQUEST: LazyLock<Json> = LazyLock::new(|| {
    let text = || json!({"type": "string"});
    let named = |title: &str, last: &str| json!({"type": "object", BUILT_IN: title, "properties": {"group": text(), "version": text(), last: text()}});
    let kind = || named("kubernetes.GroupVersionKind", "kind");
    let resource = || named("kubernetes.GroupVersionResource", "resource");
    let texts = || json!({"type": "array", "items": text()});
    let user = json!({"type": "object", BUILT_IN: "kubernetes.UserInfo", "properties": {
        "username": text(), "uid": text(), "groups": texts(),
        "extra": {"type": "object", "additionalProperties": texts()},
    }});
    json!({"type": "object", BUILT_IN: "kubernetes.AdmissionRequest", "properties": {
        "kind": kind(), "resource": resource(), "subResource": text(), "requestKind": kind(),
        "requestResource": resource(), "requestSubResource": text(), "name": text(), "namespace": text(),
        "operation": text(), "userInfo": user, "dryRun": {"type": "boolean"},
        "options": {"x-kubernetes-int-or-string": true},
    }})
});

static NAMESPACE: LazyLock<Json> = LazyLock::new(|| {
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": text()});
    let by_name = || json!({"type": "object", "additionalProperties": text()});
    let time = || json!({"type": "string", "format": "date-time"});
    json!({"type": "object", BUILT_IN: "kubernetes.Namespace", "properties": {
        "metadata": {"type": "object", BUILT_IN: "kubernetes.NamespaceMetadata", "properties": {
            "name": text(), "generateName": text(), "namespace": text(), "labels": by_name(), "annotations": by_name(),
            "UID": text(), "creationTimestamp": time(), "deletionGracePeriodSeconds": {"type": "integer"},
            "deletionTimestamp": time(), "generation": {"type": "integer"}, "resourceVersion": text(),
            "finalizers": texts(),
        }},
        "spec": {"type": "object", BUILT_IN: "kubernetes.NamespaceSpec", "properties": {"finalizers": texts()}},
        "status": {"type": "object", BUILT_IN: "kubernetes.NamespaceStatus", "properties": {"phase": text()}},
    }})
});

/// What an expression of admission must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Truth,
    Text,
    /// Nothing is noted where there is no text.
    TextOrNull,
    /// A list of changes.
    Patches,
    /// A part of an object, to be applied.
    Object,
}

/// The names that an expression can use.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    names: Vec<(&'static str, Type<'static>)>,
    /// What the policy has declared so far; nothing by that name is known to a policy without variables.
    variables: Option<Vec<(String, Type<'static>)>>,
}

impl Scope {
    /// What all expressions of admission see; some have parameters.
    pub(crate) fn new(params: bool) -> Self {
        let object = |schema| Type::Object { schema, resource: false };
        let mut names = vec![
            ("object", Type::Dyn),
            ("oldObject", Type::Dyn),
            ("request", object(&*REQUEST)),
            ("namespaceObject", object(&*NAMESPACE)),
            ("authorizer", Type::Opaque(AUTHORIZER)),
        ];
        if params {
            names.push(("params", Type::Dyn));
        }
        Self { names, variables: None }
    }

    /// The same for those who may not ask what the user may do.
    pub(crate) fn without_authorizer(&self) -> Self {
        let mut scope = self.clone();
        scope.names.retain(|(name, _)| *name != "authorizer");
        scope
    }

    /// Makes room for variables.
    pub(crate) fn with_variables(mut self) -> Self {
        self.variables.get_or_insert_default();
        self
    }

    /// Declares a variable of a policy, and says what is wrong with it. It can be used all the same, so that one mistake
    /// is told of once.
    pub(crate) fn declare(&mut self, name: &str, expression: &str) -> Result<(), CelError> {
        let (of, checked) = match self.given(expression) {
            Ok(of) => (of.unwrap_or(Type::Unknown), Ok(())),
            Err(error) => (Type::Unknown, Err(error)),
        };
        self.variables.get_or_insert_default().push((name.to_owned(), of));
        checked
    }

    /// What is wrong with an expression.
    pub(crate) fn check(&self, expression: &str, wanted: Outcome) -> Result<(), CelError> {
        let Some(given) = self.given(expression)? else { return Ok(()) };
        let (fits, wanted) = match wanted {
            Outcome::Truth => (given == Type::Bool, "bool"),
            Outcome::Text => (given == Type::Text, "string"),
            Outcome::TextOrNull => (matches!(given, Type::Text | Type::Null), "one of [string null_type]"),
            Outcome::Patches => (
                matches!(&given, Type::List(of) if matches!(**of, Type::Unknown | Type::Opaque(PATCH))),
                "list(JSONPatch)",
            ),
            Outcome::Object => (given == Type::Opaque(OBJECT), "Object"),
        };
        if fits || given == Type::Unknown {
            return Ok(());
        }
        let given = if given == Type::Null { "null_type".to_owned() } else { given.to_string() };
        Err(CelError::Evaluate(format!("must evaluate to {wanted} but got {given}")))
    }

    /// What an expression gives; `None` if it is not understood here.
    fn given(&self, expression: &str) -> Result<Option<Type<'static>>, CelError> {
        Expression::compile(expression)?;
        let checked = on_large_stack(|| {
            let Some(node) = syntax::parse(expression) else { return Ok(None) };
            let mut scope = self.names.clone();
            if let Some(variables) = &self.variables {
                scope.push(("variables", Type::Variables(Arc::new(variables.clone()))));
            }
            let (given, _) = types_of(expression, &node, scope)?;
            // Beside others it would be a list of what they are lists of; alone it is one of anything.
            let is_empty = matches!(&node.form, Form::List(items) if items.is_empty());
            Ok(Some(if is_empty { Type::list(Type::Dyn) } else { given }))
        });
        checked.unwrap_or(Ok(None))
    }
}

/// Whether a variable may be called so.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|one| one.is_ascii_alphanumeric() || one == '_')
        && !RESERVED.contains(&name)
}
