//! Reading of one sheet, cell by cell.

use std::collections::{HashMap, HashSet};

use calamine::Data;
use quick_xml::{Reader, events::Event};

use super::{
    book::Book,
    edges::{shown_edge_names, strip_edge_codes},
    formula::{linked_address, move_references},
    strings::{RichText, decode_xml, unescape},
};
use crate::{
    look::STRUCK,
    sheets::{
        cells::{Cells, Fault, Range, display_value, format_number},
        number_format::NumberFormat,
    },
    spaces::joined_lines,
    xml::{self, Element},
};

/// Properties of a sheet that are not in its cells.
#[derive(Default)]
pub(super) struct SheetExtras {
    pub(super) formulas_without_value: usize,
    pub(super) links: HashMap<(u32, u32), CellLink>,
    /// Headers and footers.
    pub(super) headers_and_footers: Vec<String>,
}

/// The link of a cell.
pub(super) enum CellLink {
    /// The id of an address, and a place in its page.
    Reference(String, Option<String>),
    /// The address in a formula.
    Formula(String),
}

/// A sheet that is being read.
pub(super) struct Sheet<'s, 'c> {
    book: &'s Book,
    cells: &'s mut Cells<'c>,
    extras: SheetExtras,
    hidden_columns: Vec<(u32, u32)>,
    row: u32,
    is_hidden_row: bool,
    column: u32,
    cell: Option<Cell>,
    /// Cells in the color of their background, unless something else colors them.
    invisible: HashSet<(u32, u32)>,
    /// First and last cell of each merged range.
    merged: Vec<Range>,
    /// Whether a zero is shown as an empty cell.
    hides_zeros: bool,
    /// Shared formulas by their numbers, with the cells in which they are written.
    shared_formulas: HashMap<String, (String, (u32, u32))>,
}

/// An open cell.
#[derive(Default)]
struct Cell {
    kind: String,
    style: usize,
    value: Option<String>,
    formula: Option<String>,
    /// The number of its shared formula.
    shared_formula: Option<String>,
    inline: RichText,
}

/// The role of an element's text in a cell.
#[derive(Clone, Copy, PartialEq)]
enum TextTarget {
    Nothing,
    Value,
    Formula,
}

impl<'s, 'c> Sheet<'s, 'c> {
    pub(super) fn new(book: &'s Book, cells: &'s mut Cells<'c>) -> Self {
        Self {
            book,
            cells,
            extras: SheetExtras::default(),
            hidden_columns: Vec::new(),
            row: 0,
            is_hidden_row: false,
            column: 0,
            cell: None,
            invisible: HashSet::new(),
            merged: Vec::new(),
            hides_zeros: false,
            shared_formulas: HashMap::new(),
        }
    }

    pub(super) fn read(mut self, bytes: &[u8]) -> Result<SheetExtras, Fault> {
        let damaged = |error: quick_xml::Error| Fault::Sheet(error.to_string());
        let words = decode_xml(bytes).map_err(Fault::Sheet)?;
        let mut reader = Reader::from_str(&words);
        let (mut is_open, mut text_target) = (false, TextTarget::Nothing);
        let (mut after_cells, mut is_colored, mut edge) = (false, false, None::<String>);
        let mut edge_names: Vec<&str> = Vec::new();
        loop {
            let event = match reader.read_event() {
                // Everything behind the cells is optional.
                Err(_) if after_cells => Event::Eof,
                event => event.map_err(damaged)?,
            };
            match event {
                Event::Start(element) => match element.local_name().as_ref() {
                    "row" => self.begin_row(&xml::element(&element)),
                    "c" => self.begin_cell(&xml::element(&element)),
                    "v" => {
                        text_target = TextTarget::Value;
                        if let Some(cell) = &mut self.cell {
                            cell.value.get_or_insert_default();
                        }
                    }
                    "f" => {
                        text_target = TextTarget::Formula;
                        self.begin_formula(&xml::element(&element));
                    }
                    "r" | "rPh" | "t" | "strike" | "vertAlign" => {
                        self.with_inline_text(|text| text.begin(&element));
                    }
                    "col" => self.add_hidden_columns(&xml::element(&element)),
                    "sheetData" => is_open = true,
                    "hyperlink" => self.add_link(&xml::element(&element)),
                    "conditionalFormatting" | "tableParts" => is_colored = true,
                    "sheetView" => self.hides_zeros |= xml::element(&element).is_off("showZeros"),
                    "mergeCell" => self.add_merged_range(&xml::element(&element)),
                    "headerFooter" => edge_names = shown_edge_names(&xml::element(&element)),
                    name if edge_names.contains(&name) => edge = Some(String::new()),
                    _ => {}
                },
                Event::Empty(element) => match element.local_name().as_ref() {
                    "row" => self.begin_row(&xml::element(&element)),
                    "c" => {
                        self.begin_cell(&xml::element(&element));
                        self.end_cell()?;
                    }
                    "col" => self.add_hidden_columns(&xml::element(&element)),
                    "hyperlink" => self.add_link(&xml::element(&element)),
                    "f" => self.begin_formula(&xml::element(&element)),
                    "strike" | "vertAlign" => {
                        self.with_inline_text(|text| text.set_property(&element))
                    }
                    "sheetView" => self.hides_zeros |= xml::element(&element).is_off("showZeros"),
                    "mergeCell" => self.add_merged_range(&xml::element(&element)),
                    _ => {}
                },
                Event::End(element) => match element.local_name().as_ref() {
                    "c" => self.end_cell()?,
                    name @ ("r" | "rPh" | "t") => self.with_inline_text(|text| text.end(name)),
                    "v" | "f" => text_target = TextTarget::Nothing,
                    "sheetData" => (is_open, after_cells) = (false, true),
                    name if edge_names.contains(&name) => {
                        let words =
                            edge.take().map(|edge| strip_edge_codes(&edge)).unwrap_or_default();
                        if !words.is_empty() && !self.extras.headers_and_footers.contains(&words) {
                            self.extras.headers_and_footers.push(words);
                        }
                    }
                    _ => {}
                },
                // A truncated sheet must not count as complete.
                Event::Eof if is_open => return Err(Fault::Sheet("it breaks off".to_owned())),
                Event::Eof => {
                    if !is_colored {
                        self.cells.hide_at(&self.invisible);
                    }
                    self.cells.hide_covered(std::mem::take(&mut self.merged));
                    return Ok(self.extras);
                }
                event => {
                    if let Some(edge) = &mut edge {
                        edge.push_str(&xml::event_text(&event));
                    }
                    if let Some(cell) = &mut self.cell {
                        let into = match text_target {
                            TextTarget::Value => cell.value.get_or_insert_default(),
                            TextTarget::Formula => cell.formula.get_or_insert_default(),
                            TextTarget::Nothing => {
                                cell.inline.add_event(&event);
                                continue;
                            }
                        };
                        into.push_str(&xml::event_text(&event));
                    }
                }
            }
        }
    }

