//! Calls in flight: a limit on their number, and a lower cap after overloads.

use super::{Mechanism, Obstacle, Terms};
use crate::store::Hold;

impl Mechanism {
    pub(super) fn add_in_flight(&mut self, lane: usize, by: f64) {
        for calls in [&mut self.in_flight.calls, &mut self.lanes[lane].in_flight] {
            *calls = (*calls + by).max(0.0);
        }
    }

    /// Adds the wait until calls in flight end, if the limit leaves no place for the call and those
    /// before it. A lane at its guaranteed share leaves their shares to other lanes that wait.
    pub(super) fn limit_in_flight(
        &self,
        terms: &Terms<'_>,
        lane: usize,
        ahead: f64,
        work: f64,
        obstacle: &mut Obstacle,
    ) {
        let limit = self.in_flight.limit(self.plan.concurrent);
        if limit <= 0.0 {
            return;
        }
        let own = self.lanes[lane].in_flight;
        let mut over = self.in_flight.calls + 1.0 - limit;
        // Below the limit only the lanes' shares and ceilings hold the call.
        let mut hold = if over > 0.0 { Hold::InFlight } else { Hold::Lane };
        if own + 1.0 > terms.share(lane) * limit {
            for (other, it) in self.lanes.iter().enumerate() {
                if other != lane && it.waiting_work() > 0.0 {
                    over += (terms.share(other) * limit - it.in_flight).max(0.0).floor();
                }
            }
        }
        over = over.max(own + 1.0 - (terms.lanes.at(lane).ceiling * limit).floor().max(1.0));
        if ahead > 0.0 {
            hold = if over > 0.0 { hold } else { Hold::Turn };
            let each = self.mean_work().map_or(work, |mean| mean.max(work));
            let before = (ahead / each + 0.5).floor();
            over += if each > 0.0 { before.max(1.0) } else { 1.0 };
        }
        if over > 0.0 {
            let wait = over * self.latency / limit;
            obstacle.raise(wait.max(terms.numbers.pace), hold, over);
        }
    }
}
