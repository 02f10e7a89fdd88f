//! HTML to readable text: headings, paragraphs, lists and tables; no scripts, no navigation.

mod lists;
mod styles;
mod writer;
mod xhtml;

use std::{borrow::Cow, collections::HashSet};

use ego_tree::{NodeId, NodeRef, iter::Edge};
use scraper::{ElementRef, Html, Node, node::Element};

use crate::{
    encoding,
    format::Format,
    left_out::{Kind, Tally, characters},
    math,
    unreadable::Unreadable,
    xml,
};
use lists::List;
use writer::Writer;

/// Deeper nesting is refused: building the tree takes time with the square of the depth.
const MAX_DEPTH: usize = 2_000;

/// Pages within pages.
const MAX_FRAMES: usize = 3;

/// What holds no text of the page.
const WITHOUT_TEXT: [&str; 19] = [
    "script", "style", "noscript", "noframes", "head", "nav", "iframe", "object", "canvas",
    "audio", "video", "datalist", "math", "rp", "defs", "desc", "metadata", "symbol", "title",
];

/// Elements whose end is often left out or that have none: they say nothing about the depth.
const UNCLOSED: [&str; 30] = [
    "p", "li", "dt", "dd", "td", "th", "tr", "thead", "tbody", "tfoot", "option", "optgroup",
    "colgroup", "caption", "br", "img", "hr", "meta", "link", "input", "col", "area", "base",
    "embed", "source", "track", "wbr", "html", "head", "body",
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
    if depth(text) > MAX_DEPTH {
        return Err(Unreadable::damaged(
            Format::Html,
            format!("its elements are nested more than {MAX_DEPTH} deep"),
        ));
    }
    let mut page = Html::parse_document(text);
    feet_last(&mut page);
    let but = |hidden: &HashSet<NodeId>| {
        let mut writer = Writer::default();
        let inner = Tally::default();
        let unseen = walk(&page, hidden, &mut writer, &inner, frames);
        inner.add(Kind::HiddenText, unseen);
        (writer.finish(), inner.into_left_out())
    };
    let (mut shown, mut left_out) = but(&styles::hidden(&page));
    if shown.trim().is_empty() {
        // A page that hides all of itself waits for a script that shows it.
        (shown, left_out) = but(&HashSet::new());
    }
    tally.merge(&left_out);
    Ok(shown)
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

/// `<meta charset="…">` and its older form, as far as the first kilobyte says.
fn declared(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).to_ascii_lowercase();
    let label = head.split("charset=").nth(1)?.trim_start_matches(['"', '\'']);
    encoding_rs::Encoding::for_label(
        label.split(['"', '\'', ' ', '>', ';', '/']).next()?.as_bytes(),
    )
}

/// How deep elements are nested, by their tags alone.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in text.split('<').skip(1) {
        let closing = tag.starts_with('/');
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .take(12)
            .collect::<String>()
            .to_ascii_lowercase();
        if name.is_empty() || UNCLOSED.contains(&name.as_str()) {
            continue;
        }
        depth = if closing { depth.saturating_sub(1) } else { depth + 1 };
        deepest = deepest.max(depth);
    }
    deepest
}

/// Over the tree without recursion. How many characters nobody sees.
fn walk(
    page: &Html,
    hidden: &HashSet<NodeId>,
    writer: &mut Writer,
    tally: &Tally,
    frames: usize,
) -> usize {
    let is_unseen = |node: NodeRef<'_, Node>| hidden.contains(&node.id()) || is_hidden(node);
    let (mut silent, mut unseen, mut count) = (0_usize, 0_usize, 0);
    for edge in page.tree.root().traverse() {
        match edge {
            Edge::Open(node) => match node.value() {
                Node::Element(_) if is_unseen(node) => (silent, unseen) = (silent + 1, unseen + 1),
                Node::Element(element) if is_silent(node) => {
                    if silent == 0 {
                        inner(node, element, writer, tally, frames);
                    }
                    silent += 1;
                }
                Node::Element(element) if silent == 0 => {
                    if element.name() == "ol" {
                        let items = node.children().filter(|item| is_item(*item)).count();
                        writer.lists.push(List::numbered(element, items));
                    }
                    writer.open(element, is_laid_out(node));
                }
                Node::Text(text) if silent == 0 => writer.text(text),
                Node::Text(text) if silent == unseen => {
                    count += characters(text);
                }
                _ => {}
            },
            Edge::Close(node) => match node.value() {
                Node::Element(_) if is_unseen(node) => (silent, unseen) = (silent - 1, unseen - 1),
                Node::Element(_) if is_silent(node) => silent -= 1,
                Node::Element(element) if silent == 0 => writer.close(element),
                _ => {}
            },
        }
    }
    count
}

/// What nobody sees is no text of the page: it may be meant for a model alone.
fn is_hidden(node: NodeRef<'_, Node>) -> bool {
    let Node::Element(element) = node.value() else { return false };
    element.attr("hidden").is_some()
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
    let mut options = menu.descendants().filter_map(|below| match below.value() {
        Node::Element(element) if element.name() == "option" => Some((below.id(), element)),
        _ => None,
    });
    // The first says it all where it is chosen; a menu has few more.
    let first = options.next();
    first.is_some_and(|(id, element)| id == node.id() && element.attr("selected").is_none())
        && !options.take(1_000).any(|(_, element)| element.attr("selected").is_some())
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

/// What an element holds in another way than as text.
fn inner(
    node: NodeRef<'_, Node>,
    element: &Element,
    writer: &mut Writer,
    tally: &Tally,
    frames: usize,
) {
    let within = |page: &str| match page.trim().is_empty() || frames >= MAX_FRAMES {
        true => String::new(),
        false => read(page, tally, frames + 1).unwrap_or_default(),
    };
    match element.name() {
        "math" => {
            let formula = ElementRef::wrap(node).map(|it| it.html()).unwrap_or_default();
            let formula = xml::parse(formula.as_bytes(), Format::Html);
            writer.formula(&formula.map(|formula| math::text(&formula)).unwrap_or_default());
        }
        "iframe" => writer.page(&within(element.attr("srcdoc").unwrap_or_default())),
        // Its content is text to a parser of HTML.
        "noframes" => {
            let text: String = node
                .descendants()
                .filter_map(|below| below.value().as_text().map(|text| &**text))
                .collect();
            writer.page(&within(&text));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
