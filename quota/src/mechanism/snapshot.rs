//! The quota's state for people.

use tidegate_types::Lane as Named;

use super::{LaneState, Mechanism, Terms, state::CloseReason};
use crate::{
    conversions::{duration, float, whole},
    dimension::PerDimension,
    lanes::Share,
    numbers::GRAIN,
    snapshot::{DimensionSnapshot, LaneSnapshot, Snapshot},
};

impl Mechanism {
    /// The snapshot without the policy's knowledge.
    pub(crate) fn snapshot(&self, terms: &Terms<'_>) -> Snapshot {
        let above = |amount: f64| whole(amount.max(0.0).ceil());
        let calls = float(self.ledger.len() as u64);
        // Divided in the same order as in the scripts, so that rounding gives the same.
        let mean = if self.progress > 0.0 { self.progress / GRAIN / calls } else { 1.0 };
        let waiting = |work: f64| work / mean;
        let lane =
            |((name, share), (place, lane)): (&(Named, Share), (usize, &LaneState))| LaneSnapshot {
                lane: name.clone(),
                share: *share,
                elsewhere: false,
                waiting: if lane.waiting_work() > 0.0 {
                    whole(waiting(lane.waiting_work()).round()).max(1)
                } else {
                    0
                },
                queue: duration(self.queue_time(terms, place)),
                in_flight: whole(lane.in_flight),
                used: lane.used.map(above),
            };
        let gate = self.gate.as_ref().filter(|gate| gate.until > self.at);
        Snapshot {
            pause: duration(self.closed_for()),
            exhausted: gate.is_some_and(|gate| gate.closed == CloseReason::Exhausted),
            reason: gate.map_or_else(String::new, |gate| gate.reason.clone()),
            reservations: self.ledger.len() as u64,
            latency: duration(self.latency),
            cap: Some(whole(self.in_flight.cap)).filter(|cap| *cap > 0),
            day_requests: whole(self.day.requests),
            day_tokens: above(self.day.tokens),
            day_left: duration(terms.day_left(self.at)),
            dimensions: PerDimension::from_fn(|it| DimensionSnapshot {
                used: above(self.total[it]),
                held: above(self.held[it]),
                ahead: self.plan.limits[it].map_or_else(Default::default, |limit| {
                    duration((self.drawn[it] - limit.capacity.value) / limit.rate.value)
                }),
                ..DimensionSnapshot::default()
            }),
            in_flight: DimensionSnapshot {
                used: whole(self.in_flight.calls),
                limit: whole(self.in_flight.limit(self.plan.concurrent)),
                ..DimensionSnapshot::default()
            },
            lanes: terms.lanes.iter().zip(self.lanes.iter().enumerate()).map(lane).collect(),
            ..Snapshot::default()
        }
    }
}
