//! Converts HTML to readable text: headings, paragraphs, lists and tables; no scripts, no navigation.

mod attributes;
mod color_notation;
mod cost;
mod css;
mod declarations;
mod declared;
mod embedded;
mod flow;
mod generated;
mod last_part;
mod lists;
mod media;
mod rules;
mod slots;
mod styles;
mod table_parts;
mod writer;
mod xhtml;

use std::borrow::Cow;

use ego_tree::{NodeRef, iter::Edge};
use html5ever::{ParseOpts, tendril::TendrilSink as _};
use scraper::{ElementRef, Html, HtmlTreeSink, Node, node::Element};

use crate::{
    encoding,
    format::Format,
    left_out::{Kind, Tally, replace_placeholders},
    math,
    unreadable::Unreadable,
    xml,
};
use lists::List;
pub(crate) use rules::Linked;
use styles::ElementStyles;
use writer::Writer;

/// Deepest nesting. Deeper pages are refused, because building the tree takes time with the square of the
/// depth.
const MAX_DEPTH: usize = 2_000;

/// Bytes parsed between two checks of the depth.
const PIECE_BYTES: usize = 4 << 10;

/// Deepest nesting of pages within pages.
const MAX_FRAMES: usize = 3;

/// Elements whose content is not read as text.
const WITHOUT_TEXT: [&str; 19] = [
    "script", "style", "noscript", "noframes", "noembed", "head", "nav", "iframe", "canvas",
    "audio", "video", "datalist", "math", "rp", "defs", "desc", "metadata", "symbol", "title",
];

/// Reads a page, as XHTML if it declares to be.
pub(crate) fn extract(bytes: &[u8], tally: &Tally) -> Result<String, Unreadable> {
    extract_linked(bytes, tally, &|_| None)
}

/// Reads a page. `linked` returns the style sheets that it refers to.
pub(crate) fn extract_linked(
    bytes: &[u8],
    tally: &Tally,
    linked: Linked<'_>,
) -> Result<String, Unreadable> {
    let page = decode_page(bytes)?;
    let xhtml = xhtml::is_declared(&page).then(|| xhtml::as_html(&page));
    read_page(xhtml.as_deref().unwrap_or(&page), tally, linked, 0)
}

/// Reads a page as XHTML even if it does not declare to be, such as a book's chapter. `linked` returns
/// the style sheets that it refers to.
pub(crate) fn extract_xhtml(
    bytes: &[u8],
    tally: &Tally,
    linked: Linked<'_>,
) -> Result<String, Unreadable> {
    read_page(&xhtml::as_html(&decode_page(bytes)?), tally, linked, 0)
}

/// Decodes a page. Its declared encoding holds for bytes that are not UTF-8.
pub(crate) fn decode_page(bytes: &[u8]) -> Result<Cow<'_, str>, Unreadable> {
    Ok(match declared::encoding_of(bytes) {
        // Its bytes are ASCII, so they look like UTF-8.
        Some(encoding) if encoding == encoding_rs::ISO_2022_JP => {
            encoding::decode_as(encoding, bytes)?
        }
        // Bytes that are not UTF-8, though the page says so, are in an older encoding.
        Some(encoding)
            if encoding != encoding_rs::UTF_8
                && !bytes.starts_with(b"\xef\xbb\xbf")
                && std::str::from_utf8(bytes).is_err() =>
        {
            encoding::decode_as(encoding, bytes)?
        }
        _ => encoding::decode(bytes)?,
    })
}

