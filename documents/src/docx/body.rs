//! Reads the text of a part's element tree.

use super::{
    fields::{Fields, is_deleted},
    lists::Lists,
    look::{background_of_cell, background_of_table},
    notes::Notes,
    styles::Styles,
};
use crate::{
    colors::Background,
    left_out::{Kind, Tally},
    links::{ADDRESS, Link},
    look::{self, Look},
    math,
    rows::{cell_text, write_row},
    symbols::Symbols,
    xml::{Element, Node},
};

/// Most cells that one cell may span.
const MAX_SPAN: usize = 60;

/// Reads parts in the order of the document: lists continue from one part to the next.
pub(super) struct Body<'a> {
    styles: &'a Styles,
    lists: Lists,
    pub(super) notes: Notes,
    /// Background of the text.
    background: Background,
    fields: Fields,
    tally: &'a Tally,
}

/// Text of a part or a cell, built paragraph by paragraph.
#[derive(Default)]
struct Blocks {
    text: String,
    /// Texts of boxes anchored in the open paragraph.
    boxes: Vec<String>,
    /// Words that the next paragraph continues: an initial, or a paragraph whose end was deleted.
    continued: String,
    in_cell: bool,
}

impl<'a> Body<'a> {
    pub(super) fn new(
        styles: &'a Styles,
        lists: Lists,
        notes: Notes,
        background: Background,
        tally: &'a Tally,
    ) -> Self {
        let fields = Fields::default();
        Self { styles, lists, notes, background, fields, tally }
    }

    /// Returns all text below an element.
    pub(super) fn read_text(&mut self, part: &Element) -> String {
        let mut blocks = Blocks::default();
        let numbers = std::mem::take(&mut self.fields.numbers);
        let around = std::mem::replace(&mut self.fields, Fields::of_part(part, numbers));
        self.read_blocks(part, &mut blocks);
        let Fields { numbers, .. } = std::mem::replace(&mut self.fields, around);
        self.fields.numbers = numbers;
        blocks.text.trim().to_owned()
    }

    fn read_blocks(&mut self, parent: &Element, out: &mut Blocks) {
        self.read_children(parent, out);
        if !out.continued.is_empty() {
            let words = std::mem::take(&mut out.continued);
            out.text.push_str(words.trim_end());
            out.text.push('\n');
        }
    }

    fn read_children(&mut self, parent: &Element, out: &mut Blocks) {
        for element in parent.elements() {
            match &*element.name {
                "p" => self.read_paragraph(element, out),
                "tbl" => self.read_table(element, out),
                "altChunk" => {
                    out.text.push_str(element.text().trim());
                    out.text.push('\n');
                }
                // Deleted or moved away.
                "del" | "moveFrom" => {}
                "AlternateContent" => self.read_children(readable_alternative(element), out),
                _ => self.read_children(element, out),
            }
        }
    }

    fn read_paragraph(&mut self, paragraph: &Element, out: &mut Blocks) {
        let properties = paragraph.child("pPr");
        let mut words = String::new();
        let mut boxes = Vec::new();
        let look = self.styles.paragraph_look(properties);
        let heading = self.styles.heading_level(properties);
        let list =
            self.styles.list_and_level(properties, |list, style| self.lists.level_of(list, style));
        self.fields.numbers.begin_paragraph(heading, list.is_some());
        self.read_inline(paragraph, look, &mut words, &mut boxes);
        self.fields.end_paragraph(&mut words);
        out.boxes.append(&mut boxes);
        let words = std::mem::take(&mut out.continued) + &look::finish_line(&words);
        // Its end is part of a code.
        if self.fields.is_code() {
            out.continued = words;
            return;
        }
        let end = properties.and_then(|it| it.child("rPr"));
        if end.is_some_and(|end| end.child("del").or_else(|| end.child("moveFrom")).is_some()) {
            out.continued = words;
            return;
        }
        // An initial: the first letter of the next paragraph, drawn larger.
        let frame = properties.and_then(|it| it.child("framePr")?.attribute("dropCap"));
        if frame.is_some_and(|kind| kind != "none") && !words.trim().is_empty() {
            out.continued = words.trim().to_owned();
            return;
        }
        let is_end_hidden = end.and_then(|end| Look::read(Some(end)).hidden) == Some(true);
        // A paragraph without words is numbered, too, unless its end is hidden. In a cell, its number is
        // its text.
        let list = list.filter(|_| !words.trim().is_empty() || !is_end_hidden);
        let mark = list.map(|(list, level)| (self.lists.next_mark(&list, level), level));
        if words.trim().is_empty() && out.in_cell {
            let number = mark.as_ref().map(|(mark, _)| mark.trim_end()).filter(|mark| *mark != "-");
            out.text.push_str(number.unwrap_or_default());
        }
        if !words.trim().is_empty() {
            let heading = heading.filter(|_| !out.in_cell);
            let mark = mark.map(|(mark, level)| {
                let indent = if heading.is_some() { 0 } else { level };
                format!("{}{mark}", "  ".repeat(indent))
            });
            if let Some(level) = heading {
                if !out.text.is_empty() && !out.text.ends_with("\n\n") {
                    out.text.push('\n');
                }
                out.text.push_str(&"#".repeat(level));
                out.text.push(' ');
            }
            out.text.push_str(&mark.unwrap_or_default());
        }
        out.text.push_str(words.trim_end());
        out.text.push('\n');
        for text in std::mem::take(&mut out.boxes) {
            out.text.push_str(&text);
            out.text.push('\n');
        }
    }

