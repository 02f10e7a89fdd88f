//! What masters, footers and fixed dates show on the slides of a presentation.

use std::collections::{HashMap, HashSet};

use super::{Body, shapes::sort_shapes};
use crate::{colors::Background, xml::Element};

/// Attributes of a slide that name texts of its edges, with the elements of these texts.
const EDGES: [(&str, &str); 2] =
    [("use-footer-name", "footer-decl"), ("use-date-time-name", "date-time-decl")];

impl Body<'_> {
    /// Returns the text that stands on several slides, each line once.
    pub(super) fn text_of_every_slide(&mut self, styles: &Element, content: &Element) -> String {
        let pages = content.all("page").into_iter().filter(|page| !self.styles.hides_page(page));
        let pages: Vec<&Element> = pages.collect();
        let names = |attribute: &str| -> HashSet<String> {
            pages.iter().filter_map(|page| page.attribute(attribute)).collect()
        };
        let shown = pages.iter().filter(|page| !self.styles.hides_master(page));
        let masters: HashSet<String> =
            shown.filter_map(|page| page.attribute("master-page-name")).collect();
        let is_used = |master: &&Element| {
            master.attribute("name").is_some_and(|name| masters.contains(&name))
        };
        let mut text = String::new();
        for master in styles.all("master-page").into_iter().filter(is_used) {
            // Shapes with a class are places for the text of a slide.
            let shapes = sort_shapes(master).into_iter().filter(|shape| {
                !matches!(&*shape.name, "notes" | "forms") && shape.attribute("class").is_none()
            });
            let shapes: Vec<&Element> = shapes.collect();
            self.with_background(Background::Unknown, |body| {
                body.write_blocks_of(shapes, &mut text);
            });
        }
        for (attribute, kind) in EDGES {
            let declared: HashMap<String, String> = content
                .all(kind)
                .into_iter()
                .filter_map(|edge| Some((edge.attribute("name")?, edge.text())))
                .collect();
            let mut used: Vec<String> = names(attribute).into_iter().collect();
            used.sort_unstable();
            for words in used.iter().filter_map(|name| declared.get(name)) {
                text.push_str(words.trim());
                text.push('\n');
            }
        }
        let mut seen = HashSet::new();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.filter(|line| seen.insert(*line)).collect();
        if lines.is_empty() {
            String::new()
        } else {
            format!("On each slide: {}", lines.join("\n"))
        }
    }
}
