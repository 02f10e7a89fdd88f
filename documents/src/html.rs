//! HTML to readable text: headings, paragraphs, lists and tables; no scripts, no navigation.

use scraper::{Html, Node, node::Element};

use crate::{encoding, format::Format, unreadable::Unreadable};

/// Deeper nesting is refused: building the tree takes time with the square of the depth.
const MAX_DEPTH: usize = 2_000;

/// What holds no text of the page.
const WITHOUT_TEXT: [&str; 17] = [
    "script", "style", "noscript", "template", "head", "nav", "svg", "math", "iframe", "object",
    "canvas", "audio", "video", "select", "button", "datalist", "form",
];

/// What begins on a line of its own.
const BLOCKS: [&str; 27] = [
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
];

/// Elements whose end is often left out or that have none: they say nothing about the depth.
const UNCLOSED: [&str; 30] = [
    "p", "li", "dt", "dd", "td", "th", "tr", "thead", "tbody", "tfoot", "option", "optgroup",
    "colgroup", "caption", "br", "img", "hr", "meta", "link", "input", "col", "area", "base",
    "embed", "source", "track", "wbr", "html", "head", "body",
];

pub(crate) fn extract(bytes: &[u8]) -> Result<String, Unreadable> {
    let text = match declared(bytes) {
        Some(encoding)
            if !bytes.starts_with(b"\xef\xbb\xbf") && std::str::from_utf8(bytes).is_err() =>
        {
            encoding::text(encoding, bytes)?
        }
        _ => encoding::decode(bytes)?,
    };
    if depth(&text) > MAX_DEPTH {
        return Err(Unreadable::damaged(
            Format::Html,
            format!("its elements are nested more than {MAX_DEPTH} deep"),
        ));
    }
    let mut writer = Writer::default();
    walk(&Html::parse_document(&text), &mut writer);
    Ok(writer.finish())
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

/// Over the tree without recursion.
fn walk(page: &Html, writer: &mut Writer) {
    let mut silent = 0_usize;
    for edge in page.tree.root().traverse() {
        match edge {
            ego_tree::iter::Edge::Open(node) => match node.value() {
                Node::Element(element) if is_silent(element) => silent += 1,
                Node::Element(element) if silent == 0 => writer.open(element),
                Node::Text(text) if silent == 0 => writer.text(text),
                _ => {}
            },
            ego_tree::iter::Edge::Close(node) => match node.value() {
                Node::Element(element) if is_silent(element) => silent -= 1,
                Node::Element(element) if silent == 0 => writer.close(element),
                _ => {}
            },
        }
    }
}

fn is_silent(element: &Element) -> bool {
    WITHOUT_TEXT.contains(&element.name())
        || element.attr("hidden").is_some()
        || element.attr("aria-hidden") == Some("true")
}

/// Text in which white space means what it means in HTML.
#[derive(Debug, Default)]
struct Writer {
    text: String,
    /// A space before the next word.
    space: bool,
    /// Line breaks before the next word.
    breaks: usize,
    /// Open `<pre>`: white space stays.
    kept: usize,
    /// Open lists: the number of the next item, or none for bullets.
    lists: Vec<Option<usize>>,
    /// Cells so far in the row.
    cells: usize,
}

impl Writer {
    fn open(&mut self, element: &Element) {
        let name = element.name();
        if BLOCKS.contains(&name) {
            self.breaks = self.breaks.max(if matches!(name, "dd" | "dt") { 1 } else { 2 });
        }
        match name {
            "br" => self.breaks = (self.breaks + 1).min(2),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit - b'0'));
                self.word(&format!("{} ", "#".repeat(level)));
            }
            "pre" => self.kept += 1,
            "ul" => self.lists.push(None),
            "ol" => self.lists.push(Some(1)),
            "li" => {
                self.breaks = self.breaks.max(1);
                let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(10));
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{indent}{}. ", *number - 1)
                    }
                    _ => format!("{indent}- "),
                };
                self.word(&mark);
            }
            "tr" => (self.breaks, self.cells) = (self.breaks.max(1), 0),
            "td" | "th" => {
                if self.cells > 0 {
                    self.word(" | ");
                }
                self.cells += 1;
            }
            "img" => {
                if let Some(alt) = element.attr("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(alt);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, element: &Element) {
        let name = element.name();
        if BLOCKS.contains(&name) {
            self.breaks = self.breaks.max(if matches!(name, "dd" | "dt") { 1 } else { 2 });
        }
        match name {
            "pre" => self.kept = self.kept.saturating_sub(1),
            "ul" | "ol" => drop(self.lists.pop()),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.kept > 0 {
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
        {
            self.text.push(' ');
        }
        (self.breaks, self.space) = (0, false);
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
        assert_eq!(extract(page.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn a_declared_encoding_is_believed() {
        let page = b"<meta charset='windows-1251'><p>\xcf\xf0\xe8\xeb\xe8\xe2</p>";
        assert_eq!(extract(page).unwrap(), "Прилив");
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = format!("{}x", "<div>".repeat(100_000));
        assert!(extract(deep.as_bytes()).unwrap_err().to_string().contains("nested"));
        let flat = "<li>item<p>text".repeat(20_000);
        assert!(extract(format!("<ul>{flat}").as_bytes()).is_ok());
    }
}
