//! Diagrams (SmartArt), which are parts of their own.

use std::collections::{HashMap, HashSet};

use super::paragraphs::write_paragraphs;
use crate::xml::Element;

/// Returns the text of a diagram.
pub(crate) fn diagram_text(diagram: &Element) -> String {
    let mut text = String::new();
    if !write_nodes(diagram, &mut text) {
        write_paragraphs(diagram, &mut text);
    }
    text
}

/// Writes the nodes of a diagram in the order of drawing, each followed by its children. Returns
/// `false` if the diagram states no order.
fn write_nodes(drawing: &Element, text: &mut String) -> bool {
    let points: HashMap<String, &Element> = drawing
        .all("pt")
        .into_iter()
        .filter_map(|point| Some((point.attribute("modelId")?, point)))
        .collect();
    let mut below: HashMap<String, Vec<(i64, String)>> = HashMap::new();
    for link in drawing.all("cxn") {
        // Other links connect data with its presentation.
        if link.attribute("type").is_some_and(|kind| kind != "parOf") {
            continue;
        }
        let order = link.attribute("srcOrd").and_then(|order| order.parse().ok()).unwrap_or(0);
        if let (Some(from), Some(to)) = (link.attribute("srcId"), link.attribute("destId")) {
            below.entry(from).or_default().push((order, to));
        }
    }
    let root =
        drawing.all("pt").into_iter().find(|it| it.attribute("type").as_deref() == Some("doc"));
    let Some(root) = root.and_then(|root| root.attribute("modelId")) else { return false };
    if below.is_empty() {
        return false;
    }
    let (mut open, mut seen) = (vec![root], HashSet::new());
    while let Some(id) = open.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        if let Some(point) = points.get(&id) {
            write_paragraphs(point, text);
        }
        let mut next = below.remove(&id).unwrap_or_default();
        next.sort();
        open.extend(next.into_iter().rev().map(|(_, id)| id));
    }
    // Nodes without a link to them.
    for point in drawing.all("pt") {
        let is_node = point.attribute("type").is_none_or(|kind| matches!(&*kind, "node" | "asst"));
        if is_node && point.attribute("modelId").is_some_and(|id| !seen.contains(&id)) {
            write_paragraphs(point, text);
        }
    }
    true
}
