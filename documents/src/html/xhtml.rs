//! Converts XHTML to HTML. An HTML parser takes `<title/>` for an open tag, and what follows for its
//! content.

/// Elements without an end tag in HTML.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// Elements in which HTML recognizes only their own end tag.
const RAW: [&str; 8] =
    ["script", "style", "title", "textarea", "iframe", "xmp", "noembed", "noframes"];

/// Bytes at the start of a page that contain the start of its root element.
const HEAD: usize = 1_024;

/// Whether a page declares to be XHTML, by an XML declaration or its namespace.
pub(super) fn is_declared(page: &str) -> bool {
    let page = page.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
    let head = page.as_bytes().get(..HEAD).unwrap_or(page.as_bytes());
    let namespace = b"http://www.w3.org/1999/xhtml";
    page.starts_with("<?xml") || head.windows(namespace.len()).any(|part| part == namespace)
}

/// Adds an end tag to each self-closed element, and converts CDATA sections to text. Pages that are not
/// really XHTML may have unquoted values that end with a slash, and scripts that write tags: both stay as
/// they are.
pub(super) fn as_html(page: &str) -> String {
    let mut html = String::with_capacity(page.len() + page.len() / 8);
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        html.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let Some(markup) = Markup::at_start(rest) else { break };
        rest = rest.get(markup.length()..).unwrap_or_default();
        match markup {
            Markup::Other(text) => html.push_str(text),
            Markup::Data(text) => {
                html.push_str(&text.replace('&', "&amp;").replace('<', "&lt;"));
            }
            Markup::Tag { text, name, closed: true } if !is_in(&VOID, name) => {
                html.push_str(text.strip_suffix("/>").unwrap_or(text));
                html.push_str("></");
                html.push_str(name);
                html.push('>');
            }
            Markup::Tag { text, name, closed } => {
                html.push_str(text);
                if !closed && is_in(&RAW, name) {
                    let Some(end) = end_of(rest, name) else { break };
                    html.push_str(rest.get(..end).unwrap_or_default());
                    rest = rest.get(end..).unwrap_or_default();
                }
            }
        }
    }
    html.push_str(rest);
    html
}

/// Markup that begins with `<`.
enum Markup<'p> {
    /// A start tag; `closed` if it ends with `/>`.
    Tag { text: &'p str, name: &'p str, closed: bool },
    /// Content of a CDATA section.
    Data(&'p str),
    /// An end tag, a comment, a declaration, or a lone `<`.
    Other(&'p str),
}

/// Start and end of a CDATA section.
const DATA: (&str, &str) = ("<![CDATA[", "]]>");

impl<'p> Markup<'p> {
    /// Returns the markup at the start of a page; `None` if it has no end.
    fn at_start(page: &'p str) -> Option<Self> {
        if let Some(data) = page.strip_prefix(DATA.0) {
            return data.split_once(DATA.1).map(|(data, _)| Self::Data(data));
        }
        // A comment may be as short as `<!-->`.
        let ends = [("<!--", "-->", 2), ("<?", "?>", 2), ("<!", ">", 2), ("</", ">", 2)];
        if let Some((_, end, from)) = ends.into_iter().find(|(start, ..)| page.starts_with(start)) {
            let length = from + page.get(from..)?.find(end)? + end.len();
            return page.get(..length).map(Self::Other);
        }
        let inner = page.get(1..)?;
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return page.get(..1).map(Self::Other);
        }
        let name = inner.split(|c: char| c.is_whitespace() || matches!(c, '/' | '>')).next()?;
        let (length, closed) = tag(inner.get(name.len()..)?)?;
        let text = page.get(..1 + name.len() + length)?;
        Some(Self::Tag { text, name, closed })
    }

    /// Returns its length in the page, in bytes.
    fn length(&self) -> usize {
        match self {
            Self::Tag { text, .. } | Self::Other(text) => text.len(),
            Self::Data(text) => DATA.0.len() + text.len() + DATA.1.len(),
        }
    }
}

/// Returns the length of a tag without its name, and whether it ends with `/>`.
fn tag(attributes: &str) -> Option<(usize, bool)> {
    enum Place {
        /// Between attributes or in a name; whether the last byte was a slash.
        Outside(bool),
        /// After the `=`.
        Before,
        Quoted(u8),
        Unquoted,
    }
    let mut place = Place::Outside(false);
    for (at, byte) in attributes.bytes().enumerate() {
        place = match (place, byte) {
            (Place::Outside(closed), b'>') => return Some((at + 1, closed)),
            (Place::Before | Place::Unquoted, b'>') => return Some((at + 1, false)),
            (Place::Outside(_), b'=') => Place::Before,
            (Place::Outside(_), _) => Place::Outside(byte == b'/'),
            (Place::Before, b'"' | b'\'') => Place::Quoted(byte),
            (Place::Quoted(quote), _) if byte == quote => Place::Outside(false),
            (Place::Before, _) if byte.is_ascii_whitespace() => Place::Before,
            (Place::Unquoted, _) if byte.is_ascii_whitespace() => Place::Outside(false),
            (Place::Before, _) => Place::Unquoted,
            (place, _) => place,
        };
    }
    None
}

/// Returns where the end tag of a [`RAW`] element begins.
fn end_of(page: &str, name: &str) -> Option<usize> {
    page.match_indices("</").map(|(at, _)| at).find(|at| {
        let end = page.get(at + 2..).and_then(|end| end.get(..name.len()));
        end.is_some_and(|end| end.eq_ignore_ascii_case(name))
    })
}

fn is_in(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_are_closed_at_once_get_an_end() {
        for (xhtml, html) in [
            ("<title/><p>x", "<title></title><p>x"),
            ("<script src=\"x.js\" /><p>", "<script src=\"x.js\" ></script><p>"),
            ("<a id='x'/>y<br/><HR />", "<a id='x'></a>y<br/><HR />"),
            ("<a title=\"1 > 0 />\" b='/>'/>", "<a title=\"1 > 0 />\" b='/>'></a>"),
            ("<a title=\"1 /> 0\">y</a>", "<a title=\"1 /> 0\">y</a>"),
            ("<svg:g\n/>", "<svg:g\n></svg:g>"),
            ("<!-- <div/> --><div/>", "<!-- <div/> --><div></div>"),
            ("<!--><div/>", "<!--><div></div>"),
            ("<?xml a='<b/>'?><b/>", "<?xml a='<b/>'?><b></b>"),
            ("<p><![CDATA[a < b && <i/>]]></p>", "<p>a &lt; b &amp;&amp; &lt;i/></p>"),
            // Not XHTML.
            ("<a href=http://x.org/>y</a>", "<a href=http://x.org/>y</a>"),
            ("<script>w('<script/>')</SCRIPT><b/>", "<script>w('<script/>')</SCRIPT><b></b>"),
            ("a < b <3 <i/><", "a < b <3 <i></i><"),
            ("<i/><script>'<b/>", "<i></i><script>'<b/>"),
            ("<i/><b title='<u/>", "<i></i><b title='<u/>"),
            ("<i/><!-- <u/>", "<i></i><!-- <u/>"),
        ] {
            assert_eq!(as_html(xhtml), html);
        }
    }

    #[test]
    fn a_page_says_what_it_is() {
        assert!(is_declared("\u{feff}<?xml version='1.0'?><html>"));
        assert!(is_declared("<!DOCTYPE html><html xmlns=\"http://www.w3.org/1999/xhtml\">"));
        assert!(!is_declared("<!DOCTYPE html><p>Grüße"));
    }
}
