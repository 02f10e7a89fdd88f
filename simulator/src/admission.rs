//! One call in the ledger, from its arrival until its answer, or until its caller leaves.

use std::{sync::Arc, time::Duration};

use crate::{
    amounts::Amounts,
    call::Call,
    fault::FaultKind,
    ledger::ModelLedger,
    limiter::{LimitStatus, Refusal},
    state::State,
};

/// Whatever becomes of the call, dropping this leaves the ledger right.
#[derive(Debug)]
pub(crate) struct Admission {
    state: Arc<State>,
    pub(crate) call: Call,
    output: u64,
    admitted: Option<Duration>,
    accounted: bool,
}

impl Admission {
    /// A call has arrived whose answer will have so many tokens; `None` for one model name too
    /// many.
    pub(crate) fn arrive(state: &Arc<State>, mut call: Call, output: u64) -> Option<Self> {
        call.prefixes.retain(|prefix| prefix.tokens >= state.config.cache_min_tokens);
        call.cache_read = state.cache().longest(&call.model, &call.prefixes, state.now());
        let asked_for = call
            .prefixes
            .iter()
            .filter(|prefix| prefix.asked_for)
            .map(|prefix| prefix.tokens)
            .max();
        call.cache_written = asked_for.unwrap_or(0).saturating_sub(call.cache_read);
        let mut ledger = state.ledger();
        ledger.open(&call.model, state.config.limits(&call.model))?.arrived();
        drop(ledger);
        Some(Self { state: Arc::clone(state), call, output, admitted: None, accounted: false })
    }

    /// Asks the limits.
    pub(crate) fn admit(&mut self) -> Result<(), Refusal> {
        let (state, output) = (Arc::clone(&self.state), self.output);
        let mut ledger = state.ledger();
        // The clock is read under the lock, so that the ledger's times never run backwards.
        let now = state.now();
        let Some(model) = ledger.model(&self.call.model) else { return Ok(()) };
        if let Err(refusal) = model.limiter.admit(now, &self.call, output) {
            model.refused(refusal.dimension);
            self.accounted = true;
            return Err(refusal);
        }
        let at_once = if model.limiter.counts_late() { 0 } else { output };
        model.admitted(now, &Amounts::call(self.call.counted_input(), at_once));
        model.cached(self.call.cache_read, self.call.cache_written);
        self.admitted = Some(now);
        Ok(())
    }

    /// The call meets a fault.
    pub(crate) fn fault(&mut self, kind: FaultKind) {
        self.accounted = true;
        if let Some(model) = self.state.ledger().model(&self.call.model) {
            model.faulted(kind);
        }
    }

    /// The call is answered whole.
    pub(crate) fn answered(&mut self) {
        self.accounted = true;
        let mut ledger = self.state.ledger();
        ledger.answered(self.call.hash);
        if let Some(model) = ledger.model(&self.call.model) {
            model.ok();
        }
    }

    /// The work is done: what was held beyond it is given back, what was not yet counted is.
    pub(crate) fn complete(&mut self) {
        let state = Arc::clone(&self.state);
        if !self.call.prefixes.is_empty() {
            state.cache().write(&self.call.model, &self.call.prefixes, state.now());
        }
        if let Some(model) = state.ledger().model(&self.call.model) {
            self.settle(model);
        }
    }

    fn settle(&mut self, model: &mut ModelLedger) {
        let Some(admitted) = self.admitted.take() else { return };
        let now = self.state.now();
        model.limiter.complete(now, admitted, &self.call, self.output);
        if model.limiter.counts_late() {
            model.admitted(now, &Amounts::late_output(self.output));
        }
    }

    /// Time passes while the call is at work.
    pub(crate) async fn wait(&self, duration: Duration) {
        self.state.sleep(duration).await;
    }

    /// The numbers that the vendor's headers state.
    pub(crate) fn statuses(&self) -> Vec<LimitStatus> {
        let mut ledger = self.state.ledger();
        let now = self.state.now();
        ledger.model(&self.call.model).map(|model| model.limiter.statuses(now)).unwrap_or_default()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let state = Arc::clone(&self.state);
        if let Some(model) = state.ledger().model(&self.call.model) {
            self.settle(model);
            if !self.accounted {
                model.abandoned();
            }
            model.left();
        }
    }
}
