//! The gate: while it is closed no call is admitted. After a refusal one call goes first.

use super::{
    Mechanism,
    kept::{Closed, Gate},
};
use crate::{
    numbers::Numbers,
    store::{Hold, Pause},
};

impl Mechanism {
    /// Closes the gate, never for less than it was. How long it is closed.
    pub(crate) fn close(&mut self, pause: &Pause, longest: f64, closed: Closed) -> f64 {
        let until = self.at + crate::number::micros(pause.length).min(longest);
        let before = self.gate.as_ref().map_or(0.0, |gate| gate.until);
        if until > before {
            self.gate = Some(Gate { until, closed, probe: None, reason: pause.reason.clone() });
        }
        self.closed_for()
    }

    /// Opens the gate.
    pub(crate) fn open(&mut self) {
        self.gate = None;
    }

    /// How long the gate is closed.
    pub(crate) fn closed_for(&self) -> f64 {
        self.gate.as_ref().map_or(0.0, |gate| (gate.until - self.at).max(0.0))
    }

    /// How long nothing goes, because the day's quota or the account's money is spent.
    pub(super) fn exhausted_for(&self) -> Option<f64> {
        let gate = self.gate.as_ref().filter(|gate| gate.closed == Closed::Exhausted)?;
        (gate.until > self.at).then_some(gate.until - self.at)
    }

    /// How long the gate holds everybody; it is dropped when that is over.
    pub(super) fn shut(&mut self, numbers: &Numbers) -> Option<(f64, Hold)> {
        let gate = self.gate.as_ref()?;
        if self.at < gate.until {
            return Some((gate.until - self.at, Hold::Gate));
        }
        let judged = gate.probe.map(|probe| probe + numbers.quiet);
        if gate.closed != Closed::Refused || judged.is_some_and(|judged| self.at >= judged) {
            self.gate = None;
            return None;
        }
        judged.map(|judged| (judged - self.at, Hold::Probe))
    }

    /// A call goes: whether it is the one that goes first.
    pub(super) fn goes_first(&mut self) -> bool {
        let at = self.at;
        self.gate.as_mut().map(|gate| gate.probe = Some(at)).is_some()
    }

    /// The call that went first was taken.
    pub(super) fn taken(&mut self) {
        self.gate = self.gate.take().filter(|gate| self.at < gate.until);
    }
}
