//! Numbers and marks of footnotes and endnotes.

use crate::{numerals::write_number, xml::Element};

/// Kind of a note. Each kind has its own numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NoteKind {
    Foot,
    End,
}

/// Numbering of a kind of notes.
#[derive(Debug)]
struct Numbering {
    first: usize,
    system: String,
}

/// Notes in the order of their references, which gives their numbers.
#[derive(Debug)]
pub(super) struct Notes {
    notes: Vec<Note>,
    /// Numbering of footnotes and of endnotes.
    numberings: [Numbering; 2],
}

/// A note that the text refers to.
#[derive(Debug)]
struct Note {
    kind: NoteKind,
    id: String,
    /// `None` if the text states the mark.
    number: Option<usize>,
}

impl Notes {
    /// Reads the numbering from the first section that states it, or else from the settings.
    pub(super) fn numbered_by(document: &Element, settings: Option<&Element>) -> Self {
        let settings = settings.and_then(|part| part.child("settings"));
        let numberings = ["footnotePr", "endnotePr"].map(|name| {
            let sections = document.all("sectPr").into_iter().chain(settings);
            let stated: Vec<&Element> = sections.filter_map(|it| it.child(name)).collect();
            let value = |name: &str| stated.iter().find_map(|it| it.child(name)?.attribute("val"));
            Numbering {
                first: value("numStart").and_then(|first| first.parse().ok()).unwrap_or(1),
                system: value("numFmt").unwrap_or_default(),
            }
        });
        Self { notes: Vec::new(), numberings }
    }

    fn numbering(&self, kind: NoteKind) -> &Numbering {
        let [foot, end] = &self.numberings;
        if kind == NoteKind::Foot { foot } else { end }
    }

    /// Returns the mark that stands for a reference in the text. The first reference numbers the note.
    pub(super) fn refer(&mut self, reference: &Element) -> Option<String> {
        let is_foot = &*reference.name == "footnoteReference";
        let kind = if is_foot { NoteKind::Foot } else { NoteKind::End };
        let id = reference.attribute("id")?;
        if self.place_and_mark(kind, &id).is_none() {
            let notes = self.notes.iter().filter(|note| note.kind == kind);
            let last = notes.filter_map(|note| note.number).max();
            let first = self.numbering(kind).first;
            let next = last.map_or(first, |last| last.saturating_add(1));
            let number = (!reference.is_on("customMarkFollows")).then_some(next);
            self.notes.push(Note { kind, id: id.clone(), number });
        }
        self.place_and_mark(kind, &id)?.1
    }

    /// Returns the place of a note among those that the text refers to, and its mark.
    pub(super) fn place_and_mark(
        &self,
        kind: NoteKind,
        id: &str,
    ) -> Option<(usize, Option<String>)> {
        let place = self.notes.iter().position(|note| note.kind == kind && note.id == id)?;
        let sign = if kind == NoteKind::End { "e" } else { "" };
        let system = &self.numbering(kind).system;
        let mark = |number| format!("[^{sign}{}]", write_number(number, system));
        Some((place, self.notes[place].number.map(mark)))
    }
}
