//! Admission, call and settlement in one, for programs without Temporal. A call is repeated if the
//! provider had no room.

use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use parking_lot::Mutex;
use tidegate_types::Usage;

use crate::{
    come_back, permit::Permit, quota::Quota, refused::Refused, request::Request,
    snapshot::RATE_LIMITED, store::Meter,
};

/// Maximum number of calls in all to a provider that has no room.
const MAX_CALLS: u32 = 5;

/// The longest pause after a first overload; doubles with each.
const OVERLOADED: Duration = Duration::from_secs(2);

/// Time for which a 429 without a wait closes the gate.
const PAUSE: Duration = Duration::from_secs(10);

/// Time for which a spent account closes the gate if the provider states no end.
const EXHAUSTED: Duration = Duration::from_secs(900);

/// Reports the outcome of a call of [`Quota::run`]. The last report counts; without one, the whole
/// reservation stays charged. Clones report on the same call.
#[derive(Debug, Clone, Default)]
pub struct CallReport(Arc<Mutex<Reported>>);

#[derive(Debug, Clone, Default)]
struct Reported {
    outcome: Outcome,
    meter: Meter,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Outcome {
    #[default]
    Unknown,
    Used(Usage),
    Unused,
    RateLimited(Option<Duration>),
    Overloaded,
    Exhausted(Option<Duration>, String),
}

impl Outcome {
    /// Whether the same call may succeed later.
    fn may_pass(&self) -> bool {
        matches!(self, Self::RateLimited(_) | Self::Overloaded)
    }
}

impl CallReport {
    /// Reports an answer and its use.
    pub fn usage(&self, usage: &Usage) {
        self.set_outcome(Outcome::Used(*usage));
    }

    /// Reports that the provider did no work: the request was rejected as invalid, or never sent.
    pub fn unused(&self) {
        self.set_outcome(Outcome::Unused);
    }

    /// Reports a refusal for a limit that refills (429). The gate closes for the whole fleet for as
    /// long as the provider asks, and the call is repeated when it opens.
    pub fn rate_limited(&self, retry_after: Option<Duration>) {
        self.set_outcome(Outcome::RateLimited(retry_after));
    }

    /// Reports an overload (503, 529): the fleet keeps fewer calls in flight, and the call is
    /// repeated a little later.
    pub fn overloaded(&self) {
        self.set_outcome(Outcome::Overloaded);
    }

    /// Reports that credit or a day's limit is spent: the gate closes for the whole fleet until
    /// then.
    pub fn exhausted(&self, until: Option<Duration>, reason: &str) {
        self.set_outcome(Outcome::Exhausted(until, reason.to_owned()));
    }

    /// Reports the provider's own count from the response headers.
    pub fn observed(&self, meter: Meter) {
        self.0.lock().meter = meter;
    }

    fn set_outcome(&self, outcome: Outcome) {
        self.0.lock().outcome = outcome;
    }

    async fn settle(&self, mut permit: Permit) -> Outcome {
        let Reported { outcome, meter } = self.0.lock().clone();
        permit.observed(meter);
        match &outcome {
            Outcome::Unknown => permit.keep_charged().await,
            Outcome::Used(usage) => permit.settle(usage).await,
            Outcome::Unused => permit.settle_unused().await,
            Outcome::RateLimited(wait) => {
                permit.rate_limited(wait.unwrap_or(PAUSE), RATE_LIMITED).await;
            }
            Outcome::Overloaded => permit.overloaded().await,
            Outcome::Exhausted(until, reason) => {
                permit.exhausted(until.unwrap_or(EXHAUSTED), reason).await;
            }
        }
        outcome
    }
}

/// The reason why [`Quota::run`] has no result.
#[derive(Debug, thiserror::Error)]
pub enum Stopped<E> {
    /// The call cannot be admitted after any wait. No call was made, except those that the provider
    /// refused.
    #[error(transparent)]
    Refused(Refused),
    /// The work's own error.
    #[error(transparent)]
    Failed(E),
}

impl Quota {
    /// Admits one call after a wait of any length: it waits in place and keeps its turn. For
    /// programs in which nothing else waits for it.
    ///
    /// # Errors
    /// [`Refused`] if waiting is useless; [`Refused::Undecided`] if Redis has never answered this
    /// process, and did not for [`Options::max_slot_wait`](crate::Options::max_slot_wait).
    pub async fn admit_patiently(&self, request: &Request) -> Result<Permit, Refused> {
        self.admit_patiently_until(request, pending()).await
    }

