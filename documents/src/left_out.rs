//! The parts of a document that are not in its text: counts and places by kind, without their text.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde::{Deserialize, Serialize};

use crate::limits::Hidden;

/// Places kept of each kind. The count goes on beyond.
const MAX_PLACES: usize = 20;

/// Longest name of a part, in characters.
const MAX_PART_NAME: usize = 80;

/// The parts of a document that are not in its text.
///
/// As JSON: `{"hidden_text": {"count": 120, "places": [{"page": 3}]}, "unread_parts": {"count": 1,
/// "places": [{"part": "word/media/image1.emf"}]}}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeftOut(BTreeMap<Kind, Count>);

/// The reason why something is not in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Pages that show pictures and have too little text, such as scans.
    PagesWithoutText,
    /// Pages or chapters that are damaged.
    UnreadPages,
    /// Glyphs of a font that does not state their characters; each becomes U+FFFD.
    UnknownGlyphs,
    /// Bytes that are invalid in the document's encoding; each run of them becomes U+FFFD.
    UndecodedCharacters,
    /// Characters that a viewer does not show: hidden, white on white, tiny, covered, outside of
    /// the page, or on hidden rows, sheets or slides.
    HiddenText,
    /// Parts of a file that are broken, or of a format that is not read.
    UnreadParts,
    /// Files within the document that are named in its text and not read.
    Attachments,
    /// Pictures that are not sent; of HTML, without those marked as decoration.
    Pictures,
    /// Formulas without a value in the file. The formula is in the text in its place.
    FormulasWithoutValue,
}

/// A count with its places.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Number of characters of text (white space not counted), glyphs, or undecoded runs; else of
    /// pages, parts, pictures, or formulas.
    pub count: u64,
    /// The first twenty places, in the order in which they were found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A page, chapter or slide, from 1.
    Page(usize),
    /// A part of a package, or an attached file, by its name, cut at 80 characters. A sheet has its
    /// number (`sheet 2`), because its name is text of the document.
    Part(String),
}

impl Place {
    /// Names a part. The name is cut, and control characters become spaces.
    pub fn part(name: &str) -> Self {
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        Self::Part(name.chars().map(visible).take(MAX_PART_NAME).collect())
    }
}

impl LeftOut {
    /// Returns whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each kind with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &Count)> {
        self.0.iter().map(|(kind, count)| (*kind, count))
    }

    /// Returns the count of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.0.get(&kind).map_or(0, |count| count.count)
    }

    /// Returns the pages with something left out, as far as their places are kept, sorted.
    pub fn pages(&self) -> Vec<usize> {
        let places = self.0.values().flat_map(|count| &count.places);
        let page = |place: &Place| match place {
            Place::Page(page) => Some(*page),
            Place::Part(_) => None,
        };
        let pages: BTreeSet<usize> = places.filter_map(page).collect();
        pages.into_iter().collect()
    }

    /// Adds to the count of a kind. Each place is kept once.
    pub fn add(&mut self, kind: Kind, count: u64, place: Option<Place>) {
        if count == 0 {
            return;
        }
        let sum = self.0.entry(kind).or_default();
        sum.count = sum.count.saturating_add(count);
        if let Some(place) = place
            && sum.places.len() < MAX_PLACES
            && !sum.places.contains(&place)
        {
            sum.places.push(place);
        }
    }

    /// Adds all counts and places of another one.
    pub fn merge(&mut self, other: &Self) {
        for (kind, Count { count, places }) in &other.0 {
            let mut places = places.iter();
            self.add(*kind, *count, places.next().cloned());
            let sum = self.0.entry(*kind).or_default();
            for place in places {
                if sum.places.len() < MAX_PLACES && !sum.places.contains(place) {
                    sum.places.push(place.clone());
                }
            }
        }
    }
}

impl Kind {
    /// Returns the kind's name in results and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PagesWithoutText => "pages_without_text",
            Self::UnreadPages => "unread_pages",
            Self::UnknownGlyphs => "unknown_glyphs",
            Self::UndecodedCharacters => "undecoded_characters",
            Self::HiddenText => "hidden_text",
            Self::UnreadParts => "unread_parts",
            Self::Attachments => "attachments",
            Self::Pictures => "pictures",
            Self::FormulasWithoutValue => "formulas_without_value",
        }
    }
}

