//! The policy's knowledge of a provider, stored beside the plan as about a kilobyte of JSON.

use serde::{Deserialize, Serialize};

use super::Configured;
use crate::{
    conversions::{duration, float, whole},
    dimension::{Change, Dimension, Limited, PerDimension, PerLimit},
    numbers::Numbers,
    plan::{Plan, Reasoned, Why},
    snapshot::Snapshot,
    store::LimitChanges,
};

/// The policy's knowledge of a provider, and the limits set by operators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Known {
    pub(super) each: PerDimension<KnownDimension>,
    /// Time of the policy's last run.
    pub(super) at: f64,
    /// Whether an answer has checked the estimates.
    pub(super) proven: bool,
    /// Time since which rates and capacities are these parts of the limits.
    pub(super) since: f64,
    pub(super) parts: PerDimension<[f64; 2]>,
    /// Limits set by operators; 0 for none.
    set: PerLimit<u64>,
}

/// The policy's knowledge of one dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KnownDimension {
    /// The limit for which this was learned: another limit begins anew.
    pub(super) configured: f64,
    /// A lower limit stated by the provider, times the margin, and the time of the statement.
    pub(super) stated: Option<(f64, f64)>,
    /// The part of the limit by which the rate is lowered.
    pub(super) lowered: f64,
    /// The most drawn without a refusal.
    pub(super) safe_depth: f64,
    /// Time of the policy's last look, and the amount drawn then: it went well if no refusal
    /// follows soon.
    pub(super) last_look: (f64, f64),
    /// The least drawn at a refusal for depth.
    pub(super) refused_depth: Option<f64>,
    /// Time of the last refusal that taught something.
    pub(super) last_refusal: f64,
    /// Time and total spent at the first and last refusal of an episode.
    pub(super) refusal_episode: Option<[(f64, f64); 2]>,
    /// Readings of a meter that refilled evenly; below zero after one that did not.
    pub(super) even_readings: f64,
    /// The part of the limit that a full meter does not show, because its bucket is less deep than
    /// a minute.
    pub(super) hidden_part: f64,
    /// Whether a meter was ever read.
    pub(super) has_meter: bool,
    /// The latest readings below our own count.
    pub(super) below: Below,
    /// Use by others at the last reading.
    pub(super) others: f64,
    /// Time when a lowered rate was restored because the meter showed room, and the amount by which
    /// it had been lowered.
    pub(super) restored: Option<(f64, f64)>,
    /// Reasons of the plan's rate, capacity and window.
    pub(super) why: [Why; 3],
}

/// Minimum by which readings of a meter were below our own count: of all use, and of settled use
/// only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Below {
    pub(super) all: f64,
    pub(super) settled: f64,
    pub(super) readings: f64,
}

impl Known {
    /// Reads the stored JSON. Unreadable JSON counts as no knowledge, because no other program
    /// would repair it.
    pub(crate) fn from_json(json: &[u8]) -> Self {
        serde_json::from_slice(json).unwrap_or_default()
    }

    /// Writes the JSON to store.
    pub(crate) fn encode_json(&self) -> Vec<u8> {
        // Numbers, lists and names: writing cannot fail.
        serde_json::to_vec(&self).unwrap_or_default()
    }

    /// The knowledge for a process's own share of the quota, on its own clock.
    pub(crate) fn share(
        &self,
        parts: u64,
        configured: &Configured,
        numbers: &Numbers,
        now: f64,
    ) -> Self {
        let part = 1.0 / float(parts.max(1));
        let by = now - self.at;
        let mut known = *self;
        known.move_by(by);
        known.each = known.each.map(|one| KnownDimension {
            configured: one.configured * part,
            stated: one.stated.map(|(limit, at)| (limit * part, at)),
            safe_depth: one.safe_depth * part,
            last_look: (0.0, 0.0),
            refused_depth: one.refused_depth.map(|depth| depth * part),
            refusal_episode: None,
            below: Below::default(),
            others: one.others * part,
            ..one
        });
        let share_of = |set: u64| if set > 0 { (set / parts.max(1)).max(1) } else { 0 };
        (known.at, known.set) = (now, self.set.map(share_of));
        for it in Dimension::ALL {
            if known.each[it].configured > 0.0 {
                let limit = known.limit(it, configured, numbers);
                known.each[it].configured = limit.map_or(0.0, |limit| limit.value);
            }
        }
        known
    }

