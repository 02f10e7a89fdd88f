//! The progress of an attempt, and the effect of its end on the next one.

use serde::{Deserialize, Serialize};

/// The progress of an attempt.
///
/// ```text
///              ┌─────────── not reached ───────────┐
///              ▼                                   │
/// begins ─► Unsent ── admitted, and it leaves ──► Sent
///              │                                   │
///              │ told its turn, refused, failed    │ answered, failed
///              └──────────────► Ended ◄────────────┘
/// ```
///
/// An attempt that is admitted and not sent yet is still `Unsent`: the guard's `Admitted` holds the
/// reservation, and releases it when it is dropped. [`AttemptProgress::resumed_by`] interprets the last
/// recorded stage for the next attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// None of its calls has left.
    #[default]
    Unsent,
    /// A call of it has left, so that its answer must be paid for.
    Sent,
    /// It ended in an orderly way: its process did not die.
    Ended,
}

impl Stage {
    /// Records that a call is about to leave.
    pub(crate) fn leave(&mut self) {
        *self = Self::Sent;
    }

    /// Undoes a send: no connection was made, so the call has not left.
    pub(crate) fn take_back_send(&mut self) {
        *self = Self::Unsent;
    }

    /// Records that the attempt ends in an orderly way.
    pub(crate) fn end(&mut self) {
        *self = Self::Ended;
    }
}

/// The progress that one attempt recorded, and the attempts that were lost before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptProgress {
    /// The number of the attempt that recorded this, counted from 1; 0 for none.
    pub by: u32,
    /// Its progress.
    pub stage: Stage,
    /// Attempts whose process died before they recorded a call that they may have made.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub lost: u32,
    /// Attempts in a row, up to this one, whose process died.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub deaths: u32,
}

impl AttemptProgress {
    /// Returns the progress with which attempt `number` begins. The attempt before it may have died
    /// and recorded nothing.
    ///
    /// | last recorded stage | the attempt before | a call may be lost |
    /// |---|---|---|
    /// | `Ended` | came to its end | no |
    /// | `Sent` | died | no: its call is counted |
    /// | `Unsent` | died | yes: it may have left since |
    /// | nothing | died | yes |
    pub fn resumed_by(self, number: u32) -> Self {
        let is_counted = self.is_of_the_last(number) && self.stage == Stage::Sent;
        let lost = self.has_died(number) && !is_counted;
        let (lost, deaths) = (self.lost + u32::from(lost), self.deaths_before(number));
        Self { by: number, stage: Stage::default(), lost, deaths }
    }

    /// Whether the attempt before `number` died before it recorded anything.
    pub fn died_silently(&self, number: u32) -> bool {
        self.has_died(number) && !self.is_of_the_last(number)
    }

    /// Attempts in a row that died. An attempt that fails records it, so those after the last
    /// record died.
    fn deaths_before(&self, number: u32) -> u32 {
        let silent = number.saturating_sub(1).saturating_sub(self.by);
        match (self.by, self.stage) {
            (0, _) | (_, Stage::Ended) => silent,
            _ => self.deaths + 1 + silent,
        }
    }

    fn is_of_the_last(&self, number: u32) -> bool {
        self.by + 1 == number
    }

    fn has_died(&self, number: u32) -> bool {
        number > 1 && !(self.is_of_the_last(number) && self.stage == Stage::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The progress that attempt `by` recorded last.
    fn recorded(by: u32, stage: Stage) -> AttemptProgress {
        AttemptProgress { by, stage, ..AttemptProgress::default() }
    }

    #[test]
    fn a_call_that_a_dead_worker_may_have_made_counts_against_the_bounds_once() {
        let lost = |progress: AttemptProgress, number| progress.resumed_by(number).lost;
        assert_eq!(lost(AttemptProgress::default(), 1), 0, "nothing was before it");
        assert_eq!(lost(recorded(1, Stage::Ended), 2), 0, "it went back in order");
        assert_eq!(lost(AttemptProgress::default(), 2), 1, "it died before it recorded anything");
        assert_eq!(lost(recorded(1, Stage::Ended), 3), 1, "the second one did");
        assert_eq!(lost(recorded(1, Stage::Unsent), 2), 1, "it may have left after its last beat");
        assert_eq!(lost(recorded(1, Stage::Sent), 2), 0, "the call is counted");
        let died = AttemptProgress { lost: 2, ..recorded(1, Stage::Unsent) }.resumed_by(2);
        assert_eq!((died.lost, died.by, died.stage), (3, 2, Stage::Unsent));
    }

    #[test]
    fn deaths_are_counted_in_a_row() {
        let deaths = |progress: AttemptProgress, number| progress.resumed_by(number).deaths;
        assert_eq!(deaths(AttemptProgress::default(), 1), 0);
        assert_eq!(deaths(AttemptProgress::default(), 3), 2, "no attempt recorded anything");
        let recorded_at = |stage| AttemptProgress { deaths: 2, ..recorded(3, stage) };
        assert_eq!(deaths(recorded_at(Stage::Unsent), 4), 3, "it recorded, and died");
        assert_eq!(deaths(recorded_at(Stage::Ended), 4), 0, "it failed, and its process goes on");
        assert_eq!(deaths(recorded_at(Stage::Ended), 6), 2);
    }
}
