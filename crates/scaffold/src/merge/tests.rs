//! Registration finds its place in files that people have changed.

use super::*;

const OLD: &str = "use x;\n\npub mod beta;\n// +windlass:scaffold:modules\n\nfn f() {\n    &[\n        beta::register,\n        // +windlass:scaffold:register\n    ];\n}\n";
const NEW: &str = "use x;\n\npub mod alpha;\npub mod beta;\n// +windlass:scaffold:modules\n\nfn f() {\n    &[\n        beta::register,\n        alpha::register,\n        // +windlass:scaffold:register\n    ];\n}\n";

#[test]
fn a_file_that_nobody_touched_becomes_the_new_one() {
    assert_eq!(register("src/lib.rs", OLD, NEW, OLD).unwrap(), NEW);
    assert_eq!(register("src/lib.rs", NEW, OLD, NEW).unwrap(), OLD);
}

#[test]
fn what_a_person_added_stays_and_modules_stay_in_order() {
    let ours = OLD
        .replace("pub mod beta;", "mod aaa;\npub mod beta;\npub mod own;")
        .replace("use x;", "use x;\nuse y;");
    let merged = register("src/lib.rs", OLD, NEW, &ours).unwrap();
    assert!(
        merged.contains("use y;")
            && merged.contains("mod aaa;\npub mod alpha;\npub mod beta;\npub mod own;\n// +windlass"),
        "{merged}"
    );
    assert!(merged.contains("beta::register,\n        alpha::register,\n        // +windlass"), "{merged}");
    assert_eq!(register("src/lib.rs", NEW, OLD, &merged).unwrap(), ours);
}

#[test]
fn a_missing_marker_is_an_error_with_the_lines_to_add() {
    let ours = OLD.replace("        // +windlass:scaffold:register\n", "");
    let error = register("src/lib.rs", OLD, NEW, &ours).unwrap_err();
    assert!(error.to_string().contains("// +windlass:scaffold:register"), "{error}");
    assert!(error.hint().unwrap().contains("alpha::register,"), "{error:?}");
}

#[test]
fn what_is_registered_already_is_not_registered_twice() {
    assert_eq!(register("src/lib.rs", OLD, NEW, NEW).unwrap(), NEW);
}