    /// Moves every time, so that ages stay the same.
    pub(super) fn move_by(&mut self, by: f64) {
        let moved = |at: f64| if at > 0.0 { at + by } else { 0.0 };
        (self.at, self.since) = (moved(self.at), moved(self.since));
        self.each = self.each.map(|one| KnownDimension {
            stated: one.stated.map(|(limit, at)| (limit, at + by)),
            last_look: (moved(one.last_look.0), one.last_look.1),
            last_refusal: moved(one.last_refusal),
            refusal_episode: one
                .refusal_episode
                .map(|both| both.map(|(at, spent)| (at + by, spent))),
            restored: one.restored.map(|(at, lowered)| (at + by, lowered)),
            ..one
        });
    }

    /// Sets an operator's limits. They replace the lessons of refusals.
    pub(crate) fn set_limits(&mut self, changes: &LimitChanges) {
        for (limited, change) in changes.iter() {
            self.set[limited] = match *change {
                Change::Keep => continue,
                Change::Clear => 0,
                Change::Set(limit) => limit,
            };
            if let Limited::Window(it) = limited {
                (self.each[it].lowered, self.each[it].refusal_episode) = (0.0, None);
            }
        }
    }

    /// The limit of a window in force: an operator's before the configured one, or the provider's
    /// own if it is lower.
    pub(super) fn limit(
        &self,
        it: Dimension,
        configured: &Configured,
        numbers: &Numbers,
    ) -> Option<Reasoned> {
        let set = float(self.set.window[it]);
        let (stated, why) =
            if set > 0.0 { (set, Why::Set) } else { (configured.limit(it), Why::Configured) };
        if stated <= 0.0 {
            return None;
        }
        let limit = Reasoned::new(configured.with_margin(stated), why);
        let told = self.each[it].stated.filter(|(_, at)| self.at - at < numbers.episode);
        Some(told.map_or(limit, |(told, _)| limit.min(Reasoned::new(told, Why::Stated))))
    }

    pub(super) fn concurrent(&self, configured: &Configured) -> f64 {
        let set = float(self.set.in_flight);
        if set > 0.0 { set } else { configured.concurrent() }
    }

    /// Adds the plan and its reasons to a snapshot.
    pub(crate) fn explain(&self, mut snapshot: Snapshot, plan: &Plan) -> Snapshot {
        snapshot.factor = 1.0;
        for it in Dimension::ALL {
            let (one, set) = (&self.each[it], self.set.window[it]);
            let seen = &mut snapshot.dimensions[it];
            seen.set = (set > 0).then_some(set);
            let Some(allowance) = plan.limits[it] else { continue };
            seen.limit = whole(allowance.most * (1.0 - one.lowered));
            seen.others = whole(one.others.ceil());
            seen.stated = one.stated_below(allowance.most);
            seen.plan = Some(allowance);
            snapshot.factor = snapshot.factor.min(1.0 - one.lowered);
        }
        let set = self.set.in_flight;
        snapshot.in_flight.set = (set > 0).then_some(set);
        snapshot.horizon = duration(plan.horizon);
        snapshot
    }

    /// The reasons of the plan's rate, capacity and window.
    pub(crate) fn reasons(&self, it: Dimension) -> [Why; 3] {
        self.each[it].why
    }
}

impl KnownDimension {
    /// Forgets the lessons of another limit.
    pub(super) fn begin_limit(&mut self, most: f64) {
        if (self.configured - most).abs() >= 1.0 {
            let Self { even_readings, hidden_part, stated, .. } = *self;
            *self =
                Self { configured: most, even_readings, hidden_part, stated, ..Self::default() };
        }
    }

    /// The limit stated by the provider, times the margin, if it is in force.
    fn stated_below(&self, most: f64) -> Option<u64> {
        let (stated, _) = self.stated?;
        (self.why[0] == Why::Stated || self.why[2] == Why::Stated || stated < most)
            .then(|| whole(stated))
    }

    /// Whether the provider's meter has proved to be a bucket.
    pub(super) fn is_even(&self, numbers: &Numbers) -> bool {
        self.even_readings >= numbers.even
    }

    /// Records the maximum drawn since the last run, 0 if no call was admitted. An amount drawn a
    /// while ago went well if nothing was refused since.
    pub(super) fn observe_peak(&mut self, peak: f64, now: f64, numbers: &Numbers) {
        let (at, seen) = self.last_look;
        let is_past = now >= at + numbers.quiet;
        if is_past {
            self.safe_depth = self.safe_depth.max(seen);
        }
        if at <= 0.0 || is_past && peak > 0.0 {
            self.last_look = (now, peak);
        }
    }
}
