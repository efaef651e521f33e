//! Macros: loops over lists and maps, and what else is written out before it is evaluated.

use super::{Check, Form, Node, Type};

impl<'a, 't> Check<'a, 't> {
    /// Calls that are written out before they are evaluated; `None` if this is none.
    pub(super) fn macro_call(
        &mut self,
        at: usize,
        target: Option<&'t Node>,
        function: &str,
        arguments: &'t [Node],
    ) -> Option<Type<'a>> {
        let Some(target) = target else {
            let [Node { form: Form::Select { operand, field, .. }, .. }] = arguments else { return None };
            if function != "has" {
                return None;
            }
            let of = self.node(operand);
            self.field(at, &of, field);
            return Some(Type::Bool);
        };
        let names: Vec<&'t str> = arguments
            .iter()
            .map_while(|argument| match &argument.form {
                Form::Name(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        match (function, arguments, names.as_slice()) {
            ("optMap" | "optFlatMap", [_, body], [name, ..]) => {
                let of = match self.node(target) {
                    Type::Optional(of) => *of,
                    _ => Type::Unknown,
                };
                let given = self.with(&[(name, of)], body);
                Some(if function == "optMap" { Type::optional(given) } else { given })
            }
            ("all" | "exists" | "exists_one", [_, test], [name, ..]) => {
                let (item, _) = self.range(target);
                Some(self.quantified(at, function, &[(name, item)], test))
            }
            ("all" | "exists" | "exists_one" | "existsOne", [_, _, test], [first, second, ..]) => {
                let variables = self.pair(target, first, second);
                Some(self.quantified(at, function, &variables, test))
            }
            ("filter", [_, test], [name, ..]) => {
                let (item, _) = self.range(target);
                self.test(&[(name, item.clone())], test);
                Some(Type::list(item))
            }
            ("map", [_, body], [name, ..]) => {
                let (item, _) = self.range(target);
                Some(Type::list(self.with(&[(name, item)], body)))
            }
            ("map", [_, test, body], [name, ..]) => {
                let (item, _) = self.range(target);
                self.test(&[(name, item.clone())], test);
                Some(Type::list(self.with(&[(name, item)], body)))
            }
            ("sortBy", [_, body], [name, ..]) => {
                let (item, _) = self.range(target);
                self.with(&[(name, item.clone())], body);
                Some(Type::list(item))
            }
            (
                "transformList" | "transformMap" | "transformMapEntry",
                [_, _, rest @ ..],
                [first, second, ..],
            ) => {
                let variables = self.pair(target, first, second);
                let (body, tests) = rest.split_last()?;
                for test in tests {
                    self.test(&variables, test);
                }
                let given = self.with(&variables, body);
                Some(if function == "transformList" { Type::list(given) } else { Type::Unknown })
            }
            _ => None,
        }
    }

    /// Those that count do it by a choice, and complain of that one.
    fn quantified(
        &mut self,
        at: usize,
        function: &str,
        variables: &[(&'t str, Type<'a>)],
        test: &'t Node,
    ) -> Type<'a> {
        if matches!(function, "all" | "exists") {
            self.test(variables, test);
        } else {
            let of = self.with(variables, test);
            if !of.fits(&Type::Bool) {
                self.no_overload(at, "_?_:_", &[&of, &Type::Int, &Type::Int]);
            }
        }
        Type::Bool
    }

    /// What a loop runs over: the items of a list or the keys of a map, and the values of these.
    fn range(&mut self, target: &'t Node) -> (Type<'a>, Type<'a>) {
        match self.node(target) {
            Type::List(of) => ((*of).clone(), *of),
            Type::Map(key, value) => (*key, *value),
            of @ (Type::Dyn | Type::Unknown) => (of.clone(), of),
            other => {
                let words = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                (self.wrong(target.at, words), Type::Unknown)
            }
        }
    }

    /// The two variables of a loop: index and item, or key and value.
    fn pair(&mut self, target: &'t Node, first: &'t str, second: &'t str) -> [(&'t str, Type<'a>); 2] {
        let errors = self.errors.len();
        let is_list = matches!(self.node(target), Type::List(_));
        self.errors.truncate(errors);
        let (key, value) = self.range(target);
        [(first, if is_list { Type::Int } else { key }), (second, value)]
    }

    fn with(&mut self, variables: &[(&'t str, Type<'a>)], body: &'t Node) -> Type<'a> {
        let outer = self.scope.len();
        self.scope.extend_from_slice(variables);
        let of = self.node(body);
        self.scope.truncate(outer);
        of
    }

    fn test(&mut self, variables: &[(&'t str, Type<'a>)], test: &'t Node) {
        let outer = self.scope.len();
        self.scope.extend_from_slice(variables);
        self.truth(test);
        self.scope.truncate(outer);
    }
}
