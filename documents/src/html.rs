//! HTML to readable text: headings, paragraphs, lists and tables; no scripts, no navigation.

mod declarations;
mod lists;
mod rules;
mod styles;
mod writer;
mod xhtml;

use std::borrow::Cow;

use ego_tree::{NodeId, NodeRef, iter::Edge};
use html5ever::{ParseOpts, tendril::TendrilSink as _};
use scraper::{ElementRef, Html, HtmlTreeSink, Node, node::Element};

use crate::{
    encoding,
    format::Format,
    left_out::{Kind, Tally, in_one_pair_of_marks},
    math,
    unreadable::Unreadable,
    xml,
};
use lists::List;
use styles::Looks;
use writer::Writer;

/// Deeper nesting is refused: building the tree takes time with the square of the depth.
const MAX_DEPTH: usize = 2_000;

/// Bytes of a page that are parsed before its depth is measured again.
const PIECE_BYTES: usize = 4 << 10;

/// Pages within pages.
const MAX_FRAMES: usize = 3;

/// What holds no text of the page.
const WITHOUT_TEXT: [&str; 18] = [
    "script", "style", "noscript", "noframes", "head", "nav", "iframe", "canvas", "audio", "video",
    "datalist", "math", "rp", "defs", "desc", "metadata", "symbol", "title",
];

/// Reads a page, as XHTML where it says that it is.
pub(crate) fn extract(bytes: &[u8], tally: &Tally) -> Result<String, Unreadable> {
    let page = decoded(bytes)?;
    let xhtml = xhtml::is_declared(&page).then(|| xhtml::as_html(&page));
    read(xhtml.as_deref().unwrap_or(&page), tally, 0)
}

/// Reads a page that is XHTML even where it does not say so, such as a book's chapter.
pub(crate) fn extract_xhtml(bytes: &[u8], tally: &Tally) -> Result<String, Unreadable> {
    read(&xhtml::as_html(&decoded(bytes)?), tally, 0)
}

/// A page's text, in the encoding that it says.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, Unreadable> {
    Ok(match declared(bytes) {
        // Whose bytes are ASCII.
        Some(encoding) if encoding == encoding_rs::ISO_2022_JP => encoding::text(encoding, bytes)?,
        Some(encoding)
            if !bytes.starts_with(b"\xef\xbb\xbf") && std::str::from_utf8(bytes).is_err() =>
        {
            encoding::text(encoding, bytes)?
        }
        _ => encoding::decode(bytes)?,
    })
}

/// `frames` is how many pages lie around this one.
fn read(text: &str, tally: &Tally, frames: usize) -> Result<String, Unreadable> {
    let mut page = parsed(text)?;
    feet_last(&mut page);
    let with = |looks: &Looks| {
        let mut walk = Walk {
            looks,
            writer: Writer::default(),
            tally: tally.of_the_same_kind(),
            frames,
            seen: false,
            hidden: String::new(),
        };
        walk.over(&page);
        let text = in_one_pair_of_marks(&walk.writer.finish());
        (walk.seen, text, walk.tally.into_left_out())
    };
    let looks = styles::looks(&page);
    let (is_seen, mut shown, mut left_out) = with(&looks);
    if !is_seen {
        // A page that hides all of itself waits for a script that shows it.
        (_, shown, left_out) = with(&Looks::default());
    }
    if looks.is_cut {
        tally.in_part(Kind::UnreadParts, 1, "style");
    }
    tally.merge(&left_out);
    Ok(shown)
}

