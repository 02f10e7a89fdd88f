//! Content of a page that is not its own text: pictures, inner pages, formulas, alternatives.

use std::collections::HashSet;

use base64::{Engine as _, prelude::BASE64_STANDARD as STANDARD};
use ego_tree::{NodeId, NodeRef};
use scraper::{Html, Node, node::Element};

/// Whether an element shows a picture that is neither decoration nor a tracking pixel.
pub(super) fn is_picture(element: &Element) -> bool {
    let is = |name: &str, value: &str| element.attr(name).is_some_and(|it| it.trim() == value);
    let is_unmarked = !is("alt", "") && !is("role", "presentation");
    element.name() == "img" && is_unmarked && !is_dot(element)
}

/// Whether an element is at most a pixel wide and high, as a tracker is.
fn is_dot(element: &Element) -> bool {
    let is_short = |name: &&str| matches!(element.attr(name).map(str::trim), Some("0" | "1"));
    ["width", "height"].iter().all(is_short)
}

/// Returns the address of a page or file that is shown within the page but is not part of it.
pub(super) fn unread_address<'e>(node: NodeRef<'_, Node>, element: &'e Element) -> Option<&'e str> {
    let has_text = || {
        node.descendants().any(|it| it.value().as_text().is_some_and(|it| !it.trim().is_empty()))
    };
    let address = match element.name() {
        "iframe" if element.attr("srcdoc").is_none() && page_in_address(element).is_none() => {
            element.attr("src")
        }
        "frame" | "embed" => element.attr("src"),
        "object" if !has_text() => element.attr("data"),
        _ => None,
    };
    let address = address.map(str::trim).filter(|_| !is_dot(element));
    address.filter(|address| !address.is_empty() && !address.starts_with("about:"))
}

/// Returns the page within an `iframe` or `noframes`, whose content is text to an HTML parser.
pub(super) fn inner_page(node: NodeRef<'_, Node>, element: &Element) -> String {
    match element.name() {
        "iframe" => match element.attr("srcdoc") {
            Some(page) => page.to_owned(),
            None => page_in_address(element).unwrap_or_default(),
        },
        _ => node.descendants().filter_map(|it| Some(&**it.value().as_text()?)).collect(),
    }
}

/// Returns the page that an address holds itself: `data:text/html,…`.
fn page_in_address(frame: &Element) -> Option<String> {
    let (kind, data) = frame.attr("src")?.trim().strip_prefix("data:")?.split_once(',')?;
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(data).collect();
    let bytes = match kind.strip_suffix(";base64") {
        Some(_) => STANDARD.decode(bytes.trim_ascii()).ok()?,
        None => bytes,
    };
    kind.starts_with("text/html").then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the notes of an EPUB chapter that a reader shows where their mark is touched. Most are hidden
/// until then.
pub(super) fn popup_notes(page: &Html) -> HashSet<NodeId> {
    let elements = || {
        page.tree.root().descendants().filter_map(|it| Some((it.id(), it.value().as_element()?)))
    };
    let has_kind = |element: &Element, kinds: &[&str]| {
        let of_element = element.attr("epub:type").unwrap_or_default();
        of_element.split_whitespace().any(|kind| kinds.contains(&kind))
    };
    let marks: HashSet<&str> = elements()
        .filter(|(_, element)| has_kind(element, &["noteref"]))
        .filter_map(|(_, element)| element.attr("href")?.strip_prefix('#'))
        .collect();
    let kinds = ["footnote", "endnote", "rearnote", "note"];
    let is_note = |element: &Element| {
        has_kind(element, &kinds) && element.attr("id").is_some_and(|id| marks.contains(id))
    };
    elements().filter(|(_, element)| is_note(element)).map(|(id, _)| id).collect()
}

/// Returns the text that an empty box for text shows.
pub(super) fn placeholder<'e>(node: NodeRef<'_, Node>, element: &'e Element) -> Option<&'e str> {
    let is_empty_box = element.name() == "textarea" && !node.has_children();
    element.attr("placeholder").filter(|_| is_empty_box)
}

/// Returns the formula in a script of MathJax, which shows it unless its drawn copy stands before it.
pub(super) fn tex_formula(node: NodeRef<'_, Node>, element: &Element) -> Option<String> {
    let is_drawn = |node: NodeRef<'_, Node>| {
        let class = node.value().as_element().and_then(|it| it.attr("class")).unwrap_or_default();
        class.starts_with("MathJax") && !class.contains("Preview")
    };
    let kind = element.attr("type").unwrap_or_default().trim().to_ascii_lowercase();
    let is_formula = kind.starts_with("math/tex") && !node.prev_siblings().take(2).any(is_drawn);
    let text =
        || node.children().filter_map(|it| Some(&**it.value().as_text()?)).collect::<String>();
    is_formula.then(|| text().trim().to_owned())
}

/// Whether an element is the drawn copy of a formula before it. `aria-hidden` hides it from screen readers
/// only.
pub(super) fn is_drawn_formula(node: NodeRef<'_, Node>, element: &Element) -> bool {
    let is_formula = |node: NodeRef<'_, Node>| {
        node.descendants().take(50).any(
            |below| matches!(below.value(), Node::Element(element) if element.name() == "math"),
        )
    };
    element.attr("aria-hidden") == Some("true") && node.prev_siblings().take(2).any(is_formula)
}

/// Whether an element is an alternative of an EPUB's `switch` that is not shown: a case in another language
/// than MathML, or the text for programs without MathML.
pub(super) fn is_other_case(node: NodeRef<'_, Node>, element: &Element) -> bool {
    let is_formula = |element: &Element| {
        let language = element.attr("required-namespace").unwrap_or_default();
        language.ends_with("/MathML")
    };
    let mut cases = node.prev_siblings().filter_map(|before| before.value().as_element());
    match element.name() {
        "epub:case" => !is_formula(element),
        "epub:default" => cases.any(is_formula),
        _ => false,
    }
}