/// Counts the characters of a text without white space, as for [`Kind::HiddenText`].
pub(crate) fn count_characters(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// Marks before and behind hidden text that is put into the text.
const MARKS: [&str; 2] = ["[hidden: ", "]"];

/// Placeholders for [`MARKS`] in an unfinished line. They are noncharacters of Unicode, which no
/// text has.
const OPEN_MARKS: [&str; 2] = ["\u{fdd1}", "\u{fdd2}"];

/// Replaces the placeholders of a text of [pieces](Tally::count_hidden_piece). Adjacent hidden
/// pieces get one pair of marks.
pub(crate) fn replace_placeholders(text: &str) -> String {
    let ([before, behind], [open_before, open_behind]) = (MARKS, OPEN_MARKS);
    let text = text.replace(&format!("{open_behind}{open_before}"), "");
    text.replace(open_before, before).replace(open_behind, behind)
}

/// Collects what the readers leave out, including those of nested documents.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    left_out: RefCell<LeftOut>,
    /// The treatment of hidden text. It is counted in any case.
    hidden: Hidden,
}

impl Tally {
    pub(crate) fn new(hidden: Hidden) -> Self {
        Self { left_out: RefCell::default(), hidden }
    }

    /// Returns an empty tally that treats hidden text in the same way.
    pub(crate) fn new_like(&self) -> Self {
        Self::new(self.hidden)
    }

    /// Counts hidden text. Returns its replacement in the text: nothing, or the text in marks.
    pub(crate) fn count_hidden(&self, text: &str, place: Option<Place>) -> String {
        self.left_out.borrow_mut().add(Kind::HiddenText, count_characters(text) as u64, place);
        self.wrap_if_marked(MARKS, text)
    }

    /// Counts a piece of hidden text in a line. Returns nothing, or the text with placeholders for
    /// [`replace_placeholders`].
    pub(crate) fn count_hidden_piece(&self, text: &str, place: Option<Place>) -> String {
        self.left_out.borrow_mut().add(Kind::HiddenText, count_characters(text) as u64, place);
        self.wrap_if_marked(OPEN_MARKS, text)
    }

    /// Returns the replacement of hidden text that is counted elsewhere.
    pub(crate) fn mark_only(&self, text: &str) -> String {
        self.wrap_if_marked(MARKS, text)
    }

    fn wrap_if_marked(&self, [before, behind]: [&str; 2], text: &str) -> String {
        match self.hidden {
            Hidden::Mark if !text.trim().is_empty() => format!("{before}{text}{behind}"),
            _ => String::new(),
        }
    }

    /// Adds to the count of a kind, without a place.
    pub(crate) fn add(&self, kind: Kind, count: usize) {
        self.left_out.borrow_mut().add(kind, count as u64, None);
    }

    /// Adds to the count of a kind, on a page (from 1).
    pub(crate) fn add_on_page(&self, kind: Kind, count: usize, page: usize) {
        self.left_out.borrow_mut().add(kind, count as u64, Some(Place::Page(page)));
    }

    /// Adds to the count of a kind, in the part with this name.
    pub(crate) fn add_in_part(&self, kind: Kind, count: usize, part: &str) {
        self.left_out.borrow_mut().add(kind, count as u64, Some(Place::part(part)));
    }

    /// Returns whether anything of a kind was left out.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.left_out.borrow().count(kind) > 0
    }

    /// Adds all that a nested document leaves out.
    pub(crate) fn merge(&self, other: &LeftOut) {
        self.left_out.borrow_mut().merge(other);
    }

    pub(crate) fn into_left_out(self) -> LeftOut {
        self.left_out.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_where_places_end_and_names_are_bounded() {
        let tally = Tally::default();
        for page in 1..=25 {
            tally.add_on_page(Kind::UnreadPages, 1, page);
        }
        tally.add_in_part(Kind::HiddenText, 5, &"\u{1b}".repeat(200));
        tally.add(Kind::Pictures, 0);
        let mut left_out = tally.into_left_out();
        assert_eq!(left_out.count(Kind::UnreadPages), 25);
        assert_eq!(left_out.pages(), (1..=20).collect::<Vec<_>>());
        left_out.merge(&left_out.clone());
        assert_eq!(left_out.count(Kind::HiddenText), 10);
        let json = serde_json::to_value(&left_out).unwrap();
        assert_eq!(
            json["hidden_text"],
            serde_json::json!({"count": 10, "places": [{"part": " ".repeat(80)}]})
        );
        for (kind, _) in left_out.iter() {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!(serde_json::from_value::<LeftOut>(json).unwrap(), left_out);
    }
}