/// Reads a page. `frames` is the number of pages around it.
fn read_page(
    text: &str,
    tally: &Tally,
    linked: Linked<'_>,
    frames: usize,
) -> Result<String, Unreadable> {
    let mut page = parse_page(&attributes::limit_attributes(text))?;
    let element_styles = styles::read_element_styles(&page, linked);
    table_parts::sort_table_parts(&mut page, &element_styles.low_captions);
    element_styles.flows.sort_children(&mut page);
    slots::fill_slots(&mut page);
    let with = |styles: &ElementStyles, reads_all: bool| {
        let mut walk = Walk {
            styles,
            reads_all,
            writer: Writer::default(),
            tally: tally.new_like(),
            frames,
            has_content: false,
            hidden: String::new(),
        };
        walk.walk_page(&page);
        let text = replace_placeholders(&walk.writer.finish());
        (walk.has_content, text, walk.tally.into_left_out())
    };
    let (mut is_seen, mut shown, mut left_out) = with(&element_styles, false);
    if !is_seen && has_script(&page) {
        // A page that hides all of itself waits for a script that shows it, so its styles are ignored.
        (is_seen, shown, left_out) = with(&ElementStyles::default(), false);
    }
    if !is_seen {
        let (has_more, all, left_out_then) = with(&element_styles, true);
        if has_more {
            (shown, left_out) = (all, left_out_then);
        }
    }
    if element_styles.is_incomplete {
        tally.add_in_part(Kind::UnreadParts, 1, "style");
    }
    tally.add_in_part(Kind::UnreadParts, element_styles.not_generated, "counters of a style");
    tally.merge(&left_out);
    Ok(shown)
}

fn has_script(page: &Html) -> bool {
    page.tree.root().descendants().any(|node| is_named(node, "script"))
}

fn is_named(node: NodeRef<'_, Node>, name: &str) -> bool {
    node.value().as_element().is_some_and(|element| element.name() == name)
}

/// Parses a page and checks its depth while the tree grows.
fn parse_page(text: &str) -> Result<Html, Unreadable> {
    let sink = HtmlTreeSink::new(Html::new_document());
    let mut parser = html5ever::parse_document(sink, ParseOpts::default());
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        parser.process(piece.into());
        rest = behind;
        let page = parser.tokenizer.sink.sink.0.borrow();
        let last = page.tree.nodes().next_back();
        if last.is_some_and(|last| last.ancestors().nth(MAX_DEPTH).is_some()) {
            return Err(Unreadable::damaged(
                Format::Html,
                format!("its elements are nested more than {MAX_DEPTH} deep"),
            ));
        }
    }
    Ok(parser.finish())
}

/// A walk through a page's tree.
struct Walk<'l> {
    styles: &'l ElementStyles,
    /// Whether it reads navigation, and what stands in for scripts: such a page has nothing else.
    reads_all: bool,
    writer: Writer,
    tally: Tally,
    /// Number of pages around this one.
    frames: usize,
    /// Whether any visible content has been written.
    has_content: bool,
    /// Words of the open element that are not seen.
    hidden: String,
}

