//! Whatever is accepted can be used everywhere, and whatever is refused comes with one line of advice that helps.

use proptest::prelude::*;

use super::*;

type Check = fn(&str) -> Result<(), NameError>;

const CHECKS: [Check; 7] = [project, domain, group, version, kind, resource, image];

proptest! {
    #[test]
    fn a_refusal_is_one_line_with_a_hint(text in ".{0,80}") {
        for check in CHECKS {
            if let Err(error) = check(&text) {
                let said = error.to_string();
                prop_assert!(!said.contains('\n') && !error.hint().contains('\n') && !error.hint().is_empty(), "{said:?}");
            }
        }
    }

    #[test]
    fn what_a_hint_proposes_is_accepted(text in "[ A-Za-z0-9_.-]{1,90}") {
        let proposed = |error: NameError| error.hint().rsplit(' ').next().unwrap_or_default().to_owned();
        for (check, flagged) in [(kind as Check, true), (group, true), (project, false)] {
            if let Err(error) = check(&text) {
                let (hint, proposal) = (error.hint().to_owned(), proposed(error));
                if hint.contains("--") || !flagged {
                    prop_assert_eq!(check(&proposal), Ok(()), "{}", hint);
                }
            }
        }
    }

    #[test]
    fn a_kind_makes_a_module_and_a_resource(text in "[A-Z][A-Za-z0-9]{0,57}") {
        prop_assume!(kind(&text).is_ok());
        let module = module(&text);
        prop_assert!(module.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        prop_assert!(!TAKEN_MODULES.contains(&module.as_str()));
        prop_assert_eq!(resource(&plural(&text)), Ok(()));
    }

    #[test]
    fn a_project_makes_a_library_and_a_namespace(text in "[a-z][a-z0-9-]{0,70}") {
        prop_assume!(project(&text).is_ok());
        prop_assert!(!library(&text).contains('-'));
        prop_assert!(text.len() + "-system".len() <= 63);
    }

    #[test]
    fn versions_are_those_that_kubernetes_orders(major in 1_u32..100, minor in 1_u32..100) {
        for text in [format!("v{major}"), format!("v{major}alpha{minor}"), format!("v{major}beta{minor}")] {
            prop_assert_eq!(version(&text), Ok(()));
        }
    }
}

#[test]
fn names_that_cannot_work_are_refused() {
    let refused: [(Check, &[&str]); 7] = [
        (
            project,
            &["", "Memcached", "9lives", "a_b", "-a", "a-", "self", "build", "std", "test", "wind lass"],
        ),
        (domain, &["", "example", "Example.com", "example..com", "-a.com", "exa mple.com"]),
        (group, &["Cache", "my_group", "-cache", "ca che", ".", "cache."]),
        (version, &["", "1", "v0", "v01", "v1gamma1", "v1alpha", "v1alpha0", "V1", "v1.2"]),
        (
            kind,
            &[
                "",
                "memcached",
                "Mem-cached",
                "Mem_cached",
                "1Mem",
                "Option",
                "Self",
                "String",
                "Service",
                "Büro",
            ],
        ),
        (resource, &["", "Memcacheds", "mem cached", "1s", "a_b"]),
        (image, &["", "two words", "-x", "ngi\"nx", "nginx\\"]),
    ];
    for (check, texts) in refused {
        for text in texts {
            assert!(check(text).is_err(), "{text:?}");
        }
    }
}

#[test]
fn a_kind_with_a_hyphen_is_told_how_to_write_it() {
    let error = kind("mem-cached").unwrap_err();
    assert_eq!(error.to_string(), r#"the kind "mem-cached" is not in PascalCase"#);
    assert_eq!(error.hint(), "write letters and digits, a capital first: --kind MemCached");
}

#[test]
fn a_kind_that_is_a_word_of_rust_gets_a_module_of_another_name() {
    assert_eq!(kind("Type"), Ok(()));
    let modules = ["Type", "Main", "Lib", "Serde", "Memcached", "WebServer"].map(module);
    assert_eq!(modules, ["type_", "main_", "lib_", "serde_", "memcached", "webserver"]);
}

#[test]
fn plurals_are_regular() {
    let kinds =
        ["Memcached", "Policy", "Gateway", "Bus", "Box", "Batch", "Endpoints", "Quiz", "Proxy", "Class"];
    let expected = [
        "memcacheds",
        "policies",
        "gateways",
        "buses",
        "boxes",
        "batches",
        "endpoints",
        "quizes",
        "proxies",
        "classes",
    ];
    assert_eq!(kinds.map(plural), expected);
}

#[test]
fn no_kind_can_hide_a_name_that_its_code_imports() {
    // Kinds of others keep their names: their code imports nothing that could be hidden.
    let own = crate::render::TEMPLATES.iter().filter(|template| !template.name.starts_with("external/"));
    for template in own.filter(|template| crate::render::is_rust(template.path)) {
        for statement in template.text.split(';').filter(|text| text.trim_start().starts_with("use ")) {
            let plain =
                statement.split("{=").map(|part| part.split_once("=}").map_or(part, |(_, rest)| rest));
            let plain: String = plain.collect();
            for word in plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                let is_type = word.starts_with(|c: char| c.is_ascii_uppercase())
                    && word.contains(|c: char| c.is_ascii_lowercase());
                assert!(!is_type || TAKEN_TYPES.contains(&word), "{word} in {}", template.name);
            }
        }
    }
}
