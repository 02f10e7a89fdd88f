//! Share of answers that are cut, by question. From one in twenty on, the cap on output is too
//! small for the question, not only for single documents: later documents begin with a higher one.
//!
//! Each worker counts its own answers. A new worker learns from its first ones; until then each cut
//! answer is paid for.

use std::collections::HashMap;

use parking_lot::Mutex;
use tidegate_types::ModelId;

/// Minimum number of cut answers: a single one may come from an unusual document.
const ENOUGH: u64 = 2;

/// Share of cut answers from which they are many, as 1 in this many.
const ONE_IN: u64 = 20;

/// Questions that are remembered; each takes some 50 bytes.
const REMEMBERED: usize = 10_000;

/// Calls whose answers have similar lengths.
#[derive(Debug, Clone, Copy)]
pub struct Asks<'a> {
    /// The model that answers.
    pub model: &'a ModelId,
    /// Hash of the question.
    pub template: u64,
    /// The cap on output, in tokens.
    pub room: u32,
}

/// Counts of this worker's answers, by model, question and cap.
#[derive(Debug, Default)]
pub struct TruncationStats(Mutex<HashMap<(ModelId, u64, u32), Seen>>);

#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    cut: u64,
}

impl TruncationStats {
    /// Counts an answer to a call with the cap that all documents begin with.
    pub fn count_answer(&self, asks: Asks<'_>, is_cut: bool) {
        let mut questions = self.0.lock();
        if questions.len() >= REMEMBERED {
            questions.clear();
        }
        let seen = questions.entry(asks.key()).or_default();
        seen.answers += 1;
        seen.cut += u64::from(is_cut);
    }

    /// Whether the next document should begin with a higher cap, because many answers were cut.
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
        let answered = |count, is_cut| (0..count).for_each(|_| stats.count_answer(asks, is_cut));
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
