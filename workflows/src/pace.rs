//! How many of its window's documents a shard has in flight: as many as workers take soon. They take
//! no more than their quota admits; what lies in the task queue for long keeps what comes later from
//! being taken.
//!
//! Each document that ends tells how long it lay in the task queue. Where that was long, nothing is
//! handed out in its place; where it was taken at once, one more is, so that the number doubles with
//! each round. Between the two, one more is in a whole round: batches that share a limit come to
//! equal parts of it so, since a long queue takes from each as much as it has.

use crate::contract::Queue;

/// However long the queue: others may be what makes it long.
const LEAST: u32 = 4;

/// What a shard has when a call ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    /// Documents that may be in flight at most.
    pub(crate) window: u32,
    /// So many of them; `None` where all may be.
    pub(crate) open: Option<u32>,
    /// Documents in flight, without those of the call that has ended.
    pub(crate) in_flight: u64,
    /// Documents in one call.
    pub(crate) call: u32,
}

/// Counts a round.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Documents that have ended while the queue was short, since one more was let go.
    calm: u32,
}

impl Pace {
    /// How many may be in flight from now on; `None` where all of the window may be.
    pub(crate) fn after(&mut self, queue: Queue, places: Places) -> Option<u32> {
        let Places { window, open, in_flight, call } = places;
        let open = open.unwrap_or(window);
        let least = LEAST.max(call).min(window);
        let open = match queue {
            Queue::Long => open.min(u32::try_from(in_flight).unwrap_or(u32::MAX)).max(least),
            Queue::Free => open.saturating_add(call),
            Queue::Short => {
                self.calm = self.calm.saturating_add(call);
                let round = self.calm >= open;
                if round {
                    self.calm = 0;
                }
                open.saturating_add(if round { call } else { 0 })
            }
        };
        (open < window).then_some(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shard whose calls end one after the other, and are replaced as far as may be.
    struct Shard {
        pace: Pace,
        places: Places,
    }

    impl Shard {
        fn full(window: u32, call: u32) -> Self {
            let places = Places { window, open: None, in_flight: window.into(), call };
            Self { pace: Pace::default(), places }
        }

        /// So many calls end; what may be in flight then.
        fn end(&mut self, calls: u32, queue: Queue) -> Option<u32> {
            for _ in 0..calls {
                let places = &mut self.places;
                places.in_flight -= u64::from(places.call).min(places.in_flight);
                places.open = self.pace.after(queue, *places);
                while places.in_flight < places.open.unwrap_or(places.window).into() {
                    places.in_flight += u64::from(places.call);
                }
            }
            self.places.open
        }
    }

    #[test]
    fn a_long_queue_closes_the_place_of_each_that_ends_but_a_few() {
        let mut shard = Shard::full(100, 1);
        assert_eq!(shard.end(1, Queue::Long), Some(99));
        assert_eq!(shard.end(500, Queue::Long), Some(LEAST));
        assert_eq!(shard.places.in_flight, u64::from(LEAST), "it goes on");
    }

    #[test]
    fn a_free_queue_doubles_in_a_round_and_a_short_one_lets_one_more_go() {
        let mut shard = Shard::full(100, 1);
        assert_eq!(shard.end(90, Queue::Long), Some(10));
        assert_eq!(shard.end(10, Queue::Short), Some(11));
        assert_eq!(shard.end(11, Queue::Free), Some(22));
        assert_eq!(shard.end(200, Queue::Free), None, "the whole window, and never more");
        assert_eq!(shard.end(200, Queue::Short), None);
    }

    /// Two batches of one limit, one of which has nearly all: a queue that is long for one call in
    /// thirty.
    #[test]
    fn batches_that_share_a_limit_come_to_equal_parts() {
        let (mut large, mut small) = (Shard::full(100, 1), Shard::full(100, 1));
        large.end(60, Queue::Long);
        small.end(96, Queue::Long);
        for round in 0..40 {
            for shard in [&mut large, &mut small] {
                let open = shard.places.open.unwrap_or(100);
                let queue =
                    |call| if (round + call) % 30 == 0 { Queue::Long } else { Queue::Short };
                for call in 0..open {
                    shard.end(1, queue(call));
                }
            }
        }
        let [large, small] = [large, small].map(|shard| shard.places.open.unwrap_or(100));
        assert!(large < 2 * small, "{large} and {small}");
    }

    #[test]
    fn a_window_smaller_than_the_least_and_calls_of_many_documents_go_on() {
        for (window, call, least) in [(1, 1, 1), (3, 2, 3), (40, 10, 10)] {
            let mut shard = Shard::full(window, call);
            let open = shard.end(100, Queue::Long);
            assert!(open.is_none_or(|open| open == least), "{window} {call}: {open:?}");
            assert!(shard.places.in_flight > 0);
        }
    }
}
