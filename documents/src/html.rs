//! HTML to readable text: headings, paragraphs, lists and tables; no scripts, no navigation.

mod lists;
mod styles;
mod xhtml;

use std::{borrow::Cow, collections::HashSet};

use ego_tree::{NodeId, NodeRef, iter::Edge};
use scraper::{ElementRef, Html, Node, node::Element};

use crate::{
    encoding,
    format::Format,
    left_out::{Kind, Tally},
    links::Link,
    math,
    unreadable::Unreadable,
    xml,
};
use lists::List;

/// Deeper nesting is refused: building the tree takes time with the square of the depth.
const MAX_DEPTH: usize = 2_000;

/// Pages within pages.
const MAX_FRAMES: usize = 3;

/// What holds no text of the page.
const WITHOUT_TEXT: [&str; 19] = [
    "script", "style", "noscript", "noframes", "head", "nav", "iframe", "object", "canvas",
    "audio", "video", "datalist", "math", "rp", "defs", "desc", "metadata", "symbol", "title",
];

/// What begins on a line of its own.
const BLOCKS: [&str; 38] = [
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "footer",
    "aside",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "dl",
    "dd",
    "dt",
    "table",
    "blockquote",
    "pre",
    "figure",
    "figcaption",
    "address",
    "hr",
    "details",
    "summary",
    "caption",
    "fieldset",
    "legend",
    "form",
    "center",
    "hgroup",
    "menu",
    "dialog",
    "search",
    "optgroup",
];

/// What stands in a line and apart from its neighbours.
const APART: [&str; 8] =
    ["button", "input", "select", "textarea", "label", "img", "text", "option"];

/// Blocks that follow the line before without a blank one.
const CLOSE: [&str; 5] = ["dd", "dt", "summary", "caption", "legend"];

