//! Books of XML parts (`.xlsx`): what each sheet shows. Sheets that a part of the file spoils cost
//! themselves alone.

use std::borrow::Cow;

use calamine::{Data, ExcelDateTime, ExcelDateTimeType};
use quick_xml::{Reader, events::Event};

use super::{
    cells::{Cells, Fault, shown},
    number_format::{NumberFormat, general},
};
use crate::{
    context::Context,
    encoding,
    format::Format,
    left_out::Kind,
    package::Package,
    slides,
    unreadable::Unreadable,
    xml::{self, Element},
};

/// All cells of a book look as one of these styles.
struct Book {
    /// Styles in which letters have the color of paper, where a cell has no ground of its own.
    white: Vec<bool>,
    strings: Vec<Box<str>>,
    formats: Vec<NumberFormat>,
    /// Days are counted from 1904.
    is_1904: bool,
}

/// A book's text.
pub(super) fn read(package: &mut Package<'_>, context: &Context<'_>) -> Result<String, Unreadable> {
    let damaged = |what: &str| Unreadable::damaged(Format::Xlsx, what);
    let main = package.main("xl/workbook.xml")?;
    let tree = package.xml(&main)?.ok_or_else(|| damaged("its main part is missing"))?;
    let relations = package.relations(&main)?;
    let part = |kind: &str| relations.values().find(|it| it.kind == kind).map(|it| &*it.target);
    let is_1904 = tree.all("workbookPr").first().is_some_and(|it| is_set(it, "date1904"));
    let strings = match part("sharedStrings").map(|name| package.read(name)).transpose()?.flatten()
    {
        Some(bytes) => strings(&bytes)?,
        None => Vec::new(),
    };
    let styles = match part("styles") {
        Some(name) => package.optional(name)?.unwrap_or_default(),
        None => Element::default(),
    };
    let book = Book { white: white(&styles), strings, formats: formats(&styles), is_1904 };
    let (mut text, mut fault) = (String::new(), None);
    let sheets = tree.all("sheets").first().map(|sheets| sheets.all("sheet")).unwrap_or_default();
    for (number, sheet) in (1..).zip(sheets) {
        let place = format!("sheet {number}");
        let name = sheet.attribute("name").unwrap_or_default();
        let target = sheet.reference().and_then(|id| relations.get(&id));
        let Some(target) = target.map(|it| &*it.target) else {
            context.tally.in_part(Kind::UnreadParts, 1, &place);
            continue;
        };
        let (mut cells, mut edges) =
            (Cells::new(context.limits, context.deadline, text.len()), Vec::new());
        let read = package.read(target).map_err(Fault::Document).and_then(|bytes| {
            let bytes = bytes.ok_or_else(|| Fault::Sheet(format!("{target} is missing")))?;
            Sheet::new(&book, &mut cells).read(&bytes)
        });
        match read {
            Ok(seen) => {
                context.tally.in_part(Kind::FormulasWithoutValue, seen.formulas, &place);
                let links = package.links(target)?;
                for (place, id) in seen.links {
                    if let Some(address) = links.get(&id) {
                        cells.link(place, address);
                    }
                }
                edges = seen.edges;
            }
            Err(Fault::Document(unreadable)) => return Err(unreadable),
            Err(Fault::Sheet(reason)) => {
                context.tally.in_part(Kind::UnreadParts, 1, &place);
                fault = Some(reason);
            }
        }
        let is_hidden = sheet.attribute("state").is_some_and(|state| state != "visible");
        let hidden = cells.hidden(is_hidden, &place, context.tally);
        let mut beside = if is_hidden { Vec::new() } else { beside(package, target, context)? };
        if !is_hidden {
            beside.extend(edges);
        }
        beside.extend((!hidden.is_empty()).then_some(hidden));
        cells.write(&name, &beside, &mut text)?;
    }
    match fault {
        Some(fault) if text.is_empty() => Err(damaged(&fault)),
        _ => Ok(text.trim_end().to_owned()),
    }
}

