//! The gate. While it is closed no call is admitted. After a refusal one probe call goes first.

use super::{
    Mechanism,
    state::{CloseReason, Gate},
};
use crate::{
    conversions::micros,
    numbers::Numbers,
    store::{Hold, Pause},
};

impl Mechanism {
    /// Closes the gate, never for less time than before. Returns the time for which it is closed.
    pub(crate) fn close_gate(&mut self, pause: &Pause, longest: f64, closed: CloseReason) -> f64 {
        let until = self.at + micros(pause.length).min(longest);
        let before = self.gate.as_ref().map_or(0.0, |gate| gate.until);
        if until > before {
            self.gate = Some(Gate { until, closed, probe: None, reason: pause.reason.clone() });
        }
        self.closed_for()
    }

    /// Opens the gate.
    pub(crate) fn open_gate(&mut self) {
        self.gate = None;
    }

    /// Time for which the gate is closed.
    pub(crate) fn closed_for(&self) -> f64 {
        self.gate.as_ref().map_or(0.0, |gate| (gate.until - self.at).max(0.0))
    }

    /// Time for which the gate is closed because the day's quota or the account's money is spent.
    pub(super) fn exhausted_for(&self) -> Option<f64> {
        let gate = self.gate.as_ref().filter(|gate| gate.closed == CloseReason::Exhausted)?;
        (gate.until > self.at).then_some(gate.until - self.at)
    }

    /// Time for which the gate or its probe holds all calls. Opens the gate if that is over.
    pub(super) fn closed_hold(&mut self, numbers: &Numbers) -> Option<(f64, Hold)> {
        let gate = self.gate.as_ref()?;
        if self.at < gate.until {
            return Some((gate.until - self.at, Hold::Gate));
        }
        let judged = gate.probe.map(|probe| probe + numbers.quiet);
        if gate.closed != CloseReason::Refused || judged.is_some_and(|judged| self.at >= judged) {
            self.gate = None;
            return None;
        }
        judged.map(|judged| (judged - self.at, Hold::Probe))
    }

    /// Marks an admitted call as the probe. Returns false if the gate is open.
    pub(super) fn mark_probe(&mut self) -> bool {
        let at = self.at;
        self.gate.as_mut().map(|gate| gate.probe = Some(at)).is_some()
    }

    /// Opens the gate after an accepted probe, unless it was closed again.
    pub(super) fn end_probe(&mut self) {
        self.gate = self.gate.take().filter(|gate| self.at < gate.until);
    }
}
