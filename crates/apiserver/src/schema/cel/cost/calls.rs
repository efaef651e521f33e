//! What functions cost, and how large what they give can be.

use super::{Estimator, LIST, PER_CHARACTER, Part, Range, Step, Type, sizes};
use crate::schema::cel::{
    functions,
    syntax::{Form, Node},
};

/// What a character of a pattern costs for each character of a text.
const PER_PATTERN: f64 = 0.25;

/// How long the pattern of a named format is taken to be.
const FORMAT_PATTERN: f64 = 128.0;

/// The bytes of an address.
const ADDRESS: Range = Range { least: 4, most: 16 };

/// What a call costs without its arguments, and how large its result is if that is known.
type Call = (Range, Option<Range>);

impl<'a> Estimator<'a> {
    pub(super) fn call(
        &mut self,
        of: Type<'a>,
        target: Option<&'a Node>,
        function: &str,
        arguments: &'a [Node],
    ) -> Option<Part<'a>> {
        let parts = arguments.iter().map(|argument| self.node(argument)).collect::<Option<Vec<_>>>()?;
        let costs = parts.iter().fold(Range::ZERO, |sum, part| sum.plus(part.cost));
        let space = match target.map(|target| &target.form) {
            Some(Form::Name(space)) if functions::is_space(space) && !self.is_local(space) => Some(space),
            _ => None,
        };
        let target = match (target, space) {
            (Some(target), None) => Some(self.node(target)?),
            _ => None,
        };
        if let ("dyn", None, [part]) = (function, &target, &*parts) {
            let cost = Range::fixed(1).plus(part.cost);
            return Some(Part { of, cost, path: Vec::new(), ..part.clone() });
        }
        let whole = space.map_or_else(|| function.to_owned(), |space| format!("{space}.{function}"));
        let known = match &target {
            Some(target) => self.method(&whole, target, &parts, arguments),
            None => global(&whole, &parts, arguments),
        };
        let (cost, size) = known.unwrap_or((Range::fixed(1), None));
        let cost = cost.plus(costs).plus(target.map_or(Range::ZERO, |target| target.cost));
        let part = self.part(of, cost, Vec::new());
        Some(Part { size: size.or(part.size), ..part })
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(known, _)| *known == name)
    }

    fn method(
        &self,
        function: &str,
        target: &Part<'a>,
        parts: &[Part<'a>],
        arguments: &[Node],
    ) -> Option<Call> {
        let size = target.size();
        let read = |size: Range| size.scaled(PER_CHARACTER);
        Some(match (function, parts) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes", _) => {
                (self.searched(function, target), None)
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", _) => (read(size), Some(size)),
            ("replace", [old, new, ..]) => {
                (size.scaled(2.0 * PER_CHARACTER), Some(replaced(size, old.size(), new.size())))
            }
            ("split", _) => {
                let most = arguments.get(1).and_then(literal).map_or(size.most, i64::cast_unsigned);
                (size.scaled(2.0 * PER_CHARACTER), Some(Range { least: 0, most }))
            }
            ("join", _) => {
                let joined = self.joined(target, parts.first());
                (read(joined), Some(joined))
            }
            ("find" | "findAll", [pattern, ..]) => {
                (matched(size, pattern.size()), Some(Range { least: 0, most: size.most }))
            }
            ("matches", [pattern]) => (matched(size, pattern.size()), None),
            ("startsWith" | "endsWith", [text]) => (read(text.size()), None),
            ("contains", [text]) => (read(size).times(read(text.size())), None),
            ("format", [_]) => (read(size), None),
            ("containsIP" | "containsCIDR", [other]) => {
                let mut cost = read(ADDRESS.plus(ADDRESS));
                if function == "containsCIDR" {
                    cost = cost.plus(read(ADDRESS)).plus(Range::fixed(1));
                }
                // A text has to be read first.
                let parsed = if other.of == Type::Text { read(other.size()) } else { Range::ZERO };
                (cost.plus(parsed), None)
            }
            ("validate", [text]) => (read(text.size()).scaled(FORMAT_PATTERN * PER_PATTERN), None),
            ("slice", [_, _]) => {
                let bound = |index: usize, otherwise: u64| {
                    let given = arguments.get(index).and_then(literal);
                    given.map_or(otherwise, |given| u64::try_from(given).unwrap_or(0))
                };
                list(1.0, Range::fixed(bound(1, size.most).wrapping_sub(bound(0, 0))))
            }
            ("reverse", []) => list(1.0, size),
            ("flatten", []) => list(1.0, size),
            ("distinct", []) => list(2.0, size.times(size)),
            ("sort", []) => {
                let texts = matches!(&target.of, Type::List(of) if matches!(**of, Type::Text | Type::Bytes));
                list(if texts { 2.0 + PER_CHARACTER } else { 2.0 }, size.times(size))
            }
            _ => return None,
        })
    }

    /// A list or a text is looked through once.
    fn searched(&self, function: &str, target: &Part<'a>) -> Range {
        match self.element(target) {
            Some((of, size)) => {
                let texts = matches!(of, Type::Text | Type::Bytes);
                let each = if texts { size.scaled(PER_CHARACTER) } else { Range::ZERO };
                target.size().times(each.plus(Range::fixed(1)))
            }
            None if function == "includes" => target.size(),
            None => target.size().scaled(PER_CHARACTER),
        }
    }

    /// The type of what a value is made of, and how large that is.
    fn element(&self, target: &Part<'a>) -> Option<(Type<'a>, Range)> {
        let (Type::List(of) | Type::Optional(of) | Type::Map(of, _)) = &target.of else { return None };
        let mut path = target.path.clone();
        let size = (!path.is_empty()).then(|| {
            path.push(Step::Items);
            sizes::declared(self.root, self.resource, &path)
        });
        Some(((**of).clone(), size.flatten().unwrap_or(Range::UNKNOWN)))
    }

    /// How long the texts of a list are with what is put between them.
    fn joined(&self, target: &Part<'a>, between: Option<&Part<'a>>) -> Range {
        let count = target.size();
        let texts = self.element(target).map_or(Range::ZERO, |(_, size)| count.times(size));
        let Some(between) = between else { return texts };
        let gaps = Range { least: count.least.saturating_sub(1), most: count.most.saturating_sub(1) };
        texts.plus(between.size().times(gaps))
    }
}

