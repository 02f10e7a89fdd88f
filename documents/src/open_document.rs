//! `OpenDocument`: the text of ODT and the slides of ODP.

mod controls;
mod lists;
mod masters;
mod numbering;
mod objects;
mod shapes;
mod styles;
mod tables;

use std::collections::HashMap;

use crate::{
    colors::{Background, WHITE},
    context::Context,
    format::Format,
    left_out::{Kind, Place, Tally},
    links::Link,
    look::{self, Look},
    package::Package,
    unreadable::Unreadable,
    xml::{Element, Node},
};
use controls::read_controls;
use numbering::{MAX_LEVEL, Numbering, read_numbering};
use objects::{Objects, folder, formula_text};
use shapes::sort_shapes;
use styles::Styles;
pub(crate) use styles::short_name;

pub(crate) fn extract(
    bytes: &[u8],
    format: Format,
    context: &Context<'_>,
) -> Result<String, Unreadable> {
    let mut package = Package::open(bytes, format, context)?;
    if let Some(manifest) = package.optional("META-INF/manifest.xml")?
        && !manifest.all("encryption-data").is_empty()
    {
        return Err(Unreadable::Encrypted { format });
    }
    let content = package
        .xml("content.xml")?
        .ok_or_else(|| Unreadable::damaged(format, "its content.xml is missing"))?;
    let styles = package.optional("styles.xml")?.unwrap_or_default();
    let objects = Objects::read(&mut package, &content, context.tally)?;
    let mut body = Body::new(objects, page_background(&styles), context.tally);
    body.controls = read_controls(&content);
    for tree in [&styles, &content] {
        body.read_styles(tree);
    }
    let mut parts = vec![body.header_or_footer(&styles, "header")];
    let mut text = String::new();
    for part in content.all("body") {
        body.write_blocks(part, &mut text);
    }
    parts.push(text);
    parts.push(body.text_of_every_slide(&styles, &content));
    parts.push(body.notes.join("\n"));
    parts.push(body.header_or_footer(&styles, "footer"));
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    Ok(parts.collect::<Vec<_>>().join("\n\n"))
}

/// Reads the texts of a book: of cells, text boxes, pictures, charts.
pub(crate) struct BookTexts<'a> {
    body: Body<'a>,
    /// Whether formats for some cells only may color them.
    is_colored: bool,
}

/// The text of a cell as shown, the text beside it, and whether it is seen.
pub(crate) struct CellText {
    pub(crate) text: String,
    pub(crate) beside: String,
    pub(crate) is_hidden: bool,
}

impl<'a> BookTexts<'a> {
    /// Reads the styles of a book and the documents within it.
    ///
    /// # Errors
    /// [`Unreadable::TooLarge`] for an archive that unpacks to more than the limits allow.
    pub(crate) fn of_book(
        package: &mut Package<'_>,
        content: &Element,
        tally: &'a Tally,
    ) -> Result<Self, Unreadable> {
        let styles = package.optional("styles.xml")?.unwrap_or_default();
        let objects = Objects::read(package, content, tally)?;
        let mut body = Body::new(objects, Background::Unknown, tally);
        body.in_cell = true;
        for tree in [&styles, content] {
            body.read_styles(tree);
        }
        // The maps of number formats color no cell.
        let is_colored = !content.all("conditional-format").is_empty()
            || content.all("style").iter().any(|style| style.child("map").is_some());
        Ok(Self { body, is_colored })
    }

    /// Sets the place at which hidden text is counted.
    pub(crate) fn begin_sheet(&mut self, place: &str) {
        self.body.place = Some(Place::part(place));
    }

    /// Returns the text of a shape, without empty lines.
    pub(crate) fn read_shape(&mut self, shape: &Element) -> String {
        let mut text = String::new();
        self.body.write_blocks_of([shape], &mut text);
        self.take_notes(&text)
    }

