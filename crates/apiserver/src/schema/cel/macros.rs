//! Macros that the `cel` crate does not know, rewritten into those it knows.
//!
//! A macro with two variables runs over the indices of a list or the keys of a map and binds the
//! second variable to what is there. `sortBy` sorts a list by a list of keys.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::{
    Context, ExecutionError, IdedExpr, ResolveResult, Value,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapEntryExpr,
        MapExpr, StructExpr, operators,
    },
    extractors::This,
    parser::Parser,
};

use super::{CelError, authorizer};

/// Functions that no expression can name: `@` is not part of an identifier.
const INDICES: &str = "@indices";
const SORT_BY_KEYS: &str = "@sortByKeys";
const ESCAPE_KEY: &str = "@escapeKey";

const RANGE: &str = "__windlass_range";
const BODY: &str = "__windlass_body";
const FILTER: &str = "__windlass_filter";

/// The types that expressions compare with: `type(self) == int`.
const TYPES: [&str; 9] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];

/// Adds the functions behind the macros, and those that the engine lacks.
pub(super) fn register(context: &mut Context<'_>) {
    context.add_function(INDICES, indices);
    context.add_function(SORT_BY_KEYS, sort_by_keys);
    context.add_function("type", type_of);
    context.add_function(ESCAPE_KEY, escape_key);
    for name in TYPES {
        context.add_variable_from_value(name, type_value(name));
    }
}

/// A key as part of a JSON pointer.
#[expect(clippy::unnecessary_wraps, reason = "the engine takes functions that may fail")]
fn escape_key(key: Arc<String>) -> ResolveResult {
    Ok(Value::String(Arc::new(key.replace('~', "~0").replace('/', "~1"))))
}

/// A type as a value: a text that no expression can write by accident.
fn type_value(name: &str) -> Value {
    Value::String(Arc::new(format!("@type {name}")))
}

fn type_of(value: Value) -> ResolveResult {
    Ok(type_value(match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Float(_) => "double",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::String(_) => "string",
        Value::UInt(_) => "uint",
        _ => return Err(ExecutionError::NoSuchOverload),
    }))
}

