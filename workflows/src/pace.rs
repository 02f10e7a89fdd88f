//! Decides how many of its window's documents a shard has in flight: as many as workers take within
//! a few seconds. Workers take only documents that their quota admits, and a document with a long
//! wait in the task queue keeps later ones from being taken.
//!
//! Each ended call reports its time in the queue. If it was taken at once, one more document is
//! handed out, so that the number doubles with each round. If it waited for some seconds, one more
//! is handed out in a whole round. If it waited too long, the number follows from Little's law for
//! [`AIM`]: in flight = rate × time from handing out to the end. Documents handed out before that
//! decrease show the old queue, and cause no further one. Batches that share a limit converge to
//! equal parts of it: a long queue takes the same fraction from each, and a round adds one to each.

/// Seconds in the task queue that count as no wait: workers had free slots.
const FREE: u64 = 1;

/// Seconds in the task queue that are too long.
const LONG: u64 = 5;

/// Target for the seconds in the task queue after that: between the two.
const AIM: u64 = 3;

/// Minimum number of documents in flight, for any length of the queue, because other batches may
/// cause it.
const LEAST: u32 = 4;

/// The window's state when a call ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowState {
    /// Most documents in flight.
    pub(crate) window: u32,
    /// Places in use; `None` for the whole window.
    pub(crate) open: Option<u32>,
    /// Documents in flight, without those of the ended call.
    pub(crate) in_flight: u64,
    /// Documents in one call.
    pub(crate) call: u32,
    /// The next document to hand out.
    pub(crate) next: u32,
}

/// An ended call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// Its first document.
    pub(crate) document: u32,
    /// Seconds in the task queue.
    pub(crate) queued: u64,
    /// Seconds from handing out to the end, including those in the queue.
    pub(crate) took: u64,
}

/// The evidence of ended calls.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Documents that ended with a short queue since the last increase.
    calm: u32,
    /// The first document handed out after the last decrease.
    since: u32,
}

