//! No code on a page is untested by accident: it is executed, compiled, or says that it is not.

use std::path::Path;

use crate::pages;

/// The pages that `tests/tutorial` executes, in this order.
const EXECUTED: [&str; 2] = ["docs/tutorial.md", "docs/testing.md"];
/// Written by generators from what is tested elsewhere: doctests and help texts.
const GENERATED: [&str; 2] = ["docs/guide.md", "docs/commands.md"];
/// What a block of an executed page may be.
const DIRECTIVES: [&str; 9] =
    ["run", "fails", "until", "background", "interrupt", "file", "patch", "output", "skip"];

#[test]
fn every_block_of_an_executed_page_says_what_it_is() {
    for page in EXECUTED {
        for step in pages::read(Path::new(page)).steps {
            let directive = step.directive.as_deref().unwrap_or_default();
            let word = directive.split(' ').next().unwrap_or_default();
            assert!(
                DIRECTIVES.contains(&word),
                "{page}:{}: a block without a known `test:` comment",
                step.line
            );
            let reason = directive.strip_prefix("skip").is_none_or(|reason| !reason.trim().is_empty());
            assert!(reason, "{page}:{}: a skip needs a reason", step.line);
        }
    }
}

#[test]
fn code_elsewhere_in_docs_says_that_it_is_an_illustration() {
    let english = |page: &Path| page.starts_with("docs") && !pages::is_chinese(page);
    for page in pages::all().iter().filter(|page| english(page)) {
        if EXECUTED.iter().chain(&GENERATED).any(|known| page == Path::new(known)) {
            continue;
        }
        for step in pages::read(page).steps {
            let code = step.block.as_ref().is_some_and(|block| ["rust", "sh"].contains(&block.language()));
            let skipped = step.directive.as_deref().is_some_and(|directive| directive.starts_with("skip "));
            assert!(!code || skipped, "{}:{}: code that nothing tests", page.display(), step.line);
        }
    }
}
