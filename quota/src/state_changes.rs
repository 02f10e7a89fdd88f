//! Log lines for changes of state: a gate that closes or opens, a lane that starves. Each is one
//! line for any number of calls. A gate that closes repeatedly is logged twice a minute at most, unless
//! it stays closed for longer than was logged.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::{Lane, ModelId};
use tracing::{info, warn};

use crate::snapshot::Snapshot;

/// Closings of a gate within this time of the last logged one are only counted, unless they end this
/// much later.
const SELDOM: Duration = Duration::from_secs(30);

/// Interval between log lines about a faulty script, which fails at each call.
const FAULTS: Duration = Duration::from_secs(60);

/// Time of waiting, while others were served, after which a lane is starved.
const STARVED_AFTER: Duration = Duration::from_secs(60);

/// The state of each model's gate and lanes, as this process has seen it.
#[derive(Debug, Default)]
pub(crate) struct StateChanges(Mutex<HashMap<ModelId, ModelState>>);

#[derive(Debug, Default)]
struct ModelState {
    /// Time when the gate closed, if it is closed.
    closed: Option<Instant>,
    /// Time when a closing was last logged.
    logged: Option<Instant>,
    /// End of the last logged closing; `None` if it has no end.
    logged_end: Option<Instant>,
    /// Closings since then that were not logged.
    unlogged: u32,
    /// Lanes that wait while others are served: since when, and whether that was logged.
    starving: HashMap<Lane, (Instant, bool)>,
}

/// A log line about a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateMessage {
    Closed { unlogged: u32 },
    Open { after: Duration, unlogged: u32 },
}

impl StateChanges {
    /// Notes that the gate is closed for `wait`, or without it until an operator resumes the model, and
    /// logs it.
    pub(crate) fn record_closed(
        &self,
        model: &ModelId,
        wait: Option<Duration>,
        reason: &str,
        exhausted: bool,
    ) {
        let now = Instant::now();
        let message = self.0.lock().entry(model.clone()).or_default().note_closed(now, wait);
        if let Some(GateMessage::Closed { unlogged }) = message {
            let what = if exhausted { "the model is exhausted" } else { "the gate is closed" };
            let until = wait.map_or_else(
                || format!("until `tidegate resume {model}`"),
                |wait| format!("for {wait:.1?}"),
            );
            warn!(%model, reason, times_since_last_told = unlogged, "{what} {until}; no calls until then");
        }
    }

    /// Notes that a question asked at `asked` found the gate open, and logs it if its closing was
    /// logged.
    pub(crate) fn record_open(&self, model: &ModelId, asked: Instant) {
        let mut all = self.0.lock();
        let message = all.get_mut(model).and_then(|seen| seen.note_open(Instant::now(), asked));
        drop(all);
        if let Some(GateMessage::Open { after, unlogged }) = message {
            info!(%model, times_since_last_told = unlogged, "the gate is open again after {after:.1?}");
        }
    }

    /// Records a model's snapshot that was asked for at `asked`. `held`: an operator has paused the
    /// model until it is resumed.
    pub(crate) fn record_snapshot(
        &self,
        model: &ModelId,
        snapshot: &Snapshot,
        asked: Instant,
        held: bool,
    ) {
        if snapshot.exhausted || !snapshot.pause.is_zero() {
            let wait = (!held).then_some(snapshot.pause);
            return self.record_closed(model, wait, &snapshot.reason, snapshot.exhausted);
        }
        self.record_open(model, asked);
        let starved = {
            let mut all = self.0.lock();
            all.entry(model.clone()).or_default().take_starved(snapshot, Instant::now())
        };
        for lane in starved {
            warn!(%model, %lane, "this lane has waited for {STARVED_AFTER:?} while others were served; its share may be too small for its largest call");
        }
    }
}

/// Faults of the scripts, of which one a minute is logged.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<(Option<Instant>, u32)>);

impl Faults {
    /// Returns the number of faults that were not logged since the last one, if this fault should
    /// be logged.
    pub(crate) fn take_unlogged(&self, now: Instant) -> Option<u32> {
        let mut faults = self.0.lock();
        if faults.0.is_some_and(|logged| now.saturating_duration_since(logged) < FAULTS) {
            faults.1 += 1;
            return None;
        }
        faults.0 = Some(now);
        Some(std::mem::take(&mut faults.1))
    }
}

impl ModelState {
    fn note_closed(&mut self, now: Instant, wait: Option<Duration>) -> Option<GateMessage> {
        let was_closed = self.closed.replace(self.closed.unwrap_or(now)).is_some();
        let end = wait.map(|wait| now + wait);
        let is_longer = self.logged.is_some()
            && self.logged_end.is_some_and(|logged| end.is_none_or(|end| end > logged + SELDOM));
        let is_recent =
            self.logged.is_some_and(|logged| now.saturating_duration_since(logged) < SELDOM);
        if was_closed && !is_longer {
            return None;
        }
        if is_recent && !is_longer {
            self.unlogged += 1;
            return None;
        }
        (self.logged, self.logged_end) = (Some(now), end);
        Some(GateMessage::Closed { unlogged: std::mem::take(&mut self.unlogged) })
    }

