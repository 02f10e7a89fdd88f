//! How often answers are cut, by what is asked. Where one in twenty was, the room is too small for
//! the question and not for a document: later documents begin with more.
//!
//! Each worker sees its own answers. One that starts learns from its first ones; what it does not
//! know yet costs a cut answer each.

use std::collections::HashMap;

use parking_lot::Mutex;
use tidegate_types::ModelId;

/// One cut answer may be one odd document.
const ENOUGH: u64 = 2;

/// One in so many.
const ONE_IN: u64 = 20;

/// Questions that are remembered; each costs some 50 bytes.
const REMEMBERED: usize = 10_000;

/// Calls whose answers are about as long.
#[derive(Debug, Clone, Copy)]
pub struct Asks<'a> {
    /// What writes the answer.
    pub model: &'a ModelId,
    /// What is asked.
    pub template: u64,
    /// The room for the answer, in tokens.
    pub room: u32,
}

/// Cut answers of this worker, by the model, what it was asked, and with how much room.
#[derive(Debug, Default)]
pub struct TruncationStats(Mutex<HashMap<(ModelId, u64, u32), Seen>>);

#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    cut: u64,
}

impl TruncationStats {
    /// An answer came to a call with the room that all documents begin with.
    pub fn answered(&self, asks: Asks<'_>, is_cut: bool) {
        let mut questions = self.0.lock();
        if questions.len() >= REMEMBERED {
            questions.clear();
        }
        let seen = questions.entry(asks.key()).or_default();
        seen.answers += 1;
        seen.cut += u64::from(is_cut);
    }

    /// Whether so many answers were cut that the next document begins with more room.
    pub fn are_many(&self, asks: Asks<'_>) -> bool {
        let questions = self.0.lock();
        let seen = questions.get(&asks.key());
        seen.is_some_and(|seen| seen.cut >= ENOUGH && seen.cut * ONE_IN >= seen.answers)
    }
}

impl Asks<'_> {
    fn key(self) -> (ModelId, u64, u32) {
        (self.model.clone(), self.template, self.room)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn one_in_twenty_is_many_and_one_alone_is_none() {
        let stats = TruncationStats::default();
        let (a, b): (ModelId, ModelId) = ("p:a".parse().unwrap(), "p:b".parse().unwrap());
        let asks = Asks { model: &a, template: 7, room: 100 };
        let answered = |count, is_cut| (0..count).for_each(|_| stats.answered(asks, is_cut));
        answered(1, true);
        assert!(!stats.are_many(asks));
        answered(39, false);
        answered(1, true);
        assert!(!stats.are_many(asks), "2 of 41");
        answered(1, true);
        assert!(stats.are_many(asks), "3 of 42");
        for other in
            [Asks { room: 400, ..asks }, Asks { template: 8, ..asks }, Asks { model: &b, ..asks }]
        {
            assert!(!stats.are_many(other), "{other:?}");
        }
    }
}