    /// Like [`Self::admit_patiently`], but the wait ends as soon as `stop` resolves, with the last
    /// refusal, which carries the ticket.
    ///
    /// # Errors
    /// The errors of [`Self::admit_patiently`]; once stopped, one with a time to come back.
    pub async fn admit_patiently_until(
        &self,
        request: &Request,
        stop: impl Future<Output = ()>,
    ) -> Result<Permit, Refused> {
        let (mut stop, mut stopped) = (pin!(stop), false);
        // May be polled again after it has resolved.
        let mut stop = poll_fn(|context| {
            stopped = stopped || stop.as_mut().poll(context).is_ready();
            if stopped { Poll::Ready(()) } else { Poll::Pending }
        });
        let mut request = request.clone();
        loop {
            let refused = match self.admit_until(&request, &mut stop).await {
                Ok(permit) => return Ok(permit),
                Err(refused) => refused,
            };
            let Some((wait, ticket)) = refused.comes_back() else { return Err(refused) };
            let longest = self.shared.options.max_slot_wait;
            // The address may be wrong: then no wait would end.
            if self.shared.unreached().is_some_and(|(time, _)| time >= longest) {
                return Err(refused);
            }
            request.ticket = ticket;
            // Ask early: turns move up and limits are raised.
            let wait = come_back::in_place(wait).min(longest);
            tokio::select! {
                () = &mut stop => return Err(refused),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Makes one call when its turn comes, and settles the use that the work reports.
    ///
    /// ```
    /// # use tidegate_quota::{Dimension, Lanes, Limits, ModelQuota, Options, Quota, Request, run::Stopped};
    /// # use tidegate_types::Usage;
    /// # async fn ask() -> Result<(String, Usage), std::io::Error> {
    /// #     Ok(("4".to_owned(), Usage { uncached_input: 900, output: 12, ..Usage::default() }))
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let id: tidegate_types::ModelId = "openai:gpt-4.1-mini".parse().unwrap();
    /// # let limits = Limits::default().with(Dimension::Requests, 500);
    /// # let model = ModelQuota::new(id.clone(), limits, Default::default(), std::sync::Arc::new(Lanes::single())).unwrap();
    /// # let quota = Quota::in_memory([model], Options::default());
    /// let answer = quota
    ///     .run(Request::once(id).tokens(1_000, 256), async |call| {
    ///         let (answer, usage) = ask().await?;
    ///         call.usage(&usage);
    ///         Ok::<_, std::io::Error>(answer)
    ///     })
    ///     .await;
    /// assert_eq!(answer.unwrap(), "4");
    /// # }
    /// ```
    ///
    /// If the work fails and has reported that the provider had no room ([`CallReport::rate_limited`],
    /// [`CallReport::overloaded`]), it is repeated when there is room, up to five times in all. If the
    /// future is dropped before the call, everything is released; if during the call, the
    /// reservation stays charged.
    ///
    /// # Errors
    /// The work's own error, or [`Refused`].
    pub async fn run<T, E>(
        &self,
        request: Request,
        mut work: impl AsyncFnMut(CallReport) -> Result<T, E>,
    ) -> Result<T, Stopped<E>> {
        for number in 1.. {
            let reservation = format!("{}.{number}", request.reservation);
            let request = Request { reservation, ..request.clone() };
            let mut permit = self.admit_patiently(&request).await.map_err(Stopped::Refused)?;
            permit.sent();
            let call = CallReport::default();
            let result = work(call.clone()).await;
            let outcome = call.settle(permit).await;
            match result {
                Ok(value) => return Ok(value),
                Err(_) if outcome.may_pass() && number < MAX_CALLS => {}
                Err(error) => return Err(Stopped::Failed(error)),
            }
            if outcome == Outcome::Overloaded {
                let bound = OVERLOADED.saturating_mul(2_u32.saturating_pow(number - 1));
                tokio::time::sleep(bound.mul_f64(rand::random())).await;
            }
        }
        unreachable!("the loop ends by itself")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tidegate_types::{Charge, ModelId};

    use super::*;
    use crate::{Dimension, Lanes, Limits, ModelQuota, Options};

    fn quota(requests: u64) -> (ModelId, Quota) {
        let id: ModelId = "test:model".parse().unwrap();
        let limits =
            Limits::default().with(Dimension::Requests, requests).with(Dimension::Combined, 10_000);
        let lanes = Arc::new(Lanes::single());
        let model = ModelQuota::new(id.clone(), limits, Charge::default(), lanes).unwrap();
        let options = Options {
            max_slot_wait: Duration::from_millis(20),
            jitter: Duration::ZERO,
            ..Options::default()
        };
        (id, Quota::in_memory([model], options))
    }

    async fn used(quota: &Quota, id: &ModelId) -> [u64; 2] {
        let used = quota.inspect(id).await.unwrap().used();
        [used.requests, used.combined]
    }

    #[tokio::test]
    async fn a_call_is_charged_what_the_work_reports() {
        let usage = Usage { uncached_input: 70, output: 7, ..Usage::default() };
        let (id, quota) = quota(600);
        let ask = || Request::once(id.clone()).tokens(100, 100);
        let done = quota.run(ask(), async |call| {
            call.usage(&usage);
            Ok::<_, ()>(())
        });
        let done = done.await;
        assert!(done.is_ok());
        assert_eq!(used(&quota, &id).await, [1, 77]);
        let failed = quota.run(ask(), async |call| {
            call.unused();
            Err::<(), _>("refused")
        });
        assert!(matches!(failed.await, Err(Stopped::Failed("refused"))), "no second call");
        assert_eq!(used(&quota, &id).await, [2, 77]);
        let silent = quota.run(ask(), async |_| Ok::<_, ()>(())).await;
        assert!(silent.is_ok());
        assert!(used(&quota, &id).await[1] > 77, "unknown use stays charged");
    }

    #[tokio::test]
    async fn a_stopped_wait_returns_the_ticket_of_its_turn() {
        let (id, quota) = quota(60);
        let ask = || Request::once(id.clone()).tokens(10, 10);
        let turn = |refused| match refused {
            Err(Refused::Wait { ticket, .. }) => ticket.position,
            other => panic!("{other:?}"),
        };
        let mut permits = Vec::new();
        while let Ok(permit) = quota.admit(&ask()).await {
            permits.push(permit);
        }
        let first = ask();
        let stopped = tokio::time::sleep(Duration::from_millis(200));
        let stopped = quota.admit_patiently_until(&first, stopped);
        let later = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            quota.admit(&ask()).await
        };
        let (stopped, later) = tokio::join!(stopped, later);
        let (stopped, later) = (turn(stopped), turn(later));
        assert!(stopped < later, "{stopped} came before {later}");
    }

    /// The limit has room for one call in ten seconds. Without its ticket the call would come
    /// behind the work that its first ask left in the queue.
    #[tokio::test]
    async fn a_call_that_waits_for_the_gate_keeps_its_turn() {
        let id: ModelId = "test:model".parse().unwrap();
        let limits = Limits {
            margin: 1.0,
            window: Duration::from_mins(1),
            burst: Some(Duration::from_secs(10)),
            ..Limits::default().with(Dimension::Requests, 6)
        };
        let model =
            ModelQuota::new(id.clone(), limits, Charge::default(), Arc::new(Lanes::single()));
        let options = Options {
            max_slot_wait: Duration::from_secs(5),
            jitter: Duration::ZERO,
            ..Options::default()
        };
        let quota = Quota::in_memory([model.unwrap()], options);
        quota.pause(&id, Duration::from_millis(300), "429").await.unwrap();
        quota.admit(&Request::once(id)).await.unwrap().release().await;
    }

    #[tokio::test]
    async fn a_refused_call_is_made_again_when_the_gate_opens() {
        let (id, quota) = quota(600);
        let (calls, pause) = (AtomicU32::new(0), Duration::from_millis(200));
        let began = std::time::Instant::now();
        let done = quota
            .run(Request::once(id.clone()).tokens(10, 10), async |call| {
                if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                    call.rate_limited(Some(pause));
                    return Err("429");
                }
                call.usage(&Usage::default());
                Ok("answered")
            })
            .await;
        assert_eq!(done.unwrap(), "answered");
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert!(began.elapsed() >= pause, "the gate was closed");
    }

    #[tokio::test]
    async fn a_provider_without_room_is_given_up_and_a_call_that_never_fits_is_none() {
        let (id, quota) = quota(6_000);
        let calls = AtomicU32::new(0);
        let never = quota
            .run(Request::once(id.clone()).tokens(1, 1), async |call| {
                calls.fetch_add(1, Ordering::SeqCst);
                call.rate_limited(Some(Duration::from_millis(1)));
                Err::<(), _>("429")
            })
            .await;
        assert!(matches!(never, Err(Stopped::Failed("429"))));
        assert_eq!(calls.load(Ordering::SeqCst), MAX_CALLS);
        let huge = Request::once(id).tokens(1_000_000, 1);
        let never = quota.run(huge, async |_| Ok::<_, ()>(())).await;
        assert!(matches!(never, Err(Stopped::Refused(Refused::NeverFits { .. }))));
    }

    /// More calls than the limit's pace: some wait in place longer than `admit` would.
    #[tokio::test]
    async fn a_turn_is_waited_for_however_long_it_takes() {
        let (id, quota) = quota(600);
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (quota, ask) = (quota.clone(), Request::once(id.clone()).tokens(1, 1));
            running.spawn(async move {
                let run = quota.run(ask, async |call| {
                    call.unused();
                    Ok::<_, ()>(())
                });
                run.await.is_ok()
            });
        }
        assert!(running.join_all().await.into_iter().all(|done| done));
    }
}
