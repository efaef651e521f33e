//! Every relative link leads to a file, and to a heading of it where it names one.

use std::path::{Component, Path, PathBuf};

use crate::pages;

/// Where a relative link of a page leads, as a path from the root; `None` if it leaves the repository.
fn resolve(page: &Path, target: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(path)
}

/// What is wrong with a link of a page.
fn problem(page: &Path, target: &str) -> Option<String> {
    if target.starts_with("https://") || target.starts_with("http://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { page.to_path_buf() } else { resolve(page, file)? };
    if !pages::root().join(&path).exists() {
        return Some(format!("{} does not exist", path.display()));
    }
    let anchor = anchor?;
    if path.extension().is_none_or(|extension| extension != "md") {
        return Some("an anchor in something that is no page".into());
    }
    let headings = pages::read(&path).headings;
    let known = headings.iter().any(|heading| heading.anchor == anchor);
    (!known).then(|| format!("{} has no heading #{anchor}", path.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut problems = Vec::new();
    for page in pages::all() {
        for link in pages::read(&page).links {
            if let Some(problem) = problem(&page, &link.target) {
                problems.push(format!("{}:{}: {}: {problem}", page.display(), link.line, link.target));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_wrong_file_and_a_wrong_anchor_are_found() {
    let readme = Path::new("README.md");
    assert_eq!(problem(readme, "README.zh-CN.md"), None);
    assert_eq!(problem(readme, "nothing.md").as_deref(), Some("nothing.md does not exist"));
    assert_eq!(problem(readme, "#license"), None);
    assert_eq!(problem(readme, "#licence").as_deref(), Some("README.md has no heading #licence"));
}