fn global(function: &str, parts: &[Part<'_>], arguments: &[Node]) -> Option<Call> {
    let read = |size: Range| size.scaled(PER_CHARACTER);
    let first = parts.first();
    let size = first.map_or(Range::UNKNOWN, Part::size);
    let may_be = |of: Type<'_>| first.is_some_and(|first| first.of.fits(&of));
    Some(match (function, parts.len()) {
        ("url" | "jsonpatch.escapeKey", 1) => (read(size), Some(size)),
        ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", 1..) => {
            (read(size), None)
        }
        ("ip.isCanonical", 1..) => (size.scaled(2.0 * PER_CHARACTER), None),
        ("matches", 2) => (matched(size, parts[1].size()), None),
        // A character has up to four bytes.
        ("bytes", 1) if may_be(Type::Text) => {
            (read(size), Some(Range { least: size.least, most: size.most.saturating_mul(4) }))
        }
        ("string", 1) if may_be(Type::Bytes) => {
            (read(size), Some(Range { least: size.least / 4, most: size.most }))
        }
        ("strings.quote", 1) => {
            (read(size), Some(size.times(Range { least: 1, most: 2 }).plus(Range::fixed(2))))
        }
        ("sets.contains" | "sets.intersects", 2) => (size.times(parts[1].size()).plus(Range::fixed(1)), None),
        ("sets.equivalent", 2) => (size.times(parts[1].size()).scaled(2.0).plus(Range::fixed(1)), None),
        ("lists.range", 1) => {
            let count = arguments.first().and_then(literal);
            list(1.0, Range::fixed(count.map_or(u64::MAX, |count| u64::try_from(count).unwrap_or(0))))
        }
        _ => return None,
    })
}

/// A function that makes a list.
fn list(factor: f64, size: Range) -> Call {
    (size.scaled(factor).plus(Range::fixed(1)).plus(LIST), Some(size))
}

/// A text against a pattern; an empty one costs something too.
fn matched(text: Range, pattern: Range) -> Range {
    text.plus(Range::fixed(1)).scaled(PER_CHARACTER).times(pattern.scaled(PER_PATTERN))
}

/// How long a text is in which one text was replaced by another.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let (most_times, most_kept) = match old.least {
        // Nothing stands before, after and between all characters.
        0 => (text.most.saturating_add(1), text.most),
        least if new.most <= least => (0, text.most),
        least => (text.most.div_ceil(least), 0),
    };
    let (least_times, least_kept) = match old.most {
        0 => (text.least.saturating_add(1), text.least),
        most if most <= new.least => (0, text.least),
        most => (text.least.div_ceil(most), 0),
    };
    let times = Range { least: least_times, most: most_times };
    times.times(new).plus(Range { least: least_kept, most: most_kept })
}

/// The number that is written there.
fn literal(node: &Node) -> Option<i64> {
    match &node.form {
        Form::Int(value) => *value,
        Form::Unary("-", operand) => match operand.form {
            Form::Int(value) => value?.checked_neg(),
            _ => None,
        },
        _ => None,
    }
}
