//! Styles of paragraphs and runs: headings, lists, hidden text and symbol fonts.

use std::collections::HashMap;

use crate::{look::Look, xml::Element};

/// Longest chain of styles based on each other.
const MAX_CHAIN: usize = 20;

#[derive(Debug, Default)]
struct Style {
    name: String,
    base: Option<String>,
    /// Outline level, from 0.
    outline: Option<usize>,
    /// Id of the list, and level.
    list: Option<(Option<String>, Option<usize>)>,
    look: Look,
}

#[derive(Debug, Default)]
pub(super) struct Styles {
    styles: HashMap<String, Style>,
    /// The look of text without a style.
    usual: Look,
    /// Id of the style of paragraphs that name none.
    of_paragraphs: Option<String>,
}

impl Styles {
    pub(super) fn read(part: Option<&Element>) -> Self {
        let styles = part.map(|part| part.all("style")).unwrap_or_default();
        let is_usual = |style: &&&Element| {
            style.is_on("default") && style.attribute("type").as_deref() == Some("paragraph")
        };
        let of_paragraphs = styles.iter().find(is_usual).and_then(|it| it.attribute("styleId"));
        let usual = part.and_then(|part| part.all("rPrDefault").first()?.child("rPr"));
        let styles = styles.into_iter().filter_map(|style| {
            let paragraph = style.child("pPr");
            Some((
                style.attribute("styleId")?,
                Style {
                    name: style
                        .child("name")
                        .and_then(|name| name.attribute("val"))
                        .unwrap_or_default()
                        .to_ascii_lowercase(),
                    base: style.child("basedOn").and_then(|base| base.attribute("val")),
                    outline: paragraph
                        .and_then(|paragraph| number_value(paragraph.child("outlineLvl")?)),
                    list: paragraph.and_then(list_of_paragraph),
                    look: Look::read(style.child("rPr")).in_paragraph(paragraph),
                },
            ))
        });
        Self { styles: styles.collect(), usual: Look::read(usual), of_paragraphs }
    }

    fn chain(&self, id: &str) -> impl Iterator<Item = &Style> {
        let first = self.styles.get(id);
        std::iter::successors(first, |style| self.styles.get(style.base.as_ref()?)).take(MAX_CHAIN)
    }

    /// Returns the level of a heading, from 1 to 6.
    pub(super) fn heading_level(&self, paragraph: Option<&Element>) -> Option<usize> {
        let paragraph = paragraph?;
        let own = paragraph.child("outlineLvl").and_then(number_value);
        let id = paragraph.child("pStyle").and_then(|style| style.attribute("val"));
        let styled = || {
            let id = id?;
            let by_style = self.chain(&id).find_map(|style| {
                let by_name = || match style.name.as_str() {
                    "title" => Some(0),
                    name => name.strip_prefix("heading ")?.parse::<usize>().ok()?.checked_sub(1),
                };
                style.outline.or_else(by_name)
            });
            // A document without style definitions still uses their names.
            by_style.or_else(|| id.strip_prefix("Heading")?.parse::<usize>().ok()?.checked_sub(1))
        };
        own.or_else(styled).filter(|level| *level < 9).map(|level| (level + 1).min(6))
    }

    /// Returns the look of a paragraph's text: that of its style, with its own background.
    pub(super) fn paragraph_look(&self, paragraph: Option<&Element>) -> Look {
        // A paragraph's own background precedes its style's.
        let named = paragraph.and_then(|properties| properties.child("pStyle")?.attribute("val"));
        let style = named.or_else(|| self.of_paragraphs.clone());
        let look = style.map_or_else(Look::default, |id| self.look_of_style(&id));
        Look::default().in_paragraph(paragraph).or_from(look).or_from(self.usual)
    }

    /// Returns the look of a run in a paragraph of the given look.
    pub(super) fn run_look(&self, paragraph: Look, run: Option<&Element>) -> Look {
        let style = run.and_then(|properties| properties.child("rStyle")?.attribute("val"));
        let look = style.map_or_else(Look::default, |id| self.look_of_style(&id));
        Look::read(run).or_from(look.toggled_with(paragraph))
    }

    fn look_of_style(&self, id: &str) -> Look {
        self.chain(id).fold(Look::default(), |look, style| look.or_from(style.look))
    }

    /// Returns the list of a paragraph and its level there. `level_of` returns the level that a list
    /// assigns to a style.
    pub(super) fn list_and_level(
        &self,
        paragraph: Option<&Element>,
        level_of: impl Fn(&str, &str) -> Option<usize>,
    ) -> Option<(String, usize)> {
        let paragraph = paragraph?;
        let style = paragraph.child("pStyle").and_then(|style| style.attribute("val"));
        let own = list_of_paragraph(paragraph);
        let chain = std::iter::successors(style, |id| self.styles.get(id)?.base.clone());
        let chain: Vec<String> = chain.take(MAX_CHAIN).collect();
        let styles = chain.iter().filter_map(|id| self.styles.get(id));
        let styled = styles.into_iter().find_map(|style| style.list.clone());
        let (id, level) = match (own, styled) {
            (Some((id, level)), Some((other, fallback))) => (id.or(other), level.or(fallback)),
            (Some(own), None) => own,
            (None, styled) => styled?,
        };
        // Id 0 takes a paragraph out of its style's list.
        let id = id.filter(|id| id != "0")?;
        let level = level.or_else(|| chain.iter().find_map(|style| level_of(&id, style)));
        Some((id, level.unwrap_or(0).min(8)))
    }
}

fn number_value(element: &Element) -> Option<usize> {
    element.attribute("val")?.parse().ok()
}

fn list_of_paragraph(paragraph: &Element) -> Option<(Option<String>, Option<usize>)> {
    let list = paragraph.child("numPr")?;
    Some((
        list.child("numId").and_then(|id| id.attribute("val")),
        list.child("ilvl").and_then(number_value),
    ))
}