    /// Reads a cell of the style with this name. `value` is its text if its paragraphs show less.
    pub(crate) fn read_cell(
        &mut self,
        cell: &Element,
        style: Option<String>,
        value: Option<String>,
    ) -> CellText {
        let background =
            if self.is_colored { Background::Unknown } else { Background::Plain(WHITE) };
        let look = self.body.styles.look_of_style(style, "table-cell", Look::default());
        let mut paragraphs = cell.elements().filter(|it| matches!(&*it.name, "p" | "h"));
        let is_hidden = look.is_hidden(background)
            && !paragraphs.any(|it| self.body.shows_words(it, look, background));
        // The cell is hidden as a whole.
        let look = if is_hidden { Look { fonts: look.fonts, ..Look::default() } } else { look };
        let mut boxes = String::new();
        let text = match value {
            Some(value) => look::finish_line(&look.apply_to(value)),
            None => self.body.with_background(background, |body| {
                let paragraphs = cell.elements().filter(|it| matches!(&*it.name, "p" | "h"));
                let lines = paragraphs.map(|paragraph| {
                    let mut line = String::new();
                    body.write_inline(paragraph, look, &mut line, &mut boxes);
                    look::finish_line(&line)
                });
                lines.collect::<Vec<_>>().join("\n")
            }),
        };
        CellText { text, beside: self.take_notes(&boxes), is_hidden }
    }

    /// Returns a text and the notes in it, without empty lines.
    fn take_notes(&mut self, text: &str) -> String {
        let notes = std::mem::take(&mut self.body.notes);
        let lines = text.lines().chain(notes.iter().map(String::as_str)).map(str::trim);
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the background of the pages; white if none is stated.
fn page_background(styles: &Element) -> Background {
    let pages = styles.all("page-layout-properties");
    pages.into_iter().find_map(styles::background_of).unwrap_or(Background::Plain(WHITE))
}

/// Whether a section is hidden, or has a condition that hides it.
fn is_hidden_section(section: &Element) -> bool {
    section.attribute("display").as_deref() == Some("none") || section.is_on("is-hidden")
}

/// Whether an element is a part of a line, in which `title` is the document's title.
fn is_of_line(element: &Element) -> bool {
    matches!(&*element.name, "p" | "h" | "span" | "a" | "meta" | "meta-field" | "ruby-base")
}

/// A walk through the text, with notes collected for the end.
struct Body<'a> {
    styles: Styles,
    /// Numbering of each style of lists, by level.
    numbering: HashMap<(String, usize), Numbering>,
    /// Open lists: style, and number of the next item.
    lists: Vec<(String, usize)>,
    notes: Vec<String>,
    slides: usize,
    in_cell: bool,
    objects: Objects,
    /// The number after the last item of each style of lists, for lists that continue.
    next_by_style: HashMap<String, usize>,
    /// The last number of each level of lists of single paragraphs, by the ids of the lists.
    numbered_paragraphs: HashMap<String, [Option<usize>; MAX_LEVEL]>,
    /// The number of the last heading of each level; 0 for none.
    headings: [usize; 10],
    /// What the controls of forms show, by their ids.
    controls: HashMap<String, String>,
    /// The background of the text.
    background: Background,
    /// The place of hidden text, if it is known.
    place: Option<Place>,
    tally: &'a Tally,
}

impl<'a> Body<'a> {
    fn new(objects: Objects, background: Background, tally: &'a Tally) -> Self {
        let (styles, numbering, lists, notes, next_by_style) = Default::default();
        let (slides, in_cell, headings, controls, numbered_paragraphs) = Default::default();
        Self {
            styles,
            numbering,
            lists,
            notes,
            slides,
            in_cell,
            objects,
            next_by_style,
            numbered_paragraphs,
            headings,
            controls,
            background,
            place: None,
            tally,
        }
    }

    /// Calls `read` with another background.
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

    fn read_styles(&mut self, tree: &Element) {
        self.styles.read_styles(tree);
        self.numbering.extend(read_numbering(tree));
    }

    /// Returns the headers or footers of the pages, each once, also those of left and first pages.
    fn header_or_footer(&mut self, styles: &Element, kind: &str) -> String {
        let mut all: Vec<String> = Vec::new();
        for page in styles.all("master-page") {
            let kinds = [kind.to_owned(), format!("{kind}-left"), format!("{kind}-first")];
            let edges = kinds.iter().flat_map(|kind| page.all(kind));
            let is_shown = |edge: &&Element| {
                edge.attribute("display").is_none_or(|display| display != "false")
            };
            for edge in edges.filter(is_shown) {
                let mut text = String::new();
                self.write_blocks(edge, &mut text);
                let text = text.trim().to_owned();
                if !text.is_empty() && !all.contains(&text) {
                    all.push(text);
                }
            }
        }
        all.join("\n")
    }

