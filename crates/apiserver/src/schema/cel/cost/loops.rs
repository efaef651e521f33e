//! What macros cost: they are written out into loops, and a loop costs its step times the size of what it runs over.

use super::{Entries, Estimator, LIST, Local, MAP, Part, Range, Step, Type};
use crate::schema::cel::syntax::{Form, Node};

/// What a loop does apart from what its body does.
struct Shape {
    /// What it begins with.
    begin: Range,
    /// Whether it may go on.
    condition: Range,
    /// What it ends with.
    end: Range,
}

impl<'a> Estimator<'a> {
    /// `Some(None)` if the call is no macro, `None` if its cost is not known.
    #[expect(clippy::option_option, reason = "that it is no macro and that nothing is known are two answers")]
    pub(super) fn macro_call(
        &mut self,
        of: &Type<'a>,
        target: Option<&'a Node>,
        function: &str,
        arguments: &'a [Node],
    ) -> Option<Option<Part<'a>>> {
        let Some(target) = target else {
            let ("has", [Node { form: Form::Select { operand, .. }, .. }]) = (function, arguments) else {
                return Some(None);
            };
            let operand = self.node(operand)?;
            return Some(Some(self.part(of.clone(), operand.cost, Vec::new())));
        };
        let name = |index: usize| match arguments.get(index).map(|argument| &argument.form) {
            Some(Form::Name(name)) => Some(name.as_str()),
            _ => None,
        };
        let part = match (function, arguments) {
            ("optMap" | "optFlatMap", [_, body]) => {
                self.opt_map(of, target, name(0)?, body, function == "optMap")?
            }
            ("all" | "exists" | "exists_one", [_, test]) => {
                let (range, locals) = self.range(target, name(0)?, None)?;
                self.quantified(of, function, &range, locals, test)?
            }
            ("all" | "exists" | "exists_one" | "existsOne", [_, _, test]) => {
                let (range, locals) = self.range(target, name(0)?, name(1))?;
                self.quantified(of, function, &range, locals, test)?
            }
            ("filter", [item, test]) => {
                let (range, locals) = self.range(target, name(0)?, None)?;
                self.collected(of, &range, locals, Some(test), Some(item))?
            }
            ("map", [_, body]) => {
                let (range, locals) = self.range(target, name(0)?, None)?;
                self.collected(of, &range, locals, None, Some(body))?
            }
            ("map", [_, test, body]) => {
                let (range, locals) = self.range(target, name(0)?, None)?;
                self.collected(of, &range, locals, Some(test), Some(body))?
            }
            ("transformList", [_, _, rest @ ..]) if !rest.is_empty() => {
                let (range, locals) = self.range(target, name(0)?, Some(name(1)?))?;
                let test = rest.first().filter(|_| rest.len() == 2);
                self.collected(of, &range, locals, test, rest.last())?
            }
            ("transformMap" | "transformMapEntry", [_, _, rest @ ..]) if !rest.is_empty() => {
                let (range, locals) = self.range(target, name(0)?, Some(name(1)?))?;
                let test = rest.first().filter(|_| rest.len() == 2);
                self.inserted(of, &range, locals, test, rest.last()?, function == "transformMap")?
            }
            // It is sorted by a list that it makes itself; too rare to follow.
            ("sortBy", _) => return None,
            _ => return Some(None),
        };
        Some(Some(part))
    }

    /// What a loop runs over, and its variables.
    fn range(
        &mut self,
        target: &'a Node,
        first: &'a str,
        second: Option<&'a str>,
    ) -> Option<(Part<'a>, Vec<(&'a str, Local)>)> {
        let range = self.node(target)?;
        let is_list = range.entries.map_or(matches!(range.of, Type::List(_)), |entries| entries.is_list);
        let local = |step: Step, size: Option<Range>| {
            let mut path = range.path.clone();
            path.push(step);
            Local { path, size, entries: None }
        };
        let key = range.entries.map(|entries| entries.key);
        let value = range.entries.map(|entries| entries.value);
        let locals = match (second, is_list) {
            (None, true) => vec![(first, local(Step::Items, value))],
            (None, false) => vec![(first, local(Step::Keys, key))],
            (Some(second), true) => {
                vec![(first, local(Step::Indices, key)), (second, local(Step::Items, value))]
            }
            (Some(second), false) => {
                vec![(first, local(Step::Keys, key)), (second, local(Step::Values, value))]
            }
        };
        Some((range, locals))
    }

    fn with(&mut self, locals: Vec<(&'a str, Local)>, body: &'a Node) -> Option<Part<'a>> {
        let outer = self.locals.len();
        self.locals.extend(locals);
        let part = self.node(body);
        self.locals.truncate(outer);
        part
    }

    /// What the test of a loop costs that may have none.
    #[expect(
        clippy::option_option,
        reason = "that there is no test and that nothing is known are two answers"
    )]
    fn test(&mut self, locals: &[(&'a str, Local)], test: Option<&'a Node>) -> Option<Option<Range>> {
        match test {
            Some(test) => self.with(locals.to_vec(), test).map(|test| Some(test.cost)),
            None => Some(None),
        }
    }

    fn looped(of: &Type<'a>, range: &Part<'a>, shape: &Shape, step: Range) -> Part<'a> {
        let each = step.plus(shape.condition);
        let cost = range.cost.plus(shape.begin).plus(shape.end).plus(range.size().times(each));
        Part { of: of.clone(), cost, path: Vec::new(), size: Some(Range::fixed(1)), entries: None }
    }

    fn quantified(
        &mut self,
        of: &Type<'a>,
        function: &str,
        range: &Part<'a>,
        locals: Vec<(&'a str, Local)>,
        test: &'a Node,
    ) -> Option<Part<'a>> {
        let test = self.with(locals, test)?.cost;
        let shape = |condition, end| Shape {
            begin: Range::ZERO,
            condition: Range::fixed(condition),
            end: Range::fixed(end),
        };
        // `so_far && test`: the test may not be needed.
        let joined = Range { least: 1, most: test.most.saturating_add(1) };
        Some(match function {
            "all" => Self::looped(of, range, &shape(2, 1), joined),
            "exists" => Self::looped(of, range, &shape(3, 1), joined),
            // `test ? so_far + 1 : so_far`, and `so_far == 1` at the end.
            _ => Self::looped(of, range, &shape(0, 2), test.plus(Range { least: 1, most: 2 })),
        })
    }

    /// A loop that makes a list: `so_far + [body]`, if there is a test only where it holds.
    fn collected(
        &mut self,
        of: &Type<'a>,
        range: &Part<'a>,
        locals: Vec<(&'a str, Local)>,
        test: Option<&'a Node>,
        body: Option<&'a Node>,
    ) -> Option<Part<'a>> {
        let test = self.test(&locals, test)?;
        let body = self.with(locals, body?)?;
        let step = if_so(test, Range::fixed(2).plus(LIST).plus(body.cost));
        let shape = Shape { begin: LIST, condition: Range::ZERO, end: Range::fixed(1) };
        let value = body.size().spanning(Range::ZERO);
        let entries = Some(Entries { is_list: true, key: Range::fixed(1), value });
        Some(Part { size: Some(range.size()), entries, ..Self::looped(of, range, &shape, step) })
    }

    /// A loop that makes a map, by key and value or by a whole entry.
    fn inserted(
        &mut self,
        of: &Type<'a>,
        range: &Part<'a>,
        locals: Vec<(&'a str, Local)>,
        test: Option<&'a Node>,
        body: &'a Node,
        keyed: bool,
    ) -> Option<Part<'a>> {
        let test = self.test(&locals, test)?;
        let body = self.with(locals, body)?;
        let step = if_so(test, Range::fixed(if keyed { 3 } else { 2 }).plus(body.cost));
        let shape = Shape { begin: MAP, condition: Range::ZERO, end: Range::fixed(1) };
        Some(Part { size: Some(range.size()), ..Self::looped(of, range, &shape, step) })
    }

    /// `target.hasValue() ? optional.of(body with the value) : optional.none()`.
    fn opt_map(
        &mut self,
        of: &Type<'a>,
        target: &'a Node,
        name: &'a str,
        body: &'a Node,
        wrapped: bool,
    ) -> Option<Part<'a>> {
        let target = self.node(target)?;
        let asked = target.cost.plus(Range::fixed(1));
        let inner = match target.of {
            Type::Optional(of) => *of,
            _ => Type::Dyn,
        };
        let value = self.part(inner, asked, Vec::new());
        let local = Local { path: Vec::new(), size: value.size, entries: None };
        let body = self.with(vec![(name, local)], body)?;
        let bound = LIST.plus(value.cost).plus(body.cost).plus(Range::fixed(u64::from(wrapped)));
        let cost = asked.plus(bound.spanning(Range::fixed(1)));
        let part = self.part(of.clone(), cost, Vec::new());
        Some(Part { size: Some(part.size.unwrap_or(Range::UNKNOWN)), ..part })
    }
}

/// `test ? step : so_far`.
fn if_so(test: Option<Range>, step: Range) -> Range {
    test.map_or(step, |test| test.plus(step.spanning(Range::fixed(1))))
}
