//! What the attacks came to, as rows under their columns.

use std::time::Duration;

/// How one attack ended.
pub(super) enum Outcome {
    Held(String),
    Failed(String),
}

/// One attack's figures.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    /// Megabytes.
    pub(super) memory_before: f64,
    pub(super) memory_peak: f64,
    /// Seconds of processor time.
    pub(super) processor: f64,
    /// The p99 of the bystander's answers before the attack, and during it.
    pub(super) calm: Duration,
    pub(super) bystander: Duration,
    pub(super) worst: Duration,
}

impl Line {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            outcome: Outcome::Failed("not played".into()),
            memory_before: 0.0,
            memory_peak: 0.0,
            processor: 0.0,
            calm: Duration::ZERO,
            bystander: Duration::ZERO,
            worst: Duration::ZERO,
        }
    }

    pub(super) fn held(mut self, what: String) -> Self {
        self.outcome = Outcome::Held(what);
        self
    }

    pub(super) fn failed(mut self, why: String) -> Self {
        self.outcome = Outcome::Failed(why);
        self
    }

    fn cells(&self) -> [String; 8] {
        let (held, what) = match &self.outcome {
            Outcome::Held(what) => ("held", what.as_str()),
            Outcome::Failed(why) => ("FAILED", why.lines().next().unwrap_or_default()),
        };
        let milliseconds = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
        [
            self.name.to_owned(),
            held.to_owned(),
            format!("{:.0} > {:.0}", self.memory_before, self.memory_peak),
            format!("{:.2}", self.processor),
            milliseconds(self.calm),
            milliseconds(self.bystander),
            milliseconds(self.worst),
            what.to_owned(),
        ]
    }
}

/// Prints all of them.
pub(super) fn print(lines: &[Line]) {
    let titles =
        ["attack", "", "memory, MB", "CPU, s", "GET p99 calm, ms", "attacked", "worst", "what was seen"];
    let rows: Vec<[String; 8]> =
        std::iter::once(titles.map(str::to_owned)).chain(lines.iter().map(Line::cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    anstream::println!("");
    for row in rows {
        let cell = |(column, text): (usize, &String)| match column {
            // Words stand at the left of their column, figures at the right.
            0 | 1 | 7 => format!("{text:<width$}  ", width = widths[column]),
            _ => format!("{text:>width$}  ", width = widths[column]),
        };
        let line: String = row.iter().enumerate().map(cell).collect();
        anstream::println!("{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attack_says_why_in_one_line() {
        let line = Line::new("a").failed("first\nsecond".into());
        let cells = line.cells();
        assert_eq!((cells[1].as_str(), cells[7].as_str()), ("FAILED", "first"));
    }
}
