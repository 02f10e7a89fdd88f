//! Minutes that begin and end with the simulator's own clock.

use std::time::Duration;

use crate::measure::Measure;

#[derive(Debug)]
pub(crate) struct Fixed {
    limit: u64,
    minute: u64,
    used: u64,
}

/// Which minute a moment lies in.
const fn minute(at: Duration) -> u64 {
    at.as_secs() / 60
}

impl Fixed {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, minute: 0, used: 0 }
    }

    fn turn(&mut self, now: Duration) {
        if minute(now) > self.minute {
            self.minute = minute(now);
            self.used = 0;
        }
    }

    fn ends_in(&self, now: Duration) -> Duration {
        Duration::from_secs((self.minute + 1) * 60).saturating_sub(now)
    }
}

impl Measure for Fixed {
    fn wait(&mut self, now: Duration, amount: u64) -> Option<Duration> {
        self.turn(now);
        (self.used + amount > self.limit).then(|| self.ends_in(now))
    }

    fn take(&mut self, now: Duration, amount: u64) {
        self.turn(now);
        self.used += amount;
    }

    fn give_back(&mut self, now: Duration, taken: Duration, amount: u64) {
        self.turn(now);
        if minute(taken) == self.minute {
            self.used = self.used.saturating_sub(amount);
        }
    }

    fn remaining(&mut self, now: Duration) -> u64 {
        self.turn(now);
        self.limit.saturating_sub(self.used)
    }

    fn reset(&mut self, now: Duration) -> Duration {
        self.turn(now);
        if self.used == 0 { Duration::ZERO } else { self.ends_in(now) }
    }
}
