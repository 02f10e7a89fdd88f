//! An admitted call.

use std::{sync::Arc, time::Duration};

use tidegate_types::{Lane, Usage};

use crate::{
    dimension::Amounts,
    in_flight::{Backend, Mark},
    metrics,
    model::ModelQuota,
    shared::Shared,
    store::{Meter, Pause, ProviderSignal, Settlement, Store as _, UsageSample},
};

/// Permission for one provider call. Settle it with the use of the call.
///
/// * Dropped before [`Self::sent`]: released, nothing was used.
/// * Dropped after it: the reservation stays charged until it leaves the window, because the
///   provider may have done the work. The call is no longer in flight.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    pub(crate) shared: Arc<Shared>,
    pub(crate) model: Arc<ModelQuota>,
    pub(crate) backend: Backend,
    pub(crate) reservation: String,
    pub(crate) reserved: Amounts,
    pub(crate) lane: Lane,
    pub(crate) estimated_input: u64,
    pub(crate) max_output_tokens: u64,
    pub(crate) template: u64,
    pub(crate) meter: Meter,
    pub(crate) cached: Option<u64>,
    pub(crate) _renewal: Option<Renewal>,
    pub(crate) _in_flight: Mark,
    pub(crate) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Unsent,
    Sent,
    Settled,
}

impl Permit {
    /// Marks the call as sent. Call this before the request leaves: from then on the provider may
    /// have done the work.
    pub fn sent(&mut self) {
        self.state = State::Sent;
    }

    /// Settles the call with its use. The rest of the reservation is given back, or the excess
    /// becomes a debt.
    pub async fn settle(mut self, usage: &Usage) {
        let sample = UsageSample {
            estimated_input: self.estimated_input,
            input: usage.input(),
            output: usage.output,
        };
        let used = self.model.used(usage, self.max_output_tokens);
        self.cached = (!self.model.charge.cached_input).then_some(usage.cache_read);
        self.end(Some(used), Some(sample), ProviderSignal::None, None).await;
    }

    /// Adds the provider's own count from its response headers. It goes with the settlement and
    /// corrects our count where other programs use the same account.
    pub fn observed(&mut self, meter: Meter) {
        self.meter = meter;
    }

    /// Settles a call that was never sent or was refused without any work: no tokens are charged,
    /// and a request if the provider counts such calls
    /// ([`Charge::failed_calls`](tidegate_types::Charge::failed_calls)).
    pub async fn settle_unused(self) {
        self.unused(ProviderSignal::None, None).await;
    }

    /// Settles a call whose use is unknown (a time-out, a dropped connection): the whole
    /// reservation stays charged, and the call is no longer in flight.
    pub async fn keep_charged(self) {
        let reserved = self.reserved;
        self.end(Some(reserved), None, ProviderSignal::Lost, None).await;
    }

    /// Releases the reservation of a request that never left.
    pub async fn release(self) {
        self.end(None, None, ProviderSignal::None, None).await;
    }

    /// Settles a call that the provider refused for a rate. It is charged as in
    /// [`Self::settle_unused`]. The gate closes for the whole fleet in the same step, for at least
    /// `pause` and at most the gate's time to live. The limits are lowered for a while.
    pub async fn rate_limited(self, pause: Duration, reason: &str) {
        metrics::count_pause(&self.model.id, reason);
        self.unused(
            ProviderSignal::RateLimited,
            Some(Pause { length: pause, reason: reason.to_owned() }),
        )
        .await;
    }

    /// Settles a call that met an overload: the fleet keeps fewer calls in flight for a while, and
    /// the gate stays open.
    pub async fn overloaded(self) {
        self.unused(ProviderSignal::Overloaded, None).await;
    }

    /// Settles a call to a provider that refuses further calls for `wait`: until its day ends, or
    /// until it is worth trying again. The gate closes for the whole fleet until then, or until an
    /// operator opens it.
    pub async fn exhausted(self, wait: Duration, reason: &str) {
        metrics::count_pause(&self.model.id, "exhausted");
        self.unused(
            ProviderSignal::Exhausted,
            Some(Pause { length: wait, reason: reason.to_owned() }),
        )
        .await;
    }

    async fn unused(self, signal: ProviderSignal, pause: Option<Pause>) {
        let used = self.model.unused();
        self.end(Some(used), None, signal, pause).await;
    }

    async fn end(
        mut self,
        used: Option<Amounts>,
        sample: Option<UsageSample>,
        signal: ProviderSignal,
        pause: Option<Pause>,
    ) {
        self.state = State::Settled;
        metrics::record_end(&self.model.id, &self.lane);
        if used.is_some() {
            self.shared.usage_history.record_end(&self.model.id, sample.is_some(), signal);
        }
        let (reservation, meter) = (std::mem::take(&mut self.reservation), self.meter);
        let (template, cached) = (self.template, self.cached);
        let settlement =
            Settlement { reservation, used, sample, template, signal, pause, meter, cached };
        self.shared.settle(&self.model, self.backend, &settlement).await;
    }
}

