//! What selectors mean, what Kubernetes refuses, and that the quick way to match is the plain one.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[test]
fn every_operator_means_what_it_means_to_kubernetes() {
    let web = [("app", "web"), ("tier", "front"), ("level", "7"), ("empty", "")];
    let matches = |selector: &str| Selector::parse(selector).unwrap().matches(web);
    for selector in [
        "",
        " ",
        "app",
        "!canary",
        "app=web",
        "app == web",
        "app in (db, web)",
        "app!=db",
        "canary!=yes",
        "canary notin (a,b)",
        "level>6",
        "level < 8",
        "empty=",
        "empty in ()",
        "empty in (,x)",
        "app=web,tier notin (back),!canary,level",
        "example.com/x!=y",
        "in!=x",
        "app in (web,)",
    ] {
        assert!(matches(selector), "{selector}");
    }
    for selector in [
        "canary",
        "!app",
        "app=db",
        "app notin (web)",
        "canary in (a)",
        "level>7",
        "app>1",
        "app!=web",
        "app=web,tier=back",
        "app=web,app=db",
        "canary=",
        "canary in ()",
    ] {
        assert!(!matches(selector), "{selector}");
    }
    assert!(
        Selector::parse("!a").unwrap().matches_map(None) && !Selector::parse("a").unwrap().matches_map(None)
    );
}

#[test]
fn what_kubernetes_refuses_is_refused_in_its_words() {
    for (selector, why) in [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a in (b) c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be \
             an integer",
        ),
    ] {
        assert_eq!(Selector::parse(selector).unwrap_err().to_string(), why, "{selector}");
    }
    let long = "x".repeat(64);
    for selector in ["a=-b", "-a", "a/b/c", "/a", "A.b/c", "a>", &long, &format!("a={long}")] {
        let why = Selector::parse(selector).unwrap_err().to_string();
        assert!(why.starts_with("unable to parse requirement: ") && why.contains("Invalid value"), "{why}");
    }
}

#[test]
fn selectors_of_objects_match_as_in_the_api() {
    let object = json!({"metadata": {"labels": {"app": "web"}}});
    let matches =
        |selector: Value| serde_json::from_value::<LabelSelector>(selector).unwrap().matches(&object);
    let one = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    assert!(matches(json!({})));
    assert!(matches(json!({"matchLabels": {"app": "web"}})));
    assert!(!matches(json!({"matchLabels": {"app": "db"}})));
    assert!(matches(one("In", "app", &["web", "db"])));
    assert!(!matches(one("In", "tier", &["web"])));
    assert!(matches(one("NotIn", "tier", &["web"])), "a label that is missing is not in any list");
    assert!(!matches(one("NotIn", "app", &["web"])));
    assert!(matches(one("Exists", "app", &[])) && !matches(one("Exists", "tier", &[])));
    assert!(matches(one("DoesNotExist", "tier", &[])) && !matches(one("DoesNotExist", "app", &[])));
    assert!(!matches(one("Gt", "app", &["1"])), "numbers are compared by nodes alone");
}

fn some_requirement() -> impl Strategy<Value = Requirement> {
    let operator = prop::sample::select(vec![
        Operator::In,
        Operator::NotIn,
        Operator::Equals,
        Operator::DoubleEquals,
        Operator::NotEquals,
        Operator::Exists,
        Operator::DoesNotExist,
        Operator::GreaterThan,
        Operator::LessThan,
    ]);
    let value = prop::sample::select(vec!["", "1", "2", "x"]).prop_map(str::to_owned);
    ("[ab]", operator, prop::collection::vec(value, 0..3), 0_i64..3)
        .prop_map(|(key, operator, values, limit)| match operator {
            Operator::GreaterThan | Operator::LessThan => {
                Requirement::new(key, operator, [limit.to_string()])
            }
            _ => Requirement::new(key, operator, values),
        })
        .prop_filter_map("as many values as the operator takes", Result::ok)
}

proptest! {
    #[test]
    fn a_selector_means_what_its_requirements_mean_one_by_one(
        requirements in prop::collection::vec(some_requirement(), 0..5),
        labels in prop::collection::btree_map("[abc]", "[12x]?", 0..3),
    ) {
        let label = |key: &str| labels.get(key).map(String::as_str);
        let expected = requirements.iter().all(|one| one.matches(label(&one.key)));
        prop_assert_eq!(Selector::new(requirements).matches_map(Some(&labels)), expected);
    }

    #[test]
    fn what_is_printed_reads_as_the_same_selector(requirements in prop::collection::vec(some_requirement(), 0..5)) {
        let selector = Selector::new(requirements);
        prop_assert_eq!(Selector::parse(&selector.to_string()).unwrap(), selector);
    }

    #[test]
    fn no_text_makes_the_parser_panic(selector in ".{0,40}", symbols in "[a-c =!(),<>]{0,20}") {
        let _ = (Selector::parse(&selector), Selector::parse(&symbols));
    }
}
