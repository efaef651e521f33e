//! The code that the README shows is code of an example, which is compiled with the tests.

const EXAMPLE: &str = include_str!("../../examples/greeting.rs");
const PAGES: [&str; 2] = [include_str!("../../../../README.md"), include_str!("../../../../README.zh-CN.md")];

#[test]
fn what_the_readme_shows_is_code_of_the_example() {
    for page in PAGES {
        let blocks: Vec<&str> =
            page.split("```rust\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
        assert!(!blocks.is_empty(), "the README shows an operator");
        for block in blocks {
            assert!(EXAMPLE.contains(block), "examples/greeting.rs does not have\n{block}");
        }
    }
}