    /// Reads the content of a line, within text of the given look.
    fn read_inline(
        &mut self,
        parent: &Element,
        look: Look,
        words: &mut String,
        boxes: &mut Vec<String>,
    ) {
        for node in &parent.children {
            let Node::Element(element) = node else { continue };
            match &*element.name {
                "inline" | "anchor" | "shape" | "rect" | "group" if is_hidden_shape(element) => {
                    let (mut inner, mut others) = (String::new(), Vec::new());
                    self.read_inline(element, look, &mut inner, &mut others);
                    others.insert(0, inner);
                    let hidden = look::finish_line(&others.join(" "));
                    words.push_str(&self.tally.count_hidden_piece(hidden.trim(), None));
                }
                // The code of a field is not shown.
                "t" if self.fields.is_code() => {}
                "t" => words.push_str(&look.apply_to(run_text(element))),
                "instrText" => self.fields.add_code(&element.text()),
                "fldChar" => {
                    self.fields.read_mark(element, words);
                    self.read_inline(element, look, words, boxes);
                }
                "fldSimple" => {
                    let code = element.attribute("instr").unwrap_or_default();
                    let has_result = element.elements().next().is_some();
                    self.fields.read_simple(&code, has_result, words);
                    self.read_inline(element, look, words, boxes);
                    self.fields.end(words);
                }
                "ruby" => {
                    let mut reading = String::new();
                    if let Some(base) = element.child("rubyBase") {
                        self.read_inline(base, look, words, boxes);
                    }
                    if let Some(above) = element.child("rt") {
                        self.read_inline(above, look, &mut reading, boxes);
                    }
                    words.push_str(&format!("({reading})"));
                }
                // Text drawn as a shape, such as a draft's watermark.
                "textpath" => boxes.extend(element.attribute("string")),
                "tab" | "ptab" if &*parent.name != "tabs" => words.push('\t'),
                "br" | "cr" => words.push('\n'),
                "noBreakHyphen" => words.push('-'),
                "sym" => words.extend(symbol_letter(element)),
                "footnoteReference" | "endnoteReference" => {
                    words.extend(self.notes.refer(element));
                }
                "oMath" => words.push_str(&math::formula_text(element)),
                "ffData" => words.push_str(&form_field_state(element)),
                "docPr" => {
                    let descriptions = ["descr", "title"].map(|name| element.attribute(name));
                    words.push_str(&look::picture_description(descriptions));
                }
                // `contentPart` is ink.
                "pic" | "imagedata" | "contentPart" => self.tally.add(Kind::Pictures, 1),
                "r" => {
                    let look = self.styles.run_look(look, element.child("rPr"));
                    if look.is_hidden(self.background) && !self.fields.is_code() {
                        let texts = element.all("t");
                        let texts: String = texts.iter().map(|it| it.text()).collect();
                        words.push_str(&self.tally.count_hidden_piece(&texts, None));
                        // A field may begin or end in hidden text.
                        for mark in element.elements().filter(|it| &*it.name == "fldChar") {
                            self.fields.read_mark(mark, words);
                        }
                    } else {
                        self.read_inline(element, look, words, boxes);
                    }
                }
                "hyperlink" => {
                    let address = element.child(ADDRESS).map(Element::text);
                    let mut link = address.and_then(|address| Link::to(&address));
                    if let Some(link) = &mut link {
                        link.begin(words);
                    }
                    self.read_inline(element, look, words, boxes);
                    if let Some(link) = link {
                        link.end(words);
                    }
                }
                "txbxContent" | "relIds" | "chart" | "OLEObject" => {
                    let text = match &*element.name {
                        // The fill of a box is defined elsewhere.
                        "txbxContent" => self
                            .with_background(Background::Unknown, |body| body.read_text(element)),
                        _ => element.text().trim().to_owned(),
                    };
                    if !text.is_empty() {
                        boxes.push(text);
                    }
                }
                "AlternateContent" => {
                    self.read_inline(readable_alternative(element), look, words, boxes)
                }
                "del" | "moveFrom" | "pPr" | "rPr" | "delText" => {}
                _ => self.read_inline(element, look, words, boxes),
            }
        }
    }

    /// Reads with another background.
    fn with_background<T>(
        &mut self,
        background: Background,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let around = std::mem::replace(&mut self.background, background);
        let read = read(self);
        self.background = around;
        read
    }