    /// The message, if the closing was logged. A question from before the closing says nothing of it.
    fn note_open(&mut self, now: Instant, asked: Instant) -> Option<GateMessage> {
        let closed = self.closed.take_if(|closed| *closed <= asked)?;
        self.logged_end = Some(now);
        let was_logged = self.logged.is_some_and(|logged| logged >= closed);
        let (after, unlogged) = (now.saturating_duration_since(closed), self.unlogged);
        was_logged.then_some(GateMessage::Open { after, unlogged })
    }

    /// Lanes that have just become starved.
    fn take_starved(&mut self, snapshot: &Snapshot, now: Instant) -> Vec<Lane> {
        let others_go = snapshot.lanes.iter().any(|lane| lane.in_flight > 0);
        let mut starved = Vec::new();
        for lane in &snapshot.lanes {
            if lane.waiting == 0 || lane.in_flight > 0 || !others_go {
                self.starving.remove(&lane.lane);
                continue;
            }
            let (since, logged) = self.starving.entry(lane.lane.clone()).or_insert((now, false));
            if !*logged && now.saturating_duration_since(*since) >= STARVED_AFTER {
                *logged = true;
                starved.push(lane.lane.clone());
            }
        }
        starved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dimension::Amounts, snapshot::LaneSnapshot};

    #[test]
    fn a_closing_is_logged_once_and_not_too_often() {
        let (mut seen, start) = (ModelState::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let wait = Some(Duration::from_secs(4));
        assert_eq!(seen.note_open(at(0), at(0)), None, "it was open all along");
        assert_eq!(seen.note_closed(at(0), wait), Some(GateMessage::Closed { unlogged: 0 }));
        assert_eq!(seen.note_closed(at(1), wait), None, "it is closed already");
        let after = Duration::from_secs(4);
        assert_eq!(seen.note_open(at(4), at(4)), Some(GateMessage::Open { after, unlogged: 0 }));
        for second in [6, 8, 10] {
            let next = at(second + 1);
            assert_eq!(
                (seen.note_closed(at(second), wait), seen.note_open(next, next)),
                (None, None)
            );
        }
        assert_eq!(seen.note_closed(at(31), wait), Some(GateMessage::Closed { unlogged: 3 }));
    }

    #[test]
    fn an_admission_from_before_the_closing_opens_nothing() {
        let (mut seen, start) = (ModelState::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(seen.note_closed(at(10), Some(Duration::from_secs(5))).is_some());
        assert_eq!(seen.note_open(at(11), at(9)), None, "it was asked for before the closing");
        let after = Duration::from_secs(5);
        assert_eq!(seen.note_open(at(15), at(15)), Some(GateMessage::Open { after, unlogged: 0 }));
    }

    #[test]
    fn a_closing_that_lasts_longer_than_was_logged_is_logged_at_once() {
        let (mut seen, start) = (ModelState::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut is_logged = |second, wait: Option<u64>| {
            seen.note_closed(at(second), wait.map(Duration::from_secs)).is_some()
        };
        assert!(is_logged(0, Some(2)));
        assert!(!is_logged(1, Some(2)), "hardly longer");
        assert!(is_logged(2, Some(3_600)), "it was closed for two seconds, and is for an hour");
        assert!(!is_logged(4, Some(3_598)), "the end is the same");
        assert!(is_logged(5, None), "an operator has paused it");
        assert!(!is_logged(6, None) && !is_logged(40, Some(300)), "it ends sooner than was logged");
        assert!(seen.note_open(at(41), at(41)).is_some());
        assert!(seen.note_closed(at(42), Some(Duration::from_secs(300))).is_some());
    }

    #[test]
    fn a_fault_of_every_call_is_logged_once_a_minute() {
        let (faults, start) = (Faults::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(faults.take_unlogged(at(0)), Some(0));
        assert!((1..60).all(|second| faults.take_unlogged(at(second)).is_none()));
        assert_eq!(faults.take_unlogged(at(60)), Some(59));
    }

    #[test]
    fn a_lane_starves_while_others_are_served() {
        let lane = |name: &str, waiting, in_flight| LaneSnapshot {
            lane: name.to_owned().try_into().unwrap(),
            share: crate::Share::ALL,
            elsewhere: false,
            waiting,
            queue: Duration::ZERO,
            in_flight,
            used: Amounts::default(),
        };
        let lanes = |waiting, in_flight| Snapshot {
            lanes: vec![lane("batch", waiting, 0), lane("standard", 0, in_flight)],
            ..Snapshot::default()
        };
        let (mut seen, start) = (ModelState::default(), Instant::now());
        let later = start + STARVED_AFTER;
        assert!(seen.take_starved(&lanes(3, 2), start).is_empty(), "not yet");
        assert_eq!(seen.take_starved(&lanes(3, 2), later).len(), 1);
        assert!(seen.take_starved(&lanes(3, 2), later).is_empty(), "it was logged");
        assert!(seen.take_starved(&lanes(0, 2), later).is_empty(), "it is served again");
        assert!(
            seen.take_starved(&lanes(3, 0), later + STARVED_AFTER).is_empty(),
            "no lane is served"
        );
    }
}
