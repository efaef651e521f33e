//! CEL: expressions over objects, with the functions that Kubernetes adds.
//!
//! An [`Expression`] is compiled once and evaluated often. What the `cel` crate lacks and the
//! real server has (macros with two variables, `sortBy`) is rewritten into what it has. The rules of
//! schemas are checked against the types that these declare (`check.rs`).

use std::sync::LazyLock;

use kube_cel::{
    KubeCelExt,
    cel::{Context, ExecutionError, Value, parser::Parser},
};

mod admission;
mod authorizer;
mod check;
mod convert;
mod cost;
mod functions;
mod macros;
mod rules;
mod syntax;
mod types;
mod urls;

pub(crate) use admission::{Outcome, Scope, is_identifier};
pub(crate) use authorizer::{Access, AccessCheck, Asking, REQUEST_RESOURCE, Resource};
pub(crate) use check::{Wanted, compile as compile_rule};
pub(crate) use convert::{plain, to_json, typed};
pub(crate) use cost::{most_in_a_request, whole};
pub(crate) use rules::violations;

/// The work one evaluation may do, counted in loop passes; the real server's limit per call.
const COST_LIMIT: u64 = 1_000_000;

/// Expressions with more operators are refused: parsing and evaluating recurse once for each.
const MAX_OPERATORS: usize = 1_000;

/// Trees deeper than this are evaluated on a stack of their own.
const DEEP: u32 = 16;
const LARGE_STACK: usize = 128 << 20;

/// Building the functions is dear, so all evaluations share them.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    macros::register(&mut context);
    authorizer::register(&mut context);
    urls::register(&mut context);
    context
});

/// Why an expression could not be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum CelError {
    /// The text is no expression.
    #[error("compilation failed: {0}")]
    Compile(String),
    /// The expression failed for these values; the text is the real server's.
    #[error("{0}")]
    Evaluate(String),
    /// The expression would take too long.
    #[error("operation cancelled: actual cost limit exceeded")]
    TooCostly,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    tree: kube_cel::cel::IdedExpr,
    uses_old_self: bool,
    /// How deeply loops are nested.
    loops: u32,
    /// How deeply expressions are nested.
    depth: u32,
}

impl Expression {
    /// Compiles `text`.
    pub fn compile(text: &str) -> Result<Self, CelError> {
        if operators(text) > MAX_OPERATORS {
            let problem = format!("the expression has more than {MAX_OPERATORS} operators");
            return Err(CelError::Compile(problem));
        }
        // The parser needs a lot of stack, and panics on some malformed texts.
        on_large_stack(|| {
            let parser = Parser::new().enable_optional_syntax(true);
            let tree = parser.parse(text).map_err(|error| CelError::Compile(error.to_string()))?;
            let tree = macros::expand(tree)?;
            let uses_old_self = tree.references().has_variable("oldSelf");
            let (loops, depth) = macros::nesting(&tree);
            Ok(Self { tree, uses_old_self, loops, depth })
        })
        .unwrap_or_else(|| Err(CelError::Compile("the expression cannot be parsed".to_owned())))
    }

    pub(crate) fn uses_old_self(&self) -> bool {
        self.uses_old_self
    }

    /// Evaluates the expression over JSON values, as admission does: `[("object", &object)]`.
    pub fn evaluate_bool(&self, variables: &[(&str, &serde_json::Value)]) -> Result<bool, CelError> {
        let variables: Vec<(&str, Value)> =
            variables.iter().map(|(name, value)| (*name, plain(value))).collect();
        match self.evaluate(&variables)? {
            Value::Bool(result) => Ok(result),
            other => {
                let problem = format!("expected bool, got {}", other.type_of());
                Err(CelError::Evaluate(problem))
            }
        }
    }

    /// Evaluates an expression that yields text.
    pub fn evaluate_string(&self, variables: &[(&str, &serde_json::Value)]) -> Result<String, CelError> {
        let variables: Vec<(&str, Value)> =
            variables.iter().map(|(name, value)| (*name, plain(value))).collect();
        match self.evaluate(&variables)? {
            Value::String(text) => Ok(text.as_str().to_owned()),
            other => {
                let problem = format!("expected string, got {}", other.type_of());
                Err(CelError::Evaluate(problem))
            }
        }
    }

    pub(crate) fn evaluate(&self, variables: &[(&str, Value)]) -> Result<Value, CelError> {
        let largest = variables.iter().map(|(_, value)| convert::largest(value)).max().unwrap_or(0);
        if largest.checked_pow(self.loops).is_none_or(|cost| cost > COST_LIMIT) {
            return Err(CelError::TooCostly);
        }
        let run = || {
            let mut context = FUNCTIONS.new_inner_scope();
            for (name, value) in variables {
                context.add_variable_from_value(*name, value.clone());
            }
            context.resolve(&self.tree).map_err(|error| CelError::Evaluate(words(&error)))
        };
        if self.depth <= DEEP {
            return run();
        }
        on_large_stack(run)
            .unwrap_or_else(|| Err(CelError::Evaluate("the expression cannot be evaluated".to_owned())))
    }
}

impl Drop for Expression {
    /// Deep trees are dropped by recursion too.
    fn drop(&mut self) {
        if self.depth > DEEP {
            let tree = std::mem::take(&mut self.tree);
            on_large_stack(move || drop(tree));
        }
    }
}

/// Runs `work` where it may recurse deeply; `None` when it panicked or no thread could be had.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LARGE_STACK).spawn_scoped(scope, work);
        thread.ok()?.join().ok()
    })
}

/// How many operators `text` has outside its strings, an upper bound of how deep its tree is.
fn operators(text: &str) -> usize {
    let mut quote = None;
    let mut count = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', Some(_)) => drop(chars.next()),
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            (c, None) => count += usize::from("+-*/%!<>=&|?:.([{".contains(c)),
        }
    }
    count
}

/// An evaluation error in the words of the real server.
fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. } => "no such overload".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