/// What lies on or beside the cells: text boxes, comments.
fn beside(
    package: &mut Package<'_>,
    sheet: &str,
    context: &Context<'_>,
) -> Result<Vec<String>, Unreadable> {
    let mut lines = Vec::new();
    let relations = package.relations(sheet).unwrap_or_default();
    let mut parts: Vec<(&str, &str)> =
        relations.values().map(|it| (&*it.kind, &*it.target)).collect();
    parts.sort_unstable();
    // Answers to comments have a part of their own, which repeats the first.
    let is_threaded = parts.iter().any(|(kind, _)| *kind == "threadedComment");
    for (kind, target) in parts {
        if !matches!(kind, "drawing" | "comments" | "threadedComment") {
            continue;
        }
        let tree = match package.xml(target) {
            Ok(Some(tree)) => tree,
            Err(too_large @ Unreadable::TooLarge { .. }) => return Err(too_large),
            _ => {
                context.tally.in_part(Kind::UnreadParts, 1, target);
                continue;
            }
        };
        match kind {
            "drawing" => {
                for shape in tree.all("sp") {
                    let paragraphs = shape.all("p");
                    let words: Vec<String> = paragraphs
                        .iter()
                        .map(|it| it.all("t").iter().map(|it| it.text()).collect::<String>())
                        .filter(|words| !words.trim().is_empty())
                        .collect();
                    lines.extend((!words.is_empty()).then(|| words.join("\n")));
                }
                context.tally.in_part(Kind::Pictures, tree.all("pic").len(), target);
                let parts = package.relations(target)?;
                for frame in tree.all("graphicFrame") {
                    let chart = frame.all("chart").first().and_then(|it| it.reference());
                    let chart = chart.and_then(|id| parts.get(&id));
                    let drawn = match chart {
                        Some(chart) => package.optional(&chart.target)?,
                        None => {
                            context.tally.in_part(Kind::UnreadParts, 1, target);
                            None
                        }
                    };
                    let words = drawn.map(|tree| slides::drawn(&tree, "chart")).unwrap_or_default();
                    lines.extend((!words.trim().is_empty()).then(|| words.trim().to_owned()));
                }
            }
            "comments" if is_threaded => {}
            _ => {
                let name = if kind == "comments" { "comment" } else { "threadedComment" };
                for comment in tree.all(name) {
                    let words: String = comment
                        .all(if kind == "comments" { "t" } else { "text" })
                        .iter()
                        .map(|it| it.text())
                        .collect();
                    let place = comment.attribute("ref").unwrap_or_default();
                    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
                    lines.push(format!("[Comment on {place}: {words}]"));
                }
            }
        }
    }
    Ok(lines)
}

fn is_set(element: &Element, name: &str) -> bool {
    element.attribute(name).is_some_and(|value| matches!(&*value, "1" | "true" | "on"))
}

/// How the cells of each style show numbers.
fn formats(styles: &Element) -> Vec<NumberFormat> {
    let own: std::collections::HashMap<u32, String> = styles
        .all("numFmt")
        .into_iter()
        .filter_map(|it| {
            Some((it.attribute("numFmtId")?.parse().ok()?, it.attribute("formatCode")?))
        })
        .collect();
    let cells = styles.all("cellXfs").first().map(|it| it.all("xf")).unwrap_or_default();
    let format = |cell: &&Element| {
        let id: u32 = cell.attribute("numFmtId").and_then(|id| id.parse().ok()).unwrap_or(0);
        own.get(&id).map_or_else(|| NumberFormat::built_in(id), |code| NumberFormat::of(code))
    };
    cells.iter().map(format).collect()
}

/// The column of a place such as `AB12`, from 0.
fn column_of(place: &str) -> u32 {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic);
    let column = letters.fold(0_u32, |column, letter| {
        column.saturating_mul(26).saturating_add(u32::from(letter.to_ascii_uppercase() - b'A') + 1)
    });
    column.saturating_sub(1)
}

/// Row and column of a place, or of the first of several.
fn place_of(place: &str) -> Option<(u32, u32)> {
    let first = place.split(':').next()?;
    let row: u32 = first.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    Some((row.checked_sub(1)?, column_of(first)))
}

