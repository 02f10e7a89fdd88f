//! Writes words and elements as lines, as a page shows them.

use scraper::node::Element;

use super::{
    flow::{Flow, is_block},
    lists::List,
};
use crate::{links::Link, math};

/// Inline elements with a space around them.
const SEPARATE_BLOCKS: [&str; 10] = [
    "button", "input", "select", "textarea", "label", "img", "text", "option", "meter", "progress",
];

/// Blocks that follow without a blank line.
const CLOSE_BLOCKS: [&str; 5] = ["dd", "dt", "summary", "caption", "legend"];

/// Most columns and rows that one cell may span.
const MAX_SPAN: usize = 60;

/// Most columns of a table.
const MAX_COLUMNS: usize = 1_000;

/// Text under construction, with the meaning of white space as in HTML.
#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    /// Whether a space is due before the next word.
    space: bool,
    /// Line breaks due before the next word.
    breaks: usize,
    /// Number of open `<sup>`.
    raised: usize,
    /// Number of open `<pre>` and `<textarea>`, which keep white space.
    kept: usize,
    pub(super) lists: Vec<List>,
    tables: Vec<Table>,
    /// Open table cells: whether each is a cell of data, whose blocks stay on one line.
    cells: Vec<bool>,
    /// The open link.
    link: Option<Link>,
    /// Whether the mark of an item or a heading was just written. Its first block stands on the same line.
    after_mark: bool,
    /// Whether a link was just closed. The next one must not touch it.
    after_link: bool,
}

/// An open table.
#[derive(Debug, Default)]
struct Table {
    /// Column of the next cell.
    column: usize,
    /// Number of cell borders written in the row.
    written: usize,
    /// For each column, the number of further rows that a cell above covers.
    taken: Vec<usize>,
}

