//! Content in separate parts, shown where another part refers to it: diagrams, charts, and documents of
//! any format (`altChunk`).

use std::collections::HashMap;

use crate::{
    context::Context,
    drawing::diagram_text,
    embedded::{embedded_text, name_with_reason},
    left_out::Kind,
    links::{ADDRESS, with_fragment},
    package::{Package, Relation},
    sheets::chart_text,
    unreadable::Unreadable,
    xml::{Element, Node},
};

/// Reader of embedded content, with its limits.
pub(super) struct Embedded<'t> {
    pub(super) context: &'t Context<'t>,
    /// Bytes of embedded text read so far.
    pub(super) read: usize,
}

impl Embedded<'_> {
    /// Writes the text of referenced parts, and the addresses of links, into the elements that refer to
    /// them. Counts content that lies in another file.
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
                "relIds" => place.attribute("dm"),
                _ => place.reference(),
            };
            let Some(id) = id else { continue };
            match (relations.get(&id), links.get(&id)) {
                (_, Some(link)) if &*place.name == "hyperlink" => {
                    let address = with_fragment(link, place.attribute("anchor").as_deref());
                    place.children.push(Node::Element(Element::with_text(ADDRESS, &address)));
                }
                (None, Some(link)) => self.context.tally.add_in_part(Kind::UnreadParts, 1, link),
                (Some(relation), _) if &*place.name != "hyperlink" => {
                    let text = match texts.get(&*relation.target) {
                        Some(text) => text.clone(),
                        None => self.read_embedded(package, relation)?,
                    };
                    texts.insert(&relation.target, text.clone());
                    if !text.is_empty() {
                        self.read += text.len();
                        self.context.limits.take_text(self.read)?;
                        place.children = vec![Node::Text(text)];
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_embedded(
        &self,
        package: &mut Package<'_>,
        relation: &Relation,
    ) -> Result<String, Unreadable> {
        let name = &relation.target;
        let text_of: fn(&Element) -> String = match &*relation.kind {
            "aFChunk" | "package" | "oleObject" | "control" | "image" => {
                return embedded_text(package, relation, self.context);
            }
            "diagramData" => diagram_text,
            _ => chart_text,
        };
        let missing = || Unreadable::NoMember { what: "it is missing from the archive".into() };
        let tree = package.xml(name).and_then(|tree| tree.ok_or_else(missing));
        match tree {
            Ok(tree) => Ok(text_of(&tree)),
            Err(too_large @ Unreadable::TooLarge { .. }) => Err(too_large),
            Err(error) => {
                self.context.tally.add_in_part(Kind::UnreadParts, 1, name);
                Ok(name_with_reason(name, &error))
            }
        }
    }
}

/// Collects the elements that refer to other parts, and links.
fn references<'e>(parent: &'e mut Element, found: &mut Vec<&'e mut Element>) {
    for node in &mut parent.children {
        let Node::Element(element) = node else { continue };
        match &*element.name {
            "altChunk" | "relIds" | "chart" | "OLEObject" | "subDoc" => found.push(element),
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
