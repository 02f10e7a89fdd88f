//! Settings of sections and of the document.

use std::collections::HashMap;

use crate::xml::Element;

/// The kinds of headers and footers in the order of pages.
const KINDS: [&str; 3] = ["first", "default", "even"];

/// Returns the ids of the headers and footers that pages have, in the order of these pages; `None` if no
/// section refers to any, as in files that programs make.
pub(super) fn shown_headers_and_footers(
    document: &Element,
    settings: Option<&Element>,
) -> Option<Vec<String>> {
    let is_on = |parent: &Element, name: &str| {
        parent.all(name).first().is_some_and(|switch| !switch.is_off("val"))
    };
    let has_even = settings.is_some_and(|settings| is_on(settings, "evenAndOddHeaders"));
    let mut shown = Vec::new();
    // A section without a reference of some kind has the one of the section before.
    let mut last: HashMap<(String, String), String> = HashMap::new();
    for section in document.all("sectPr") {
        for edge in section.elements().filter(|it| it.name.ends_with("Reference")) {
            let kind = edge.attribute("type").unwrap_or_else(|| "default".to_owned());
            if let Some(id) = edge.reference() {
                last.insert((edge.name.to_string(), kind), id);
            }
        }
        let has_first = section.child("titlePg").is_some_and(|it| !it.is_off("val"));
        let is_used = |kind: &&str| match *kind {
            "first" => has_first,
            "even" => has_even,
            _ => true,
        };
        for kind in KINDS.into_iter().filter(is_used) {
            let of_kind = last.iter().filter(|((_, known), _)| known == kind);
            for (_, id) in of_kind.filter(|(_, id)| !shown.contains(*id)).collect::<Vec<_>>() {
                shown.push(id.clone());
            }
        }
    }
    (!last.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use crate::docx::tests::{read, relation};

    fn with(section: &str, settings: &str) -> String {
        let edge = |name: &str| format!("<w:hdr><w:p><w:r><w:t>{name}</w:t></w:r></w:p></w:hdr>");
        let relations = [
            relation("d", "header", "d.xml"),
            relation("f", "header", "f.xml"),
            relation("e", "header", "e.xml"),
            relation("o", "header", "o.xml"),
            relation("s", "settings", "s.xml"),
        ];
        let refers = "<w:headerReference w:type='default' r:id='d'/><w:headerReference w:type='first' r:id='f'/>\
             <w:headerReference w:type='even' r:id='e'/>";
        read(&[
            (
                "word/_rels/document.xml.rels",
                &format!("<Relationships>{}</Relationships>", relations.concat()),
            ),
            ("word/d.xml", &edge("default")),
            ("word/f.xml", &edge("first")),
            ("word/e.xml", &edge("even")),
            ("word/o.xml", &edge("orphan")),
            ("word/s.xml", &format!("<w:settings>{settings}</w:settings>")),
            (
                "word/document.xml",
                &format!(
                    "<w:document><w:body><w:p><w:r><w:t>x</w:t></w:r></w:p><w:sectPr>{refers}{section}</w:sectPr></w:body></w:document>"
                ),
            ),
        ])
        .unwrap()
    }

    #[test]
    fn headers_are_those_that_pages_have() {
        assert_eq!(with("", ""), "default\n\nx");
        assert_eq!(with("<w:titlePg w:val='0'/>", ""), "default\n\nx");
        assert_eq!(with("<w:titlePg/>", ""), "first\n\ndefault\n\nx");
        assert_eq!(with("", "<w:evenAndOddHeaders/>"), "default\n\neven\n\nx");
    }
}
