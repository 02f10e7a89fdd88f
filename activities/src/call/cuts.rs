//! How often answers are cut, by what is asked. Where one in twenty was, the room is too small for
//! the question and not for a document: later documents begin with more.
//!
//! Each worker sees its own answers. One that starts learns from its first ones; what it does not
//! know yet costs a cut answer each.

use std::collections::HashMap;

use parking_lot::Mutex;

/// One cut answer may be one odd document.
const ENOUGH: u64 = 2;

/// One in so many.
const ONE_IN: u64 = 20;

/// Questions that are remembered; each costs some 50 bytes.
const REMEMBERED: usize = 10_000;

/// What is asked, and the room for the answer in tokens.
type Question = (u64, u32);

/// Cut answers of this worker, by what was asked with how much room.
#[derive(Debug, Default)]
pub struct Cuts(Mutex<HashMap<Question, Seen>>);

#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    cut: u64,
}

impl Cuts {
    /// An answer came to a call with the room that all documents begin with.
    pub fn answered(&self, template: u64, room: u32, is_cut: bool) {
        let mut questions = self.0.lock();
        if questions.len() >= REMEMBERED {
            questions.clear();
        }
        let seen = questions.entry((template, room)).or_default();
        seen.answers += 1;
        seen.cut += u64::from(is_cut);
    }

    /// Whether so many answers were cut that the next document begins with more room.
    #[must_use]
    pub fn are_many(&self, template: u64, room: u32) -> bool {
        let questions = self.0.lock();
        let seen = questions.get(&(template, room));
        seen.is_some_and(|seen| seen.cut >= ENOUGH && seen.cut * ONE_IN >= seen.answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_twenty_is_many_and_one_alone_is_none() {
        let cuts = Cuts::default();
        let answered = |count, is_cut| (0..count).for_each(|_| cuts.answered(7, 100, is_cut));
        answered(1, true);
        assert!(!cuts.are_many(7, 100));
        answered(39, false);
        answered(1, true);
        assert!(!cuts.are_many(7, 100), "2 of 41");
        answered(1, true);
        assert!(cuts.are_many(7, 100), "3 of 42");
        assert!(!cuts.are_many(7, 400) && !cuts.are_many(8, 100), "another room, another question");
    }
}
