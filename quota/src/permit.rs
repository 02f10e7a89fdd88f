//! An admitted call.

use std::{sync::Arc, time::Duration};

use tidegate_types::{Lane, Usage};

use crate::{
    limits::ModelQuota,
    metrics,
    quota::{Backend, Shared},
    store::{Lesson, Pause, Settlement},
};

/// Leave for one provider call. Settle it with what the call used.
///
/// * Dropped before [`Self::sent`]: given back, nothing was used.
/// * Dropped after it: stays charged until it leaves the window, because the provider may have done the work.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    pub(crate) shared: Arc<Shared>,
    pub(crate) model: Arc<ModelQuota>,
    pub(crate) backend: Backend,
    pub(crate) reservation: String,
    pub(crate) lane: Lane,
    pub(crate) estimated_input: u64,
    pub(crate) max_output_tokens: u64,
    pub(crate) template: u64,
    pub(crate) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Unsent,
    Sent,
    Settled,
}

impl Permit {
    /// The request is about to leave: from here on the provider may have done the work.
    pub fn sent(&mut self) {
        self.state = State::Sent;
    }

    /// The call is over and used this much. The rest of the reservation is given back, or the excess becomes a debt.
    pub async fn settle(self, usage: &Usage) {
        let lesson = Lesson { estimated_input: self.estimated_input, input: usage.input(), output: usage.output };
        let used = self.model.charge.used(usage, self.max_output_tokens);
        self.end(Some(used), Some(lesson), None).await;
    }

    /// The request was never sent, or the provider refused it without doing any work but counts the request.
    pub async fn settle_unused(self) {
        let used = self.model.charge.amounts(0, 0);
        self.end(Some(used), None, None).await;
    }

    /// Nobody knows what the call used (a time-out, a dropped connection): everything reserved stays charged.
    pub fn keep_charged(mut self) {
        self.state = State::Settled;
        metrics::ended(&self.model.id, &self.lane);
    }

    /// The request never left.
    pub async fn release(self) {
        self.end(None, None, None).await;
    }

    /// The provider refused for a limit: the request counts, its tokens do not, and the gate closes for the whole fleet
    /// in the same step, for at least `pause` and at most the gate's time to live.
    pub async fn refused(self, pause: Duration, reason: &str) {
        metrics::paused(&self.model.id, reason);
        let used = self.model.charge.amounts(0, 0);
        self.end(Some(used), None, Some(Pause { length: pause, reason: reason.to_owned() })).await;
    }

    async fn end(mut self, used: Option<crate::Amounts>, lesson: Option<Lesson>, pause: Option<Pause>) {
        self.state = State::Settled;
        metrics::ended(&self.model.id, &self.lane);
        let settlement =
            Settlement { reservation: std::mem::take(&mut self.reservation), used, lesson, template: self.template, pause };
        self.shared.settle(&self.model, self.backend, &settlement).await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.state == State::Settled {
            return;
        }
        metrics::ended(&self.model.id, &self.lane);
        if self.state == State::Sent {
            return;
        }
        // Outside a runtime nothing can be sent; the reservation then leaves the window by itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (shared, model, backend) = (Arc::clone(&self.shared), Arc::clone(&self.model), self.backend);
            let reservation = std::mem::take(&mut self.reservation);
            let settlement = Settlement { reservation, used: None, lesson: None, template: self.template, pause: None };
            runtime.spawn(async move { shared.settle(&model, backend, &settlement).await });
        }
    }
}
