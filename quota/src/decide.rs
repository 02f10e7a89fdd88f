//! Decides about a call: by Redis, which is asked in batches, or, while it is away, by this
//! worker's own share.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate_types::ModelId;

use crate::{
    error::Error,
    in_flight::Backend,
    metrics,
    model::ModelQuota,
    request::Ticket,
    reserve_batcher::{
        batches::{BatchSender, MAX_CALLS},
        caller::{self, Answer, Caller, Group},
    },
    shared::Shared,
    store::{Ask, Decision, Hold, Settlement, Store as _},
};

/// Delay before the next check for a slot that only the other store counts as taken.
const OTHER_STORE_WAIT: Duration = Duration::from_secs(1);

impl Shared {
    /// Asks Redis or, while it is away, this worker's own share.
    ///
    /// # Errors
    /// [`Error::Outdated`]; [`Error::Away`] for a call that only Redis can decide about, because it
    /// is larger than this share, or because the share is unknown while Redis has never answered.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        model: &Arc<ModelQuota>,
        ask: &Ask,
        since: Instant,
    ) -> Result<(Decision, Backend), Error> {
        let allowed = self.redis.is_some() && self.breaker.allows(Instant::now());
        if allowed && self.is_draining(model) {
            if self.is_back(model).await {
                return Ok((wait_for_other_store(ask), Backend::Redis));
            }
        } else if allowed {
            let (caller, mut answer) = self.new_caller(model, ask, since);
            self.join_batch(caller);
            if let Ok(answer) = (&mut answer.receiver).await {
                return Ok((answer?, Backend::Redis));
            }
        }
        if !self.is_joined() {
            let error = self.unreached().map(|(_, error)| error);
            return Err(Error::Away(
                error.unwrap_or_else(|| "it has never answered this worker".to_owned()),
            ));
        }
        let mut share = self.share(model);
        if let Some(concurrent) = &mut share.limits.concurrent {
            *concurrent = concurrent.saturating_sub(self.in_flight.count(model, Backend::Redis));
            if *concurrent == 0 {
                return Ok((wait_for_other_store(ask), Backend::Local));
            }
        }
        let (decision, expectation) = self.local.reserve_now(&share, ask);
        self.remember(model, ask.template, expectation);
        match decision {
            Decision::Never { dimension, .. } if self.fits_all(model, ask, dimension) => {
                Err(Error::Away("the call is larger than this worker's share".to_owned()))
            }
            decision => Ok((decision, Backend::Local)),
        }
    }

    /// Whether calls run here that Redis does not count towards a limit on calls in flight. Until
    /// they end, this process starts no others.
    fn is_draining(&self, model: &ModelQuota) -> bool {
        let limited = self.redis.is_some() && model.limits.concurrent.is_some();
        limited && self.in_flight.count(model, Backend::Local) > 0
    }

    /// Whether Redis answers again; checked without a reservation.
    async fn is_back(self: &Arc<Self>, model: &ModelQuota) -> bool {
        let Some(redis) = self.redis.as_ref().filter(|_| self.breaker.is_open()) else {
            return true;
        };
        match redis.inspect(model).await {
            Ok(_) => self.record_answer(),
            Err(error) => self.record_failure(&error),
        }
        !self.breaker.is_open()
    }

    /// Waits in place for `length` or until a batch takes the call: then the answer. `None` if the
    /// caller must ask. `in_turn`: other calls come first.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        model: &Arc<ModelQuota>,
        ask: &Ask,
        since: Instant,
        length: Duration,
        in_turn: bool,
    ) -> Option<Result<Decision, Error>> {
        let (caller, mut answer) = self.new_caller(model, ask, since);
        let waiting = self.waiters.add(caller, length, in_turn);
        match tokio::time::timeout(length, &mut answer.receiver).await {
            Ok(answer) => answer.ok(),
            Err(_) if waiting.end() => None,
            Err(_) => (&mut answer.receiver).await.ok(),
        }
    }

    /// Waits for the batch of an earlier caller of the group until that caller is due, for
    /// `longest` at most. `None` if the caller must ask.
    pub(crate) async fn wait_behind(
        self: &Arc<Self>,
        model: &Arc<ModelQuota>,
        ask: &Ask,
        since: Instant,
        longest: Duration,
    ) -> Option<Result<Decision, Error>> {
        if !self.has_redis() {
            return None;
        }
        let (group, turn) = (Group::from_ask(model, ask), caller::turn(ask, since));
        let due = self.waiters.until_earlier(&model.id, &group, turn)?;
        self.wait(model, ask, since, due.min(longest), true).await
    }

    fn new_caller<'a>(
        self: &'a Arc<Self>,
        model: &'a Arc<ModelQuota>,
        ask: &'a Ask,
        since: Instant,
    ) -> (Caller, Awaited<'a>) {
        let (caller, receiver) = Caller::new(model, ask, since);
        (caller, Awaited { shared: self, model, ask, receiver })
    }

    /// Adds a call to its group's next batch. Starts the sender if the group has none.
    fn join_batch(self: &Arc<Self>, caller: Caller) {
        let (model, group) = (Arc::clone(&caller.model), caller.group());
        if self.batches.join(caller) {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.send_batches(&model, &group).await });
        }
    }

    /// Sends one batch after the other until no call is left.
    async fn send_batches(self: &Arc<Self>, model: &Arc<ModelQuota>, group: &Group) {
        let mut sender = BatchSender::new(&self.batches, group);
        while let Some(mut callers) = sender.take_next() {
            let room = MAX_CALLS.saturating_sub(callers.len());
            callers.extend(self.waiters.take_due(&model.id, group, room));
            callers.sort_by_key(Caller::turn);
            if !self.send_batch(model, callers).await {
                return;
            }
        }
    }

    /// Sends one batch. Returns false if Redis is away.
    async fn send_batch(self: &Arc<Self>, model: &ModelQuota, callers: Vec<Caller>) -> bool {
        let Some(redis) = &self.redis else { return false };
        let asks: Vec<Ask> = callers.iter().map(|caller| caller.ask.clone()).collect();
        metrics::count_question(&model.id);
        self.unheard.drop_all(model, &asks);
        let decisions = match redis.reserve_all(model, &asks).await {
            Ok(decisions) => decisions,
            Err(error @ Error::Outdated(_)) => {
                for caller in callers {
                    let _ = caller.answer.send(Err(error.clone()));
                }
                return true;
            }
            // If the script rejects one call, ask about each alone: the others must get an answer.
            Err(Error::Protocol(_)) if callers.len() > 1 => {
                for caller in callers {
                    Box::pin(self.send_batch(model, vec![caller])).await;
                }
                return true;
            }
            Err(error) => {
                let is_away = matches!(error, Error::Away(_));
                // It may grant them yet. A caller that asks again is granted again.
                for ask in asks.iter().filter(|_| is_away) {
                    self.unheard.keep(model, release_of(ask));
                }
                self.record_failure(&error);
                return matches!(error, Error::Protocol(_));
            }
        };
        self.record_answer();
        for (Caller { ask, answer, .. }, (decision, expectation)) in
            callers.into_iter().zip(decisions)
        {
            self.remember(model, ask.template, expectation);
            if answer.send(Ok(decision)).is_err() && decision == Decision::Granted {
                // The caller was dropped. Release before the next batch, which may hold the same
                // id.
                self.settle(model, Backend::Redis, &release_of(&ask)).await;
            }
        }
        true
    }

    /// Makes callers that wait in place ask now, as far as there is room. `room` is the time that
    /// an even pace takes to use it.
    pub(crate) fn wake(self: &Arc<Self>, model: &ModelId, room: Duration) {
        self.intake.record_room(model, room);
        for caller in self.waiters.take_fitting(model, room) {
            // A caller that is not put into a batch asks by itself.
            if self.has_redis() && !self.is_draining(&caller.model) {
                self.join_batch(caller);
            }
        }
    }

    fn has_redis(&self) -> bool {
        self.redis.is_some() && !self.breaker.is_open()
    }
}

/// An answer that a caller awaits. If the caller is dropped after a grant, the reservation is
/// released.
struct Awaited<'a> {
    shared: &'a Arc<Shared>,
    model: &'a Arc<ModelQuota>,
    ask: &'a Ask,
    receiver: Answer,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.receiver.close();
        if let Ok(Ok(Decision::Granted)) = self.receiver.try_recv()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (shared, model) = (Arc::clone(self.shared), Arc::clone(self.model));
            let settlement = release_of(self.ask);
            runtime.spawn(async move { shared.settle(&model, Backend::Redis, &settlement).await });
        }
    }
}

/// The decision at the limit on calls in flight, counting both stores. The ticket is valid in
/// neither.
fn wait_for_other_store(ask: &Ask) -> Decision {
    let ticket = ask.ticket.unwrap_or(Ticket { epoch: 0, position: 0 });
    Decision::Wait {
        wait: OTHER_STORE_WAIT,
        hold: Hold::InFlight,
        deficit: 1,
        ticket,
        turn: OTHER_STORE_WAIT,
    }
}

/// Settles a reservation whose caller was dropped as released.
fn release_of(ask: &Ask) -> Settlement {
    let released = Settlement::released(ask.reservation.clone());
    Settlement { template: ask.template, ..released }
}