impl Writer {
    pub(super) fn open(
        &mut self,
        element: &Element,
        flow: Option<Flow>,
        laid_out: bool,
        marker: Option<&str>,
    ) {
        let name = element.name();
        let is_line = flow == Some(Flow::Block);
        if !(self.after_mark && (is_line || matches!(name, "p" | "div" | "section" | "article"))) {
            self.begin_box(name, flow);
        }
        if SEPARATE_BLOCKS.contains(&name) || (name == "a" && self.after_link) {
            self.space = true;
        }
        match name {
            "br" if self.in_data() => self.space = true,
            "br" if self.kept > 0 => self.text.push('\n'),
            "br" => self.breaks = (self.breaks + 1).min(2),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !self.in_data() => {
                let level = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit - b'0'));
                self.write_word(&format!("{} ", "#".repeat(level)));
                self.after_mark = true;
            }
            "del" | "s" | "strike" => self.begin_strike(),
            "a" => self.link = element.attr("href").and_then(Link::to),
            "q" => self.write_word("\""),
            // Reading of a ruby word, in the brackets that `rp` would contain.
            "rt" => self.write_word("("),
            "pre" | "textarea" | "listing" | "xmp" | "plaintext" => self.kept += 1,
            "sup" => self.raised += 1,
            "li" => {
                self.breaks = self.breaks.max(1);
                let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(10));
                let mark = self.lists.last_mut().map(|list| list.next_mark(element, marker));
                self.write_word(&format!("{indent}{}", mark.as_deref().unwrap_or("- ")));
                self.after_mark = true;
            }
            "table" => self.tables.push(Table::default()),
            "tr" => {
                self.breaks = self.breaks.max(1);
                if let Some(table) = self.tables.last_mut() {
                    (table.column, table.written) = (0, 0);
                }
            }
            "td" | "th" => self.begin_cell(element, laid_out),
            "img" => {
                if let Some(alt) = element.attr("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.write_text(alt);
                    self.space = true;
                }
            }
            "input" => {
                let kind = element.attr("type").unwrap_or("text").to_ascii_lowercase();
                if matches!(kind.as_str(), "checkbox" | "radio") {
                    let ticked = element.attr("checked").is_some();
                    self.write_word(if ticked { "[x]" } else { "[ ]" });
                    self.space = true;
                }
                let alt = element.attr("alt").filter(|_| kind == "image");
                if let Some(alt) = alt {
                    self.write_text(alt);
                    self.space = true;
                }
                let shown = !matches!(
                    kind.as_str(),
                    "hidden" | "password" | "checkbox" | "radio" | "file" | "image" | "color"
                );
                let value = element.attr("value").filter(|value| !value.is_empty());
                let value = value.or_else(|| element.attr("placeholder"));
                if let Some(value) = value.filter(|_| shown) {
                    self.write_text(value);
                    self.space = true;
                }
            }
            _ => {}
        }
    }

    pub(super) fn close(&mut self, element: &Element, flow: Option<Flow>) {
        let name = element.name();
        self.begin_box(name, flow);
        self.after_link = name == "a";
        match name {
            "del" | "s" | "strike" => self.end_strike(),
            "a" => {
                if let Some(link) = self.link.take() {
                    link.end(&mut self.text);
                }
            }
            "q" => self.text.push('"'),
            "rt" => self.text.push(')'),
            "pre" | "listing" | "xmp" | "plaintext" => self.kept = self.kept.saturating_sub(1),
            "textarea" => (self.kept, self.space) = (self.kept.saturating_sub(1), true),
            "sup" => self.raised = self.raised.saturating_sub(1),
            "ul" | "ol" | "menu" => drop(self.lists.pop()),
            "table" => drop(self.tables.pop()),
            "td" | "th" => drop(self.cells.pop()),
            "tr" => self.end_row(),
            name if SEPARATE_BLOCKS.contains(&name) => self.space = true,
            _ => {}
        }
    }

    /// Begins struck-out text.
    pub(super) fn begin_strike(&mut self) {
        self.write_word("~~");
    }

    /// Ends struck-out text.
    pub(super) fn end_strike(&mut self) {
        match self.text.strip_suffix("~~") {
            // Nothing was struck out.
            Some(before) => self.text.truncate(before.len()),
            None => self.text.push_str("~~"),
        }
    }

    /// Writes a formula, already converted to text, within the line.
    pub(super) fn write_formula(&mut self, text: &str) {
        self.space = true;
        if !text.is_empty() {
            self.write_word(text);
        }
        self.space = true;
    }

    /// Writes an inner page, already converted to text, as a block.
    pub(super) fn write_page(&mut self, text: &str) {
        if !text.is_empty() {
            self.breaks = 2;
            self.write_word(text);
            self.breaks = 2;
        }
    }

    /// Separates the box of an element from the text around it.
    fn begin_box(&mut self, name: &str, flow: Option<Flow>) {
        let is_close = CLOSE_BLOCKS.contains(&name) || !is_block(name);
        match flow {
            Some(Flow::Inline) => {}
            Some(Flow::Apart) => self.space = true,
            None if !is_block(name) => {}
            _ if self.in_data() => self.space = true,
            _ => self.breaks = self.breaks.max(if is_close { 1 } else { 2 }),
        }
    }

    fn in_data(&self) -> bool {
        self.cells.last() == Some(&true)
    }

    /// Begins a cell. Cells covered by spans stay empty.
    fn begin_cell(&mut self, element: &Element, laid_out: bool) {
        self.cells.push(!laid_out);
        if laid_out {
            self.breaks = self.breaks.max(2);
            return;
        }
        let span = |name: &str| {
            let number = element.attr(name).and_then(|n| n.trim().parse::<usize>().ok());
            number.unwrap_or(1).clamp(1, MAX_SPAN)
        };
        let (columns, rows) = (span("colspan"), span("rowspan"));
        let mut table = self.tables.pop().unwrap_or_default();
        while let Some(taken) = table.taken.get_mut(table.column).filter(|taken| **taken > 0) {
            *taken -= 1;
            table.column += 1;
        }
        while table.written < table.column {
            self.write_word(" | ");
            table.written += 1;
        }
        let end = (table.column + columns).min(MAX_COLUMNS);
        if rows > 1 && table.taken.len() < end {
            table.taken.resize(end, 0);
        }
        for taken in table.taken.iter_mut().take(end).skip(table.column) {
            *taken = rows - 1;
        }
        table.column = end;
        self.tables.push(table);
    }

    /// Ends a row: spans to the right of its last cell have one row fewer left.
    fn end_row(&mut self) {
        if let Some(table) = self.tables.last_mut() {
            for taken in table.taken.iter_mut().skip(table.column) {
                *taken = taken.saturating_sub(1);
            }
        }
    }

    pub(super) fn write_text(&mut self, text: &str) {
        let raised = (self.raised > 0).then(|| math::exponent(text)).flatten();
        let text = raised.as_deref().unwrap_or(text);
        if self.kept > 0 && !self.in_data() {
            return self
                .write_word(text.strip_prefix('\n').filter(|_| self.breaks > 0).unwrap_or(text));
        }
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            if !word.is_empty() {
                self.write_word(word);
            }
            self.space |= word.len() < piece.len();
        }
    }

    /// Writes text whose line ends are kept; its spaces too, unless they collapse.
    pub(super) fn write_lines(&mut self, text: &str, collapses: bool) {
        if self.kept > 0 || self.in_data() {
            return self.write_text(text);
        }
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.breaks = (self.breaks + 1).min(2);
            }
            if collapses || self.breaks == 0 {
                self.write_text(line);
            } else if !line.trim().is_empty() {
                self.write_word(line.trim_end());
            }
        }
    }

    /// Writes a word, after the space or line breaks that are due.
    fn write_word(&mut self, word: &str) {
        if self.breaks > 0 && !self.text.is_empty() {
            let end = self.text.trim_end_matches(' ').len();
            self.text.truncate(end);
            self.text.push_str(if self.breaks > 1 { "\n\n" } else { "\n" });
        } else if self.space
            && self.breaks == 0
            && !self.text.is_empty()
            && !self.text.ends_with([' ', '\n'])
            && !word.starts_with(' ')
        {
            self.text.push(' ');
        }
        (self.breaks, self.space, self.after_link, self.after_mark) = (0, false, false, false);
        if let Some(link) = &mut self.link {
            link.begin(&mut self.text);
        }
        self.text.push_str(word);
    }

    pub(super) fn finish(self) -> String {
        self.text.trim().to_owned()
    }
}
