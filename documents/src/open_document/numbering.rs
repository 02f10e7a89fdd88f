//! Numbering of headings and of the items of lists.

use std::collections::HashMap;

use crate::{
    numerals::{system_of_samples, write_number},
    xml::Element,
};

/// Name of the numbering of headings, which no style of lists has.
pub(super) const OUTLINE: &str = "\u{fdd0}outline";

/// Deepest level of lists that office programs write.
pub(super) const MAX_LEVEL: usize = 10;

/// Numbering of a level of a list.
#[derive(Debug, Clone)]
pub(super) struct Numbering {
    /// `1`, `a`, `A`, `i` or `I`, or the first numbers of another script; empty for none.
    pub(super) format: String,
    /// Whether `aa` and `bb` follow `z`, instead of `aa` and `ab`.
    repeats_letters: bool,
    pub(super) start: usize,
    /// Texts before and behind the number.
    pub(super) prefix_suffix: Option<(String, String)>,
    /// Number of levels that are shown, from this one upwards.
    pub(super) levels: usize,
}

impl Numbering {
    pub(super) fn number(&self, number: usize) -> String {
        let system = match self.format.as_str() {
            "a" if self.repeats_letters => "lowerLetter",
            "A" if self.repeats_letters => "upperLetter",
            "a" => "lower-latin",
            "A" => "upper-latin",
            "i" => "lowerRoman",
            "I" => "upperRoman",
            samples => system_of_samples(samples).unwrap_or_default(),
        };
        write_number(number, system)
    }
}

/// Reads the numbering of lists from the styles of a part, by style and level.
pub(super) fn read_numbering(tree: &Element) -> HashMap<(String, usize), Numbering> {
    let mut numbers = HashMap::new();
    let outlines = tree.all("outline-style").into_iter().map(|style| (OUTLINE.to_owned(), style));
    let lists = tree.all("list-style").into_iter();
    let lists = lists.map(|style| (style.attribute("name").unwrap_or_default(), style));
    for (name, style) in lists.chain(outlines) {
        for (place, level) in style.elements().enumerate() {
            if !matches!(&*level.name, "list-level-style-number" | "outline-level-style") {
                continue;
            }
            let place = number_of(level, "level").map_or(place, |level| level.saturating_sub(1));
            let format = level.attribute("num-format").unwrap_or_default();
            let repeats_letters = level.attribute("num-letter-sync").is_some_and(|it| it == "true");
            let start = number_of(level, "start-value").unwrap_or(1);
            let (before, behind) = (level.attribute("num-prefix"), level.attribute("num-suffix"));
            let is_stated = before.is_some() || behind.is_some();
            let prefix_suffix = (before.unwrap_or_default(), behind.unwrap_or_default());
            let prefix_suffix = is_stated.then_some(prefix_suffix);
            let levels = number_of(level, "display-levels").unwrap_or(1);
            let numbering = Numbering { format, repeats_letters, start, prefix_suffix, levels };
            numbers.insert((name.clone(), place), numbering);
        }
    }
    numbers
}

pub(super) fn number_of(element: &Element, attribute: &str) -> Option<usize> {
    element.attribute(attribute)?.parse().ok()
}