impl Walk<'_> {
    /// Walks the tree without recursion.
    fn walk_page(&mut self, page: &Html) {
        let (styles, reads_all) = (self.styles, self.reads_all);
        let is_skipped = |node| is_skipped(node) && !(reads_all && is_named(node, "nav"));
        let notes = embedded::popup_notes(page);
        let is_unseen = |node: NodeRef<'_, Node>| {
            let is_shown = || styles.shown.contains(&node.id());
            let is_unseen = styles.hidden.contains(&node.id()) || (is_hidden(node) && !is_shown());
            is_unseen && !notes.contains(&node.id())
        };
        let (mut skipped_depth, mut hidden_depth) = (0_usize, 0_usize);
        for edge in page.tree.root().traverse() {
            match edge {
                Edge::Open(node) => match node.value() {
                    Node::Element(_) if is_unseen(node) => {
                        (skipped_depth, hidden_depth) = (skipped_depth + 1, hidden_depth + 1);
                    }
                    Node::Element(element) if is_skipped(node) => {
                        if skipped_depth == 0 {
                            self.read_embedded(node, element);
                        }
                        skipped_depth += 1;
                    }
                    Node::Element(element) if skipped_depth == 0 => {
                        self.open_element(node, element)
                    }
                    Node::Text(text) if skipped_depth == 0 => self.write_text(node, text),
                    Node::Text(text) if skipped_depth == hidden_depth => self.hidden.push_str(text),
                    _ => {}
                },
                Edge::Close(node) => match node.value() {
                    Node::Element(_) if is_unseen(node) => {
                        (skipped_depth, hidden_depth) = (skipped_depth - 1, hidden_depth - 1);
                        if skipped_depth == 0 {
                            self.end_hidden_words();
                        }
                    }
                    Node::Element(_) if is_skipped(node) => skipped_depth -= 1,
                    Node::Element(element) if skipped_depth == 0 => {
                        self.write_generated(node, 1);
                        if styles.struck.contains(&node.id()) {
                            self.writer.end_strike();
                        }
                        self.writer.close(element, styles.flows.get(node.id()));
                    }
                    _ => {}
                },
            }
        }
    }

    fn open_element(&mut self, node: NodeRef<'_, Node>, element: &Element) {
        let marker = self.styles.markers.get(&node.id()).map(String::as_str);
        match element.name() {
            "ol" | "ul" | "menu" => {
                let items = node.children().filter(|item| is_item(*item)).count();
                self.writer.lists.push(List::read(element, marker, items));
            }
            _ => {}
        }
        self.has_content |= matches!(element.name(), "img" | "input");
        self.tally.add(Kind::Pictures, usize::from(embedded::is_picture(element)));
        if let Some(address) = embedded::unread_address(node, element) {
            self.tally.add_in_part(Kind::UnreadParts, 1, address);
        }
        let flow = self.styles.flows.get(node.id());
        self.writer.open(element, flow, is_laid_out(node), marker);
        if let Some(words) = embedded::placeholder(node, element) {
            self.writer.write_text(words);
        }
        if self.styles.struck.contains(&node.id()) {
            self.writer.begin_strike();
        }
        self.write_generated(node, 0);
    }

    /// Writes the text that a style puts before (0) or after (1) the content of an element.
    fn write_generated(&mut self, node: NodeRef<'_, Node>, place: usize) {
        let text = self.styles.generated.get(&node.id()).and_then(|texts| texts.get(place));
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.has_content = true;
            self.writer.write_text(text);
        }
    }

    fn write_text(&mut self, node: NodeRef<'_, Node>, text: &str) {
        if node.parent().is_some_and(|parent| self.styles.hidden_words.contains(&parent.id())) {
            self.hidden.push_str(text);
            return self.end_hidden_words();
        }
        self.has_content |= !text.trim().is_empty();
        let parent = node.parent().map(|parent| parent.id());
        let case = parent.and_then(|parent| self.styles.cases.get(&parent));
        let text = case.map_or(Cow::Borrowed(text), |case| case.apply_to(text).into());
        // A hyphen that is only shown at a line's end.
        let text = if text.contains('\u{ad}') { text.replace('\u{ad}', "").into() } else { text };
        match parent.and_then(|parent| self.styles.lines.get(&parent)) {
            Some(collapses) if !text.trim().is_empty() => {
                self.writer.write_lines(&text, *collapses);
            }
            _ => self.writer.write_text(&text),
        }
    }

    /// Ends words that are not seen: counts them, and marks them in the text if the limits ask for that.
    fn end_hidden_words(&mut self) {
        let words = std::mem::take(&mut self.hidden);
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let marked = self.tally.count_hidden_piece(&words, None);
        if !marked.is_empty() {
            self.writer.write_text(&marked);
        }
    }

    /// Reads content that is not plain text: formulas and inner pages.
    fn read_embedded(&mut self, node: NodeRef<'_, Node>, element: &Element) {
        let (frames, tally) = (self.frames, &self.tally);
        let or_counted = |read: Result<String, Unreadable>| {
            read.unwrap_or_else(|_| {
                tally.add_in_part(Kind::UnreadParts, 1, element.name());
                String::new()
            })
        };
        let within = |page: &str| {
            or_counted(match frames >= MAX_FRAMES {
                _ if page.trim().is_empty() => Ok(String::new()),
                true => Err(Unreadable::damaged(Format::Html, "its frames are nested too deeply")),
                false => read_page(page, tally, &|_| None, frames + 1),
            })
        };
        match element.name() {
            "math" => {
                let formula = ElementRef::wrap(node).map(|it| it.html()).unwrap_or_default();
                let formula = xml::parse(formula.as_bytes(), Format::Html);
                let text = or_counted(formula.map(|formula| math::formula_text(&formula)));
                self.has_content |= !text.is_empty();
                self.writer.write_formula(&text);
            }
            "script" => {
                if let Some(formula) = embedded::tex_formula(node, element) {
                    self.has_content = true;
                    self.writer.write_formula(&formula);
                }
            }
            "noscript" if self.reads_all => {
                let page = within(&embedded::inner_page(node, element));
                self.has_content |= !page.is_empty();
                self.writer.write_page(&page);
            }
            "iframe" | "noframes" => {
                if let Some(address) = embedded::unread_address(node, element) {
                    tally.add_in_part(Kind::UnreadParts, 1, address);
                }
                let page = within(&embedded::inner_page(node, element));
                self.has_content |= !page.is_empty();
                self.writer.write_page(&page);
            }
            _ => {}
        }
    }
}

