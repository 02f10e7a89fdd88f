//! The fullest 60 seconds there have been, to the millisecond.

use std::{collections::VecDeque, time::Duration};

use crate::amounts::Amounts;

/// Amounts admitted in the last 60 seconds, at most one entry a millisecond, and the most that
/// there ever was.
#[derive(Debug, Default)]
pub(crate) struct Worst {
    log: VecDeque<(u128, Amounts)>,
    now: Amounts,
    worst: Amounts,
}

impl Worst {
    pub(crate) fn record(&mut self, at: Duration, amounts: &Amounts) {
        let at = at.as_millis();
        while let Some((_, gone)) = self.log.front().filter(|(then, _)| *then + 60_000 <= at) {
            self.now.subtract(gone);
            self.log.pop_front();
        }
        match self.log.back_mut() {
            Some((then, sum)) if *then >= at => sum.add(amounts),
            _ => self.log.push_back((at, *amounts)),
        }
        self.now.add(amounts);
        self.worst.raise(&self.now);
    }

    pub(crate) const fn worst(&self) -> Amounts {
        self.worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_window_is_found_wherever_it_begins() {
        let mut worst = Worst::default();
        for (second, input) in [(0, 10), (30, 20), (59, 5), (60, 7), (89, 8), (200, 30)] {
            worst.record(Duration::from_secs(second), &Amounts::call(input, 1));
        }
        // 30, 59, 60 and 89: at 60 the call of second 0 has left.
        assert_eq!(worst.worst(), Amounts { requests: 4, tokens: 44, input: 40, output: 4 });
    }
}