/// What stands above or below a page, without the codes for fonts, numbers of pages and dates.
fn edge_words(edge: &str) -> String {
    let mut words = String::new();
    let mut rest = edge;
    while let Some((before, code)) = rest.split_once('&') {
        words.push_str(before);
        let Some(kind) = code.chars().next() else { break };
        let behind = code.get(kind.len_utf8()..).unwrap_or_default();
        rest = match kind {
            '&' => {
                words.push('&');
                behind
            }
            '"' => behind.split_once('"').map_or("", |(_, rest)| rest),
            'K' => behind.get(6..).unwrap_or_default(),
            '0'..='9' => code.trim_start_matches(|c: char| c.is_ascii_digit()),
            // Left, middle, right.
            'L' | 'C' | 'R' => {
                words.push(' ');
                behind
            }
            _ => behind,
        };
    }
    words.push_str(rest);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Which styles of cells write in white on no ground.
fn white(styles: &Element) -> Vec<bool> {
    let all = |list: &str, name: &'static str| {
        let list = styles.all(list).first().copied();
        list.map(|list| list.elements().filter(|it| &*it.name == name).collect::<Vec<_>>())
            .unwrap_or_default()
    };
    let is_white = |font: &&Element| {
        let color = font.child("color");
        let said = |name: &str| color.and_then(|color| color.attribute(name));
        said("rgb").is_some_and(|it| it.ends_with("FFFFFF"))
            || said("indexed").is_some_and(|it| it == "1" || it == "9")
    };
    let is_bare = |fill: &&Element| {
        let kind = fill.child("patternFill").and_then(|it| it.attribute("patternType"));
        fill.child("gradientFill").is_none() && kind.is_none_or(|it| it == "none")
    };
    let fonts: Vec<bool> = all("fonts", "font").iter().map(is_white).collect();
    let fills: Vec<bool> = all("fills", "fill").iter().map(is_bare).collect();
    let of = |style: &&Element| {
        let number = |name: &str| style.attribute(name)?.parse::<usize>().ok();
        let is = |name: &str, all: &[bool]| number(name).and_then(|at| all.get(at).copied());
        is("fontId", &fonts) == Some(true) && is("fillId", &fills).unwrap_or(true)
    };
    all("cellXfs", "xf").iter().map(of).collect()
}

/// Texts that cells share. How a word is spoken is not part of it.
fn strings(bytes: &[u8]) -> Result<Vec<Box<str>>, Unreadable> {
    let damaged = |error: quick_xml::Error| Unreadable::damaged(Format::Xlsx, error);
    let words = decoded(bytes).map_err(|error| Unreadable::damaged(Format::Xlsx, error))?;
    let mut reader = Reader::from_str(&words);
    let (mut all, mut text) = (Vec::new(), String::new());
    let (mut is_text, mut spoken) = (false, 0_usize);
    loop {
        match reader.read_event().map_err(damaged)? {
            Event::Start(element) => match element.local_name().as_ref() {
                "si" => text.clear(),
                "rPh" => spoken += 1,
                "t" => is_text = spoken == 0,
                _ => {}
            },
            Event::Empty(element) if element.local_name().as_ref() == "si" => {
                all.push(Box::default());
            }
            Event::End(element) => match element.local_name().as_ref() {
                "si" => all.push(unescaped(&text).into()),
                "rPh" => spoken = spoken.saturating_sub(1),
                "t" => is_text = false,
                _ => {}
            },
            Event::Eof => return Ok(all),
            event if is_text => text.push_str(&xml::words(&event)),
            _ => {}
        }
    }
}

fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    encoding::decode(bytes).map_err(|_| "a part of it is no text".to_owned())
}