    /// Handles an element in the text of a cell.
    fn with_inline_text(&mut self, handle: impl FnOnce(&mut RichText)) {
        if let Some(cell) = &mut self.cell {
            handle(&mut cell.inline);
        }
    }

    fn add_merged_range(&mut self, element: &Element) {
        let range = element.attribute("ref").unwrap_or_default();
        let Some((from, to)) = range.split_once(':') else { return };
        if let (Some(from), Some(to)) = (place_of(from), place_of(to)) {
            self.merged.push((from, to));
        }
    }

    fn add_hidden_columns(&mut self, element: &Element) {
        let number = |name| element.attribute(name).and_then(|it| it.parse::<u32>().ok());
        let is_hidden = element.is_on("hidden") || is_zero(element, "width");
        if let (true, Some(from), Some(to)) = (is_hidden, number("min"), number("max")) {
            self.hidden_columns.push((from.saturating_sub(1), to.saturating_sub(1)));
        }
    }

    fn add_link(&mut self, element: &Element) {
        let place = element.attribute("ref").and_then(|place| place_of(&place));
        if let (Some(place), Some(id)) = (place, element.reference()) {
            let link = CellLink::Reference(id, element.attribute("location"));
            self.extras.links.entry(place).or_insert(link);
        }
    }

    fn begin_row(&mut self, element: &Element) {
        let number = element.attribute("r").and_then(|it| it.parse::<u32>().ok());
        // Rows without a number follow the previous one.
        self.row = number.unwrap_or_else(|| self.row.saturating_add(1));
        self.is_hidden_row = element.is_on("hidden") || is_zero(element, "ht");
        self.column = 0;
    }

    fn begin_cell(&mut self, element: &Element) {
        if let Some(place) = element.attribute("r") {
            self.column = column_of(&place);
        }
        let style = element.attribute("s").and_then(|it| it.parse().ok()).unwrap_or(0);
        let kind = element.attribute("t").unwrap_or_default();
        self.cell = Some(Cell { kind, style, ..Cell::default() });
    }

    fn begin_formula(&mut self, element: &Element) {
        if let Some(cell) = &mut self.cell {
            cell.formula.get_or_insert_default();
            cell.shared_formula = element.attribute("si");
        }
    }

    /// Returns the formula of a cell, which may be written in another one.
    fn formula(&self, cell: &Cell, place: (u32, u32)) -> Option<String> {
        let formula = cell.formula.clone()?;
        let shared = cell.shared_formula.as_ref().filter(|_| formula.is_empty());
        let Some((shared, (row, column))) =
            shared.and_then(|number| self.shared_formulas.get(number))
        else {
            return Some(formula);
        };
        let distance = |to: u32, from: u32| i64::from(to) - i64::from(from);
        Some(move_references(shared, distance(place.0, *row), distance(place.1, *column)))
    }