    fn write_blocks(&mut self, parent: &Element, text: &mut String) {
        self.write_blocks_of(parent.elements(), text);
    }

    fn write_blocks_of<'e>(
        &mut self,
        elements: impl IntoIterator<Item = &'e Element>,
        text: &mut String,
    ) {
        for element in elements {
            match &*element.name {
                "h" | "p" => self.write_paragraph(element, "", text),
                "list" => self.write_list(element, text),
                "numbered-paragraph" => self.write_numbered_paragraph(element, text),
                "table" => self.write_table(element, text),
                "page" => {
                    self.slides += 1;
                    let number = self.slides;
                    if self.styles.hides_page(element) {
                        let mut slide = String::new();
                        self.write_blocks(element, &mut slide);
                        let place = Some(Place::Page(number));
                        text.push_str(&self.tally.count_hidden(slide.trim(), place));
                        continue;
                    }
                    text.push_str(&format!("\n## Slide {number}\n\n"));
                    self.write_blocks_of(sort_shapes(element), text);
                }
                "notes" => {
                    let mut notes = String::new();
                    self.write_blocks(element, &mut notes);
                    if !notes.trim().is_empty() {
                        text.push_str(&format!("\nNotes: {}\n", notes.trim()));
                    }
                }
                // Deleted text, forms, and declarations of variables.
                "tracked-changes" | "forms" | "sequence-decls" | "user-field-decls"
                | "variable-decls" | "desc" => {}
                // The title of a picture; the title of a chart has paragraphs.
                "title" if element.child("p").is_none() => {}
                "frame" => {
                    let shown = self.formula_or_description(element);
                    if !shown.is_empty() {
                        text.push_str(&format!("{shown}\n"));
                    }
                    self.write_blocks(element, text);
                }
                "object" if element.child("math").is_some() => {}
                "object" | "object-ole" => self.write_object(element, text),
                "control" => {
                    let shown = self.control_text(element);
                    text.push_str(&format!("{shown}\n"));
                }
                "section" if is_hidden_section(element) => {
                    text.push_str(&self.tally.count_hidden(element.text().trim(), None));
                }
                "index-title-template" | "table-of-content-source" => {}
                _ => self.write_blocks(element, text),
            }
        }
    }

    fn write_paragraph(&mut self, paragraph: &Element, mark: &str, text: &mut String) {
        let (mut line, mut boxes) = (String::new(), String::new());
        let look = self.styles.look_of_element(paragraph, "paragraph", Look::default());
        self.write_inline(paragraph, look, &mut line, &mut boxes);
        let mut line = look::finish_line(&line);
        let is_hiding = |it: &Element| &*it.name == "hidden-paragraph" && it.is_on("is-hidden");
        if paragraph.elements().any(is_hiding) {
            line = self.tally.count_hidden(line.trim(), None);
        }
        if !line.trim().is_empty() {
            let mut number = String::new();
            if &*paragraph.name == "h" && !self.in_cell {
                let level = paragraph.attribute("outline-level").and_then(|n| n.parse().ok());
                if !text.is_empty() && !text.ends_with("\n\n") {
                    text.push('\n');
                }
                let level = level.unwrap_or(1_usize);
                text.push_str(&"#".repeat(level.clamp(1, 6)));
                text.push(' ');
                if mark.is_empty() {
                    number = self.heading_mark(paragraph, level);
                }
            }
            text.push_str(&number);
            text.push_str(mark);
            text.push_str(line.trim());
        }
        text.push('\n');
        text.push_str(&boxes);
    }

