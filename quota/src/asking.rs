//! How callers of this process are asked about: those of a model, lane, tenant and template together,
//! when one of them wants an answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate_types::ModelId;

use crate::{
    asker::{Answer, Asker, Group},
    error::Error,
    metrics,
    model::ModelQuota,
    questions::{Asking, MAX_CALLS},
    request::Ticket,
    running::Backend,
    shared::Shared,
    store::{Ask, Decision, Hold, Settlement, Store as _},
    waiters::SOON,
};

/// When to ask again for what cannot be decided while Redis is away.
const UNDECIDED: Duration = Duration::from_secs(2);

/// When to look again whether a call is over that only the other store knows.
const OTHERS_RUN: Duration = Duration::from_secs(1);

impl Shared {
    /// Asks Redis, or while it is away this worker's own share. A call waits for Redis that is
    /// larger than this share, and every call where nobody knows how large the share is. The only
    /// error is [`Error::Outdated`].
    pub(crate) async fn ask(
        self: &Arc<Self>,
        model: &Arc<ModelQuota>,
        ask: &Ask,
        since: Instant,
    ) -> Result<(Decision, Backend), Error> {
        let allowed = self.redis.is_some() && self.breaker.allows(Instant::now());
        if allowed && self.is_draining(model) {
            if self.is_back(model).await {
                return Ok((others_run(ask), Backend::Redis));
            }
        } else if allowed {
            let (asker, mut answer) = self.asker(model, ask, since);
            self.question(asker);
            if let Ok(answer) = (&mut answer.receiver).await {
                return Ok((answer?, Backend::Redis));
            }
        }
        let wait = Decision::Paused { wait: UNDECIDED, ticket: ask.ticket };
        if !self.is_joined() {
            return Ok((wait, Backend::Local));
        }
        let mut share = self.share(model);
        if let Some(concurrent) = &mut share.limits.concurrent {
            *concurrent = concurrent.saturating_sub(self.running.of(model, Backend::Redis));
            if *concurrent == 0 {
                return Ok((others_run(ask), Backend::Local));
            }
        }
        let (decision, expectation) = self.local.reserve_now(&share, ask);
        self.remember(model, ask.template, expectation);
        let decision = match decision {
            Decision::Never { dimension, .. } if self.fits_all(model, ask, dimension) => wait,
            decision => decision,
        };
        Ok((decision, Backend::Local))
    }

    /// Whether calls run here that Redis does not know of, and that a limit on calls in flight is
    /// about: until they are over this process begins no others.
    fn is_draining(&self, model: &ModelQuota) -> bool {
        let limited = self.redis.is_some() && model.limits.concurrent.is_some();
        limited && self.running.of(model, Backend::Local) > 0
    }

    /// Whether Redis answers again, found out without a reservation.
    async fn is_back(self: &Arc<Self>, model: &ModelQuota) -> bool {
        let Some(redis) = self.redis.as_ref().filter(|_| self.breaker.is_open()) else {
            return true;
        };
        match redis.inspect(model).await {
            Ok(_) => self.answered(),
            Err(error) => self.away(&error),
        }
        !self.breaker.is_open()
    }

