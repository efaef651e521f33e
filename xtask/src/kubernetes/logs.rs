//! The part of a component's log that says why it failed.

use std::path::Path;

use fs_err as fs;

const LINES: usize = 12;

/// The last errors of a log, or its last lines when it has none.
pub(super) fn tail(path: &Path) -> String {
    match fs::read(path) {
        Ok(bytes) => relevant(&String::from_utf8_lossy(&bytes)),
        Err(error) => format!("(no log: {error})"),
    }
}

fn relevant(log: &str) -> String {
    let errors: Vec<_> = log.lines().filter(|line| is_error(line)).collect();
    let lines: Vec<_> = if errors.is_empty() { log.lines().collect() } else { errors };
    let skipped = lines.len().saturating_sub(LINES);
    lines[skipped..].iter().fold(String::new(), |shown, line| shown + "    " + line + "\n")
}

/// Whether a line reports a failure, in klog's form (`E1115 …`), containerd's, etcd's, cobra's or Go's own.
fn is_error(line: &str) -> bool {
    let klog = line.starts_with(['E', 'F']) && line.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    klog || line.to_ascii_lowercase().starts_with("error")
        || ["level=error", "level=fatal", r#""level":"fatal""#, r#""level":"error""#, "panic:", "failed to "]
            .iter()
            .any(|mark| line.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shown_before_chatter() {
        let log = "I1115 1 starting\nE1115 1 no such file\nI1115 2 stopping\n";
        assert_eq!(relevant(log), "    E1115 1 no such file\n");
    }

    #[test]
    fn without_errors_the_last_lines_are_shown() {
        let log = "line\n".repeat(40) + "last\n";
        let shown = relevant(&log);
        assert_eq!(shown.lines().count(), LINES);
        assert!(shown.ends_with("last\n"));
    }
}