    fn write_inline(
        &mut self,
        parent: &Element,
        look: Look,
        line: &mut String,
        boxes: &mut String,
    ) {
        for node in &parent.children {
            let element = match node {
                Node::Text(words) if look.is_hidden(self.background) => {
                    line.push_str(&self.tally.count_hidden_piece(words, self.place.clone()));
                    continue;
                }
                Node::Text(words) => {
                    // White space in a paragraph is one space. More spaces are elements.
                    for c in look.apply_to(words.to_owned()).chars() {
                        if !c.is_ascii_whitespace() {
                            line.push(c);
                        } else if !line.ends_with([' ', '\n']) {
                            line.push(' ');
                        }
                    }
                    continue;
                }
                Node::Element(element) => element,
            };
            match &*element.name {
                "s" => {
                    let count = element.attribute("c").and_then(|c| c.parse().ok());
                    line.push_str(&" ".repeat(count.unwrap_or(1_usize).min(200)));
                }
                "span" => {
                    let look = self.styles.look_of_element(element, "text", look);
                    self.write_inline(element, look, line, boxes);
                }
                "a" => {
                    let mut link = element.attribute("href").and_then(|address| Link::to(&address));
                    if let Some(link) = &mut link {
                        link.begin(line);
                    }
                    self.write_inline(element, look, line, boxes);
                    if let Some(link) = link {
                        link.end(line);
                    }
                }
                "ruby-text" => line.push_str(&format!("({})", element.text().trim())),
                "tab" => line.push('\t'),
                "line-break" => line.push('\n'),
                "note" => {
                    let mark =
                        element.child("note-citation").map(Element::text).unwrap_or_default();
                    let mut text = String::new();
                    if let Some(note) = element.child("note-body") {
                        self.write_blocks(note, &mut text);
                    }
                    line.push_str(&format!("[^{mark}]"));
                    self.notes.push(format!("[^{mark}]: {}", text.trim()));
                }
                "annotation" => {
                    let author = element.child("creator").map(Element::text).unwrap_or_default();
                    let mut text = String::new();
                    self.write_blocks(element, &mut text);
                    self.notes.push(format!("[Comment by {author}: {}]", text.trim()));
                }
                // The background of a box is stated elsewhere.
                "text-box" => self
                    .with_background(Background::Unknown, |body| body.write_blocks(element, boxes)),
                "frame" => {
                    line.push_str(&self.formula_or_description(element));
                    self.write_inline(element, look, line, boxes);
                }
                "table" => self.write_table(element, boxes),
                // Already read with its frame.
                "object" if element.child("math").is_some() => {}
                "object" | "object-ole" => self.write_object(element, boxes),
                "control" => {
                    let is_separated = line.is_empty() || line.ends_with(char::is_whitespace);
                    line.push_str(if is_separated { "" } else { " " });
                    line.push_str(&self.control_text(element));
                }
                "hidden-text" => {
                    let words = element.attribute("string-value").unwrap_or_default();
                    let words = if words.is_empty() { element.text() } else { words };
                    line.push_str(&self.tally.count_hidden_piece(&words, self.place.clone()));
                }
                "title" if is_of_line(parent) => self.write_inline(element, look, line, boxes),
                "hidden-paragraph" | "page-number" | "page-count" | "title" | "desc"
                | "annotation-end" => {}
                _ => self.write_inline(element, look, line, boxes),
            }
        }
    }

    /// Whether a part of a line has words that are seen; its look may be overridden by spans.
    fn shows_words(&self, parent: &Element, look: Look, background: Background) -> bool {
        parent.children.iter().any(|node| match node {
            Node::Text(words) => !words.trim().is_empty() && !look.is_hidden(background),
            Node::Element(element) => match &*element.name {
                "span" => {
                    let look = self.styles.look_of_element(element, "text", look);
                    self.shows_words(element, look, background)
                }
                "annotation" | "note" | "frame" | "hidden-text" => false,
                _ => self.shows_words(element, look, background),
            },
        })
    }

    /// Returns what a control of a form shows.
    fn control_text(&self, shape: &Element) -> String {
        let id = shape.attribute("control");
        id.and_then(|id| self.controls.get(&id)).cloned().unwrap_or_default()
    }

    /// Reads a document within this one.
    fn write_object(&mut self, object: &Element, text: &mut String) {
        let document = folder(object).and_then(|folder| self.objects.documents.remove(&folder));
        for part in document.iter().flat_map(|document| document.all("body")) {
            self.write_blocks(part, text);
        }
        self.write_blocks(object, text);
    }

    /// Returns the formula in a frame, or else the description of its picture.
    fn formula_or_description(&self, frame: &Element) -> String {
        let formula = frame.child("object").and_then(|object| match object.child("math") {
            Some(formula) => Some(formula_text(formula)),
            None => self.objects.formulas.get(&folder(object)?).cloned(),
        });
        let is_picture = ["object", "object-ole"].iter().all(|name| frame.child(name).is_none())
            && frame.child("image").is_some();
        self.tally.add(Kind::Pictures, usize::from(is_picture));
        formula.unwrap_or_else(|| {
            look::picture_description(["desc", "title"].map(|name| Some(frame.child(name)?.text())))
        })
    }
}
