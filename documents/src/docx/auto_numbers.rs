//! Fields that number paragraphs: `AUTONUM`, `AUTONUMLGL`, `AUTONUMOUT`, and items within them: `LISTNUM`.
//! The file holds no result of these.

use std::collections::HashMap;

use crate::numerals::write_number;

/// Levels of headings and lists.
const LEVELS: usize = 9;

/// Most lists whose items are counted.
const MAX_LISTS: usize = 100;

/// The marks of `AUTONUMOUT`, and of the list `OutlineDefault`.
const OUTLINE: [(&str, [&str; 2]); LEVELS] = [
    ("upperRoman", ["", "."]),
    ("upperLetter", ["", "."]),
    ("decimal", ["", "."]),
    ("lowerLetter", ["", ")"]),
    ("decimal", ["(", ")"]),
    ("lowerLetter", ["(", ")"]),
    ("lowerRoman", ["(", ")"]),
    ("lowerLetter", ["(", ")"]),
    ("lowerRoman", ["(", ")"]),
];

/// The marks of the list `NumberDefault`.
const NUMBERS: [(&str, [&str; 2]); LEVELS] = [
    ("decimal", ["", ")"]),
    ("lowerLetter", ["", ")"]),
    ("lowerRoman", ["", ")"]),
    ("decimal", ["(", ")"]),
    ("lowerLetter", ["(", ")"]),
    ("lowerRoman", ["(", ")"]),
    ("decimal", ["", "."]),
    ("lowerLetter", ["", "."]),
    ("lowerRoman", ["", "."]),
];

/// The numbers that were given last.
#[derive(Debug, Default)]
pub(super) struct AutoNumbers {
    paragraphs: Counts,
    lists: HashMap<String, Counts>,
    /// Level of the last heading, from 1; 0 before the first.
    heading: usize,
    /// Level of the paragraph, from 0.
    level: usize,
    /// Whether the paragraph is an item of a list.
    is_item: bool,
}

/// The last number of each level.
#[derive(Debug, Default)]
struct Counts([usize; LEVELS]);

impl Counts {
    /// Counts an item, and returns the numbers of all levels down to its own.
    fn next(&mut self, level: usize, start: Option<usize>) -> &[usize] {
        let (above, below) = self.0.split_at_mut(level + 1);
        below.fill(0);
        if let Some(last) = above.last_mut() {
            *last = start.unwrap_or_else(|| last.saturating_add(1));
        }
        above
    }
}

impl AutoNumbers {
    /// Begins a paragraph: a heading of a level from 1 on, or text below the last heading.
    pub(super) fn begin_paragraph(&mut self, heading: Option<usize>, is_item: bool) {
        self.heading = heading.unwrap_or(self.heading);
        self.level = heading.map_or(self.heading, |level| level - 1).min(LEVELS - 1);
        self.is_item = is_item;
    }

    /// Returns the next number of a field. `None` if the field gives none.
    pub(super) fn next_number<'c>(
        &mut self,
        field: &str,
        mut code: impl Iterator<Item = &'c str>,
    ) -> Option<String> {
        let (mut switches, mut list) = (HashMap::new(), None);
        while let Some(word) = code.next() {
            match word.strip_prefix('\\') {
                Some("e") => drop(switches.insert("e", "")),
                Some(switch) => drop(switches.insert(switch, code.next().unwrap_or_default())),
                None => list = list.or(Some(word)),
            }
        }
        let number = |switch: &str| switches.get(switch)?.parse::<usize>().ok();
        if field == "LISTNUM" {
            let list = list.unwrap_or("NumberDefault").to_ascii_lowercase();
            let usual = usize::from(self.is_item);
            let level = number("l").map_or(usual, |it| it.saturating_sub(1)).min(LEVELS - 1);
            if self.lists.len() >= MAX_LISTS && !self.lists.contains_key(&list) {
                return None;
            }
            let marks = match &*list {
                "outlinedefault" => Some(&OUTLINE),
                "legaldefault" => None,
                _ => Some(&NUMBERS),
            };
            let counts = self.lists.entry(list).or_default().next(level, number("s"));
            return Some(
                marks.map_or_else(|| legal_mark(counts, "."), |marks| mark(counts, marks)),
            );
        }
        if !matches!(field, "AUTONUM" | "AUTONUMLGL" | "AUTONUMOUT") {
            return None;
        }
        let behind = match switches.get("s") {
            _ if switches.contains_key("e") => "",
            Some(separator) => separator,
            None => ".",
        };
        let counts = self.paragraphs.next(self.level, None);
        let format = match switches.get("*").copied().unwrap_or_default() {
            "ROMAN" => "upperRoman",
            "roman" => "lowerRoman",
            "ALPHABETIC" => "upperLetter",
            "alphabetic" => "lowerLetter",
            _ => "decimal",
        };
        Some(match field {
            "AUTONUMLGL" => legal_mark(counts, behind),
            "AUTONUMOUT" => mark(counts, &OUTLINE),
            _ => format!("{}{behind}", write_number(counts.last().copied()?, format)),
        })
    }
}

/// Writes the number of the deepest level.
fn mark(counts: &[usize], marks: &[(&str, [&str; 2]); LEVELS]) -> String {
    let last = counts.last().zip(marks.get(counts.len() - 1));
    last.map_or_else(String::new, |(count, (format, [before, behind]))| {
        format!("{before}{}{behind}", write_number(*count, format))
    })
}

/// Writes the numbers of all levels.
fn legal_mark(counts: &[usize], behind: &str) -> String {
    let numbers: Vec<String> = counts.iter().map(|count| count.max(&1).to_string()).collect();
    numbers.join(".") + behind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_items_are_numbered_by_their_levels() {
        let mut numbers = AutoNumbers::default();
        let mut next = |heading: Option<usize>, code: &str| {
            let mut words = code.split_whitespace();
            let field = words.next().unwrap();
            numbers.begin_paragraph(heading, false);
            numbers.next_number(field, words).unwrap_or_default()
        };
        for (heading, code, number) in [
            (None, "AUTONUM", "1."),
            (None, "AUTONUM \\* ROMAN", "II."),
            (None, "AUTONUM \\s )", "3)"),
            (Some(1), "AUTONUMLGL", "4."),
            (Some(2), "AUTONUMLGL", "4.1."),
            (None, "AUTONUMLGL \\e", "4.1.1"),
            (None, "AUTONUMLGL", "4.1.2."),
            (Some(1), "AUTONUMOUT", "V."),
            (None, "AUTONUMOUT", "A."),
            (None, "LISTNUM", "1)"),
            (None, "LISTNUM \\l 2", "a)"),
            (None, "LISTNUM NumberDefault \\l 2", "b)"),
            (None, "LISTNUM \\s 7", "7)"),
            (None, "LISTNUM LegalDefault \\l 2", "1.1."),
            (None, "LISTNUM OutlineDefault \\l 99", "(i)"),
            (None, "PAGE", ""),
        ] {
            assert_eq!(next(heading, code), number, "{code}");
        }
    }
}