/// `_x000D_` stands for a character that XML cannot hold.
fn unescaped(text: &str) -> String {
    if !text.contains("_x") {
        return text.to_owned();
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("_x") {
        plain.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 6).filter(|_| rest.get(at + 6..at + 7) == Some("_"));
        match code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32) {
            Some(letter) => {
                plain.push(letter);
                rest = &rest[at + 7..];
            }
            None => {
                plain.push_str("_x");
                rest = &rest[at + 2..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// What of a sheet is not in its text.
#[derive(Default)]
struct Seen {
    formulas: usize,
    /// Cells that lead somewhere, and the ids of where.
    links: Vec<((u32, u32), String)>,
    /// What stands above and below each page.
    edges: Vec<String>,
}

/// A sheet that is being read.
struct Sheet<'s, 'c> {
    book: &'s Book,
    cells: &'s mut Cells<'c>,
    seen: Seen,
    hidden_columns: Vec<(u32, u32)>,
    row: u32,
    is_hidden_row: bool,
    column: u32,
    cell: Option<Cell>,
    /// Cells in the color of paper, unless something else colors their ground.
    white: Vec<(u32, u32)>,
}

/// An open cell.
#[derive(Default)]
struct Cell {
    kind: String,
    style: usize,
    value: Option<String>,
    formula: Option<String>,
    inline: String,
}

/// What the text of an element is to a cell.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Nothing,
    Value,
    Formula,
    Inline,
}

impl<'s, 'c> Sheet<'s, 'c> {
    fn new(book: &'s Book, cells: &'s mut Cells<'c>) -> Self {
        Self {
            book,
            cells,
            seen: Seen::default(),
            hidden_columns: Vec::new(),
            row: 0,
            is_hidden_row: false,
            column: 0,
            cell: None,
            white: Vec::new(),
        }
    }

    fn read(mut self, bytes: &[u8]) -> Result<Seen, Fault> {
        let damaged = |error: quick_xml::Error| Fault::Sheet(error.to_string());
        let words = decoded(bytes).map_err(Fault::Sheet)?;
        let mut reader = Reader::from_str(&words);
        let (mut is_open, mut inside, mut spoken) = (false, Inside::Nothing, 0_usize);
        let (mut is_over, mut is_colored, mut edge) = (false, false, None::<String>);
        loop {
            let event = match reader.read_event() {
                // What stands behind the cells can be done without.
                Err(_) if is_over => Event::Eof,
                event => event.map_err(damaged)?,
            };
            match event {
                Event::Start(element) => match element.local_name().as_ref() {
                    "row" => self.begin_row(&xml::element(&element)),
                    "c" => self.begin_cell(&xml::element(&element)),
                    "v" => {
                        inside = Inside::Value;
                        if let Some(cell) = &mut self.cell {
                            cell.value.get_or_insert_default();
                        }
                    }
                    "f" => inside = Inside::Formula,
                    "rPh" => spoken += 1,
                    "t" if spoken == 0 => inside = Inside::Inline,
                    "col" => self.column_hidden(&xml::element(&element)),
                    "sheetData" => is_open = true,
                    "hyperlink" => self.link(&xml::element(&element)),
                    "conditionalFormatting" | "tableParts" => is_colored = true,
                    "oddHeader" | "oddFooter" | "firstHeader" | "firstFooter" => {
                        edge = Some(String::new());
                    }
                    _ => {}
                },
                Event::Empty(element) => match element.local_name().as_ref() {
                    "row" => self.begin_row(&xml::element(&element)),
                    "c" => {
                        self.begin_cell(&xml::element(&element));
                        self.end_cell()?;
                    }
                    "col" => self.column_hidden(&xml::element(&element)),
                    "hyperlink" => self.link(&xml::element(&element)),
                    "f" => {
                        if let Some(cell) = &mut self.cell {
                            cell.formula.get_or_insert_default();
                        }
                    }
                    _ => {}
                },
                Event::End(element) => match element.local_name().as_ref() {
                    "c" => self.end_cell()?,
                    "rPh" => spoken = spoken.saturating_sub(1),
                    "v" | "f" | "t" => inside = Inside::Nothing,
                    "sheetData" => (is_open, is_over) = (false, true),
                    "oddHeader" | "oddFooter" | "firstHeader" | "firstFooter" => {
                        let words = edge.take().map(|edge| edge_words(&edge)).unwrap_or_default();
                        if !words.is_empty() && !self.seen.edges.contains(&words) {
                            self.seen.edges.push(words);
                        }
                    }
                    _ => {}
                },
                // Half a sheet is not passed off as a whole one.
                Event::Eof if is_open => return Err(Fault::Sheet("it breaks off".to_owned())),
                Event::Eof => {
                    if !is_colored {
                        self.white.iter().for_each(|place| self.cells.hide_at(*place));
                    }
                    return Ok(self.seen);
                }
                event => {
                    if let Some(edge) = &mut edge {
                        edge.push_str(&xml::words(&event));
                    }
                    if let Some(cell) = &mut self.cell {
                        let into = match inside {
                            Inside::Value => cell.value.get_or_insert_default(),
                            Inside::Formula => cell.formula.get_or_insert_default(),
                            Inside::Inline => &mut cell.inline,
                            Inside::Nothing => continue,
                        };
                        into.push_str(&xml::words(&event));
                    }
                }
            }
        }
    }

    fn column_hidden(&mut self, element: &Element) {
        let number = |name| element.attribute(name).and_then(|it| it.parse::<u32>().ok());
        let is_hidden = element.attribute("hidden").is_some_and(|it| it == "1" || it == "true");
        if let (true, Some(from), Some(to)) = (is_hidden, number("min"), number("max")) {
            self.hidden_columns.push((from.saturating_sub(1), to.saturating_sub(1)));
        }
    }

    fn link(&mut self, element: &Element) {
        let place = element.attribute("ref").and_then(|place| place_of(&place));
        if let (Some(place), Some(id)) = (place, element.reference()) {
            self.seen.links.push((place, id));
        }
    }

    fn begin_row(&mut self, element: &Element) {
        let number = element.attribute("r").and_then(|it| it.parse::<u32>().ok());
        // Rows are counted where they do not say where they are.
        self.row = number.unwrap_or(self.row + 1);
        self.is_hidden_row =
            element.attribute("hidden").is_some_and(|it| it == "1" || it == "true");
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

    fn end_cell(&mut self) -> Result<(), Fault> {
        let Some(cell) = self.cell.take() else { return Ok(()) };
        let (row, column) = (self.row.saturating_sub(1), self.column);
        self.column = column + 1;
        let has_value = cell.value.is_some() || !cell.inline.is_empty();
        let value = match &cell.formula {
            Some(formula) if !has_value => format!("={formula}"),
            _ => self.shown(&cell),
        };
        let is_hidden = self.is_hidden_row
            || self.hidden_columns.iter().any(|(from, to)| (*from..=*to).contains(&column));
        // A format of nothing shows nothing.
        let is_of_nothing = value.is_empty() && has_value && cell.kind.is_empty();
        if is_hidden || is_of_nothing {
            let value = if is_of_nothing { cell.value.unwrap_or_default() } else { value };
            return self.cells.hide(value);
        }
        if self.book.white.get(cell.style) == Some(&true) {
            self.white.push((row, column));
        }
        self.seen.formulas += usize::from(cell.formula.is_some() && !has_value);
        self.cells.add_text((row, column), value)
    }

    fn shown(&self, cell: &Cell) -> String {
        let value = cell.value.as_deref().unwrap_or_default();
        let text = match &*cell.kind {
            "s" => value
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|at| self.book.strings.get(at))
                .map(|it| it.to_string())
                .unwrap_or_default(),
            "inlineStr" => unescaped(&cell.inline),
            "str" => unescaped(value),
            "b" => if value.trim() == "1" || value.trim() == "true" { "TRUE" } else { "FALSE" }
                .to_owned(),
            "d" => shown(&Data::DateTimeIso(value.to_owned())),
            "e" => value.to_owned(),
            _ => match value.trim().parse::<f64>() {
                Ok(number) => self.number(number, cell.style),
                Err(_) => value.to_owned(),
            },
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn number(&self, number: f64, style: usize) -> String {
        let format = self.book.formats.get(style).unwrap_or(&NumberFormat::General);
        let kind = match format {
            NumberFormat::Date => ExcelDateTimeType::DateTime,
            NumberFormat::Duration => ExcelDateTimeType::TimeDelta,
            format => return format.shown(number).unwrap_or_else(|| general(number)),
        };
        shown(&Data::DateTime(ExcelDateTime::new(number, kind, self.book.is_1904)))
    }
}