    /// Waits in place for so long, or until the call has been asked about with others: then the
    /// answer. Without one it is to be asked about.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        model: &Arc<ModelQuota>,
        ask: &Ask,
        since: Instant,
        length: Duration,
    ) -> Option<Result<Decision, Error>> {
        let (asker, mut answer) = self.asker(model, ask, since);
        let waiting = self.waiters.wait(asker, length);
        match tokio::time::timeout(length, &mut answer.receiver).await {
            Ok(answer) => answer.ok(),
            Err(_) if waiting.end() => None,
            Err(_) => (&mut answer.receiver).await.ok(),
        }
    }

    /// A caller that does not stand first here is asked about with the first, if that is soon.
    pub(crate) async fn wait_behind(
        self: &Arc<Self>,
        model: &Arc<ModelQuota>,
        ask: &Ask,
        since: Instant,
    ) -> Option<Result<Decision, Error>> {
        let (asker, _) = Asker::new(model, ask, since);
        let behind = self.has_redis() && self.waiters.are_before(&asker);
        if behind { self.wait(model, ask, since, SOON).await } else { None }
    }

    fn asker<'a>(
        self: &'a Arc<Self>,
        model: &'a Arc<ModelQuota>,
        ask: &'a Ask,
        since: Instant,
    ) -> (Asker, Awaited<'a>) {
        let (asker, receiver) = Asker::new(model, ask, since);
        (asker, Awaited { shared: self, model, ask, receiver })
    }

    /// Asks Redis about a call, with others of its group.
    fn question(self: &Arc<Self>, asker: Asker) {
        let (model, group) = (Arc::clone(&asker.model), asker.group());
        if self.questions.enter(asker) {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.put_questions(&model, &group).await });
        }
    }

    /// One question after the other, until nobody has come meanwhile.
    async fn put_questions(self: &Arc<Self>, model: &Arc<ModelQuota>, group: &Group) {
        let mut asking = Asking::new(&self.questions, group);
        while let Some(mut askers) = asking.next() {
            let room = MAX_CALLS.saturating_sub(askers.len());
            askers.extend(self.waiters.soon(&model.id, group, room));
            askers.sort_by_key(Asker::turn);
            if !self.put(model, askers).await {
                return;
            }
        }
    }

    /// One question. False if Redis is away.
    async fn put(self: &Arc<Self>, model: &ModelQuota, askers: Vec<Asker>) -> bool {
        let Some(redis) = &self.redis else { return false };
        let asks: Vec<Ask> = askers.iter().map(|asker| asker.ask.clone()).collect();
        metrics::asked(&model.id);
        let decisions = match redis.reserve_all(model, &asks).await {
            Ok(decisions) => decisions,
            Err(error @ Error::Outdated(_)) => {
                for asker in askers {
                    let _ = asker.answer.send(Err(error.clone()));
                }
                return true;
            }
            // One call that the script does not take must not cost the others their answer.
            Err(Error::Protocol(_)) if askers.len() > 1 => {
                for asker in askers {
                    Box::pin(self.put(model, vec![asker])).await;
                }
                return true;
            }
            Err(error) => {
                self.away(&error);
                return matches!(error, Error::Protocol(_));
            }
        };
        self.answered();
        for (Asker { ask, answer, .. }, (decision, expectation)) in
            askers.into_iter().zip(decisions)
        {
            self.remember(model, ask.template, expectation);
            if answer.send(Ok(decision)).is_err() && decision == Decision::Granted {
                // Whoever asked is gone. Before the next question, which may be about the same id.
                self.settle(model, Backend::Redis, &unclaimed(&ask)).await;
            }
        }
        true
    }

    /// So much may go at once: who waits in place is asked about now.
    pub(crate) fn wake(self: &Arc<Self>, model: &ModelId, room: Duration) {
        self.intake.has_room(model, room);
        for asker in self.waiters.with_room(model, room) {
            // Who is dropped asks by itself.
            if self.has_redis() && !self.is_draining(&asker.model) {
                self.question(asker);
            }
        }
    }

    fn has_redis(&self) -> bool {
        self.redis.is_some() && !self.breaker.is_open()
    }
}

/// An answer that is waited for. Who is gone when it has come takes nothing: it is given back.
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
            let settlement = unclaimed(self.ask);
            runtime.spawn(async move { shared.settle(&model, Backend::Redis, &settlement).await });
        }
    }
}

/// As many calls run as may, by the count of both stores. The ticket is good in neither.
fn others_run(ask: &Ask) -> Decision {
    let ticket = ask.ticket.unwrap_or(Ticket { epoch: 0, position: 0 });
    Decision::Wait { wait: OTHERS_RUN, hold: Hold::InFlight, deficit: 1, ticket }
}

/// Gives back what nobody is there to use.
fn unclaimed(ask: &Ask) -> Settlement {
    let released = Settlement::released(ask.reservation.clone());
    Settlement { template: ask.template, ..released }
}
