//! What is known of a provider, folded: it is kept beside the plan, as JSON of about a kilobyte.

use serde::{Deserialize, Serialize};

use super::Configured;
use crate::{
    dimension::{Change, Dimension, Limited, PerDimension, PerLimit},
    number::whole,
    numbers::Numbers,
    plan::{Plan, Reasoned, Why},
    snapshot::Snapshot,
    store::LimitChanges,
};

/// What is known of a provider, and what operators have set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Known {
    pub(super) each: PerDimension<One>,
    /// When the policy ran last.
    pub(super) at: f64,
    /// Whether an answer has told what estimates are worth.
    pub(super) proven: bool,
    /// Since when rates and capacities are such parts of the limits.
    pub(super) since: f64,
    pub(super) parts: PerDimension<[f64; 2]>,
    /// Limits that operators have set, as they were set; 0 for none.
    set: PerLimit<u64>,
}

/// The same of one dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct One {
    /// The limit that this was learned of: another one begins anew.
    pub(super) configured: f64,
    /// A lower limit that the provider stated, times the margin, and when.
    pub(super) stated: Option<(f64, f64)>,
    /// By how much of the limit the rate is lowered.
    pub(super) lowered: f64,
    /// Most that was drawn without a refusal.
    pub(super) went_well: f64,
    /// When the policy looked, and what was drawn then: it went well if nothing is refused soon.
    pub(super) looked: (f64, f64),
    /// Least that was drawn when a call was refused as too deep.
    pub(super) too_deep: Option<f64>,
    /// When a refusal taught something last.
    pub(super) latest: f64,
    /// First and last refusal of an episode, and what was spent then.
    pub(super) refused: Option<[(f64, f64); 2]>,
    /// Readings of a meter that came back evenly; below zero once one did not.
    pub(super) even: f64,
    /// Part of the limit that the meter does not show when it is full, for its bucket is less deep than
    /// a minute.
    pub(super) missing: f64,
    /// Whether a meter has told anything.
    pub(super) tells: bool,
    /// The latest readings below what we know of.
    pub(super) below: Below,
    /// Use by others, as the meter told it last.
    pub(super) others: f64,
    /// When a lowered rate was restored because the meter showed room, and by how much it was lowered.
    pub(super) restored: Option<(f64, f64)>,
    /// Reasons of the plan's rate, capacity and window.
    pub(super) why: [Why; 3],
}

/// By how much readings of a meter were at least below what we know of, and what is settled of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Below {
    pub(super) all: f64,
    pub(super) settled: f64,
    pub(super) readings: f64,
}

impl Known {
    /// As it is kept; what cannot be read is not known, for nobody else would mend it.
    pub(crate) fn read(kept: &[u8]) -> Self {
        serde_json::from_slice(kept).unwrap_or_default()
    }

    /// To be kept.
    pub(crate) fn keep(&self) -> Vec<u8> {
        // Numbers, lists and names: nothing of it can fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// A process's part of it, while it is alone, by its own clock.
    pub(crate) fn part(
        &self,
        parts: u64,
        configured: &Configured,
        numbers: &Numbers,
        now: f64,
    ) -> Self {
        let part = 1.0 / crate::number::float(parts.max(1));
        let by = now - self.at;
        let mut known = *self;
        known.move_by(by);
        known.each = known.each.map(|one| One {
            configured: one.configured * part,
            stated: one.stated.map(|(limit, at)| (limit * part, at)),
            went_well: one.went_well * part,
            looked: (0.0, 0.0),
            too_deep: one.too_deep.map(|depth| depth * part),
            refused: None,
            below: Below::default(),
            others: one.others * part,
            ..one
        });
        let share = |set: u64| if set > 0 { (set / parts.max(1)).max(1) } else { 0 };
        (known.at, known.set) = (now, self.set.map(share));
        for it in Dimension::ALL {
            if known.each[it].configured > 0.0 {
                let limit = known.limit(it, configured, numbers);
                known.each[it].configured = limit.map_or(0.0, |limit| limit.value);
            }
        }
        known
    }

    /// Moves every time: what was so long ago still is.
    pub(super) fn move_by(&mut self, by: f64) {
        let moved = |at: f64| if at > 0.0 { at + by } else { 0.0 };
        (self.at, self.since) = (moved(self.at), moved(self.since));
        self.each = self.each.map(|one| One {
            stated: one.stated.map(|(limit, at)| (limit, at + by)),
            looked: (moved(one.looked.0), one.looked.1),
            latest: moved(one.latest),
            refused: one.refused.map(|both| both.map(|(at, spent)| (at + by, spent))),
            restored: one.restored.map(|(at, lowered)| (at + by, lowered)),
            ..one
        });
    }

    /// An operator sets limits: who does knows better than what refusals have taught.
    pub(crate) fn set(&mut self, changes: &LimitChanges) {
        for (limited, change) in changes.iter() {
            self.set[limited] = match *change {
                Change::Keep => continue,
                Change::Clear => 0,
                Change::Set(limit) => limit,
            };
            if let Limited::Window(it) = limited {
                (self.each[it].lowered, self.each[it].refused) = (0.0, None);
            }
        }
    }

    /// The limit of a window in force: an operator's before the configured one, the provider's own
    /// if that is lower.
    pub(super) fn limit(
        &self,
        it: Dimension,
        configured: &Configured,
        numbers: &Numbers,
    ) -> Option<Reasoned> {
        let set = crate::number::float(self.set.window[it]);
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
        let set = crate::number::float(self.set.in_flight);
        if set > 0.0 { set } else { configured.concurrent() }
    }

    /// A snapshot with what the plan is, and why.
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
        snapshot.horizon = crate::number::duration(plan.horizon);
        snapshot
    }

    /// The reasons of the plan's rate, capacity and window.
    pub(crate) fn why(&self, it: Dimension) -> [Why; 3] {
        self.each[it].why
    }
}

impl One {
    /// Another limit: what was learned of the one before is over.
    pub(super) fn begin(&mut self, most: f64) {
        if (self.configured - most).abs() >= 1.0 {
            let Self { even, missing, stated, .. } = *self;
            *self = Self { configured: most, even, missing, stated, ..Self::default() };
        }
    }

    /// What the provider states, times the margin, where that is the limit in force.
    fn stated_below(&self, most: f64) -> Option<u64> {
        let (stated, _) = self.stated?;
        (self.why[0] == Why::Stated || self.why[2] == Why::Stated || stated < most)
            .then(|| whole(stated))
    }

    /// Whether the provider's meter has proved to be a bucket's.
    pub(super) fn is_even(&self, numbers: &Numbers) -> bool {
        self.even >= numbers.even
    }

    /// What was drawn a while ago went well, for nothing was refused since.
    pub(super) fn look(&mut self, peak: f64, now: f64, numbers: &Numbers) {
        let (at, seen) = self.looked;
        if now >= at + numbers.quiet {
            self.went_well = self.went_well.max(seen);
            self.looked = (now, peak);
        } else if at <= 0.0 {
            self.looked = (now, peak);
        }
    }
}
