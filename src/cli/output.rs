//! Prints data to stdout and messages to stderr, with colour and columns.
//!
//! Text is written with its styles. The streams remove them where they would show as text: without a
//! terminal, with `NO_COLOR`, and with `TERM=dumb`.

use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use comfy_table::{Cell, CellAlignment, presets};
use serde::Serialize;

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(super) const STRONG: Style = Style::new().bold();
pub(super) const FAINT: Style = Style::new().dimmed();

/// The gap between two columns.
const GAP: u16 = 2;

/// Writes a text of ours, with its styles, to stdout. A reader that closes the pipe (`| head`) is no
/// error.
pub(super) fn print_data(text: &str) -> anyhow::Result<()> {
    write_line(&mut anstream::stdout().lock(), &harmless(text))
}

/// Writes a text without styles to stdout. Another program gets every character of it: the stream of
/// [`print_data`] would remove control characters.
pub(super) fn print_plain(text: &str) -> anyhow::Result<()> {
    let stdout = io::stdout();
    if stdout.is_terminal() { print_data(text) } else { write_line(&mut stdout.lock(), text) }
}

fn write_line(stdout: &mut impl Write, text: &str) -> anyhow::Result<()> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("writing to stdout")
        }
        _ => Ok(()),
    }
}

/// Writes a value to stdout as JSON.
pub(super) fn print_json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    print_plain(&serde_json::to_string_pretty(value).context("writing JSON")?)
}

/// Writes a line to stderr. A failure to write cannot be reported anywhere.
pub(super) fn print_message(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", harmless(text));
}

/// Escapes what controls a terminal, apart from the ends of lines, tabs and styles: a text of ours may
/// hold a name or a word that is not.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_harmless = |sign: char| !sign.is_control() || matches!(sign, '\n' | '\t');
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, sign) in text.char_indices() {
        if is_harmless(sign) || sign == '\u{1b}' && is_style(&text[at + 1..]) {
            shown.push(sign);
        } else {
            shown.extend(sign.escape_debug());
        }
    }
    Cow::Owned(shown)
}

/// Whether the text behind an escape character makes it a style, such as `[1;31m`.
fn is_style(text: &str) -> bool {
    let numbers = text.strip_prefix('[');
    numbers
        .and_then(|text| text.find(|sign: char| !sign.is_ascii_digit() && sign != ';'))
        .is_some_and(|end| text[1 + end..].starts_with('m'))
}

pub(super) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Rows under a head. Numbers are aligned right, words left.
#[derive(Debug)]
pub(super) struct Table(comfy_table::Table);

impl Table {
    pub(super) fn new(head: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_header(head);
        Self(table)
    }

    pub(super) fn add_row(&mut self, cells: Vec<String>) {
        self.0.add_row(cells);
    }

    pub(super) fn text(mut self) -> String {
        let numeric: Vec<bool> = (0..self.0.column_count())
            .map(|column| are_numbers(self.0.column_cells_iter(column).flatten()))
            .collect();
        for (column, numeric) in self.0.column_iter_mut().zip(numeric) {
            column.set_padding((0, GAP));
            if numeric {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let text = self.0.trim_fmt();
        let (head, rows) = text.split_once('\n').unwrap_or((&text, ""));
        let rows = rows.lines().map(|row| format!("{row}\n"));
        format!("{}\n{}", styled(FAINT, head), rows.collect::<String>())
    }
}

fn are_numbers<'a>(cells: impl Iterator<Item = &'a Cell>) -> bool {
    let mut filled =
        cells.map(Cell::content).filter(|cell| !matches!(cell.as_str(), "" | "-")).peekable();
    filled.peek().is_some()
        && filled.all(|cell| cell.starts_with(|first: char| first.is_ascii_digit() || first == '$'))
}

/// Names and values, one pair on each line. Values are not wrapped, so that a long path can be selected
/// as a whole.
pub(super) fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + usize::from(GAP);
    pairs
        .iter()
        .map(|(name, value)| format!("{}{value}\n", styled(FAINT, format_args!("{name:<width$}"))))
        .collect()
}

/// The text as written without a terminal.
#[cfg(test)]
pub(super) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let mut table = Table::new(&["MODEL", "USED", "ETA"]);
        table.add_row(vec!["openai:é".into(), "9".into(), "-".into()]);
        table.add_row(vec!["a:b".into(), "1,200".into(), "5s".into()]);
        assert_eq!(
            plain(&table.text()),
            "MODEL      USED  ETA\nopenai:é      9    -\na:b       1,200   5s\n"
        );
        assert_eq!(plain(&Table::new(&["MODEL"]).text()), "MODEL\n");
    }

    #[test]
    fn pairs_are_aligned() {
        assert_eq!(plain(&pairs(&[("a", "1".into()), ("long", "2".into())])), "a     1\nlong  2\n");
    }

    #[test]
    fn a_text_ends_its_line_and_keeps_its_characters() {
        let written = |text: &str| {
            let mut bytes = Vec::new();
            write_line(&mut bytes, text).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(written("a\u{1}b\u{c}c"), "a\u{1}b\u{c}c\n");
        assert_eq!(written("a\n"), "a\n");
    }

    #[test]
    fn a_name_does_not_control_the_terminal() {
        let name = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc\rd\u{9b}e";
        let shown = format!("{} {name}\n\tx", styled(BAD, "error:"));
        assert_eq!(
            harmless(&shown),
            format!(
                "{} a\\u{{1b}}]0;title\\u{{7}}b\\u{{1b}}[2Jc\\rd\\u{{9b}}e\n\tx",
                styled(BAD, "error:")
            )
        );
        assert!(matches!(harmless("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn colour_is_ansi() {
        assert_eq!(styled(BAD, "x"), "\x1b[1m\x1b[31mx\x1b[0m");
        assert_eq!(plain(&styled(BAD, "x")), "x");
    }
}
