//! Tables of results with their bounds.

use std::fmt;

/// One scenario's results.
pub(crate) struct Table {
    title: &'static str,
    note: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    checks: Vec<(bool, String)>,
}

impl Table {
    pub(crate) fn new(title: &'static str, note: &'static str, columns: &[&'static str]) -> Self {
        Self { title, note, columns: columns.to_vec(), rows: Vec::new(), checks: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Notes whether a bound holds; `what` states the bound and the figure.
    pub(crate) fn check(&mut self, kept: bool, what: String) {
        self.checks.push((kept, what));
    }

    /// The number of missed bounds.
    pub(crate) fn missed(&self) -> usize {
        self.checks.iter().filter(|(kept, _)| !kept).count()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n\n{}\n", self.title, self.note)?;
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(self.columns[column].chars().count())
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |f: &mut fmt::Formatter<'_>, cells: &mut dyn Iterator<Item = &str>| {
            for (cell, width) in cells.zip(&widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")
        };
        line(f, &mut self.columns.iter().copied())?;
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        line(f, &mut rules.iter().map(String::as_str))?;
        for row in &self.rows {
            line(f, &mut row.iter().map(String::as_str))?;
        }
        writeln!(f)?;
        for (kept, what) in &self.checks {
            writeln!(f, "* {} {what}", if *kept { "kept:" } else { "**missed:**" })?;
        }
        Ok(())
    }
}

/// A part as per cent.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Seconds, short.
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2}") } else { format!("{seconds:.0}") }
}
