//! How wide the terminal is, and text broken into that width. Pure but for the question.

use std::io::IsTerminal;

/// No terminal is taken to be narrower: below this, broken lines are harder to read than long ones.
const LEAST: usize = 30;

/// The columns of the terminal on stdout. In a pipe there are none, and nothing is broken.
pub(super) fn columns() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let (columns, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(columns.0).max(LEAST))
}

/// The text with line breaks in place of spaces, so that it fits between `indent` and `columns`. What has no space
/// stays whole and is left to the terminal.
pub(super) fn wrapped(text: &str, indent: usize, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    let mut at = indent;
    for (number, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && at + 1 + length > columns {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            at = indent;
        } else if number > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_full_as_it_can_be_and_no_fuller() {
        assert_eq!(wrapped("one two three four", 0, Some(13)), "one two three\nfour");
        assert_eq!(wrapped("one two three four", 2, Some(13)), "one two\n  three four");
        assert_eq!(wrapped("one two three four", 0, None), "one two three four");
    }

    #[test]
    fn what_may_be_copied_is_never_broken() {
        let path = "/a/very/long/path/that/fits/nowhere/kubeconfig";
        assert_eq!(wrapped(path, 12, Some(30)), path);
        assert_eq!(wrapped(&format!("in {path}"), 4, Some(30)), format!("in\n    {path}"));
    }
}