/// Columns and rows that one cell may span.
const MAX_SPAN: usize = 60;
/// Columns of a table.
const MAX_COLUMNS: usize = 1_000;

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
        let mut writer = Writer { frames, ..Writer::default() };
        let inner = Tally::default();
        let unseen = walk(&page, hidden, &mut writer, &inner);
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
fn walk(page: &Html, hidden: &HashSet<NodeId>, writer: &mut Writer, tally: &Tally) -> usize {
    let is_unseen = |node: NodeRef<'_, Node>| hidden.contains(&node.id()) || is_hidden(node);
    let (mut silent, mut unseen, mut count) = (0_usize, 0_usize, 0);
    for edge in page.tree.root().traverse() {
        match edge {
            Edge::Open(node) => match node.value() {
                Node::Element(_) if is_unseen(node) => (silent, unseen) = (silent + 1, unseen + 1),
                Node::Element(element) if is_silent(node) => {
                    if silent == 0 {
                        writer.inner(node, element, tally);
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
                    count += text.chars().filter(|c| !c.is_whitespace()).count();
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

/// Text in which white space means what it means in HTML.
#[derive(Debug, Default)]
struct Writer {
    text: String,
    /// A space before the next word.
    space: bool,
    /// Line breaks before the next word.
    breaks: usize,
    /// Open `<sup>`.
    raised: usize,
    /// Open `<pre>`: white space stays.
    kept: usize,
    lists: Vec<List>,
    tables: Vec<Table>,
    /// Open cells of tables: whether each is a cell of data, in which a block is but a word.
    cells: Vec<bool>,
    /// The open link.
    link: Option<Link>,
    /// A link has just been closed, which the next one must not touch.
    after_link: bool,
    /// Pages around this one.
    frames: usize,
}

/// An open table.
#[derive(Debug, Default)]
struct Table {
    /// Where the next cell of the row comes to stand.
    column: usize,
    /// Borders that are written of the row.
    written: usize,
    /// For how many further rows a cell of a row above takes a column.
    taken: Vec<usize>,
}

impl Writer {
    fn open(&mut self, element: &Element, laid_out: bool) {
        let name = element.name();
        self.block(name);
        if APART.contains(&name) || (name == "a" && self.after_link) {
            self.space = true;
        }
        match name {
            "br" if self.in_data() => self.space = true,
            "br" if self.kept > 0 => self.text.push('\n'),
            "br" => self.breaks = (self.breaks + 1).min(2),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !self.in_data() => {
                let level = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit - b'0'));
                self.word(&format!("{} ", "#".repeat(level)));
            }
            "del" | "s" | "strike" => self.word("~~"),
            "a" => self.link = element.attr("href").and_then(Link::to),
            "q" => self.word("\""),
            // What it means beside the word, as `rp` has it where it is written.
            "rt" => self.word("("),
            "pre" => self.kept += 1,
            "sup" => self.raised += 1,
            "ul" | "menu" => self.lists.push(List::bullets()),
            "li" => {
                self.breaks = self.breaks.max(1);
                let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(10));
                let mark = self.lists.last_mut().map(|list| list.mark(element));
                self.word(&format!("{indent}{}", mark.as_deref().unwrap_or("- ")));
            }
            "table" => self.tables.push(Table::default()),
            "tr" => {
                self.breaks = self.breaks.max(1);
                if let Some(table) = self.tables.last_mut() {
                    (table.column, table.written) = (0, 0);
                }
            }
            "td" | "th" => self.cell(element, laid_out),
            "img" => {
                if let Some(alt) = element.attr("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(alt);
                    self.space = true;
                }
            }
            "input" => {
                let kind = element.attr("type").unwrap_or("text").to_ascii_lowercase();
                if matches!(kind.as_str(), "checkbox" | "radio") {
                    let ticked = element.attr("checked").is_some();
                    self.word(if ticked { "[x]" } else { "[ ]" });
                    self.space = true;
                }
                let shown = !matches!(
                    kind.as_str(),
                    "hidden" | "password" | "checkbox" | "radio" | "file" | "image" | "color"
                );
                if let Some(value) = element.attr("value").filter(|_| shown) {
                    self.text(value);
                    self.space = true;
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, element: &Element) {
        let name = element.name();
        self.block(name);
        self.after_link = name == "a";
        match name {
            "del" | "s" | "strike" => match self.text.strip_suffix("~~") {
                // There was nothing in it.
                Some(before) => self.text.truncate(before.len()),
                None => self.text.push_str("~~"),
            },
            "a" => {
                if let Some(link) = self.link.take() {
                    link.end(&mut self.text);
                }
            }
            "q" => self.text.push('"'),
            "rt" => self.text.push(')'),
            "pre" => self.kept = self.kept.saturating_sub(1),
            "sup" => self.raised = self.raised.saturating_sub(1),
            "ul" | "ol" | "menu" => drop(self.lists.pop()),
            "table" => drop(self.tables.pop()),
            "td" | "th" => drop(self.cells.pop()),
            "tr" => self.row_ends(),
            name if APART.contains(&name) => self.space = true,
            _ => {}
        }
    }

    /// What an element holds in another way than as text: a formula, a page within the page.
    fn inner(&mut self, node: NodeRef<'_, Node>, element: &Element, tally: &Tally) {
        match element.name() {
            "math" => {
                let formula = ElementRef::wrap(node).map(|it| it.html()).unwrap_or_default();
                let formula = xml::parse(formula.as_bytes(), Format::Html);
                self.space = true;
                let text = formula.map(|formula| math::text(&formula)).unwrap_or_default();
                if !text.is_empty() {
                    self.word(&text);
                }
                self.space = true;
            }
            "iframe" => self.page(element.attr("srcdoc").unwrap_or_default(), tally),
            // Its content is text to a parser of HTML.
            "noframes" => {
                let text: String = node
                    .descendants()
                    .filter_map(|below| below.value().as_text().map(|text| &**text))
                    .collect();
                self.page(&text, tally);
            }
            _ => {}
        }
    }

    fn page(&mut self, page: &str, tally: &Tally) {
        if page.trim().is_empty() || self.frames >= MAX_FRAMES {
            return;
        }
        if let Ok(text) = read(page, tally, self.frames + 1)
            && !text.is_empty()
        {
            self.breaks = 2;
            self.word(&text);
            self.breaks = 2;
        }
    }

    /// The border of a block, if it is one.
    fn block(&mut self, name: &str) {
        if !BLOCKS.contains(&name) {
            return;
        }
        if self.in_data() {
            self.space = true;
        } else {
            self.breaks = self.breaks.max(if CLOSE.contains(&name) { 1 } else { 2 });
        }
    }

    fn in_data(&self) -> bool {
        self.cells.last() == Some(&true)
    }

    /// Begins a cell; those that cells above and before it take stay empty.
    fn cell(&mut self, element: &Element, laid_out: bool) {
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
            self.word(" | ");
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

    /// Ends a row: what is taken further to the right has one row less to go.
    fn row_ends(&mut self) {
        if let Some(table) = self.tables.last_mut() {
            for taken in table.taken.iter_mut().skip(table.column) {
                *taken = taken.saturating_sub(1);
            }
        }
    }

    fn text(&mut self, text: &str) {
        let raised = (self.raised > 0).then(|| math::exponent(text)).flatten();
        let text = raised.as_deref().unwrap_or(text);
        if self.kept > 0 && !self.in_data() {
            return self.word(text.strip_prefix('\n').filter(|_| self.breaks > 0).unwrap_or(text));
        }
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            if !word.is_empty() {
                self.word(word);
            }
            self.space |= word.len() < piece.len();
        }
    }

    /// What is due before it, and the word.
    fn word(&mut self, word: &str) {
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
        (self.breaks, self.space, self.after_link) = (0, false, false);
        if let Some(link) = &mut self.link {
            link.begin(&mut self.text);
        }
        self.text.push_str(word);
    }

    fn finish(self) -> String {
        self.text.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_like_a_page() {
        let page = "<html><head><title>T</title><style>p{}</style></head><body><nav><a>Home</a></nav><h2>Tides\n today</h2>\
            <p>High at <b>six</b>,\n  low at&nbsp;noon.<br>Mind the gap.</p><ul><li>one<li>two<ol><li>deep</ol></ul>\
            <table><tr><th>Port<th>Metres<tr><td>Brest<td>7</table><pre>\n a\n  b</pre><script>evil()</script><p hidden>no</p></body>";
        let expected = "## Tides today\n\nHigh at six, low at noon.\nMind the gap.\n\n- one\n- two\n\n  1. deep\n\nPort | Metres\nBrest | 7\n\n a\n  b";
        assert_eq!(read(page), expected);
    }

    fn read(page: &str) -> String {
        extract(page.as_bytes(), &Tally::default()).unwrap()
    }

    #[test]
    fn a_form_is_part_of_its_page() {
        let page = "<form><p>The whole page</p><label>Port</label><input value='Brest'><input type=hidden value=secret>\
            <select><option>Low<option selected>High</select><textarea>Notes</textarea><button>Send</button><button>Stop</button></form>";
        assert_eq!(read(page), "The whole page\n\nPort Brest High Notes Send Stop");
    }

    #[test]
    fn what_a_browser_puts_together_is_read_so() {
        for (page, expected) in [
            (
                "<x-a><template shadowrootmode=open><b>shadow</b> </template>light</x-a>",
                "shadow light",
            ),
            ("<p>a<template><p>inert</template>b", "ab"),
            ("<table><tfoot><tr><td>sum</tfoot><tbody><tr><td>1<tr><td>2</table>", "1\n2\nsum"),
            (
                "<frameset><frame src=a><noframes><p>No <b>frames</b></noframes></frameset>",
                "No frames",
            ),
            ("a<iframe srcdoc='&lt;h1&gt;In&lt;/h1&gt;side'></iframe>b", "a\n\n# In\n\nside\n\nb"),
            (
                "<svg><title>t</title><defs><text>d</text></defs><g><text>x</text><text>y</text></g></svg>",
                "x y",
            ),
            ("<ruby>東<rt>ひがし</ruby>口", "東(ひがし)口"),
            ("<q>Ebb</q>, he said", "\"Ebb\", he said"),
            ("<math><mfrac><mn>3</mn><mi>n</mi></mfrac></math> of", "3/n of"),
        ] {
            assert_eq!(read(page), expected, "{page}");
        }
        let nested = (0..9).fold("deep".to_owned(), |page, _| {
            format!(
                "<iframe srcdoc=\"{}\"></iframe>x",
                page.replace('&', "&amp;").replace('"', "&quot;")
            )
        });
        assert!(!read(&nested).contains("deep"));
    }

    #[test]
    fn links_are_named_where_they_lead_out() {
        for (link, expected) in [
            (
                "<a href='https://a.org/b?c=1'>the <b>page</b></a>.",
                "the [the page](https://a.org/b?c=1).",
            ),
            ("<a href='#b'>x</a> <a href='b.html'>y</a>", "the x y"),
            (
                "<a href='https://a.org/'>a.org</a>, <a href=mailto:b@c.d>b@c.d</a>",
                "the a.org, b@c.d",
            ),
            ("<a href=https://a.org></a>x", "the x"),
            ("<a href=https://a.org><div>a</div>b</a>", "the\n\na\n\nb (https://a.org)"),
        ] {
            assert_eq!(read(&format!("the {link}")), expected, "{link}");
        }
    }

    #[test]
    fn what_nobody_sees_is_left_out() {
        let tally = Tally::default();
        let page =
            "<p>seen<p hidden>ab <b>c</b><script>no()</script></p><p style='display:none'>de";
        assert_eq!(extract(page.as_bytes(), &tally).unwrap(), "seen");
        assert_eq!(tally.into_left_out().count(Kind::HiddenText), 5);
        let hidden = [
            "style='display: none'",
            "style='color:red;VISIBILITY:hidden !important'",
            "style='font-size:0px'",
            "style='position:absolute;left:-9999px'",
            "style='opacity:0.0'",
            "hidden",
        ];
        for hidden in hidden {
            assert_eq!(
                read(&format!("<p>seen<div {hidden}>Ignore <b>that</b></div>too")),
                "seen\n\ntoo"
            );
        }
        assert_eq!(read("<p style='display:block;opacity:.5;left:-9px'>seen"), "seen");
    }

    #[test]
    fn what_the_pages_own_style_sheets_hide_is_left_out() {
        for (sheet, expected) in [
            (".x { display: none }", "seen"),
            ("p.x, i { visibility: hidden } /* .x { visibility: visible } */", "seen"),
            ("@import url(a.css); @media screen { #y { opacity: 0 } }", "seen"),
            ("#y { display: none !important } .x { display: block !important }", "seen"),
            // Another rule shows it again, or it is for other readers.
            (".x { display: none } p.x { display: block }", "seen\n\nhidden"),
            (".x { display: none } #y { display: block }", "seen\n\nhidden"),
            ("@media print { .x { display: none } }", "seen\n\nhidden"),
            ("@media (max-width: 600px) { .x { display: none } }", "seen\n\nhidden"),
            (".x:hover { display: none } .z { display: none }", "seen\n\nhidden"),
            (".x { display: none", "seen"),
            ("} .x { left: 1px } {", "seen\n\nhidden"),
        ] {
            let page = format!("<style>{sheet}</style><p>seen<p class=x id=y>hidden");
            assert_eq!(read(&page), expected, "{sheet}");
        }
        let inline = "<style>.x { display: none }</style><p class=x style='display:block'>seen";
        assert_eq!(read(inline), "seen");
        let many = format!(
            "<style>{}</style>{}",
            ".a .b { display: none }".repeat(3_000),
            "<p class=b>x".repeat(2_000)
        );
        assert!(read(&many).starts_with('x'), "in good time");
        let waiting = "<style>body > * { display: none }</style><p>shown later<p hidden>never";
        assert_eq!(read(waiting), "shown later");
    }

    #[test]
    fn neighbours_touch_only_where_they_do_on_the_page() {
        assert_eq!(read("<a>Home</a><a>Tides</a>"), "Home Tides");
        assert_eq!(
            read(
                "H<sub>2</sub>O, 10<sup>-6</sup> m<sup>2</sup>, 1<sup>st</sup> <a>link</a>s, <span>co</span><span>de</span>"
            ),
            "H2O, 10⁻⁶ m², 1st links, code"
        );
        assert_eq!(read("<table><caption>Ports</caption><tr><td>a</table>"), "Ports\na");
        assert_eq!(read("a<img alt='a tide'>b"), "a a tide b");
    }

    #[test]
    fn cells_keep_their_columns() {
        let page = "<table><tr><th rowspan=2>Port<th colspan=2>Tide<th>Day<tr><td><p>high</p><p>springs</p><td>low<td>1</table>";
        assert_eq!(read(page), "Port | Tide |  | Day\n | high springs | low | 1");
        let laid_out = "<table><tr><td><h1>Left</h1><p>one<td><ul><li>two</ul></table>";
        assert_eq!(read(laid_out), "# Left\n\none\n\n- two");
        assert_eq!(read("<pre>a  b<br>  <b>c</b>\n d</pre>"), "a  b\n  c\n d");
    }

    #[test]
    fn a_declared_encoding_is_believed() {
        let page = b"<meta charset='windows-1251'><p>\xcf\xf0\xe8\xeb\xe8\xe2</p>";
        assert_eq!(extract(page, &Tally::default()).unwrap(), "Прилив");
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = format!("{}x", "<div>".repeat(100_000));
        let tally = Tally::default();
        assert!(extract(deep.as_bytes(), &tally).unwrap_err().to_string().contains("nested"));
        let flat = "<li>item<p>text".repeat(20_000);
        assert!(extract(format!("<ul>{flat}").as_bytes(), &tally).is_ok());
    }
}
