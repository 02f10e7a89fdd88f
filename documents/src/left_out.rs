//! What of a document is not in its text: by kind, with counts and places, and no word of it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde::{Deserialize, Serialize};

use crate::limits::Hidden;

/// Places that are kept of each kind; the count goes on.
const MAX_PLACES: usize = 20;

/// Characters of a part's name.
const MAX_PART_NAME: usize = 80;

/// What of a document is not in its text.
///
/// As JSON: `{"hidden_text": {"count": 120, "places": [{"page": 3}]}, "unread_parts": {"count": 1,
/// "places": [{"part": "word/media/image1.emf"}]}}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeftOut(BTreeMap<Kind, Count>);

/// In which way something is not in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Pages that show pictures and have too little text, as a scan has.
    PagesWithoutText,
    /// Pages or chapters that are damaged.
    UnreadPages,
    /// Letters of a font that says nothing of their meaning; U+FFFD stands for each.
    UnknownGlyphs,
    /// Bytes that stand for no character in the document's encoding; U+FFFD stands for each run.
    UndecodedCharacters,
    /// Characters that a reader of the document does not see: hidden, white on white, tiny, covered,
    /// outside of the page, on hidden rows, sheets or slides.
    HiddenText,
    /// Parts of a file that are broken, or that nothing here reads.
    UnreadParts,
    /// Files within the document that are named in its text and not read.
    Attachments,
    /// Pictures that are not sent; of pages of HTML, those that are not marked as decoration.
    Pictures,
    /// Formulas whose value the file does not hold; the formula stands for it.
    FormulasWithoutValue,
}

/// How much, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Characters of text (spaces aside), glyphs and what is undecoded; else pages, parts, pictures, formulas.
    pub count: u64,
    /// The first twenty places, in the order in which they were met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// Where in a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A page, chapter or slide, from 1.
    Page(usize),
    /// A part of a package, or an attached file, by its name, cut at 80 characters; a sheet by its
    /// number (`sheet 2`), because its name is text of the document.
    Part(String),
}

impl Place {
    /// A part by its name.
    pub fn part(name: &str) -> Self {
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        Self::Part(name.chars().map(visible).take(MAX_PART_NAME).collect())
    }
}

impl LeftOut {
    /// Whether everything is in the text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each kind with what there is of it.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &Count)> {
        self.0.iter().map(|(kind, count)| (*kind, count))
    }

    /// How much there is of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.0.get(&kind).map_or(0, |count| count.count)
    }

    /// The pages of which something is left out, as far as they are kept, in their order.
    pub fn pages(&self) -> Vec<usize> {
        let places = self.0.values().flat_map(|count| &count.places);
        let page = |place: &Place| match place {
            Place::Page(page) => Some(*page),
            Place::Part(_) => None,
        };
        let pages: BTreeSet<usize> = places.filter_map(page).collect();
        pages.into_iter().collect()
    }

    /// So much more of a kind. A place is kept once.
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

    /// All of another one too.
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
    /// Its name in results and reports.
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

/// Characters of a text that nobody sees, spaces aside: as hidden text is counted.
pub(crate) fn characters(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// What stands before and behind hidden text that is shown all the same.
const MARKS: [&str; 2] = ["[hidden: ", "]"];

/// Stand for [`MARKS`] in a line that is not whole yet. No text has these codes, which are no characters.
const OPEN_MARKS: [&str; 2] = ["\u{fdd1}", "\u{fdd2}"];

/// A text of [pieces](Tally::hidden_piece). Neighbours that are hidden stand in one pair of marks.
pub(crate) fn in_one_pair_of_marks(text: &str) -> String {
    let ([before, behind], [open_before, open_behind]) = (MARKS, OPEN_MARKS);
    let text = text.replace(&format!("{open_behind}{open_before}"), "");
    text.replace(open_before, before).replace(open_behind, behind)
}

/// Collects what readers leave out, those of attached documents included.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    left_out: RefCell<LeftOut>,
    /// What becomes of hidden text, which is counted in any case.
    hidden: Hidden,
}

impl Tally {
    pub(crate) fn new(hidden: Hidden) -> Self {
        Self { left_out: RefCell::default(), hidden }
    }

    /// An empty one that treats hidden text in the same way.
    pub(crate) fn of_the_same_kind(&self) -> Self {
        Self::new(self.hidden)
    }

    /// Counts hidden text. What of it is put into the text in its place: nothing, or the text in marks.
    pub(crate) fn hidden(&self, text: &str, place: Option<Place>) -> String {
        self.left_out.borrow_mut().add(Kind::HiddenText, characters(text) as u64, place);
        self.between(MARKS, text)
    }

    /// The same of a piece of a line, which is [made whole](in_one_pair_of_marks) later.
    pub(crate) fn hidden_piece(&self, text: &str, place: Option<Place>) -> String {
        self.left_out.borrow_mut().add(Kind::HiddenText, characters(text) as u64, place);
        self.between(OPEN_MARKS, text)
    }

    /// Hidden text that is counted elsewhere, as it is put into the text.
    pub(crate) fn marked(&self, text: &str) -> String {
        self.between(MARKS, text)
    }

    fn between(&self, [before, behind]: [&str; 2], text: &str) -> String {
        match self.hidden {
            Hidden::Mark if !text.trim().is_empty() => format!("{before}{text}{behind}"),
            _ => String::new(),
        }
    }

    /// So much more of a kind, somewhere.
    pub(crate) fn add(&self, kind: Kind, count: usize) {
        self.left_out.borrow_mut().add(kind, count as u64, None);
    }

    /// So much more of a kind, on a page (from 1).
    pub(crate) fn on_page(&self, kind: Kind, count: usize, page: usize) {
        self.left_out.borrow_mut().add(kind, count as u64, Some(Place::Page(page)));
    }

    /// So much more of a kind, in a part of this name.
    pub(crate) fn in_part(&self, kind: Kind, count: usize, part: &str) {
        self.left_out.borrow_mut().add(kind, count as u64, Some(Place::part(part)));
    }

    /// Whether anything of a kind was left out.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.left_out.borrow().count(kind) > 0
    }

    /// All that an attached document leaves out.
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
            tally.on_page(Kind::UnreadPages, 1, page);
        }
        tally.in_part(Kind::HiddenText, 5, &"\u{1b}".repeat(200));
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
