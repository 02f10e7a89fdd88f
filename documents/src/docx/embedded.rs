//! Content in separate parts, shown where another part refers to it: diagrams, charts, and documents of
//! any format (`altChunk`).

use std::collections::HashMap;

use crate::{
    drawing::diagram_text,
    left_out::{Kind, Tally},
    limits::Limits,
    links::ADDRESS,
    package::{Package, Relation},
    sheets::chart_text,
    unreadable::Unreadable,
    xml::{Element, Node},
};

/// Deepest nesting of documents.
const MAX_DEPTH: usize = 4;

/// Reads a document, given its bytes, its name, and the number of documents around it.
pub(super) type TextOf<'t> = dyn Fn(&[u8], &str, usize) -> Result<String, Unreadable> + 't;

/// Reader of embedded content, with its limits.
pub(super) struct Embedded<'t> {
    pub(super) limits: &'t Limits,
    /// Number of documents around this one.
    pub(super) depth: usize,
    pub(super) text_of: &'t TextOf<'t>,
    pub(super) tally: &'t Tally,
    /// Bytes of embedded text read so far.
    pub(super) read: usize,
}

impl Embedded<'_> {
    /// Writes the text of referenced parts, and the addresses of links, into the elements that refer to
    /// them.
    pub(super) fn fill_references(
        &mut self,
        package: &mut Package<'_>,
        part: &str,
        tree: &mut Element,
    ) -> Result<(), Unreadable> {
        let mut places = Vec::new();
        references(tree, &mut places);
        if places.is_empty() {
            return Ok(());
        }
        let (relations, links) = (package.relations(part)?, package.links(part)?);
        // A part with several references is read once.
        let mut texts: HashMap<&str, String> = HashMap::new();
        for place in places {
            let id = match &*place.name {
                "hyperlink" => {
                    if let Some(link) = place.reference().and_then(|id| links.get(&id)) {
                        place.children.push(Node::Element(Element::with_text(ADDRESS, link)));
                    }
                    continue;
                }
                "relIds" => place.attribute("dm"),
                _ => place.reference(),
            };
            let Some(relation) = id.and_then(|id| relations.get(&id)) else { continue };
            let text = match texts.get(&*relation.target) {
                Some(text) => text.clone(),
                None => match self.read_embedded(package, relation) {
                    Ok(text) => text,
                    Err(too_large @ Unreadable::TooLarge { .. }) => return Err(too_large),
                    Err(Unreadable::Empty) => String::new(),
                    Err(error) => {
                        let name = relation.target.rsplit('/').next().unwrap_or_default();
                        format!("[{name}: {error}]")
                    }
                },
            };
            texts.insert(&relation.target, text.clone());
            if text.is_empty() {
                continue;
            }
            self.read += text.len();
            self.limits.take_text(self.read)?;
            place.children = vec![Node::Text(text)];
        }
        Ok(())
    }

    fn read_embedded(
        &self,
        package: &mut Package<'_>,
        relation: &Relation,
    ) -> Result<String, Unreadable> {
        let name = &relation.target;
        let missing = || Unreadable::NoMember { what: "it is missing from the archive".into() };
        match relation.kind.as_str() {
            "aFChunk" | "package" if self.depth >= MAX_DEPTH => {
                Err(Unreadable::NoMember { what: "it lies too deep in other documents".into() })
            }
            "aFChunk" | "package" => {
                let bytes = package.read(name)?.ok_or_else(missing)?;
                (self.text_of)(&bytes, name, self.depth + 1)
            }
            // Content of an unknown program; the document shows a picture of it.
            "oleObject" | "control" | "image" => {
                self.tally.add_in_part(Kind::UnreadParts, 1, name);
                Ok(String::new())
            }
            "diagramData" => Ok(diagram_text(&package.xml(name)?.ok_or_else(missing)?)),
            _ => Ok(chart_text(&package.xml(name)?.ok_or_else(missing)?)),
        }
    }
}

/// Collects the elements that refer to other parts, and links.
fn references<'e>(parent: &'e mut Element, found: &mut Vec<&'e mut Element>) {
    for node in &mut parent.children {
        let Node::Element(element) = node else { continue };
        match &*element.name {
            "altChunk" | "relIds" | "chart" | "OLEObject" => found.push(element),
            "hyperlink" => {
                // References within a link are not followed.
                found.push(element);
            }
            // An alternative to content that is read already.
            "Fallback" => {}
            _ => references(element, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::docx::tests::{read, relation};

    fn with(kind: &str, element: &str, name: &str, part: &str) -> String {
        let around = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r>{element}</w:p>");
        let body = match kind {
            "aFChunk" => format!("{}{element}<w:p/>", around("before").replace(element, "")),
            _ => around("before"),
        };
        read(&[
            (
                "word/_rels/document.xml.rels",
                &format!("<Relationships>{}</Relationships>", relation("c", kind, name)),
            ),
            (&format!("word/{name}"), part),
            ("word/document.xml", &format!("<w:document><w:body>{body}</w:body></w:document>")),
        ])
        .unwrap()
    }

    #[test]
    fn documents_of_other_formats_are_read_in_their_place() {
        let chunk = |name: &str, part: &str| with("aFChunk", "<w:altChunk r:id='c'/>", name, part);
        let page = "<html><body><h1>Ebb</h1><ul><li>it goes</li></ul></body></html>";
        assert_eq!(chunk("chunk.html", page), "before\n# Ebb\n\n- it goes");
        assert_eq!(chunk("chunk.txt", "plain"), "before\nplain");
        let rich = chunk("chunk.rtf", "{\\rtf1 words}");
        assert!(rich.starts_with("before\n[chunk.rtf: this is rich text (RTF)"), "{rich}");
        assert_eq!(chunk("chunk.html", "<html></html>"), "before");
    }

    #[test]
    fn diagrams_and_charts_are_read_with_their_paragraph() {
        let drawn = |inner: &str| {
            format!(
                "<w:r><w:drawing><a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic></w:drawing></w:r>"
            )
        };
        let diagram = "<dgm:dataModel><dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>flow</a:t></a:r></a:p></dgm:t></dgm:pt>\
            <dgm:pt><dgm:t><a:p><a:r><a:t>ebb</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>";
        let ids = drawn("<dgm:relIds r:dm='c' r:lo='x'/>");
        assert_eq!(with("diagramData", &ids, "d.xml", diagram), "before\nflow\nebb");
        let broken = with("diagramData", &ids, "d.xml", "<dgm:dataModel>");
        assert_eq!(broken, "before\n[d.xml: the DOCX is damaged: it breaks off]");
        let chart = "<c:chartSpace><c:ser><c:tx><c:v>Metres</c:v></c:tx><c:cat><c:pt><c:v>Brest</c:v></c:pt></c:cat>\
            <c:val><c:pt><c:v>7.5</c:v></c:pt></c:val></c:ser></c:chartSpace>";
        let text = with("chart", &drawn("<c:chart r:id='c'/>"), "c.xml", chart);
        assert_eq!(text, "before\nMetres | Brest: 7.5");
    }
}
