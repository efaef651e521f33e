//! What is wrong with an expression before it sees a value: fields that the schema does not
//! declare, names that nothing has, operators and functions for other types.
//!
//! Enters the text and what its variables are, leave the real server's objections in its words.
//! Where the real server knows more (what a function of its own returns), nothing is said.

use std::collections::HashMap;

use serde_json::Value as Json;

mod loops;
mod operators;

use self::operators::{are_ordered, computed, guessed, is_in};
use super::{
    CelError, Expression, cost, functions,
    functions::Given,
    on_large_stack,
    syntax::{self, Form, Node},
    types::Type,
};

/// What mutating policies give.
pub(super) const PATCH: &str = "JSONPatch";
pub(super) const OBJECT: &str = "Object";

/// What an expression must give.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Rule,
    Message,
}

/// A rule that may be used.
pub(crate) struct Checked {
    pub(crate) expression: Expression,
    /// The most that one evaluation can cost, if that is known.
    pub(crate) most: Option<u64>,
}

/// Compiles a rule of a schema, checks its types, and estimates its cost. `root`: the schema is that of a whole resource.
pub(crate) fn compile(
    text: &str,
    schema: &Json,
    root: bool,
    optional_old: bool,
    wanted: Wanted,
) -> Result<Checked, CelError> {
    let expression = Expression::compile(text)?;
    // A schema that says too little is an error of its own.
    let Some(of) = Type::of(schema, root) else { return Ok(Checked { expression, most: None }) };
    let checked = on_large_stack(|| {
        let Some(node) = syntax::parse(text) else { return Ok(None) };
        let old = if optional_old { Type::optional(of.clone()) } else { of.clone() };
        let (given, types) = types_of(text, &node, vec![("self", of), ("oldSelf", old)])?;
        let (fits, words) = match wanted {
            Wanted::Rule => (given == Type::Bool, "cel expression must evaluate to a bool"),
            Wanted::Message => (given == Type::Text, "messageExpression must evaluate to a string"),
        };
        if !fits && given != Type::Unknown {
            return Err(CelError::Evaluate(words.to_owned()));
        }
        Ok(cost::most(&node, &types, schema, root))
    });
    Ok(Checked { expression, most: checked.transpose()?.flatten() })
}

/// What the tree of `text` gives, and the types of all its nodes by where they stand.
pub(super) fn types_of<'a, 't>(
    text: &str,
    node: &'t Node,
    scope: Vec<(&'t str, Type<'a>)>,
) -> Result<(Type<'a>, HashMap<usize, Type<'a>>), CelError> {
    let mut check = Check { scope, mixed: false, errors: Vec::new(), types: HashMap::new() };
    let given = check.node(node);
    if check.errors.is_empty() {
        return Ok((given, check.types));
    }
    Err(CelError::Compile(shown(text, check.errors)))
}

/// The errors as the real server shows them, each below the line that it is about.
fn shown(text: &str, mut errors: Vec<(usize, String)>) -> String {
    errors.sort_by_key(|(at, _)| *at);
    errors.dedup();
    let show = |(at, words): (usize, String)| {
        let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = text[..at].matches('\n').count() + 1;
        let column = text[start..at].chars().count();
        let shown = text[start..].lines().next().unwrap_or_default();
        format!("ERROR: <input>:{line}:{}: {words}\n | {shown}\n | {}^", column + 1, ".".repeat(column))
    };
    errors.into_iter().map(show).collect::<Vec<_>>().join("\n")
}

struct Check<'a, 't> {
    scope: Vec<(&'t str, Type<'a>)>,
    /// Whether lists may hold values of several types here: what is formatted into a text may.
    mixed: bool,
    errors: Vec<(usize, String)>,
    /// What was found, by where it stands; no two nodes stand at one place.
    types: HashMap<usize, Type<'a>>,
}

