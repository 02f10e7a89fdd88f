//! Observations since the policy last ran, in a bounded log that drops the oldest; and the choice
//! of the caller that runs the policy.

use std::collections::VecDeque;

use crate::{conversions::index, dimension::PerDimension, numbers::Numbers, plan::Units};

/// One observation of the provider.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Observation {
    /// The provider refused a call.
    Refused {
        at: f64,
        admitted: f64,
        retry: f64,
        /// The refused call was the probe after a refusal.
        probe: bool,
        each: PerDimension<Option<RefusedUse>>,
    },
    /// The provider's meter, read from an answer.
    Metered(PerDimension<Option<MeterReading>>),
}

/// A refusal in one limited dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RefusedUse {
    pub(crate) need: f64,
    /// Drawn before the call's admission.
    pub(crate) drawn: f64,
    pub(crate) spent: f64,
}

/// A reading of the provider's meter in one limited dimension; -1 is not stated. Our own counts are
/// those at the call's admission, with the changes by policies since.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MeterReading {
    pub(crate) used: f64,
    pub(crate) limit: f64,
    pub(crate) reset: f64,
    pub(crate) drawn: f64,
    /// The unsettled part of the use in the window.
    pub(crate) held: f64,
    pub(crate) total: f64,
    /// Drawn since the admission, the call included.
    pub(crate) since: f64,
}

/// The policy's input.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) now: f64,
    pub(crate) version: u64,
    /// The number of the last observation in `log`.
    pub(crate) end: u64,
    /// Number of all calls so far that went well.
    pub(crate) answers: u64,
    pub(crate) drawn: Units,
    /// The maximum drawn since the last run.
    pub(crate) peak: Units,
    pub(crate) log: Vec<Observation>,
}

/// The log, and the task of reading it.
#[derive(Debug, Default)]
pub(super) struct Log {
    kept: VecDeque<Observation>,
    /// Number of all observations so far.
    pushed: u64,
    answers: u64,
    /// Whether a refusal is unread.
    urgent: bool,
    /// Time when the task was last handed out, and whether it is done.
    handed: Option<(f64, bool)>,
}

impl Log {
    pub(super) fn push(&mut self, observation: Observation, numbers: &Numbers) {
        self.urgent |= matches!(observation, Observation::Refused { .. });
        self.kept.push_back(observation);
        self.pushed += 1;
        if self.kept.len() > index(numbers.logged) {
            self.kept.pop_front();
        }
    }

    pub(super) fn count_answer(&mut self) {
        self.answers += 1;
    }

    fn is_free(&self, now: f64, numbers: &Numbers) -> bool {
        match self.handed {
            None => true,
            Some((at, false)) => now >= at + numbers.task_lease,
            Some((at, true)) => self.urgent || now >= at + numbers.pace,
        }
    }

    pub(super) fn trim(&mut self, end: u64) {
        let unread = usize::try_from(self.pushed.saturating_sub(end)).unwrap_or(usize::MAX);
        while self.kept.len() > unread {
            self.kept.pop_front();
        }
        self.urgent = self.kept.iter().any(|it| matches!(it, Observation::Refused { .. }));
        self.handed = self.handed.map(|(at, _)| (at, true));
    }

    /// Hands out the policy's task if it is free: to one caller at a time, soon after a refusal,
    /// otherwise at the policy's pace.
    pub(super) fn hand_out_task(&mut self, now: f64, numbers: &Numbers) -> bool {
        let free = self.is_free(now, numbers);
        if free {
            self.handed = Some((now, false));
        }
        free
    }

    /// The number of the last observation, the answers, and the observations.
    pub(super) fn read(&self) -> (u64, u64, Vec<Observation>) {
        (self.pushed, self.answers, self.kept.iter().copied().collect())
    }

    /// Frees the task, because times have moved. The policy knows earlier observations by their
    /// times.
    pub(super) fn forget_handout(&mut self) {
        self.handed = None;
    }
}
