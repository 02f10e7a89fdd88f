//! Where an attempt stands, and what its end means for the next one.

use serde::{Deserialize, Serialize};

/// Where an attempt stands.
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
/// An attempt that is admitted and not sent yet is still `Unsent`: the guard's `Admitted` holds what
/// was reserved, and gives it back when it is dropped. What the next attempt makes of the stage that
/// it was told last is said in [`Course::resumed_by`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// No call of it has left.
    #[default]
    Unsent,
    /// A call of it has left: what it answers is paid for.
    Sent,
    /// It has come to its end, and its process goes on.
    Ended,
}

impl Stage {
    /// A call is about to leave.
    pub(crate) fn leaves(&mut self) {
        *self = Self::Sent;
    }

    /// No connection came about: the call has not left after all.
    pub(crate) fn was_not_reached(&mut self) {
        *self = Self::Unsent;
    }

    /// The attempt ends, and its process goes on.
    pub(crate) fn ends(&mut self) {
        *self = Self::Ended;
    }
}

/// Who stands there, and what became of those before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Course {
    /// Which attempt told this, counted from 1; 0 where none has.
    pub by: u32,
    /// Where it stands.
    pub stage: Stage,
    /// Attempts whose process died before it told of a call, which it may have made.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub lost: u32,
    /// Attempts in a row, up to this one, whose process died.
    #[serde(skip_serializing_if = "tidegate_types::is_default")]
    pub deaths: u32,
}

impl Course {
    /// As the next attempt begins with it, whose number is known: the one before it may have died
    /// without a word.
    ///
    /// | the one before it told | it has | a call may be lost |
    /// |---|---|---|
    /// | `Ended` | come to its end | no |
    /// | `Sent` | died | no: its call is counted |
    /// | `Unsent` | died | yes: it may have left since |
    /// | nothing | died | yes |
    pub fn resumed_by(self, number: u32) -> Self {
        let is_counted = self.is_of_the_last(number) && self.stage == Stage::Sent;
        let lost = self.has_died(number) && !is_counted;
        let (lost, deaths) = (self.lost + u32::from(lost), self.deaths_before(number));
        Self { by: number, stage: Stage::default(), lost, deaths }
    }

    /// Whether the attempt before this one died before it told anything.
    pub fn died_silently(&self, number: u32) -> bool {
        self.has_died(number) && !self.is_of_the_last(number)
    }

    /// An attempt that fails tells so; those since the last that told died before they could.
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

    /// As attempt `by` told it last.
    fn told(by: u32, stage: Stage) -> Course {
        Course { by, stage, ..Course::default() }
    }

    #[test]
    fn a_call_that_a_dead_worker_may_have_made_counts_against_the_bounds_once() {
        let lost = |course: Course, number| course.resumed_by(number).lost;
        assert_eq!(lost(Course::default(), 1), 0, "nothing was before it");
        assert_eq!(lost(told(1, Stage::Ended), 2), 0, "it went back in order");
        assert_eq!(lost(Course::default(), 2), 1, "it died before it told anything");
        assert_eq!(lost(told(1, Stage::Ended), 3), 1, "the second one did");
        assert_eq!(lost(told(1, Stage::Unsent), 2), 1, "it may have left after its last beat");
        assert_eq!(lost(told(1, Stage::Sent), 2), 0, "the call is counted");
        let died = Course { lost: 2, ..told(1, Stage::Unsent) }.resumed_by(2);
        assert_eq!((died.lost, died.by, died.stage), (3, 2, Stage::Unsent));
    }

    #[test]
    fn deaths_are_counted_in_a_row() {
        let deaths = |course: Course, number| course.resumed_by(number).deaths;
        assert_eq!(deaths(Course::default(), 1), 0);
        assert_eq!(deaths(Course::default(), 3), 2, "nobody told anything");
        let told = |stage| Course { deaths: 2, ..told(3, stage) };
        assert_eq!(deaths(told(Stage::Unsent), 4), 3, "it told, and died");
        assert_eq!(deaths(told(Stage::Ended), 4), 0, "it failed, and its process goes on");
        assert_eq!(deaths(told(Stage::Ended), 6), 2);
    }
}
