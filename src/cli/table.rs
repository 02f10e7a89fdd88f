//! Columns.

use super::style;

/// Between two columns.
const GAP: &str = "  ";

/// Rows under a head. Numbers stand to the right, words to the left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// For stdout.
    pub(super) fn text(&self) -> String {
        self.render(style::data())
    }

    fn render(&self, style: style::Style) -> String {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.width(column)).collect();
        let right: Vec<bool> = (0..self.head.len()).map(|column| self.is_numeric(column)).collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).zip(&right);
            let padded: Vec<String> =
                cells.map(|((cell, width), right)| pad(cell, *width, *right)).collect();
            padded.join(GAP).trim_end().to_owned()
        };
        let head: Vec<String> = self.head.iter().map(|name| (*name).to_owned()).collect();
        let mut lines = vec![style.faint(&line(&head))];
        lines.extend(self.rows.iter().map(|row| line(row)));
        lines.join("\n") + "\n"
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(move |row| row.get(column)).map(String::as_str)
    }

    fn width(&self, column: usize) -> usize {
        self.cells(column)
            .chain([self.head[column]])
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut filled = self.cells(column).filter(|cell| !matches!(*cell, "" | "-")).peekable();
        filled.peek().is_some()
            && filled
                .all(|cell| cell.starts_with(|first: char| first.is_ascii_digit() || first == '$'))
    }
}

fn pad(cell: &str, width: usize, right: bool) -> String {
    let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
    if right { gap + cell } else { cell.to_owned() + &gap }
}

/// Names and values, one pair a line.
pub(super) fn pairs(pairs: &[(&str, String)], style: style::Style) -> String {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    pairs
        .iter()
        .map(|(name, value)| format!("{}{GAP}{value}\n", style.faint(&pad(name, width, false))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let mut table = Table::new(&["MODEL", "USED", "ETA"]);
        table.row(vec!["openai:é".into(), "9".into(), "-".into()]);
        table.row(vec!["a:b".into(), "1,200".into(), "5s".into()]);
        assert_eq!(
            table.render(plain()),
            "MODEL      USED  ETA\nopenai:é      9    -\na:b       1,200   5s\n"
        );
    }

    #[test]
    fn pairs_are_aligned() {
        assert_eq!(
            pairs(&[("a", "1".into()), ("long", "2".into())], plain()),
            "a     1\nlong  2\n"
        );
    }

    /// Tests do not run on a terminal, or say that they do not.
    fn plain() -> style::Style {
        style::Style::plain()
    }
}
