//! Just enough of Markdown: the headings, links and fenced blocks of a page, and the comments that say what a block is
//! to a test. A page's text comes in; its parts leave, each with its line.

/// A page, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) headings: Vec<Heading>,
    pub(crate) links: Vec<Link>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Heading {
    pub(crate) level: usize,
    /// What a link to it ends with, as GitHub makes it.
    pub(crate) anchor: String,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) target: String,
}

/// A fenced block, a `<!-- test: … -->`, or such a comment with the block that follows it.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) line: usize,
    /// What stands behind `test:`.
    pub(crate) directive: Option<String>,
    pub(crate) block: Option<Block>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    /// What stands behind the fence: the language first.
    pub(crate) info: String,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn language(&self) -> &str {
        self.info.split([',', ' ']).next().unwrap_or_default()
    }
}

impl Page {
    pub(crate) fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut directive: Option<(usize, String)> = None;
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        while let Some((number, line)) = lines.next() {
            if let Some(fence) = Fence::opened_by(line) {
                let body: Vec<&str> = lines
                    .by_ref()
                    .map(|(_, line)| line)
                    .take_while(|line| !fence.is_closed_by(line))
                    .collect();
                let text = body.into_iter().flat_map(|line| [line, "\n"]).collect();
                let block = Block { info: fence.info, text };
                let directive = directive.take().map(|(_, text)| text);
                page.steps.push(Step { line: number, directive, block: Some(block) });
                continue;
            }
            // A directive that is followed by anything but its block stands for itself.
            if !line.trim().is_empty()
                && let Some((number, text)) = directive.take()
            {
                page.steps.push(Step { line: number, directive: Some(text), block: None });
            }
            if let Some(text) = comment(line).and_then(|text| text.strip_prefix("test:")) {
                directive = Some((number, text.trim().to_owned()));
            } else if let Some(heading) = heading(line) {
                page.add_heading(heading);
                page.add_links(number, line);
            } else {
                page.add_links(number, line);
            }
        }
        if let Some((line, text)) = directive {
            page.steps.push(Step { line, directive: Some(text), block: None });
        }
        page
    }

    fn add_heading(&mut self, (level, text): (usize, &str)) {
        let slug = slug(text);
        let same = |heading: &&Heading| {
            heading.anchor == slug || heading.anchor.strip_prefix(&slug).is_some_and(is_repetition)
        };
        let before = self.headings.iter().filter(same).count();
        let anchor = if before == 0 { slug } else { format!("{slug}-{before}") };
        self.headings.push(Heading { level, anchor });
    }

    /// Inline links, outside of code: `[text](target)`.
    fn add_links(&mut self, number: usize, line: &str) {
        let mut rest = without_code(line);
        while let Some(start) = rest.find("](") {
            let target: String = rest[start + 2..].chars().take_while(|char| *char != ')').collect();
            rest = rest[start + 2..].to_owned();
            self.links.push(Link { line: number, target });
        }
    }
}

fn is_repetition(rest: &str) -> bool {
    rest.strip_prefix('-')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn comment(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| (level, text.trim()))
}

/// What GitHub makes of a heading's text: lower case, without punctuation, with `-` for spaces.
fn slug(text: &str) -> String {
    // Of a link, the text counts.
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    let kept = shown.to_lowercase();
    let kept = kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The opening of a fenced block.
struct Fence {
    marks: usize,
    info: String,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let info = line.trim_start().trim_start_matches('`');
        let marks = line.trim_start().len() - info.len();
        (marks >= 3 && !info.contains('`')).then(|| Self { marks, info: info.trim().to_owned() })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.marks && line.bytes().all(|byte| byte == b'`')
    }
}

#[test]
fn a_page_is_taken_apart() {
    let page = Page::parse(
        "# A `page`, *of* two\n[here](#there) `[not](a-link)` [b](b.md)\n\n<!-- test: run -->\n```sh\n# no heading\nls\n\
         ```\n<!-- test: interrupt dev -->\n\n## 安装 windlass\n## Again\n## Again\n",
    );
    let anchors: Vec<&str> = page.headings.iter().map(|heading| heading.anchor.as_str()).collect();
    assert_eq!(anchors, ["a-page-of-two", "安装-windlass", "again", "again-1"]);
    let targets: Vec<(usize, &str)> =
        page.links.iter().map(|link| (link.line, link.target.as_str())).collect();
    assert_eq!(targets, [(2, "#there"), (2, "b.md")]);
    let block = Block { info: "sh".into(), text: "# no heading\nls\n".into() };
    assert_eq!(
        (page.steps[0].directive.as_deref(), page.steps[0].block.as_ref()),
        (Some("run"), Some(&block))
    );
    assert_eq!(
        (page.steps[1].directive.as_deref(), page.steps[1].block.as_ref()),
        (Some("interrupt dev"), None)
    );
    assert_eq!(page.steps.len(), 2);
}
