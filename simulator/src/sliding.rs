//! Never more than the limit in any 60 seconds: a log of what was taken, to the millisecond.

use std::{collections::VecDeque, time::Duration};

use crate::measure::Measure;

/// A minute in milliseconds.
const MINUTE: u64 = 60_000;

/// Amount taken in one millisecond. At most 60,000 of them are kept.
#[derive(Debug)]
struct Entry {
    at: u64,
    amount: u64,
}

#[derive(Debug)]
pub(crate) struct Sliding {
    limit: u64,
    used: u64,
    log: VecDeque<Entry>,
}

/// Whole milliseconds.
fn millis(at: Duration) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

impl Sliding {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, used: 0, log: VecDeque::new() }
    }

    fn forget(&mut self, now: Duration) {
        // The amount of a millisecond may have been taken at its end: it leaves one millisecond
        // later.
        while let Some(entry) = self.log.front().filter(|entry| entry.at + MINUTE < millis(now)) {
            self.used -= entry.amount;
            self.log.pop_front();
        }
    }
}

impl Measure for Sliding {
    fn wait(&mut self, now: Duration, amount: u64) -> Option<Duration> {
        self.forget(now);
        let mut over = (self.used + amount).checked_sub(self.limit).filter(|over| *over > 0)?;
        for entry in &self.log {
            over = over.saturating_sub(entry.amount);
            if over == 0 {
                return Some(leaves_in(entry, now));
            }
        }
        // More than the limit was asked for: no time would do.
        Some(Duration::from_millis(MINUTE))
    }

    fn take(&mut self, now: Duration, amount: u64) {
        self.forget(now);
        self.used += amount;
        match self.log.back_mut() {
            Some(last) if last.at >= millis(now) => last.amount += amount,
            _ => self.log.push_back(Entry { at: millis(now), amount }),
        }
    }

    fn give_back(&mut self, now: Duration, taken: Duration, amount: u64) {
        self.forget(now);
        let place = self.log.partition_point(|entry| entry.at < millis(taken));
        if let Some(entry) = self.log.get_mut(place).filter(|entry| entry.at == millis(taken)) {
            let back = amount.min(entry.amount);
            entry.amount -= back;
            self.used -= back;
        }
    }

    fn remaining(&mut self, now: Duration) -> u64 {
        self.forget(now);
        self.limit.saturating_sub(self.used)
    }

    fn reset(&mut self, now: Duration) -> Duration {
        self.forget(now);
        self.log.back().map_or(Duration::ZERO, |last| leaves_in(last, now))
    }
}

fn leaves_in(entry: &Entry, now: Duration) -> Duration {
    Duration::from_millis(entry.at + MINUTE + 1).saturating_sub(now)
}
