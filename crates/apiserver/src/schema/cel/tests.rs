//! Expressions alone; rules are judged by `tests/fixtures/validation`.

use serde_json::json;

use super::*;

fn holds(expression: &str) -> Result<bool, CelError> {
    let object = json!({
        "items": [3, 1, 2],
        "names": {"a": 1, "b": 2},
        "people": [{"n": "z", "age": 2}, {"n": "y", "age": 1}],
    });
    Expression::compile(expression)?.evaluate_bool(&[("self", &object)])
}

#[test]
fn macros_that_the_engine_lacks_work() {
    for expression in [
        "self.items.all(i, v, v > 0 && i < 3)",
        "!self.items.all(i, v, v > i)",
        "self.names.all(k, v, k in ['a', 'b'] && v > 0)",
        "self.items.exists(i, v, i == 1 && v == 1)",
        "self.items.existsOne(i, v, v == 2)",
        "self.items.transformList(i, v, v * 2) == [6, 2, 4]",
        "self.items.transformList(i, v, i > 0, v + i) == [2, 4]",
        "self.items.sortBy(x, x) == [1, 2, 3]",
        "self.people.sortBy(p, p.age).map(p, p.n) == ['y', 'z']",
        "self.items.all(x, x > 0)",
        "self.?missing.orValue('d') == 'd'",
        "self.?names.?a.orValue(9) == 1",
        "optional.of(1).hasValue()",
        "type(1) == int && type('a') == string && type(self.items) == list && type(1) != type('a')",
    ] {
        assert_eq!(holds(expression), Ok(true), "{expression}");
    }
}

#[test]
fn kubernetes_functions_are_there() {
    for expression in [
        "quantity('1Gi').isGreaterThan(quantity('500Mi'))",
        "isURL('https://example.com')",
        "!isURL('example.com')",
        "url('https://example.com:80/a?k=1&k=2').getQuery()['k'] == ['1', '2']",
        "url('https://example.com:80/a?k=1').getHost() == 'example.com:80'",
        "url('/a b').getEscapedPath() == '/a%20b' && url('/a').getScheme() == ''",
        "url('http://h/a') == url('HTTP://h/a') && url('http://h/a') != url('http://h/b')",
        "ip('10.0.0.1').family() == 4",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "'abc'.find('b') == 'b'",
        "[1, 2, 3].sum() == 6",
        "sets.contains([1, 2], [1])",
        "'%s-%d'.format(['a', 1]) == 'a-1'",
        "semver('1.2.3').isLessThan(semver('2.0.0'))",
        "duration('1h') > duration('59m')",
        "timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
        "'a,b'.split(',').size() == 2",
        "math.greatest(1, 2) == 2",
        "'hello'.matches('^h.*o$')",
    ] {
        assert_eq!(holds(expression), Ok(true), "{expression}");
    }
}

#[test]
fn failures_speak_as_the_real_server_does() {
    assert_eq!(holds("self.nope == 1"), Err(CelError::Evaluate("no such key: nope".to_owned())));
    assert_eq!(holds("1 / 0 == 1"), Err(CelError::Evaluate("division by zero".to_owned())));
    assert_eq!(holds("self.items[7] == 1"), Err(CelError::Evaluate("index out of bounds: 7".to_owned())));
    assert!(matches!(holds("self.items ="), Err(CelError::Compile(_))));
    assert!(matches!(holds("'text'"), Err(CelError::Evaluate(_))));
}

#[test]
fn nested_loops_over_much_data_are_refused() {
    let object = json!({ "items": (0..2000).collect::<Vec<u32>>() });
    let run =
        |text: &str| Expression::compile(text).expect("must compile").evaluate_bool(&[("self", &object)]);
    assert_eq!(run("self.items.all(x, self.items.exists(y, y == x))"), Err(CelError::TooCostly));
    assert_eq!(run("self.items.all(x, x >= 0)"), Ok(true));
}

#[test]
fn hostile_texts_are_refused_without_harm() {
    let repeated = |text: &str, times: usize| text.repeat(times);
    for text in [
        format!("{}1{}", repeated("(", 900), repeated(")", 900)),
        format!("{}1{}", repeated("[", 900), repeated("]", 900)),
        format!("1{}", repeated("+1", 5_000)),
        format!("{}true", repeated("!", 5_000)),
        format!("self{}", repeated(".a", 5_000)),
        "\u{0}".to_owned(),
        "'unterminated".to_owned(),
        "a ? b".to_owned(),
    ] {
        let refused = Expression::compile(&text).is_err_and(|error| matches!(error, CelError::Compile(_)));
        assert!(refused, "{}", &text[..text.len().min(40)]);
    }
}

#[test]
fn deep_but_legal_expressions_are_evaluated() {
    let sum = format!("1{} == 301", "+1".repeat(300));
    assert_eq!(holds(&sum), Ok(true));
    let parens = format!("{}true{}", "(".repeat(30), ")".repeat(30));
    assert_eq!(holds(&parens), Ok(true));
}

/// Keys that are in no order are refused, however many there are: a sort by them could panic.
#[test]
fn only_keys_of_one_order_are_sorted_by() {
    let mixed: Vec<serde_json::Value> =
        (0..200).map(|n| if n % 3 == 0 { json!("a") } else { json!(n % 7) }).collect();
    let large: Vec<i64> = (0..200).map(|n| (1 << 53) + i64::from(n * 37 % 5)).collect();
    let object = json!({"mixed": mixed, "large": large});
    let holds = |expression: &str| Expression::compile(expression)?.evaluate_bool(&[("self", &object)]);
    assert_eq!(holds("self.large.sortBy(x, x).size() == 200"), Ok(true));
    for expression in [
        "self.mixed.sortBy(x, x).size() == 200",
        "self.large.sortBy(x, x % 2 == 0 ? dyn(double(x)) : dyn(x)).size() == 200",
        "self.large.sortBy(x, x % 3 == 0 ? double('NaN') : double(x)).size() == 200",
    ] {
        assert!(holds(expression).is_err(), "{expression}");
    }
}