/// A page's tree, whose depth is measured while it grows.
fn parsed(text: &str) -> Result<Html, Unreadable> {
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

/// The foot of a table is its last part, wherever it is written.
fn feet_last(page: &mut Html) {
    let is = |node: NodeRef<'_, Node>, name: &str| matches!(node.value(), Node::Element(element) if element.name() == name);
    let feet: Vec<(NodeId, NodeId)> = page
        .tree
        .root()
        .descendants()
        .filter(|node| is(*node, "tfoot") && node.next_siblings().any(|next| is(next, "tbody")))
        .filter_map(|foot| Some((foot.parent()?.id(), foot.id())))
        .collect();
    for (table, foot) in feet {
        if let Some(mut table) = page.tree.get_mut(table) {
            table.append_id(foot);
        }
    }
}

/// `<meta charset="…">` and its older form, as far as the first kilobyte says; of XHTML, its
/// declaration of XML.
fn declared(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).to_ascii_lowercase();
    let declaration = head.trim_start().strip_prefix("<?xml").and_then(|it| it.split("?>").next());
    let of_xml = declaration.and_then(|it| it.split("encoding").nth(1)?.split_once('='));
    let label = match of_xml {
        Some((_, label)) => label.trim_start(),
        None => head.split("charset=").nth(1)?,
    };
    let label = label.trim_start_matches(['"', '\'']);
    let label = label.split(['"', '\'', ' ', '>', ';', '/']).next()?;
    // A label that can be read in ASCII is not in UTF-16, whatever it says.
    encoding_rs::Encoding::for_label(label.as_bytes()).filter(|it| it.output_encoding() == *it)
}

/// The way through a page.
struct Walk<'l> {
    looks: &'l Looks,
    writer: Writer,
    tally: Tally,
    /// Pages around this one.
    frames: usize,
    /// Whether something has been written that is seen.
    seen: bool,
    /// Words of the open element that nobody sees.
    hidden: String,
}

impl Walk<'_> {
    /// Over the tree without recursion.
    fn over(&mut self, page: &Html) {
        let looks = self.looks;
        let is_unseen =
            |node: NodeRef<'_, Node>| looks.hidden.contains(&node.id()) || is_hidden(node);
        let (mut silent, mut unseen) = (0_usize, 0_usize);
        for edge in page.tree.root().traverse() {
            match edge {
                Edge::Open(node) => match node.value() {
                    Node::Element(_) if is_unseen(node) => {
                        (silent, unseen) = (silent + 1, unseen + 1);
                    }
                    Node::Element(element) if is_silent(node) => {
                        if silent == 0 {
                            self.inner(node, element);
                        }
                        silent += 1;
                    }
                    Node::Element(element) if silent == 0 => self.open(node, element),
                    Node::Text(text) if silent == 0 => self.words(node, text),
                    Node::Text(text) if silent == unseen => self.hidden.push_str(text),
                    _ => {}
                },
                Edge::Close(node) => match node.value() {
                    Node::Element(_) if is_unseen(node) => {
                        (silent, unseen) = (silent - 1, unseen - 1);
                        if silent == 0 {
                            self.hide();
                        }
                    }
                    Node::Element(_) if is_silent(node) => silent -= 1,
                    Node::Element(element) if silent == 0 => {
                        if looks.struck.contains(&node.id()) {
                            self.writer.strike_ends();
                        }
                        self.writer.close(element);
                    }
                    _ => {}
                },
            }
        }
    }

    fn open(&mut self, node: NodeRef<'_, Node>, element: &Element) {
        let marker = self.looks.markers.get(&node.id()).map(String::as_str);
        match element.name() {
            "ol" | "ul" | "menu" => {
                let items = node.children().filter(|item| is_item(*item)).count();
                self.writer.lists.push(List::of(element, marker, items));
            }
            _ => {}
        }
        self.seen |= matches!(element.name(), "img" | "input");
        self.tally.add(Kind::Pictures, usize::from(is_picture(element)));
        self.writer.open(element, is_laid_out(node), marker);
        if self.looks.struck.contains(&node.id()) {
            self.writer.strike();
        }
    }

    fn words(&mut self, node: NodeRef<'_, Node>, text: &str) {
        if node.parent().is_some_and(|parent| self.looks.unseen.contains(&parent.id())) {
            self.hidden.push_str(text);
            return self.hide();
        }
        self.seen |= !text.trim().is_empty();
        self.writer.text(text);
    }

    /// The end of what nobody sees.
    fn hide(&mut self) {
        let words = std::mem::take(&mut self.hidden);
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let marked = self.tally.hidden_piece(&words, None);
        if !marked.is_empty() {
            self.writer.text(&marked);
        }
    }

    /// What an element holds in another way than as text.
    fn inner(&mut self, node: NodeRef<'_, Node>, element: &Element) {
        let (frames, tally) = (self.frames, &self.tally);
        let or_counted = |read: Result<String, Unreadable>| {
            read.unwrap_or_else(|_| {
                tally.in_part(Kind::UnreadParts, 1, element.name());
                String::new()
            })
        };
        let within = |page: &str| {
            or_counted(match frames >= MAX_FRAMES {
                _ if page.trim().is_empty() => Ok(String::new()),
                true => Err(Unreadable::damaged(Format::Html, "its frames are nested too deeply")),
                false => read(page, tally, frames + 1),
            })
        };
        match element.name() {
            "math" => {
                let formula = ElementRef::wrap(node).map(|it| it.html()).unwrap_or_default();
                let formula = xml::parse(formula.as_bytes(), Format::Html);
                let text = or_counted(formula.map(|formula| math::text(&formula)));
                self.seen |= !text.is_empty();
                self.writer.formula(&text);
            }
            "iframe" => {
                let page = within(element.attr("srcdoc").unwrap_or_default());
                self.seen |= !page.is_empty();
                self.writer.page(&page);
            }
            // Its content is text to a parser of HTML.
            "noframes" => {
                let text: String = node
                    .descendants()
                    .filter_map(|below| below.value().as_text().map(|text| &**text))
                    .collect();
                let page = within(&text);
                self.seen |= !page.is_empty();
                self.writer.page(&page);
            }
            _ => {}
        }
    }
}