/// Renews the lease of a call that outlives the window, as long as its permit lives.
#[derive(Debug)]
pub(crate) struct Renewal(tokio::task::JoinHandle<()>);

impl Renewal {
    pub(crate) fn start(shared: &Arc<Shared>, model: &Arc<ModelQuota>, reservation: &str) -> Self {
        let (shared, model, reservation) =
            (Arc::clone(shared), Arc::clone(model), reservation.to_owned());
        Self(tokio::spawn(async move {
            // The lease begins at the admission and is at least half a window longer than the
            // window. The first renewal comes between their ends.
            let (window, lease) = (model.limits.window, model.limits.lease());
            tokio::time::sleep(window + (lease - window) / 4).await;
            loop {
                if let Some(redis) = &shared.redis {
                    // The next renewal makes up for a lost one.
                    let _ = redis.renew(&model, &reservation).await;
                }
                tokio::time::sleep(lease / 3).await;
            }
        }))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.state == State::Settled {
            return;
        }
        metrics::record_end(&self.model.id, &self.lane);
        // Outside a runtime no request can be sent; the reservation then leaves the window by
        // itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (shared, model, backend) =
                (Arc::clone(&self.shared), Arc::clone(&self.model), self.backend);
            let reservation = std::mem::take(&mut self.reservation);
            let settlement = match self.state {
                State::Sent => Settlement {
                    signal: ProviderSignal::Lost,
                    ..Settlement::used(reservation, self.reserved)
                },
                State::Unsent | State::Settled => Settlement::released(reservation),
            };
            let settlement = Settlement { template: self.template, ..settlement };
            runtime.spawn(async move { shared.settle(&model, backend, &settlement).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_types::Charge;

    use super::*;
    use crate::{Dimension, Lanes, Limits, Options, Quota, Request};

    /// Requests and tokens in the window after a call for which the provider did no work.
    async fn used_after(charge: Charge, end: impl AsyncFnOnce(Permit)) -> [u64; 2] {
        let id = "test:model".parse().unwrap();
        let limits =
            Limits::default().with(Dimension::Requests, 10).with(Dimension::Combined, 1_000);
        let model = ModelQuota::new(id, limits, charge, Arc::new(Lanes::single())).unwrap();
        let (id, quota) = (model.id.clone(), Quota::in_memory([model], Options::default()));
        let mut permit =
            quota.admit(&Request::new(id.clone(), "a").tokens(100, 100)).await.unwrap();
        permit.sent();
        end(permit).await;
        let used = quota.inspect(&id).await.unwrap().used();
        [used.requests, used.combined]
    }

    #[tokio::test]
    async fn cached_input_is_not_reserved_where_it_does_not_count() {
        for (cached_input, expected) in [(false, 200..210), (true, 1_000..1_001)] {
            let id = "test:model".parse().unwrap();
            let limits = Limits::default().with(Dimension::Input, 10_000_000);
            let charge = Charge { cached_input, ..Charge::default() };
            let model = ModelQuota::new(id, limits, charge, Arc::new(Lanes::single())).unwrap();
            let (id, quota) = (model.id.clone(), Quota::in_memory([model], Options::default()));
            let used = async || quota.inspect(&id).await.unwrap().used().input;
            let admit = async |name: String| {
                quota.admit(&Request::new(id.clone(), name).tokens(1_000, 10)).await.unwrap()
            };
            let usage =
                Usage { uncached_input: 200, cache_read: 800, output: 10, ..Usage::default() };
            for round in 0..10 {
                let mut permit = admit(round.to_string()).await;
                permit.sent();
                permit.settle(&usage).await;
            }
            let before = used().await;
            let _permit = admit("next".to_owned()).await;
            let reserved = used().await - before;
            assert!(expected.contains(&reserved), "{reserved}");
        }
    }

    #[tokio::test]
    async fn whether_a_failed_call_counts_as_a_request_is_the_providers_rule() {
        const WAIT: Duration = Duration::from_secs(1);
        for failed_calls in [true, false] {
            let charge = Charge { failed_calls, ..Charge::default() };
            let expected = [u64::from(failed_calls), 0];
            assert_eq!(used_after(charge, Permit::settle_unused).await, expected);
            assert_eq!(used_after(charge, Permit::overloaded).await, expected);
            let refused = async |permit: Permit| permit.rate_limited(WAIT, "429").await;
            assert_eq!(used_after(charge, refused).await, expected);
            let exhausted = async |permit: Permit| permit.exhausted(WAIT, "spent").await;
            assert_eq!(used_after(charge, exhausted).await, expected);
        }
    }
}