impl Pace {
    /// Returns the number of documents that may be in flight from now on; `None` for the whole
    /// window.
    pub(crate) fn after(&mut self, ended: Ended, places: WindowState) -> Option<u32> {
        let WindowState { window, open, in_flight, call, next } = places;
        let open = open.unwrap_or(window);
        let open = match ended.queued {
            LONG.. if ended.document < self.since => open,
            LONG.. => {
                self.since = next;
                let took = ended.took.max(ended.queued);
                let aimed = (in_flight + u64::from(call)) * (took - ended.queued + AIM);
                let aimed = u32::try_from(aimed.div_ceil(took)).unwrap_or(u32::MAX);
                open.min(aimed).max(LEAST.max(call).min(window))
            }
            ..FREE => open.saturating_add(call),
            _ => {
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
    use std::collections::VecDeque;

    use super::*;

    /// A shard whose calls are taken from its queue at a quota's rate, and replaced as the pace
    /// allows.
    struct Shard {
        pace: Pace,
        places: WindowState,
        /// Queued documents: the time of handing out, and the number.
        queue: VecDeque<(u64, u32)>,
        /// Taken documents: the time of the end, the number, the time of handing out, and the time
        /// in the queue.
        taken: Vec<(u64, u32, u64, u64)>,
    }

    impl Shard {
        fn full(window: u32) -> Self {
            let places = WindowState { window, open: None, in_flight: 0, call: 1, next: 0 };
            let mut shard =
                Self { pace: Pace::default(), places, queue: VecDeque::new(), taken: Vec::new() };
            shard.hand_out(0);
            shard
        }

        fn hand_out(&mut self, now: u64) {
            let places = &mut self.places;
            while places.in_flight < places.open.unwrap_or(places.window).into() {
                self.queue.push_back((now, places.next));
                places.in_flight += 1;
                places.next += 1;
            }
        }

        /// Lets a worker take the next document, whose call takes `call` seconds. Returns whether
        /// there was one.
        fn take(&mut self, now: u64, call: u64) -> bool {
            let Some((at, document)) = self.queue.pop_front() else { return false };
            self.taken.push((now + call, document, at, now - at));
            true
        }

        /// Ends the calls that are due.
        fn end(&mut self, now: u64) {
            let (ended, taken) = std::mem::take(&mut self.taken)
                .into_iter()
                .partition::<Vec<_>, _>(|(end, ..)| *end <= now);
            self.taken = taken;
            for (end, document, at, queued) in ended {
                self.places.in_flight -= 1;
                let ended = Ended { document, queued, took: end - at };
                self.places.open = self.pace.after(ended, self.places);
                self.hand_out(now);
            }
        }
    }

    /// Takes `rate` documents a second from the shards in turn; returns how many were taken of each
    /// shard in each second.
    fn run(shards: &mut [&mut Shard], seconds: u64, rate: usize, call: u64) -> Vec<Vec<usize>> {
        let mut taken = Vec::new();
        for now in 0..seconds {
            shards.iter_mut().for_each(|shard| shard.end(now));
            let mut each = vec![0; shards.len()];
            for _ in 0..rate {
                // A queue is served in order.
                let first = shards.iter().enumerate().filter_map(|(place, shard)| {
                    shard.queue.front().map(|(at, document)| (*at, *document, place))
                });
                let Some((.., place)) = first.min() else { break };
                each[place] += usize::from(shards[place].take(now, call));
            }
            taken.push(each);
        }
        taken
    }

    #[test]
    fn a_long_queue_is_shortened_and_never_runs_dry() {
        for (window, rate, call) in [(200, 3, 3), (500, 3, 40), (500, 20, 2), (100, 1, 5)] {
            let mut shard = Shard::full(window);
            let taken = run(&mut [&mut shard], 900, rate, call);
            let missed = taken.iter().filter(|each| each[0] < rate).count();
            assert_eq!(missed, 0, "window {window}, {rate} a second, calls of {call} s");
            let queued = shard.queue.len();
            assert!(
                (rate..=rate * 7).contains(&queued),
                "{queued} in the queue of {rate} a second"
            );
        }
    }

    #[test]
    fn a_free_queue_doubles_in_a_round_and_a_short_one_lets_one_more_go() {
        let mut pace = Pace::default();
        let places = WindowState { window: 100, open: Some(10), in_flight: 9, call: 1, next: 10 };
        let ended = |queued| Ended { document: 0, queued, took: queued + 1 };
        assert_eq!(pace.after(ended(0), places), Some(11));
        for _ in 0..9 {
            assert_eq!(pace.after(ended(2), places), Some(10));
        }
        assert_eq!(pace.after(ended(2), places), Some(11));
        let places = WindowState { open: Some(99), ..places };
        assert_eq!(pace.after(ended(0), places), None, "the whole window, and never more");
    }

    #[test]
    fn calls_from_before_a_decrease_cause_no_further_one() {
        let mut pace = Pace::default();
        let mut places = WindowState { window: 100, open: None, in_flight: 99, call: 1, next: 100 };
        let ended = |document| Ended { document, queued: 6, took: 9 };
        places.open = pace.after(ended(0), places);
        assert_eq!(places.open, Some(67), "100 × (9 − 6 + 3) ÷ 9");
        assert_eq!(pace.after(ended(99), places), Some(67));
        assert_eq!(pace.after(ended(100), WindowState { in_flight: 66, ..places }), Some(45));
    }

    #[test]
    fn batches_that_share_a_limit_come_to_equal_parts() {
        let (mut large, mut small) = (Shard::full(100), Shard::full(100));
        small.places.open = Some(LEAST);
        small.queue.truncate(LEAST as usize);
        small.places.in_flight = LEAST.into();
        let taken = run(&mut [&mut large, &mut small], 1_200, 4, 3);
        let sum = |place: usize| taken[900..].iter().map(|each| each[place]).sum::<usize>();
        let (large, small) = (sum(0), sum(1));
        assert!(large < 2 * small && small < 2 * large, "{large} and {small}");
    }

    #[test]
    fn a_window_smaller_than_the_least_and_calls_of_many_documents_go_on() {
        for (window, call, least) in [(1, 1, 1), (3, 2, 3), (40, 10, 10)] {
            let mut pace = Pace::default();
            let mut places = WindowState { window, open: None, in_flight: 0, call, next: 0 };
            for document in 0..20 {
                places.next = document;
                let ended = Ended { document, queued: 60, took: 60 };
                places.open = pace.after(ended, places);
            }
            assert!(places.open.is_none_or(|open| open == least), "{places:?}");
        }
    }
}
