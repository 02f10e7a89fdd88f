//! XML as a small tree: names without prefixes, text with entities resolved.

use std::borrow::Cow;

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event, attributes::Attributes},
};

use crate::{encoding, format::Format, unreadable::Unreadable};

/// Deepest nesting. The tree is read by recursion.
const MAX_DEPTH: usize = 400;

/// An XML element.
#[derive(Debug, Default)]
pub(crate) struct Element {
    /// Name without a prefix.
    pub(crate) name: Box<str>,
    attributes: Box<str>,
    pub(crate) children: Vec<Node>,
}

/// A child of an element.
#[derive(Debug)]
pub(crate) enum Node {
    Element(Element),
    Text(String),
}

/// Returns the first 4 KiB of an XML file; `None` for other files.
pub(crate) fn head(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let head = String::from_utf8_lossy(bytes.get(..4 << 10).unwrap_or(bytes));
    let start = head.trim_start_matches('\u{feff}').trim_start();
    (start.starts_with("<?xml") || start.starts_with("<office:") || start.starts_with("<pkg:"))
        .then_some(head)
}

/// Parses a document. The returned element contains the root. Only the entities of XML and `&nbsp;`
/// are resolved, so that none can expand; others stay as written, and a document that declares its
/// own is refused, as by Word. Mismatched tags are repaired as in browsers: an end tag
/// of an outer element also ends those within it, and one without a start tag is ignored.
pub(crate) fn parse(bytes: &[u8], format: Format) -> Result<Element, Unreadable> {
    let damaged = |reason: &dyn std::fmt::Display| Unreadable::damaged(format, reason.to_string());
    let xml = encoding::decode(bytes).map_err(|_| damaged(&"a part of it is no text"))?;
    let mut reader = Reader::from_str(&xml);
    let config = reader.config_mut();
    (config.check_end_names, config.allow_unmatched_ends) = (false, true);
    config.allow_dangling_amp = true;
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().map_err(|error| damaged(&error))? {
            Event::Start(tag) => {
                if open.len() > MAX_DEPTH {
                    return Err(damaged(&"its elements are nested too deeply"));
                }
                open.push(element(&tag));
            }
            Event::Empty(tag) => add(&mut open, Node::Element(element(&tag))),
            Event::End(tag) => {
                let name = tag.local_name();
                // The first in the list is the document itself.
                let ended = (1..open.len()).rfind(|at| &*open[*at].name == name.as_ref());
                while ended.is_some_and(|at| open.len() > at)
                    && let Some(closed) = open.pop()
                {
                    add(&mut open, Node::Element(closed));
                }
            }
            event @ (Event::Text(_) | Event::CData(_) | Event::GeneralRef(_)) => {
                add_text(&mut open, &event_text(&event));
            }
            Event::DocType(declared) if declared.contains("<!ENTITY") => {
                return Err(damaged(&"it declares entities of its own, which are not read"));
            }
            // A truncated document must not count as complete.
            Event::Eof if open.len() > 1 => return Err(damaged(&"it breaks off")),
            Event::Eof => return open.pop().ok_or_else(|| damaged(&"it is empty")),
            _ => {}
        }
    }
}

/// Returns the text of a reader's event.
pub(crate) fn event_text<'e>(event: &'e Event<'_>) -> Cow<'e, str> {
    match event {
        Event::Text(text) => text.xml10_content(),
        Event::CData(text) => text.xml10_content(),
        Event::GeneralRef(name) => match name.resolve_char_ref() {
            Ok(Some(letter)) => letter.to_string().into(),
            _ => entity(name).map_or_else(|| format!("&{};", &**name).into(), Cow::Borrowed),
        },
        _ => Cow::Borrowed(""),
    }
}

/// Makes an element without its children.
pub(crate) fn element(tag: &BytesStart<'_>) -> Element {
    Element {
        name: tag.local_name().as_ref().into(),
        attributes: tag.attributes_raw().into(),
        children: Vec::new(),
    }
}

fn entity(name: &str) -> Option<&'static str> {
    Some(match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        "nbsp" => "\u{a0}",
        _ => return None,
    })
}

fn add(open: &mut [Element], node: Node) {
    if let Some(parent) = open.last_mut() {
        parent.children.push(node);
    }
}

