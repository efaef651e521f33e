//! What an expression can cost at most, before it sees a value: the real server refuses rules that could take too long.
//!
//! Enters the tree of an expression that has passed the type check; leaves the most that one evaluation can cost, in
//! the units of the real server (about 50 ns each). The real server estimates from what the schema says about sizes
//! (`maxItems`, `maxLength`, …), so the same rule is cheap or dear by where it stands. Its estimate is a part of the
//! API (what it accepts, it must accept for ever), so this one has the same oddities.
//!
//! What is not known here is not estimated: the rule is accepted then.

mod calls;
mod loops;
mod range;
mod sizes;

use std::collections::HashMap;

use serde_json::Value as Json;

pub(crate) use self::sizes::{most_in_a_request, whole};
use self::{range::Range, sizes::Step};
use super::{
    syntax::{Form, Node},
    types::Type,
};

/// What making a list or a map costs.
const LIST: Range = Range::fixed(10);
const MAP: Range = Range::fixed(30);

/// What reading a character costs.
const PER_CHARACTER: f64 = 0.1;

/// The most that an expression can cost; `None` if something in it is not known.
pub(super) fn most<'a>(
    node: &'a Node,
    types: &'a HashMap<usize, Type<'a>>,
    root: &'a Json,
    resource: bool,
) -> Option<u64> {
    let mut estimator = Estimator { types, root, resource, locals: Vec::new() };
    Some(estimator.node(node)?.cost.most)
}

struct Estimator<'a> {
    /// The types of all nodes, by where they stand.
    types: &'a HashMap<usize, Type<'a>>,
    /// The schema of `self`.
    root: &'a Json,
    resource: bool,
    locals: Vec<(&'a str, Local)>,
}

/// A variable of a loop.
#[derive(Clone, Debug, Default)]
struct Local {
    path: Vec<Step>,
    size: Option<Range>,
    entries: Option<Entries>,
}

/// How large the parts of a list or a map are that an expression makes.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn spanning(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (one, other) = (one?, other?);
        Some(Self { key: one.key.spanning(other.key), value: one.value.spanning(other.value), ..one })
    }
}

/// What is known of a part of an expression.
#[derive(Clone, Debug)]
struct Part<'a> {
    of: Type<'a>,
    cost: Range,
    /// Where its value stands in the object, if it does.
    path: Vec<Step>,
    size: Option<Range>,
    entries: Option<Entries>,
}

