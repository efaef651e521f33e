//! A table of figures: one row a measurement, one column a contender, medians with their spread.

/// The middle of some figures, and the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Spread {
    /// Of no figures there is none.
    pub(super) fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        let (low, high) = (*figures.first()?, *figures.last()?);
        Some(Self { low, median: figures[figures.len() / 2], high })
    }
}

/// A figure with the digits that its size deserves.
fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The rows under their columns, each column as wide as it must be.
pub(super) fn print(columns: &[&str], rows: &[(&str, Vec<Option<Spread>>)]) {
    let cell = |spread: &Option<Spread>| match spread {
        None => "-".to_owned(),
        Some(s) if figure(s.low) == figure(s.high) => figure(s.median),
        Some(s) => format!("{} ({}–{})", figure(s.median), figure(s.low), figure(s.high)),
    };
    let cells: Vec<Vec<String>> = rows.iter().map(|(_, row)| row.iter().map(cell).collect()).collect();
    let first = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = |column: usize| {
        let widest = cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).max(columns[column].chars().count())
    };
    let line = |name: &str, cells: &[String]| {
        let right = |(index, cell): (usize, &String)| format!("  {cell:>width$}", width = width(index));
        format!("{name:first$}") + &cells.iter().enumerate().map(right).collect::<String>()
    };
    anstream::println!("{}", line("", &columns.iter().map(|&title| title.to_owned()).collect::<Vec<_>>()));
    for ((name, _), row) in rows.iter().zip(&cells) {
        anstream::println!("{}", line(name, row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { low: 1.0, median: 2.0, high: 3.0 });
        assert!(Spread::of(Vec::new()).is_none());
    }

    #[test]
    fn small_figures_keep_two_digits() {
        assert_eq!(figure(0.333), "0.33");
        assert_eq!(figure(1234.5), "1234");
    }
}
