//! What was observed since the policy ran last: bounded, and what falls out is unknown.

use std::collections::VecDeque;

use tidegate_quota::PerDimension;

use super::{mechanism::Units, numbers::Numbers};

/// One thing that the provider did.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Observation {
    /// It refused a call; drawn and spent are those of before its admission. `probe` is one that
    /// went first after a refusal.
    Refused {
        at: f64,
        admitted: f64,
        need: Units,
        retry: f64,
        drawn: Units,
        spent: Units,
        probe: bool,
    },
    /// It told what was used when a call was admitted; drawn and used in the window are those of
    /// then, with what policies have changed since.
    Told {
        used: PerDimension<Option<f64>>,
        reset: PerDimension<Option<f64>>,
        drawn: Units,
        in_window: Units,
    },
}

/// The log and the task of reading it.
#[derive(Debug, Default)]
pub(crate) struct Log {
    kept: VecDeque<Observation>,
    /// Number of the first that is kept.
    first: u64,
    answers: u64,
    urgent: bool,
    /// When the task was handed out last, and whether it is done.
    handed: Option<(f64, bool)>,
}

/// A copy of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Logged {
    pub(crate) observations: Vec<Observation>,
    /// Answers to calls that went well, ever.
    pub(crate) answers: u64,
    /// Number of the last that was read.
    pub(crate) end: u64,
}

/// What the policy is given.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) now: f64,
    pub(crate) version: u64,
    pub(crate) drawn: Units,
    pub(crate) spent: Units,
    /// Most that was drawn since the last reading.
    pub(crate) peak: Units,
    pub(crate) log: Logged,
}

impl Reading {
    /// Eight readings of a meter and a refusal, of all dimensions.
    pub(crate) fn example() -> Self {
        let each = |value: f64| Units::from_fn(|_| value);
        let told = Observation::Told {
            used: PerDimension::from_fn(|_| Some(1e5)),
            reset: PerDimension::from_fn(|_| Some(6.0)),
            drawn: each(1e5),
            in_window: each(2e5),
        };
        let refused = Observation::Refused {
            at: 9.0,
            admitted: 8.9,
            need: each(1e3),
            retry: 1.0,
            drawn: each(2e5),
            spent: each(1e6),
            probe: false,
        };
        let mut observations = vec![told; 8];
        observations.push(refused);
        let log = Logged { observations, answers: 1, end: 9 };
        Self { now: 10.0, version: 1, drawn: each(1e5), spent: each(1e6), peak: each(1e5), log }
    }
}

impl Log {
    pub(crate) fn push(&mut self, observation: Observation, numbers: &Numbers) {
        self.urgent |= matches!(observation, Observation::Refused { .. });
        self.kept.push_back(observation);
        if self.kept.len() as f64 > numbers.log {
            self.kept.pop_front();
            self.first += 1;
        }
    }

    pub(crate) fn answered(&mut self) {
        self.answers += 1;
    }

    /// One caller at a time, soon after a refusal, else at the policy's pace.
    pub(crate) fn task(&mut self, now: f64, numbers: &Numbers) -> bool {
        let free = match self.handed {
            None => true,
            Some((at, false)) => now >= at + numbers.lease,
            Some((at, true)) => self.urgent || now >= at + numbers.pace,
        };
        if free {
            self.handed = Some((now, false));
        }
        free
    }

    pub(crate) fn read(&self) -> Logged {
        Logged {
            observations: self.kept.iter().copied().collect(),
            answers: self.answers,
            end: self.first + self.kept.len() as u64,
        }
    }

    pub(crate) fn trim(&mut self, end: u64) {
        while self.first < end && self.kept.pop_front().is_some() {
            self.first += 1;
        }
        self.urgent = self.kept.iter().any(|it| matches!(it, Observation::Refused { .. }));
        self.handed = self.handed.map(|(at, _)| (at, true));
    }
}