    fn end_cell(&mut self) -> Result<(), Fault> {
        let Some(cell) = self.cell.take() else { return Ok(()) };
        let (row, column) = (self.row.saturating_sub(1), self.column);
        self.column = column.saturating_add(1);
        // Programs that do not calculate leave a formula's value empty. The value of a text may be
        // empty too.
        let has_result = |value: &String| !value.is_empty() || cell.kind == "str";
        let has_value = cell.value.as_ref().is_some_and(has_result) || !cell.inline.is_empty();
        if let (Some(number), Some(formula)) = (&cell.shared_formula, &cell.formula)
            && !formula.is_empty()
        {
            self.shared_formulas.insert(number.clone(), (formula.clone(), (row, column)));
        }
        if let Some(address) = cell.formula.as_deref().and_then(linked_address) {
            self.extras.links.insert((row, column), CellLink::Formula(address.to_owned()));
        }
        let formula = if has_value { None } else { self.formula(&cell, (row, column)) };
        let value =
            formula.map_or_else(|| self.display_value(&cell), |formula| format!("={formula}"));
        let is_hidden = self.is_hidden_row
            || self.hidden_columns.iter().any(|(from, to)| (*from..=*to).contains(&column));
        if self.hides_zeros && value_is_zero(&cell) {
            return self.cells.hide(value);
        }
        // A format without digits shows nothing.
        let invisible = match &*cell.kind {
            _ if !value.is_empty() || !has_value => None,
            "" => cell.value.clone(),
            _ => self.cell_text(&cell),
        };
        if is_hidden || invisible.is_some() {
            return self.cells.hide(invisible.unwrap_or(value));
        }
        if self.book.invisible.get(cell.style) == Some(&true) && !value.is_empty() {
            self.invisible.insert((row, column));
        }
        self.extras.formulas_without_value += usize::from(cell.formula.is_some() && !has_value);
        let is_struck = self.book.struck_out.get(cell.style) == Some(&true) && !value.is_empty();
        self.cells.add_text(
            (row, column),
            if is_struck { format!("{STRUCK}{value}{STRUCK}") } else { value },
        )
    }

    /// Returns the text of a text cell, without its format.
    fn cell_text(&self, cell: &Cell) -> Option<String> {
        let value = cell.value.as_deref().unwrap_or_default();
        match &*cell.kind {
            "s" => {
                let words =
                    value.trim().parse().ok().and_then(|at: usize| self.book.strings.get(at));
                // Missing in the table of texts.
                Some(words.map_or_else(|| "\u{fffd}".to_owned(), |it| it.to_string()))
            }
            "inlineStr" => Some(cell.inline.to_text()),
            "str" => Some(unescape(value)),
            _ => None,
        }
    }

    fn display_value(&self, cell: &Cell) -> String {
        let value = cell.value.as_deref().unwrap_or_default();
        let text = match &*cell.kind {
            "s" | "inlineStr" | "str" => {
                let text = self.cell_text(cell).unwrap_or_default();
                let format = self.book.formats.get(cell.style).filter(|_| !text.is_empty());
                format.and_then(|format| format.format_text(&text)).unwrap_or(text)
            }
            "b" => if value.trim() == "1" || value.trim() == "true" { "TRUE" } else { "FALSE" }
                .to_owned(),
            "d" => display_value(&Data::DateTimeIso(value.to_owned())),
            "e" => value.to_owned(),
            _ => match value.trim().parse::<f64>() {
                Ok(number) => self.format_number(number, cell.style),
                Err(_) => value.to_owned(),
            },
        };
        joined_lines(&text)
    }

    fn format_number(&self, number: f64, style: usize) -> String {
        let format = self.book.formats.get(style).unwrap_or(&NumberFormat::General);
        format_number(number, format, self.book.is_1904)
    }
}

/// Returns whether a size is stated as zero, which hides a row or column.
fn is_zero(element: &Element, name: &str) -> bool {
    element.attribute(name).and_then(|size| size.parse().ok()) == Some(0.0_f64)
}

/// Returns whether the value of a cell is the number zero.
fn value_is_zero(cell: &Cell) -> bool {
    let value = cell.value.as_deref().unwrap_or_default();
    matches!(&*cell.kind, "" | "n") && value.trim().parse() == Ok(0.0_f64)
}

/// Returns the column of a place such as `AB12`, from 0.
fn column_of(place: &str) -> u32 {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic);
    let column = letters.fold(0_u32, |column, letter| {
        column.saturating_mul(26).saturating_add(u32::from(letter.to_ascii_uppercase() - b'A') + 1)
    });
    column.saturating_sub(1)
}

/// Returns row and column of a place, or of the first one of a range.
fn place_of(place: &str) -> Option<(u32, u32)> {
    let first = place.split(':').next()?;
    let row: u32 = first.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    Some((row.checked_sub(1)?, column_of(first)))
}
