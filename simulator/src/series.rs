//! Amounts admitted in each second.

use std::{collections::VecDeque, ops::Range, time::Duration};

use serde::{Deserialize, Serialize};

use crate::amounts::Amounts;

/// Four hours: what is older is forgotten.
const SECONDS: usize = 4 * 60 * 60;

/// Amounts by whole seconds since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The first second that is listed.
    pub start: u64,
    /// Requests, input and output tokens of each second from there.
    pub seconds: VecDeque<[u64; 3]>,
}

impl Series {
    pub(crate) fn record(&mut self, at: Duration, amounts: &Amounts) {
        if self.seconds.is_empty() {
            self.start = at.as_secs();
        }
        let past = usize::try_from(at.as_secs().saturating_sub(self.start)).unwrap_or(usize::MAX);
        if past >= self.seconds.len() {
            self.lengthen(past);
        }
        if let Some(second) = self.seconds.back_mut() {
            second[0] += amounts.requests;
            second[1] += amounts.input;
            second[2] += amounts.output;
        }
    }

    /// Makes the second `past` the last one that is listed.
    fn lengthen(&mut self, past: usize) {
        if past >= self.seconds.len() + SECONDS {
            self.start += past as u64;
            self.seconds.clear();
            self.seconds.push_back([0; 3]);
            return;
        }
        self.seconds.resize(past + 1, [0; 3]);
        let gone = self.seconds.len().saturating_sub(SECONDS);
        self.seconds.drain(..gone);
        self.start += gone as u64;
    }

    pub(crate) fn between(&self, range: &Range<u64>) -> Amounts {
        let mut sum = Amounts::default();
        for (second, [requests, input, output]) in (self.start..).zip(&self.seconds) {
            if range.contains(&second) {
                sum.add(&Amounts {
                    requests: *requests,
                    tokens: input + output,
                    input: *input,
                    output: *output,
                });
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_add_up_and_old_ones_are_forgotten() {
        let mut series = Series::default();
        for (millis, input) in
            [(500, 1), (900, 2), (3_000, 4), (20_000_000, 8), (20_001_000, 16), (90_000_000, 32)]
        {
            series.record(Duration::from_millis(millis), &Amounts::call(input, 0));
            match millis {
                3_000 => {
                    assert_eq!(series.between(&(0..1)).input, 3);
                    assert_eq!(series.between(&(1..4)).input, 4);
                }
                20_001_000 => assert_eq!(
                    series.between(&(0..30_000)),
                    Amounts { requests: 2, tokens: 24, input: 24, output: 0 }
                ),
                _ => {}
            }
            assert!(series.seconds.len() <= SECONDS);
        }
        assert_eq!((series.start, series.between(&(0..100_000)).input), (90_000, 32));
    }
}
