//! One dimension of one model's limits, by one of three algorithms.

use std::time::Duration;

use crate::{
    bucket::Bucket,
    fixed::Fixed,
    limits::{Algorithm, Limits},
    sliding::Sliding,
};

#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) limit: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Bucket(Bucket),
    Fixed(Fixed),
    Sliding(Sliding),
}

impl Meter {
    pub(crate) fn new(limit: u64, limits: &Limits) -> Self {
        let kind = match limits.algorithm {
            Algorithm::TokenBucket => Kind::Bucket(Bucket::new(limit, limits.bucket)),
            Algorithm::FixedWindow => Kind::Fixed(Fixed::new(limit)),
            Algorithm::SlidingWindow => Kind::Sliding(Sliding::new(limit)),
        };
        Self { limit, kind }
    }

    /// How long until so much would be admitted; `None` is now.
    pub(crate) fn wait(&mut self, now: Duration, amount: u64) -> Option<Duration> {
        if amount > self.limit {
            return Some(Duration::from_mins(1));
        }
        match &mut self.kind {
            Kind::Bucket(meter) => meter.wait(now, amount),
            Kind::Fixed(meter) => meter.wait(now, amount),
            Kind::Sliding(meter) => meter.wait(now, amount),
        }
    }

    /// Takes it, even where that leaves a debt.
    pub(crate) fn take(&mut self, now: Duration, amount: u64) {
        match &mut self.kind {
            Kind::Bucket(meter) => meter.take(now, amount),
            Kind::Fixed(meter) => meter.take(now, amount),
            Kind::Sliding(meter) => meter.take(now, amount),
        }
    }

    /// Gives back a part of what was taken at `taken`.
    pub(crate) fn give_back(&mut self, now: Duration, taken: Duration, amount: u64) {
        match &mut self.kind {
            Kind::Bucket(meter) => meter.give_back(now, amount),
            Kind::Fixed(meter) => meter.give_back(now, taken, amount),
            Kind::Sliding(meter) => meter.give_back(now, taken, amount),
        }
    }

    /// The amount that could be admitted now.
    pub(crate) fn remaining(&mut self, now: Duration) -> u64 {
        match &mut self.kind {
            Kind::Bucket(meter) => meter.remaining(now),
            Kind::Fixed(meter) => meter.remaining(now),
            Kind::Sliding(meter) => meter.remaining(now),
        }
    }

    /// The time until the whole limit is there again.
    pub(crate) fn reset(&mut self, now: Duration) -> Duration {
        match &mut self.kind {
            Kind::Bucket(meter) => meter.reset(now),
            Kind::Fixed(meter) => meter.reset(now),
            Kind::Sliding(meter) => meter.reset(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Algorithm; 3] =
        [Algorithm::TokenBucket, Algorithm::FixedWindow, Algorithm::SlidingWindow];

    fn meter(algorithm: Algorithm) -> Meter {
        Meter::new(100, &Limits { algorithm, ..Limits::default() })
    }

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_limit_fits_and_one_more_does_not() {
        for algorithm in ALL {
            let mut meter = meter(algorithm);
            assert_eq!(meter.wait(at(5), 100), None, "{algorithm:?}");
            meter.take(at(5), 100);
            assert!(meter.wait(at(5), 1).is_some(), "{algorithm:?}");
            assert_eq!(meter.remaining(at(5)), 0, "{algorithm:?}");
        }
    }

    #[test]
    fn the_wait_is_exact() {
        for algorithm in ALL {
            let mut meter = meter(algorithm);
            meter.take(at(1_000), 60);
            meter.take(at(7_000), 40);
            let wait = meter.wait(at(8_000), 50).expect("full");
            assert!(
                meter.wait(at(8_000) + wait - at(1), 50).is_some(),
                "{algorithm:?}: 1 ms too early"
            );
            assert_eq!(meter.wait(at(8_001) + wait, 50), None, "{algorithm:?}: in time");
        }
    }

    #[test]
    fn what_is_given_back_is_there_again() {
        for algorithm in ALL {
            let mut meter = meter(algorithm);
            meter.take(at(0), 50);
            meter.take(at(10), 50);
            meter.give_back(at(20), at(0), 30);
            assert_eq!(meter.wait(at(20), 30), None, "{algorithm:?}");
            assert!(meter.wait(at(20), 31).is_some(), "{algorithm:?}");
        }
    }

    #[test]
    fn a_sliding_window_never_holds_more_than_the_limit() {
        let mut meter = meter(Algorithm::SlidingWindow);
        let mut taken = Vec::new();
        for step in 0..20_000 {
            let now = at(step * 17);
            let amount = crate::rng::draw(&[step]) % 9;
            if meter.wait(now, amount).is_none() {
                meter.take(now, amount);
                taken.push((now, amount));
            }
            let window: u64 = taken
                .iter()
                .rev()
                .take_while(|(then, _)| now - *then < at(60_000))
                .map(|(_, amount)| amount)
                .sum();
            assert!(window <= 100);
        }
    }

    #[test]
    fn a_shallow_bucket_lets_a_large_call_in_when_it_is_full() {
        let mut meter =
            Meter::new(600, &Limits { bucket: Duration::from_secs(1), ..Limits::default() });
        assert_eq!(meter.wait(at(0), 50), None);
        meter.take(at(0), 50);
        assert_eq!(meter.wait(at(0), 1), Some(Duration::from_millis(4_100)));
        assert_eq!(meter.reset(at(0)), Duration::from_secs(5));
    }
}