/// Whether an attribute hides the element. Its text may be meant for a model alone, so it is not read.
fn is_hidden(node: NodeRef<'_, Node>) -> bool {
    let Node::Element(element) = node.value() else { return false };
    element.attr("hidden").is_some()
        || element.attr("popover").is_some()
        || (element.name() == "dialog" && element.attr("open").is_none())
}

/// Whether the content of an element is not text of the page, or is read otherwise.
fn is_skipped(node: NodeRef<'_, Node>) -> bool {
    let Node::Element(element) = node.value() else { return false };
    let name = element.name();
    WITHOUT_TEXT.contains(&name)
        || embedded::is_drawn_formula(node, element)
        || embedded::is_other_case(node, element)
        || (name == "template" && element.attr("shadowrootmode").is_none())
        || (name == "option" && !is_chosen(node, element))
}

/// Whether an option is shown. A menu shows its selected options; without any, a drop-down shows the
/// first, a list box all.
fn is_chosen(node: NodeRef<'_, Node>, option: &Element) -> bool {
    let menu = node.ancestors().find(
        |above| matches!(above.value(), Node::Element(element) if element.name() == "select"),
    );
    let Some(menu) = menu else { return true };
    if option.attr("selected").is_some() {
        return true;
    }
    let has = |name: &str| matches!(menu.value(), Node::Element(menu) if menu.attr(name).is_some_and(|it| it.trim() != "1"));
    let is_box = has("multiple") || has("size");
    let mut options = menu.descendants().filter_map(|below| match below.value() {
        Node::Element(element) if element.name() == "option" => Some((below.id(), element)),
        _ => None,
    });
    // A selected first option excludes the others. At most 1,000 more are checked.
    let first = options.next();
    first.is_some_and(|(id, element)| {
        (is_box || id == node.id()) && element.attr("selected").is_none()
    }) && !options.take(1_000).any(|(_, element)| element.attr("selected").is_some())
}

/// Whether a cell serves the page's layout: it holds a table, headings, lists or preformatted text.
fn is_laid_out(node: NodeRef<'_, Node>) -> bool {
    matches!(node.value(), Node::Element(element) if matches!(element.name(), "td" | "th"))
        && node.descendants().skip(1).take(2_000).any(|below| {
            matches!(below.value(), Node::Element(element) if matches!(
                element.name(),
                "table" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "dl" | "pre"
            ))
        })
}

fn is_item(node: NodeRef<'_, Node>) -> bool {
    node.value().as_element().is_some_and(|element| element.name() == "li")
}

#[cfg(test)]
mod tests;