impl Part<'_> {
    fn size(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

impl<'a> Estimator<'a> {
    fn type_of(&self, node: &Node) -> Type<'a> {
        self.types.get(&node.at).cloned().unwrap_or(Type::Dyn)
    }

    /// A part whose size follows from where it stands or what it is.
    fn part(&self, of: Type<'a>, cost: Range, path: Vec<Step>) -> Part<'a> {
        let declared = sizes::declared(self.root, self.resource, &path);
        let size = declared.or_else(|| is_scalar(&of).then_some(Range::fixed(1)));
        Part { of, cost, path, size, entries: None }
    }

    fn node(&mut self, node: &'a Node) -> Option<Part<'a>> {
        let of = self.type_of(node);
        let literal = |of, size| Part {
            of,
            cost: Range::ZERO,
            path: Vec::new(),
            size: Some(Range::fixed(size)),
            entries: None,
        };
        Some(match &node.form {
            Form::Bool | Form::Int(_) | Form::Uint | Form::Double | Form::Null => literal(of, 1),
            Form::Text(length) | Form::Bytes(length) => literal(of, *length as u64),
            Form::Name(name) => self.name(of, name),
            Form::Select { operand, field, optional } => self.select(of, operand, field, *optional)?,
            // No rule of a schema can make one.
            Form::Struct { .. } => return None,
            Form::Index { operand, index, optional } => self.index(of, operand, index, *optional)?,
            Form::List(items) => self.list(of, items)?,
            Form::Map(entries) => self.map(of, entries)?,
            // A number with a sign is one literal.
            Form::Unary("-", operand) if matches!(operand.form, Form::Int(_) | Form::Double) => {
                literal(of, 1)
            }
            Form::Unary(_, operand) => {
                let operand = self.node(operand)?;
                self.part(of, Range::fixed(1).plus(operand.cost), Vec::new())
            }
            Form::Binary(operator, left, right) => {
                let (left, right) = (self.node(left)?, self.node(right)?);
                self.binary(of, operator, &left, &right)
            }
            Form::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let (condition, yes, no) = (self.node(condition)?, self.node(yes)?, self.node(no)?);
                Part {
                    of,
                    cost: condition.cost.plus(yes.cost.spanning(no.cost)),
                    path: Vec::new(),
                    size: Some(yes.size().spanning(no.size())),
                    entries: Entries::spanning(yes.entries, no.entries),
                }
            }
            Form::Call { target, function, arguments } => {
                match self.macro_call(&of, target.as_deref(), function, arguments)? {
                    Some(part) => part,
                    None => self.call(of, target.as_deref(), function, arguments)?,
                }
            }
        })
    }

    fn name(&self, of: Type<'a>, name: &str) -> Part<'a> {
        match self.locals.iter().rev().find(|(known, _)| *known == name) {
            Some((_, local)) => {
                let part = self.part(of, Range::fixed(1), local.path.clone());
                Part { size: part.size.or(local.size), entries: local.entries, ..part }
            }
            None => self.part(of, Range::fixed(1), vec![Step::Field(name.to_owned())]),
        }
    }

    fn select(&mut self, of: Type<'a>, operand: &'a Node, field: &str, optional: bool) -> Option<Part<'a>> {
        if is_type_name(operand) {
            return Some(self.name(of, field));
        }
        let operand = self.node(operand)?;
        if optional {
            return Some(self.part(of, operand.cost.plus(Range::fixed(1)), Vec::new()));
        }
        let looks = matches!(operand.of, Type::Map(..) | Type::Object { .. } | Type::Metadata);
        let mut path = operand.path;
        path.push(Step::Field(field.to_owned()));
        Some(self.part(of, operand.cost.plus(Range::fixed(u64::from(looks))), path))
    }

    fn index(
        &mut self,
        of: Type<'a>,
        operand: &'a Node,
        index: &'a Node,
        optional: bool,
    ) -> Option<Part<'a>> {
        let (operand, index) = (self.node(operand)?, self.node(index)?);
        let cost = Range::fixed(1).plus(operand.cost).plus(index.cost);
        let step = match operand.of {
            _ if optional => None,
            Type::List(_) => Some(Step::Items),
            Type::Map(..) | Type::Dyn | Type::Unknown => Some(Step::Values),
            _ => None,
        };
        let Some(step) = step else { return Some(self.part(of, cost, Vec::new())) };
        let mut path = operand.path;
        path.push(step);
        let part = self.part(of, cost, path);
        Some(Part { size: operand.entries.map(|entries| entries.value).or(part.size), ..part })
    }

    fn list(&mut self, of: Type<'a>, items: &'a [Node]) -> Option<Part<'a>> {
        let mut cost = LIST;
        let mut value = None;
        for item in items {
            let item = self.node(item)?;
            cost = cost.plus(item.cost);
            value = Some(value.map_or(item.size(), |all: Range| all.spanning(item.size())));
        }
        let value = value.unwrap_or(Range::ZERO);
        let entries = Some(Entries { is_list: true, key: Range::fixed(1), value });
        Some(Part { of, cost, path: Vec::new(), size: Some(Range::fixed(items.len() as u64)), entries })
    }

    fn map(&mut self, of: Type<'a>, entries: &'a [(Node, Node)]) -> Option<Part<'a>> {
        let mut cost = MAP;
        let mut sizes = None;
        for (key, value) in entries {
            let (key, value) = (self.node(key)?, self.node(value)?);
            cost = cost.plus(key.cost).plus(value.cost);
            sizes = Some(sizes.map_or((key.size(), value.size()), |(keys, values): (Range, Range)| {
                (keys.spanning(key.size()), values.spanning(value.size()))
            }));
        }
        let (key, value) = sizes.unwrap_or((Range::ZERO, Range::ZERO));
        let size = Some(Range::fixed(entries.len() as u64));
        Some(Part { of, cost, path: Vec::new(), size, entries: Some(Entries { is_list: false, key, value }) })
    }

    fn binary(&self, of: Type<'a>, operator: &str, left: &Part<'a>, right: &Part<'a>) -> Part<'a> {
        let operands = left.cost.plus(right.cost);
        let constant = Range::fixed(1).plus(operands);
        // With a value of which nothing is known, all that an operator could mean is covered.
        let open = left.of == Type::Unknown || right.of == Type::Unknown;
        let may_be = |of: &Type<'a>| !open && left.of.fits(of) && right.of.fits(of);
        let unknown = left.of == Type::Dyn && right.of == Type::Dyn;
        let texts = may_be(&Type::Text) || may_be(&Type::Bytes);
        match operator {
            // The right side may not be needed.
            "&&" | "||" => {
                let cost = Range { least: left.cost.least, most: operands.most };
                self.part(of, cost, Vec::new())
            }
            "+" if texts || may_be(&Type::list(Type::Dyn)) => {
                let size = left.size().plus(right.size());
                let by_size = size.scaled(PER_CHARACTER).plus(operands);
                let cost = match (texts, unknown) {
                    (true, false) => by_size,
                    (false, _) => constant,
                    (true, true) => by_size.spanning(constant),
                };
                let entries = Entries::spanning(left.entries, right.entries);
                Part { of, cost, path: Vec::new(), size: Some(size), entries }
            }
            "<" | "<=" | ">" | ">=" if texts => {
                let cost = comparison(left, right).plus(operands);
                self.part(of, if unknown { cost.spanning(constant) } else { cost }, Vec::new())
            }
            "==" if matches!((&left.of, &right.of), (Type::Opaque(one), Type::Opaque(other)) if one == other) => {
                self.part(of, constant, Vec::new())
            }
            "==" | "!=" => self.part(of, comparison(left, right).plus(operands), Vec::new()),
            "@in" => {
                let search = right.size().plus(operands);
                let cost = match right.of {
                    Type::List(_) => search,
                    Type::Dyn => search.spanning(constant),
                    _ => constant,
                };
                self.part(of, cost, Vec::new())
            }
            _ => self.part(of, constant, Vec::new()),
        }
    }
}

/// The beginning of `google.protobuf.Timestamp`, which is one name.
fn is_type_name(node: &Node) -> bool {
    match &node.form {
        Form::Name(name) => name == "google",
        Form::Select { operand, .. } => is_type_name(operand),
        _ => false,
    }
}

/// Two values are compared until the shorter one ends.
fn comparison(left: &Part<'_>, right: &Part<'_>) -> Range {
    let most = left.size().most.min(right.size().most);
    Range { least: most.min(1), most }.scaled(PER_CHARACTER)
}

/// Whether all values of the type are of one size.
fn is_scalar(of: &Type<'_>) -> bool {
    match of {
        Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Timestamp | Type::Duration => true,
        Type::Optional(of) => is_scalar(of),
        _ => false,
    }
}
