//! Calls that are larger than what their lane is guaranteed: `lua/include/starving.lua`.

use super::{Starving, State, obstacles::Obstacle, reserve::Asked};
use crate::store::Binding;

const GIVES_UP: f64 = 3.0;
const BORROWERS_AFTER: f64 = 3.0;
const ALL_AFTER: f64 = 5.0;
const ASKS_AGAIN: f64 = 0.125;

impl State {
    fn noted(&self, asked: &Asked<'_>) -> Option<Starving> {
        self.starving.filter(|it| asked.now - it.asked_at < GIVES_UP * asked.window)
    }

    /// A call was due and found no room.
    pub(super) fn note_starving(&mut self, asked: &Asked<'_>) {
        let limited = asked.limits.window.iter().filter(|(_, limit)| **limit > 0.0);
        let need = limited.map(|(it, limit)| asked.amounts[it] / limit).fold(0.0, f64::max);
        let lane = asked.ask.lane;
        if need <= asked.model.lanes.at(lane).guaranteed {
            return;
        }
        let asked_at = asked.now;
        match self.noted(asked) {
            Some(it) if it.lane == lane => self.starving = Some(Starving { asked_at, ..it }),
            Some(it) if it.need >= need => {}
            _ => self.starving = Some(Starving { lane, since: asked.now, asked_at, need }),
        }
    }

    /// A call of the lane was admitted.
    pub(super) fn end_starving(&mut self, lane: usize) {
        self.starving = self.starving.filter(|it| it.lane != lane);
    }

    /// How long a call waits that would take what one of another lane has waited for so long.
    pub(super) fn make_room(&self, asked: &Asked<'_>, obstacle: &mut Obstacle) {
        let lane = asked.ask.lane;
        let Some(starving) = self.noted(asked).filter(|it| it.lane != lane) else { return };
        let guaranteed = asked.model.lanes.at(lane).guaranteed;
        let borrows = asked.limits.window.iter().any(|(it, limit)| {
            let used = self.lanes[lane].used.window[it] + asked.amounts[it];
            *limit > 0.0 && used > guaranteed * limit
        });
        let after = if borrows { BORROWERS_AFTER } else { ALL_AFTER };
        if (asked.now - starving.since) / asked.window >= after {
            obstacle.or(ASKS_AGAIN * asked.window, Binding::Turn, 0.0);
        }
    }
}
