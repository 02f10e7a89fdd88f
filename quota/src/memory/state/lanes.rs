//! Guaranteed shares, borrowing and giving back: `lua/include/lanes.lua`.

use super::{LaneState, State};
use crate::{
    dimension::{Dimension, PerDimension, PerLimit},
    lanes::Share,
    model::ModelQuota,
};

const STANDBY: f64 = 0.02;

/// What a lane may use.
#[derive(Default)]
pub(super) struct Capacity {
    pub(super) now: PerLimit<f64>,
    /// While the others' use stays as it is.
    pub(super) usual: PerLimit<f64>,
}

impl State {
    pub(super) fn capacity(
        &self,
        model: &ModelQuota,
        lane: usize,
        limits: &PerLimit<f64>,
        amounts: &PerLimit<f64>,
        now: f64,
    ) -> Capacity {
        let own = model.lanes.at(lane);
        let mut capacity = Capacity::default();
        for (limited, limit) in limits.iter().filter(|(_, limit)| **limit > 0.0) {
            let (mut kept, mut kept_usually) = (0.0, 0.0);
            for (share, state) in self.others(model, lane, now) {
                let guaranteed = share.guaranteed * limit;
                let usually = guaranteed.min(state.used[limited] + STANDBY * limit);
                kept += if state.backlogged(now) { guaranteed } else { usually };
                kept_usually += usually;
            }
            let left = |kept: f64| {
                let guaranteed = (own.guaranteed * limit).max(limit - kept);
                (own.ceiling * limit).min(guaranteed).max(amounts[limited])
            };
            capacity.now[limited] = left(kept);
            capacity.usual[limited] = left(kept_usually);
        }
        capacity
    }

    /// The part of each limit that is left for lanes that were seen lately, of what they are
    /// guaranteed and do not use. Without a lane that for lanes in which nobody waits.
    pub(super) fn kept_for_others(
        &self,
        model: &ModelQuota,
        lane: Option<usize>,
        limits: &PerDimension<f64>,
        now: f64,
    ) -> PerDimension<f64> {
        let mut kept = PerDimension::default();
        let stands = |it: usize, state: &LaneState| {
            Some(it) != lane && state.about(now) && (lane.is_some() || state.waiting == 0)
        };
        let lanes = model.lanes.iter().map(|(_, share)| share.guaranteed).zip(&self.lanes);
        for (share, state) in
            lanes.enumerate().filter(|(it, (_, state))| stands(*it, state)).map(|(_, lane)| lane)
        {
            for (it, limit) in limits.iter().filter(|(_, limit)| **limit > 0.0) {
                kept[it] += (share - state.used.window[it] / limit).max(0.0);
            }
        }
        kept
    }

    /// The other lanes that were seen lately.
    fn others<'a>(
        &'a self,
        model: &'a ModelQuota,
        lane: usize,
        now: f64,
    ) -> impl Iterator<Item = (Share, &'a LaneState)> {
        let lanes = model.lanes.iter().map(|(_, share)| *share).zip(&self.lanes).enumerate();
        let others = lanes.filter(move |(other, (_, state))| *other != lane && state.about(now));
        others.map(|(_, other)| other)
    }

    /// Whether a lane above its share is in company: then it leaves what is kept, and the pace's
    /// tolerance, to the others.
    pub(super) fn borrows_in_company(
        &self,
        model: &ModelQuota,
        lane: usize,
        limits: &PerDimension<f64>,
        now: f64,
    ) -> bool {
        let (guaranteed, used) = (model.lanes.at(lane).guaranteed, &self.lanes[lane].used.window);
        let above = |(dimension, limit): (Dimension, &f64)| {
            *limit > 0.0 && used[dimension] > guaranteed * limit
        };
        let mut others = self.lanes.iter().enumerate().filter(|(other, _)| *other != lane);
        limits.iter().any(above) && others.any(|(_, state)| state.about(now))
    }
}