    /// Writes a table, each row a line. Cells covered by a span stay empty, so that columns line up.
    fn read_table(&mut self, table: &Element, out: &mut Blocks) {
        let mut rows = String::new();
        let background = background_of_table(table, self.background);
        for row in rows_or_cells_of(table, "tr").into_iter().filter(|row| !is_deleted(row)) {
            let before = row.child("trPr").and_then(|it| it.child("gridBefore")?.attribute("val"));
            let before = before.and_then(|it| it.parse().ok()).unwrap_or(0_usize);
            let mut cells = vec![String::new(); before.min(MAX_SPAN)];
            for cell in rows_or_cells_of(row, "tc").into_iter().filter(|cell| !is_deleted(cell)) {
                let mut blocks = Blocks { in_cell: true, ..Blocks::default() };
                let background = background_of_cell(cell, background);
                self.with_background(background, |body| body.read_blocks(cell, &mut blocks));
                cells.push(cell_text(&blocks.text));
                let span = cell
                    .child("tcPr")
                    .and_then(|properties| properties.child("gridSpan"))
                    .and_then(|span| span.attribute("val")?.parse::<usize>().ok())
                    .unwrap_or(1);
                cells.extend(std::iter::repeat_n(String::new(), span.clamp(1, MAX_SPAN) - 1));
            }
            write_row(&cells, &mut rows);
        }
        if !out.text.is_empty() && !out.text.ends_with('\n') {
            out.text.push('\n');
        }
        out.text.push_str(rows.trim_end_matches('\n'));
        out.text.push('\n');
    }
}

/// Returns the rows or cells of a table, through wrapping elements but not inner tables.
fn rows_or_cells_of<'a>(parent: &'a Element, name: &str) -> Vec<&'a Element> {
    let mut found = Vec::new();
    let mut stack: Vec<&Element> = vec![parent];
    while let Some(element) = stack.pop() {
        let from = stack.len();
        for child in element.elements() {
            match &*child.name {
                "tbl" | "p" | "del" | "moveFrom" => {}
                "AlternateContent" => stack.push(readable_alternative(child)),
                "tr" if name == "tc" => {}
                _ => stack.push(child),
            }
        }
        stack[from..].reverse();
        if &*element.name == name && !std::ptr::eq(element, parent) {
            found.push(element);
            stack.truncate(from);
        }
    }
    found
}

/// Returns the first of several alternatives with content that is read here, otherwise the first.
fn readable_alternative(ways: &Element) -> &Element {
    const READ: [&str; 10] = [
        "t",
        "oMath",
        "relIds",
        "chart",
        "OLEObject",
        "textpath",
        "docPr",
        "sym",
        "fldChar",
        "tab",
    ];
    let is_read = |way: &&Element| READ.iter().any(|name| !way.all(name).is_empty());
    ways.elements().find(is_read).or_else(|| ways.elements().next()).unwrap_or(ways)
}

/// Returns the text of a run. Its line breaks are spaces, and those around it belong to the XML.
fn run_text(element: &Element) -> String {
    let text = element.text();
    if !text.contains('\n') {
        return text;
    }
    let is_kept = element.attribute("space").is_some_and(|space| space == "preserve");
    let text = if is_kept { &*text } else { text.trim() };
    text.replace("\r\n", " ").replace('\n', " ")
}

/// Returns whether a shape is hidden by its own properties.
fn is_hidden_shape(shape: &Element) -> bool {
    let style = shape.attribute("style").unwrap_or_default().replace(' ', "");
    shape.child("docPr").is_some_and(|it| it.is_on("hidden")) || style.contains("visibility:hidden")
}

/// Returns the state of a form's checkbox or menu, which stands nowhere else in the document.
fn form_field_state(field: &Element) -> String {
    let value = |parent: &Element, name: &str| {
        let child = parent.child(name)?;
        Some(child.attribute("val").unwrap_or_else(|| "1".to_owned()))
    };
    if let Some(tick) = field.child("checkBox") {
        let is_ticked = tick.child("checked").or_else(|| tick.child("default"));
        let is_ticked = is_ticked.is_some_and(|it| !it.is_off("val"));
        return if is_ticked { "☒" } else { "☐" }.to_owned();
    }
    let Some(menu) = field.child("ddList") else { return String::new() };
    let place = value(menu, "result").or_else(|| value(menu, "default"));
    let place = place.and_then(|place| place.parse().ok()).unwrap_or(0);
    let entry = menu.elements().filter(|entry| &*entry.name == "listEntry").nth(place);
    entry.and_then(|entry| entry.attribute("val")).unwrap_or_default()
}

/// Returns a character of a symbol font. A private code of an unknown font becomes U+FFFD: a dose or an
/// answer may depend on it.
fn symbol_letter(element: &Element) -> Option<char> {
    let code = u32::from_str_radix(&element.attribute("char")?, 16).ok()?;
    let letter = char::from_u32(code)?;
    let letter = match element.attribute("font").as_deref().and_then(Symbols::by_name) {
        Some(symbols) => symbols.meaning_of_code(letter),
        None if Symbols::is_code(letter) => char::REPLACEMENT_CHARACTER,
        None => letter,
    };
    (!letter.is_control()).then_some(letter)
}
