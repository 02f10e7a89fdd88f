//! Changes of state that an operator wants to read of: a gate that closes or opens, and a lane that
//! starves. Each is one line of the log, whatever the number of calls, and a gate that does it again
//! and again says so twice a minute at most.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidegate_types::{Lane, ModelId};
use tracing::{info, warn};

use crate::snapshot::Snapshot;

/// A gate's closings within this time of the last that was told are only counted.
const SELDOM: Duration = Duration::from_secs(30);

/// A fault of a script is one of each call.
const FAULTS: Duration = Duration::from_secs(60);

/// A lane that has waited for so long while others were served is starved.
const STARVED_AFTER: Duration = Duration::from_secs(60);

/// What this process has seen of each model.
#[derive(Debug, Default)]
pub(crate) struct Changes(Mutex<HashMap<ModelId, Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// Since when the gate is closed.
    closed: Option<Instant>,
    /// When its closing was last told.
    told: Option<Instant>,
    /// Closings since that were not.
    untold: u32,
    /// Lanes that wait while others are served: since when, and whether that was told.
    starving: HashMap<Lane, (Instant, bool)>,
}

/// What is to be told of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Closed { untold: u32 },
    Open { after: Duration, untold: u32 },
}

impl Changes {
    /// The gate is closed for `wait`.
    pub(crate) fn closed(&self, model: &ModelId, wait: Duration, reason: &str, exhausted: bool) {
        let told = self.0.lock().entry(model.clone()).or_default().closes(Instant::now());
        if let Some(Told::Closed { untold }) = told {
            let what = if exhausted { "the model is exhausted" } else { "the gate is closed" };
            warn!(%model, reason, times_since_last_told = untold, "{what} for {wait:.1?}; nobody calls before");
        }
    }

    /// A call was admitted, or the gate was seen open.
    pub(crate) fn open(&self, model: &ModelId) {
        let told = self.0.lock().get_mut(model).and_then(|seen| seen.opens(Instant::now()));
        if let Some(Told::Open { after, untold }) = told {
            info!(%model, times_since_last_told = untold, "the gate is open again after {after:.1?}");
        }
    }

    /// What the store says of the model.
    pub(crate) fn seen(&self, model: &ModelId, snapshot: &Snapshot) {
        if snapshot.exhausted || !snapshot.pause.is_zero() {
            return self.closed(model, snapshot.pause, &snapshot.reason, snapshot.exhausted);
        }
        self.open(model);
        let starved = {
            let mut all = self.0.lock();
            all.entry(model.clone()).or_default().starved(snapshot, Instant::now())
        };
        for lane in starved {
            warn!(%model, %lane, "this lane has waited for {STARVED_AFTER:?} while others were served; its share may be too small for its largest call");
        }
    }
}

/// Faults of the scripts: of each that is told, those within a minute of it are only counted.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<(Option<Instant>, u32)>);

impl Faults {
    /// How many were not told since the last that was, if this one is told.
    pub(crate) fn tells(&self, now: Instant) -> Option<u32> {
        let mut faults = self.0.lock();
        if faults.0.is_some_and(|told| now.saturating_duration_since(told) < FAULTS) {
            faults.1 += 1;
            return None;
        }
        faults.0 = Some(now);
        Some(std::mem::take(&mut faults.1))
    }
}

impl Seen {
    fn closes(&mut self, now: Instant) -> Option<Told> {
        if self.closed.replace(self.closed.unwrap_or(now)).is_some() {
            return None;
        }
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < SELDOM) {
            self.untold += 1;
            return None;
        }
        self.told = Some(now);
        Some(Told::Closed { untold: std::mem::take(&mut self.untold) })
    }

    /// Told where the closing was.
    fn opens(&mut self, now: Instant) -> Option<Told> {
        let closed = self.closed.take()?;
        let was_told = self.told.is_some_and(|told| told >= closed);
        let (after, untold) = (now.saturating_duration_since(closed), self.untold);
        was_told.then_some(Told::Open { after, untold })
    }

    /// Lanes that have just been found to starve.
    fn starved(&mut self, snapshot: &Snapshot, now: Instant) -> Vec<Lane> {
        let others_go = snapshot.lanes.iter().any(|lane| lane.in_flight > 0);
        let mut starved = Vec::new();
        for lane in &snapshot.lanes {
            if lane.waiting == 0 || lane.in_flight > 0 || !others_go {
                self.starving.remove(&lane.lane);
                continue;
            }
            let (since, told) = self.starving.entry(lane.lane.clone()).or_insert((now, false));
            if !*told && now.saturating_duration_since(*since) >= STARVED_AFTER {
                *told = true;
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
    fn a_gate_is_told_of_once_and_not_too_often() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(seen.opens(at(0)), None, "it was open all along");
        assert_eq!(seen.closes(at(0)), Some(Told::Closed { untold: 0 }));
        assert_eq!(seen.closes(at(1)), None, "it is closed already");
        let after = Duration::from_secs(4);
        assert_eq!(seen.opens(at(4)), Some(Told::Open { after, untold: 0 }));
        for second in [6, 8, 10] {
            assert_eq!((seen.closes(at(second)), seen.opens(at(second + 1))), (None, None));
        }
        assert_eq!(seen.closes(at(31)), Some(Told::Closed { untold: 3 }));
    }

    #[test]
    fn a_fault_of_every_call_is_told_once_a_minute() {
        let (faults, start) = (Faults::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(faults.tells(at(0)), Some(0));
        assert!((1..60).all(|second| faults.tells(at(second)).is_none()));
        assert_eq!(faults.tells(at(60)), Some(59));
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
        let (mut seen, start) = (Seen::default(), Instant::now());
        let later = start + STARVED_AFTER;
        assert!(seen.starved(&lanes(3, 2), start).is_empty(), "not yet");
        assert_eq!(seen.starved(&lanes(3, 2), later).len(), 1);
        assert!(seen.starved(&lanes(3, 2), later).is_empty(), "it was told");
        assert!(seen.starved(&lanes(0, 2), later).is_empty(), "it is served again");
        assert!(seen.starved(&lanes(3, 0), later + STARVED_AFTER).is_empty(), "nobody is served");
    }
}
