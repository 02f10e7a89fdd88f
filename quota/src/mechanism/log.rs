//! What was observed since the policy ran last: bounded, and what falls out is unknown. And who runs
//! the policy.

use std::collections::VecDeque;

use crate::{dimension::PerDimension, numbers::Numbers, plan::Units};

/// One thing that the provider did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Observation {
    /// It refused a call.
    Refused {
        at: f64,
        admitted: f64,
        retry: f64,
        /// One that went first after a refusal.
        probe: bool,
        each: PerDimension<Option<Refused>>,
    },
    /// It told what was used when a call was admitted.
    Told(PerDimension<Option<Told>>),
}

/// A refusal, in one dimension that is limited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Refused {
    pub(crate) need: f64,
    /// Before its admission.
    pub(crate) drawn: f64,
    pub(crate) spent: f64,
}

/// A reading of a meter, in one dimension that is limited; -1 is not told. What we counted is of
/// when the call was admitted, with what policies have changed since.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Told {
    pub(crate) used: f64,
    pub(crate) limit: f64,
    pub(crate) reset: f64,
    pub(crate) drawn: f64,
    /// Of what was in the window, what was not settled.
    pub(crate) held: f64,
    pub(crate) total: f64,
    /// What was drawn since, itself included.
    pub(crate) since: f64,
}

/// What the policy is given.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) now: f64,
    pub(crate) version: u64,
    /// Number of the last observation that was read.
    pub(crate) end: u64,
    /// Answers to calls that went well, ever.
    pub(crate) answers: u64,
    pub(crate) drawn: Units,
    /// Most that was drawn since the last run.
    pub(crate) peak: Units,
    pub(crate) log: Vec<Observation>,
}

/// The log and the task of reading it.
#[derive(Debug, Default)]
pub(super) struct Log {
    kept: VecDeque<Observation>,
    /// How many there were, ever.
    pushed: u64,
    answers: u64,
    /// A refusal has not been read.
    urgent: bool,
    /// When the task was handed out last, and whether it is done.
    handed: Option<(f64, bool)>,
}

impl Log {
    pub(super) fn push(&mut self, observation: Observation, numbers: &Numbers) {
        self.urgent |= matches!(observation, Observation::Refused { .. });
        self.kept.push_back(observation);
        self.pushed += 1;
        if self.kept.len() > crate::number::index(numbers.logged) {
            self.kept.pop_front();
        }
    }

    pub(super) fn answered(&mut self) {
        self.answers += 1;
    }

    fn is_free(&self, now: f64, numbers: &Numbers) -> bool {
        match self.handed {
            None => true,
            Some((at, false)) => now >= at + numbers.lease,
            Some((at, true)) => self.urgent || now >= at + numbers.pace,
        }
    }

    pub(super) fn trim(&mut self, end: u64) {
        let unread = crate::number::index(crate::number::float(self.pushed - end.min(self.pushed)));
        while self.kept.len() > unread {
            self.kept.pop_front();
        }
        self.urgent = self.kept.iter().any(|it| matches!(it, Observation::Refused { .. }));
        self.handed = self.handed.map(|(at, _)| (at, true));
    }

    /// Whether the policy's task is handed out now: to one caller at a time, soon after a refusal, else
    /// at the policy's pace.
    pub(super) fn hands(&mut self, now: f64, numbers: &Numbers) -> bool {
        let free = self.is_free(now, numbers);
        if free {
            self.handed = Some((now, false));
        }
        free
    }

    /// Number of the last observation, answers, and the observations.
    pub(super) fn read(&self) -> (u64, u64, Vec<Observation>) {
        (self.pushed, self.answers, self.kept.iter().copied().collect())
    }

    /// Times are others now; what was logged before them the policy tells by its time.
    pub(super) fn hand_anew(&mut self) {
        self.handed = None;
    }
}