impl<'a, 't> Check<'a, 't> {
    /// After an error anything goes, so that one mistake is told of once.
    fn wrong(&mut self, at: usize, words: String) -> Type<'a> {
        self.errors.push((at, words));
        Type::Unknown
    }

    fn no_overload(&mut self, at: usize, operator: &str, operands: &[&Type<'a>]) -> Type<'a> {
        let operands: Vec<String> = operands.iter().map(ToString::to_string).collect();
        let operands = operands.join(", ");
        self.wrong(at, format!("found no matching overload for '{operator}' applied to '({operands})'"))
    }

    fn undeclared(&mut self, at: usize, name: &str) -> Type<'a> {
        self.wrong(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn node(&mut self, node: &'t Node) -> Type<'a> {
        let of = self.form(node);
        self.types.insert(node.at, of.clone());
        of
    }

    fn form(&mut self, node: &'t Node) -> Type<'a> {
        match &node.form {
            Form::Bool => Type::Bool,
            Form::Int(_) => Type::Int,
            Form::Uint => Type::Uint,
            Form::Double => Type::Double,
            Form::Text(_) => Type::Text,
            Form::Bytes(_) => Type::Bytes,
            Form::Null => Type::Null,
            Form::Name(name) => self.name(node.at, name),
            Form::Select { operand, field, optional } => self.select(node.at, operand, field, *optional),
            Form::Index { operand, index, optional } => self.index(node.at, operand, index, *optional),
            Form::Call { target, function, arguments } => {
                self.call(node.at, target.as_deref(), function, arguments)
            }
            Form::Struct { name, fields } => self.structure(name, fields),
            Form::List(items) => Type::list(self.alike(items)),
            Form::Map(entries) => {
                let keys = self.alike(entries.iter().map(|(key, _)| key));
                let values = self.alike(entries.iter().map(|(_, value)| value));
                Type::Map(Box::new(keys), Box::new(values))
            }
            Form::Unary(operator, operand) => self.unary(node.at, operator, operand),
            Form::Binary(operator, left, right) => self.binary(node.at, operator, left, right),
            Form::Choice(parts) => self.choice(node.at, parts),
        }
    }

    /// What mutating policies give: one patch, or a part of an object.
    fn structure(&mut self, name: &str, fields: &'t [(usize, String, Node)]) -> Type<'a> {
        for (at, field, value) in fields {
            let given = self.node(value);
            if name != PATCH {
                continue;
            }
            let wanted = match &**field {
                "op" | "path" | "from" => Some(Type::Text),
                "value" => Some(Type::Dyn),
                _ => None,
            };
            if !wanted.as_ref().is_some_and(|wanted| wanted.fits(&given)) {
                let wanted = wanted.map(|wanted| wanted.to_string()).unwrap_or_default();
                let words =
                    format!("expected type of field '{field}' is '{wanted}' but provided type is '{given}'");
                self.wrong(*at, words);
            }
        }
        match name {
            PATCH => Type::Opaque(PATCH),
            OBJECT => Type::Opaque(OBJECT),
            _ => Type::Unknown,
        }
    }

    fn name(&mut self, at: usize, name: &str) -> Type<'a> {
        if let Some((_, of)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return of.clone();
        }
        // `google.protobuf.Timestamp` and its like are names of types.
        if functions::is_type(name) || functions::is_space(name) || name == "google" {
            return Type::Unknown;
        }
        self.undeclared(at, name)
    }

    fn select(&mut self, at: usize, operand: &'t Node, field: &str, optional: bool) -> Type<'a> {
        let of = self.node(operand);
        let selected = self.field(at, &of, field);
        match of {
            Type::Optional(_) => selected,
            _ if optional => Type::optional(selected),
            _ => selected,
        }
    }

    fn field(&mut self, at: usize, of: &Type<'a>, field: &str) -> Type<'a> {
        match of {
            Type::Dyn | Type::Unknown => of.clone(),
            Type::Map(_, value) => (**value).clone(),
            Type::Optional(of) => Type::optional(self.field(at, of, field)),
            // A variable of its own, in truth.
            Type::Opaque(functions::AUTHORIZER) if field == "requestResource" => {
                Type::Opaque(functions::RESOURCE)
            }
            Type::Object { .. } | Type::Metadata | Type::Variables(_) => match of.field(field) {
                Some(of) => of,
                None => self.wrong(at, format!("undefined field '{field}'")),
            },
            other => self.wrong(at, format!("type '{other}' does not support field selection")),
        }
    }

    fn index(&mut self, at: usize, operand: &'t Node, index: &'t Node, optional: bool) -> Type<'a> {
        let (of, by) = (self.node(operand), self.node(index));
        let (inner, wrapped) = match &of {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), optional),
        };
        let found = match &inner {
            Type::Dyn | Type::Unknown => inner.clone(),
            Type::List(item) if by.fits(&Type::Int) => (**item).clone(),
            Type::Map(key, value) if by.fits(key) => (**value).clone(),
            _ => return self.no_overload(at, if optional { "_[?_]" } else { "_[_]" }, &[&of, &by]),
        };
        if wrapped { Type::optional(found) } else { found }
    }

    /// The type that all of them have.
    fn alike(&mut self, nodes: impl IntoIterator<Item = &'t Node>) -> Type<'a> {
        let mut all: Option<Type<'a>> = None;
        for node in nodes {
            let of = self.node(node);
            match &all {
                Some(before) if !before.is_same(&of) => {
                    if !self.mixed {
                        let words = format!("expected type '{before}' but found '{of}'");
                        self.wrong(node.at, words);
                    }
                    all = Some(Type::Dyn);
                }
                Some(before) => all = Some(before.clone().joined(of)),
                None => all = Some(of),
            }
        }
        all.unwrap_or(Type::Unknown)
    }

    fn unary(&mut self, at: usize, operator: &str, operand: &'t Node) -> Type<'a> {
        let of = self.node(operand);
        match (operator, &of) {
            ("!", Type::Dyn | Type::Unknown) => Type::Bool,
            (_, Type::Dyn | Type::Unknown) | ("!", Type::Bool) | ("-", Type::Int | Type::Double) => of,
            ("!", _) => {
                self.no_overload(at, "!_", &[&of]);
                Type::Bool
            }
            _ => self.no_overload(at, "-_", &[&of]),
        }
    }

    /// Both sides of `&&` and `||`, and what loops ask.
    fn truth(&mut self, node: &'t Node) {
        let of = self.node(node);
        if !of.fits(&Type::Bool) {
            self.wrong(node.at, format!("expected type 'bool' but found '{of}'"));
        }
    }

    fn binary(&mut self, at: usize, operator: &str, left: &'t Node, right: &'t Node) -> Type<'a> {
        if matches!(operator, "&&" | "||") {
            self.truth(left);
            self.truth(right);
            return Type::Bool;
        }
        let (one, other) = (self.node(left), self.node(right));
        let open = |of: &Type<'_>| matches!(of, Type::Dyn | Type::Unknown);
        let known = !open(&one) && !open(&other);
        let (name, given) = match operator {
            "@in" => ("@in".to_owned(), is_in(&one, &other).then_some(Type::Bool)),
            "==" | "!=" => (format!("_{operator}_"), one.fits(&other).then_some(Type::Bool)),
            "<" | "<=" | ">" | ">=" => {
                let ordered = !known || are_ordered(&one, &other);
                (format!("_{operator}_"), ordered.then_some(Type::Bool))
            }
            _ if known => (format!("_{operator}_"), computed(operator, &one, &other)),
            _ if one == Type::Unknown || other == Type::Unknown => return Type::Unknown,
            _ => (format!("_{operator}_"), guessed(operator, &one, &other)),
        };
        given.unwrap_or_else(|| self.no_overload(at, &name, &[&one, &other]))
    }

    fn choice(&mut self, at: usize, parts: &'t [Node; 3]) -> Type<'a> {
        let [condition, yes, no] = parts.each_ref().map(|part| self.node(part));
        if !condition.fits(&Type::Bool) || !yes.fits(&no) {
            return self.no_overload(at, "_?_:_", &[&condition, &yes, &no]);
        }
        yes.joined(no)
    }

    fn call(
        &mut self,
        at: usize,
        target: Option<&'t Node>,
        function: &'t str,
        arguments: &'t [Node],
    ) -> Type<'a> {
        if let Some(of) = self.macro_call(at, target, function, arguments) {
            return of;
        }
        // `sets.contains` and its like.
        if let Some(Node { form: Form::Name(space), .. }) = target
            && functions::is_space(space)
            && !self.scope.iter().any(|(known, _)| known == space)
        {
            let arguments: Vec<Type<'a>> = arguments.iter().map(|argument| self.node(argument)).collect();
            return functions::of_space(space, function, &arguments);
        }
        let target = target.map(|target| self.node(target));
        let mixed = self.mixed;
        self.mixed |= function == "format";
        let arguments: Vec<Type<'a>> = arguments.iter().map(|argument| self.node(argument)).collect();
        self.mixed = mixed;
        match functions::call(function, target.as_ref(), &arguments) {
            Given::Type(of) => of,
            Given::Unknown => self.undeclared(at, function),
            Given::NoOverload => {
                let texts: Vec<String> = arguments.iter().map(ToString::to_string).collect();
                let target = target.map(|target| format!("{target}.")).unwrap_or_default();
                let applied = format!("{target}({})", texts.join(", "));
                self.wrong(at, format!("found no matching overload for '{function}' applied to '{applied}'"))
            }
        }
    }
}