fn add_text(open: &mut [Element], text: &str) {
    if let Some(parent) = open.last_mut() {
        match parent.children.last_mut() {
            Some(Node::Text(before)) => before.push_str(text),
            _ => parent.children.push(Node::Text(text.to_owned())),
        }
    }
}

impl Element {
    /// Makes an element that contains a text.
    pub(crate) fn with_text(name: &str, text: &str) -> Self {
        let children = vec![Node::Text(text.to_owned())];
        Self { name: name.into(), children, ..Self::default() }
    }

    /// Returns an attribute by its name, with or without a prefix.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        Attributes::new(&self.attributes, 0).with_checks(false).flatten().find_map(|attribute| {
            (attribute.key.local_name().as_ref() == name)
                .then(|| attribute.normalized_value(XmlVersion::Implicit1_0).ok())
                .flatten()
                .map(std::borrow::Cow::into_owned)
        })
    }

    /// Returns whether an attribute is true.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.attribute(name).is_some_and(|it| matches!(it.trim(), "1" | "true" | "on"))
    }

    /// Returns whether an attribute is false.
    pub(crate) fn is_off(&self, name: &str) -> bool {
        self.attribute(name).is_some_and(|it| matches!(it.trim(), "0" | "false" | "off"))
    }

    /// Returns the attribute `id` with any prefix: the id of another part.
    pub(crate) fn reference(&self) -> Option<String> {
        Attributes::new(&self.attributes, 0).with_checks(false).flatten().find_map(|attribute| {
            (attribute.key.as_ref().ends_with(":id")).then(|| attribute.value.into_owned())
        })
    }

    /// Returns the child elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// Returns the first child element with this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.elements().find(|element| &*element.name == name)
    }

    /// Returns the descendants with this name in order, without those nested in each other. Extensions
    /// are left out: they hold other states of the document, such as the filtered series of a chart.
    pub(crate) fn all<'a>(&'a self, name: &str) -> Vec<&'a Element> {
        self.descendants(name, |element| &*element.name != "extLst")
    }

    /// Returns such descendants, also those in extensions.
    pub(crate) fn all_with_extensions<'a>(&'a self, name: &str) -> Vec<&'a Element> {
        self.descendants(name, |_| true)
    }

    /// Returns the descendants with this name, reading only the elements that `is_read` accepts.
    fn descendants<'a>(&'a self, name: &str, is_read: fn(&Element) -> bool) -> Vec<&'a Element> {
        let mut found = Vec::new();
        let mut stack: Vec<&Element> = self.elements().collect();
        stack.reverse();
        while let Some(element) = stack.pop() {
            if &*element.name == name {
                found.push(element);
            } else if is_read(element) {
                let from = stack.len();
                stack.extend(element.elements());
                stack[from..].reverse();
            }
        }
        found
    }

    /// Returns the text of all descendants.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.add_text_to(&mut text);
        text
    }

    fn add_text_to(&self, text: &mut String) {
        for node in &self.children {
            match node {
                Node::Element(element) => element.add_text_to(text),
                Node::Text(words) => text.push_str(words),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(xml: &str) -> Result<String, Unreadable> {
        parse(xml.as_bytes(), Format::Docx).map(|tree| tree.text())
    }

    #[test]
    fn tags_that_do_not_match_are_repaired() {
        let tree = parse(b"<a><b><i/ ><c>one</b> &amp & </x><d>two</d></a>", Format::Docx).unwrap();
        assert_eq!(tree.child("a").unwrap().child("d").unwrap().text(), "two");
        assert!(tree.text().starts_with("one") && tree.text().ends_with("two"), "{}", tree.text());
    }

    #[test]
    fn no_entity_vanishes_or_grows() {
        let resolved = read("<!DOCTYPE a><a>&lt;&#65;&nbsp;&lol;x</a>").unwrap();
        assert_eq!(resolved, "<A\u{a0}&lol;x");
        for declared in ["a \"text\"", "a SYSTEM \"file:///etc/hostname\"", "% a \"text\""] {
            let refused = read(&format!("<!DOCTYPE d [<!ENTITY {declared}>]><d>&a;</d>"));
            let why = refused.unwrap_err().to_string();
            assert!(why.contains("declares entities of its own"), "{declared}: {why}");
        }
    }

    #[test]
    fn what_breaks_off_is_no_document() {
        for xml in ["<a><b>one</b>", "<a>one</b>", "<a>one</a", "<a>one</a><"] {
            assert!(read(xml).is_err(), "{xml}");
        }
    }
}
