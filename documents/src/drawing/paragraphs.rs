//! Paragraphs of a drawing: text, levels, and numbers, which the file does not contain.

use crate::{
    links::{ADDRESS, Link},
    look, math,
    numerals::write_number,
    symbols::Fonts,
    xml::{Element, Node},
};

/// Returns what is shown of a run's text, from the run and the text.
pub(crate) type TextShown<'s> = &'s dyn Fn(&Element, String) -> String;

/// Writes the paragraphs below an element.
pub(crate) fn write_paragraphs(parent: &Element, text: &mut String) {
    write_paragraphs_with(parent, &|_, text| text, text);
}

/// Writes the paragraphs. `shown` returns what is shown of the text of a run.
pub(crate) fn write_paragraphs_with(parent: &Element, shown: TextShown<'_>, text: &mut String) {
    let mut numbers = Numbers::default();
    let styles = parent.all("lstStyle");
    let style = styles.first().copied();
    for paragraph in parent.all("p") {
        let mut line = String::new();
        write_words(paragraph, shown, &mut line);
        let line = look::finish_line(&line);
        if line.trim().is_empty() {
            continue;
        }
        let level = paragraph
            .child("pPr")
            .and_then(|properties| properties.attribute("lvl")?.parse::<usize>().ok())
            .unwrap_or(0)
            .min(8);
        let mark = numbers.mark(numbered(paragraph.child("pPr"), style, level), level);
        match mark {
            Some(mark) => text.push_str(&format!("{}{mark} ", "  ".repeat(level))),
            None if level > 0 => text.push_str(&format!("{}- ", "  ".repeat(level - 1))),
            None => {}
        }
        text.push_str(line.trim());
        text.push('\n');
    }
}

fn write_words(parent: &Element, shown: TextShown<'_>, line: &mut String) {
    for node in &parent.children {
        let Node::Element(element) = node else { continue };
        match &*element.name {
            "t" => {
                let text = fonts_of_run(parent).decode(element.text());
                let moved = match baseline_of_run(parent) {
                    0 => None,
                    1.. => math::exponent(&text),
                    _ => math::index(&text),
                };
                let text = apply_run_properties(parent, moved.unwrap_or(text));
                line.push_str(&shown(parent, text));
            }
            "br" => line.push('\n'),
            "tab" => line.push('\t'),
            "oMath" => line.push_str(&math::formula_text(element)),
            "r" => {
                let address = element.child(ADDRESS).map(Element::text);
                let mut link = address.and_then(|address| Link::to(&address));
                if let Some(link) = &mut link {
                    link.begin(line);
                }
                write_words(element, shown, line);
                if let Some(link) = link {
                    link.end(line);
                }
            }
            "pPr" | "rPr" | "Fallback" | ADDRESS => {}
            _ => write_words(element, shown, line),
        }
    }
}

/// Returns the fonts of a run. `latin` is the font of plain letters.
fn fonts_of_run(run: &Element) -> Fonts {
    let Some(properties) = run.child("rPr") else { return Fonts::default() };
    let named = |kind: &str| properties.child(kind)?.attribute("typeface");
    let others: Vec<String> = ["sym", "cs", "ea"].into_iter().filter_map(named).collect();
    Fonts::by_names(named("latin").as_deref(), &others)
}

/// Writes capitals and struck text as the run's properties state.
fn apply_run_properties(run: &Element, text: String) -> String {
    let attribute = |name: &str| run.child("rPr").and_then(|properties| properties.attribute(name));
    let text = if attribute("cap").as_deref() == Some("all") { text.to_uppercase() } else { text };
    let is_struck = attribute("strike").is_some_and(|strike| strike != "noStrike");
    if is_struck && !text.trim().is_empty() { look::strike_out(&text) } else { text }
}

/// Returns how far a run is raised; negative if it is lowered.
fn baseline_of_run(run: &Element) -> i64 {
    let baseline = run.child("rPr").and_then(|properties| properties.attribute("baseline"));
    baseline.and_then(|baseline| baseline.trim_end_matches('%').parse().ok()).unwrap_or(0)
}

/// Returns the numbering of a paragraph: its own, or that of its level in the style of its shape.
fn numbered<'e>(
    properties: Option<&'e Element>,
    style: Option<&'e Element>,
    level: usize,
) -> Option<&'e Element> {
    let has = |name: &&str| properties.is_some_and(|it| it.child(name).is_some());
    if ["buAutoNum", "buNone", "buChar", "buBlip"].iter().any(has) {
        return properties?.child("buAutoNum");
    }
    style?.child(&format!("lvl{}pPr", level + 1))?.child("buAutoNum")
}

/// Counters for numbered paragraphs.
#[derive(Default)]
struct Numbers {
    /// By level: the kind, and the last number.
    counts: [Option<(String, usize)>; 9],
}

impl Numbers {
    /// Returns the number of the next paragraph, if it is numbered.
    fn mark(&mut self, numbered: Option<&Element>, level: usize) -> Option<String> {
        // A list continues behind deeper paragraphs, but not behind others.
        self.counts.iter_mut().skip(level + 1).for_each(|count| *count = None);
        let Some(numbered) = numbered else {
            self.counts[level] = None;
            return None;
        };
        let kind = numbered.attribute("type").unwrap_or_default();
        let start = numbered.attribute("startAt").and_then(|it| it.parse().ok()).unwrap_or(1);
        let count = match &self.counts[level] {
            Some((known, count)) if *known == kind => count.saturating_add(1),
            _ => start,
        };
        self.counts[level] = Some((kind.clone(), count));
        Some(format_number(&kind, count))
    }
}

/// Systems of numbers by the first letters of a style.
const SYSTEMS: [(&str, &str); 15] = [
    ("alphaLc", "lowerLetter"),
    ("alphaUc", "upperLetter"),
    ("romanLc", "lowerRoman"),
    ("romanUc", "upperRoman"),
    ("circleNum", "decimalEnclosedCircle"),
    ("ea1", "chineseCounting"),
    ("arabicDb", "decimalFullWidth"),
    ("arabic1", "arabicAlpha"),
    ("arabic2", "arabicAbjad"),
    ("hebrew2", "hebrew2"),
    ("thaiAlpha", "thaiLetters"),
    ("thaiNum", "thaiNumbers"),
    ("hindiAlpha1", "hindiConsonants"),
    ("hindiAlpha", "hindiVowels"),
    ("hindiNum", "hindiNumbers"),
];

/// Formats a number in a style of `ST_TextAutonumberScheme` (ECMA-376 part 1, 20.1.10.61).
fn format_number(kind: &str, count: usize) -> String {
    let system = SYSTEMS.iter().find(|(start, _)| kind.starts_with(start));
    let number = write_number(count, system.map_or("", |(_, system)| *system));
    if kind.starts_with("circleNum") {
        return number;
    }
    match kind {
        kind if kind.ends_with("ParenBoth") => format!("({number})"),
        kind if kind.ends_with("ParenR") => format!("{number})"),
        kind if kind.ends_with("Plain") => number,
        kind if kind.ends_with("Minus") => format!("{number}-"),
        _ => format!("{number}."),
    }
}
