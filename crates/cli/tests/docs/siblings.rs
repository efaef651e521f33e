//! Every page of docs/, and the README, is there in English and in Chinese, with the same shape and the same code.

use std::path::{Path, PathBuf};

use crate::{
    markdown::{Block, Page, Step},
    pages,
};

/// Pages that stay English: generated from help texts, which are English.
const ENGLISH_ONLY: [&str; 1] = ["docs/commands.md"];

/// The English pages that have a Chinese sibling.
fn translated() -> Vec<PathBuf> {
    let mut pages = pages::all();
    pages.retain(|page| {
        let docs = page.starts_with("docs") || page == Path::new("README.md");
        docs && !pages::is_chinese(page) && !ENGLISH_ONLY.contains(&page.to_str().unwrap())
    });
    assert!(pages.len() >= 6, "the pages must be found: {pages:?}");
    pages
}

#[test]
fn every_page_has_its_chinese_sibling_and_no_sibling_is_alone() {
    let all = pages::all();
    for page in translated() {
        assert!(all.contains(&pages::chinese(&page)), "{} has no Chinese sibling", page.display());
    }
    for page in all.iter().filter(|page| pages::is_chinese(page)) {
        let english = PathBuf::from(page.to_str().unwrap().replace(".zh-CN.md", ".md"));
        assert!(all.contains(&english), "{} has no English sibling", page.display());
    }
}

#[test]
fn siblings_link_to_each_other_and_stay_in_their_language() {
    let all = pages::all();
    for english in translated() {
        let chinese = pages::chinese(&english);
        let name = |page: &Path| page.file_name().unwrap().to_str().unwrap().to_owned();
        let targets =
            |page: &Path| pages::read(page).links.into_iter().map(|link| link.target).collect::<Vec<_>>();
        assert!(
            targets(&english).contains(&name(&chinese)),
            "{} lacks a link to its sibling",
            english.display()
        );
        let links = targets(&chinese);
        assert!(links.contains(&name(&english)), "{} lacks a link to its sibling", chinese.display());
        for target in links.iter().filter(|target| **target != name(&english)) {
            let file = target.split('#').next().unwrap_or_default();
            let sibling = chinese.parent().unwrap().join(file).with_extension("zh-CN.md");
            let is_page = Path::new(file).extension().is_some_and(|extension| extension == "md");
            let leaves = is_page && !pages::is_chinese(Path::new(file)) && all.contains(&sibling);
            assert!(!leaves, "{} links to {target}, which is there in Chinese", chinese.display());
        }
    }
}

#[test]
fn siblings_have_the_same_headings_and_blocks() {
    for page in translated() {
        let (english, chinese) = (pages::read(&page), pages::read(&pages::chinese(&page)));
        let levels = |page: &Page| page.headings.iter().map(|heading| heading.level).collect::<Vec<_>>();
        assert_eq!(levels(&english), levels(&chinese), "the headings of {}", page.display());
        assert_eq!(english.steps.len(), chinese.steps.len(), "the number of blocks of {}", page.display());
        for (one, other) in english.steps.iter().zip(&chinese.steps) {
            let place = format!("{}:{} and line {} of its sibling", page.display(), one.line, other.line);
            assert_eq!(said(one), said(other), "{place}");
        }
    }
}

/// What a step says, whichever language its comments are in.
fn said(step: &Step) -> (Option<&str>, Option<Block>) {
    let block =
        step.block.as_ref().map(|block| Block { info: block.info.clone(), text: without_comments(block) });
    // The reason of a skip is prose.
    let directive = step.directive.as_deref();
    (directive.map(|text| if text.starts_with("skip") { "skip" } else { text }), block)
}

fn without_comments(block: &Block) -> String {
    let mark = match block.language() {
        "rust" | "go" => "//",
        "sh" | "yaml" | "toml" | "make" | "dockerfile" => "#",
        _ => return block.text.clone(),
    };
    block.text.lines().flat_map(|line| [without_comment(line, mark), "\n"]).collect()
}

fn without_comment<'a>(line: &'a str, mark: &str) -> &'a str {
    let begins =
        |(index, _): &(usize, &str)| line[..*index].chars().next_back().is_none_or(char::is_whitespace);
    let cut = line.match_indices(mark).find(begins).map_or(line.len(), |(index, _)| index);
    line[..cut].trim_end()
}

#[test]
fn only_comments_may_differ() {
    assert_eq!(without_comment("make run  # against a cluster", "#"), "make run");
    assert_eq!(without_comment("curl http://here#there", "#"), "curl http://here#there");
    assert_eq!(without_comment("    // 注释", "//"), "");
}
