//! One dimension of one model's limits, by one of three algorithms.

use std::time::Duration;

use crate::{
    bucket::Bucket,
    fixed::Fixed,
    limits::{Algorithm, Limits},
    measure::Measure,
    sliding::Sliding,
};

#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) limit: u64,
    pub(crate) measure: Box<dyn Measure>,
}

impl Meter {
    pub(crate) fn new(limit: u64, limits: &Limits) -> Self {
        let measure: Box<dyn Measure> = match limits.algorithm {
            Algorithm::TokenBucket => Box::new(Bucket::new(limit, limits.bucket)),
            Algorithm::FixedWindow => Box::new(Fixed::new(limit)),
            Algorithm::SlidingWindow => Box::new(Sliding::new(limit)),
        };
        Self { limit, measure }
    }

    /// As [`Measure::wait`]; a minute for more than the limit, for which no time would do.
    pub(crate) fn wait(&mut self, now: Duration, amount: u64) -> Option<Duration> {
        if amount > self.limit {
            return Some(Duration::from_mins(1));
        }
        self.measure.wait(now, amount)
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
            meter.measure.take(at(5), 100);
            assert!(meter.wait(at(5), 1).is_some(), "{algorithm:?}");
            assert_eq!(meter.measure.remaining(at(5)), 0, "{algorithm:?}");
        }
    }

    #[test]
    fn the_wait_is_exact() {
        for algorithm in ALL {
            let mut meter = meter(algorithm);
            meter.measure.take(at(1_000), 60);
            meter.measure.take(at(7_000), 40);
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
            meter.measure.take(at(0), 50);
            meter.measure.take(at(10), 50);
            meter.measure.give_back(at(20), at(0), 30);
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
                meter.measure.take(now, amount);
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
        meter.measure.take(at(0), 50);
        assert_eq!(meter.wait(at(0), 1), Some(Duration::from_millis(4_100)));
        assert_eq!(meter.measure.reset(at(0)), Duration::from_secs(5));
    }
}