/// Whether an element shows a picture that is no decoration and no mark of who reads the page.
fn is_picture(element: &Element) -> bool {
    let is = |name: &str, value: &str| element.attr(name).is_some_and(|it| it.trim() == value);
    let is_short = |name: &&str| is(name, "0") || is(name, "1");
    let is_dot = ["width", "height"].iter().all(is_short);
    let is_unmarked = !is("alt", "") && !is("role", "presentation");
    element.name() == "img" && is_unmarked && !is_dot
}

/// What nobody sees is no text of the page: it may be meant for a model alone.
fn is_hidden(node: NodeRef<'_, Node>) -> bool {
    let Node::Element(element) = node.value() else { return false };
    element.attr("hidden").is_some()
        || element.attr("popover").is_some()
        || (element.name() == "dialog" && element.attr("open").is_none())
}

/// What holds no text of the page, or holds it in another way.
fn is_silent(node: NodeRef<'_, Node>) -> bool {
    let Node::Element(element) = node.value() else { return false };
    let name = element.name();
    WITHOUT_TEXT.contains(&name)
        || is_drawn_formula(node, element)
        || (name == "template" && element.attr("shadowrootmode").is_none())
        || (name == "option" && !is_chosen(node, element))
}

/// Of a formula that is there twice, the form that is drawn of it: what `aria-hidden` hides from those
/// who hear the page is seen otherwise.
fn is_drawn_formula(node: NodeRef<'_, Node>, element: &Element) -> bool {
    let is_formula = |node: NodeRef<'_, Node>| {
        node.descendants().take(50).any(
            |below| matches!(below.value(), Node::Element(element) if element.name() == "math"),
        )
    };
    element.attr("aria-hidden") == Some("true") && node.prev_siblings().take(2).any(is_formula)
}

/// Of a menu's options, a page shows the one that is chosen, or the first.
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
    // The first says it all where it is chosen; a menu has few more. A box shows them all.
    let first = options.next();
    first.is_some_and(|(id, element)| {
        (is_box || id == node.id()) && element.attr("selected").is_none()
    }) && !options.take(1_000).any(|(_, element)| element.attr("selected").is_some())
}

/// Whether a cell is there for the page's layout: it holds a table, headings or lists.
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
    matches!(node.value(), Node::Element(element) if element.name() == "li")
}

#[cfg(test)]
mod tests;