/// What the first of two variables runs over: indices of a list, keys of a map in order.
fn indices(This(range): This<Value>) -> ResolveResult {
    match range {
        Value::List(items) => {
            let indices = (0..items.len()).map(|index| Value::Int(index as i64));
            Ok(Value::List(Arc::new(indices.collect())))
        }
        Value::Map(map) => {
            let mut keys: Vec<_> = map.map.keys().cloned().collect();
            keys.sort();
            Ok(Value::List(Arc::new(keys.into_iter().map(Value::from).collect())))
        }
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn sort_by_keys(This(items): This<Arc<Vec<Value>>>, keys: Arc<Vec<Value>>) -> ResolveResult {
    // Only keys of one type are in an order, and among numbers those that are one: a sort by anything else may panic.
    let kind = keys.first().map(std::mem::discriminant);
    let ordered = |key: &Value| {
        Some(std::mem::discriminant(key)) == kind && key.partial_cmp(key) == Some(Ordering::Equal)
    };
    if !keys.iter().all(ordered) {
        return Err(ExecutionError::NoSuchOverload);
    }
    let mut pairs: Vec<(&Value, &Value)> = keys.iter().zip(items.iter()).collect();
    pairs.sort_by(|(left, _), (right, _)| left.partial_cmp(right).unwrap_or(Ordering::Equal));
    Ok(Value::List(Arc::new(pairs.into_iter().map(|(_, item)| item.clone()).collect())))
}

/// Rewrites all macros in `tree`, the innermost first.
pub(super) fn expand(mut tree: IdedExpr) -> Result<IdedExpr, CelError> {
    let mut failure = None;
    for_each_child(&mut tree, &mut |child| {
        let taken = std::mem::take(child);
        match expand(taken) {
            Ok(expanded) => *child = expanded,
            Err(error) => failure = Some(error),
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    if let Expr::Struct(literal) = &mut tree.expr {
        tree.expr = as_map(std::mem::take(literal))?;
        return Ok(tree);
    }
    if let Expr::Select(select) = &tree.expr
        && let Some(variable) = authorizer::request_resource(select)
    {
        tree.expr = variable;
        return Ok(tree);
    }
    if let Expr::Call(call) = &mut tree.expr {
        // The engine's `a.?b` fails when there is no `b`; its `a[?"b"]` does not.
        if call.func_name == operators::OPT_SELECT {
            operators::OPT_INDEX.clone_into(&mut call.func_name);
        }
        return Ok(expand_call(call)?.unwrap_or(tree));
    }
    Ok(tree)
}

/// Objects that a policy makes are maps here: the engine knows no other.
fn as_map(literal: StructExpr) -> Result<Expr, CelError> {
    let name = literal.type_name;
    if name != "Object" && name != "JSONPatch" && !name.starts_with("Object.") {
        return Err(CelError::Compile(format!("undeclared reference to '{name}' (in container '')")));
    }
    let entries = literal.entries.into_iter().map(|entry| {
        let expr = match entry.expr {
            EntryExpr::StructField(field) => {
                let key = Expr::Literal(LiteralValue::String(field.field.into()));
                EntryExpr::MapEntry(MapEntryExpr {
                    key: IdedExpr { expr: key, ..IdedExpr::default() },
                    value: field.value,
                    optional: field.optional,
                })
            }
            other @ EntryExpr::MapEntry(_) => other,
        };
        IdedEntryExpr { expr, ..entry }
    });
    Ok(Expr::Map(MapExpr { entries: entries.collect() }))
}

fn expand_call(call: &CallExpr) -> Result<Option<IdedExpr>, CelError> {
    let Some(target) = call.target.as_deref() else {
        return Ok(None);
    };
    let name = call.func_name.as_str();
    match (name, call.args.as_slice()) {
        ("escapeKey", [key]) if is_ident(target, "jsonpatch") => {
            Ok(Some(self::call(ESCAPE_KEY, vec![key.clone()])))
        }
        ("sortBy", [variable, key]) => {
            let keys = template("map", name_of(variable)?, target, key, None)?;
            Ok(Some(method(SORT_BY_KEYS, target.clone(), vec![keys])))
        }
        ("all" | "exists" | "exists_one" | "existsOne" | "transformList", [first, second, body]) => {
            let name = match name {
                "existsOne" => "exists_one",
                "transformList" => "map",
                other => other,
            };
            two_variables(name, target, first, second, body, None).map(Some)
        }
        ("transformList", [first, second, filter, body]) => {
            two_variables("map", target, first, second, body, Some(filter)).map(Some)
        }
        _ => Ok(None),
    }
}

fn two_variables(
    name: &str,
    range: &IdedExpr,
    first: &IdedExpr,
    second: &IdedExpr,
    body: &IdedExpr,
    filter: Option<&IdedExpr>,
) -> Result<IdedExpr, CelError> {
    let (first, second) = (name_of(first)?, name_of(second)?);
    let at = IdedExpr { expr: Expr::Ident(first.to_owned()), ..IdedExpr::default() };
    let item = call(operators::INDEX, vec![range.clone(), at]);
    let bound = |inner: &IdedExpr| bind(second, item.clone(), inner.clone());
    let indices = method(INDICES, range.clone(), Vec::new());
    template(name, first, &indices, &bound(body), filter.map(bound).as_ref())
}

/// `range.name(variable, [filter,] body)`, expanded by the parser's own macros.
fn template(
    name: &str,
    variable: &str,
    range: &IdedExpr,
    body: &IdedExpr,
    filter: Option<&IdedExpr>,
) -> Result<IdedExpr, CelError> {
    let text = match filter {
        Some(_) => format!("{RANGE}.{name}({variable}, {FILTER}, {BODY})"),
        None => format!("{RANGE}.{name}({variable}, {BODY})"),
    };
    let mut tree = Parser::new().parse(&text).map_err(|error| CelError::Compile(error.to_string()))?;
    substitute(&mut tree, RANGE, range);
    substitute(&mut tree, BODY, body);
    if let Some(filter) = filter {
        substitute(&mut tree, FILTER, filter);
    }
    Ok(tree)
}

fn substitute(tree: &mut IdedExpr, name: &str, with: &IdedExpr) {
    if is_ident(tree, name) {
        *tree = with.clone();
        return;
    }
    for_each_child(tree, &mut |child| substitute(child, name, with));
}

/// `body` with `variable` set to `init`: the accumulator of a loop that never runs.
fn bind(variable: &str, init: IdedExpr, body: IdedExpr) -> IdedExpr {
    let expression = |expr| IdedExpr { expr, ..IdedExpr::default() };
    expression(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: expression(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: variable.to_owned(),
        accu_init: init,
        loop_cond: expression(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: expression(Expr::Ident(variable.to_owned())),
        result: body,
    })))
}

fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let call = CallExpr { func_name: name.to_owned(), target: None, args };
    IdedExpr { expr: Expr::Call(call), ..IdedExpr::default() }
}

fn method(name: &str, target: IdedExpr, args: Vec<IdedExpr>) -> IdedExpr {
    let call = CallExpr { func_name: name.to_owned(), target: Some(Box::new(target)), args };
    IdedExpr { expr: Expr::Call(call), ..IdedExpr::default() }
}

fn is_ident(tree: &IdedExpr, name: &str) -> bool {
    matches!(&tree.expr, Expr::Ident(ident) if ident == name)
}

fn name_of(tree: &IdedExpr) -> Result<&str, CelError> {
    match &tree.expr {
        Expr::Ident(name) => Ok(name),
        _ => Err(CelError::Compile("the variable of a macro must be a simple name".to_owned())),
    }
}

fn for_each_child(tree: &mut IdedExpr, visit: &mut impl FnMut(&mut IdedExpr)) {
    match &mut tree.expr {
        Expr::Call(call) => {
            call.target.as_deref_mut().into_iter().for_each(&mut *visit);
            call.args.iter_mut().for_each(visit);
        }
        Expr::Comprehension(inner) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } = &mut **inner;
            [iter_range, accu_init, loop_cond, loop_step, result].into_iter().for_each(visit);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(visit),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                visit_entry(&mut entry.expr, visit);
            }
        }
        Expr::Struct(inner) => {
            for entry in &mut inner.entries {
                visit_entry(&mut entry.expr, visit);
            }
        }
        Expr::Select(select) => visit(&mut select.operand),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

fn visit_entry(entry: &mut EntryExpr, visit: &mut impl FnMut(&mut IdedExpr)) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            visit(&mut entry.key);
            visit(&mut entry.value);
        }
        EntryExpr::StructField(field) => visit(&mut field.value),
    }
}

/// How deeply loops, and how deeply expressions are nested in an expression.
pub(super) fn nesting(tree: &IdedExpr) -> (u32, u32) {
    let mut tree = tree.clone();
    nesting_of(&mut tree)
}

fn nesting_of(tree: &mut IdedExpr) -> (u32, u32) {
    let (mut loops, mut depth) = (0, 0);
    for_each_child(tree, &mut |child| {
        let (loops_below, depth_below) = nesting_of(child);
        (loops, depth) = (loops_below.max(loops), depth_below.max(depth));
    });
    let runs = match &tree.expr {
        Expr::Comprehension(inner) => inner.iter_var != "#unused",
        _ => false,
    };
    (loops + u32::from(runs), depth + 1)
}
