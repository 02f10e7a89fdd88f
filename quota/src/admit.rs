//! Admission: a call asks, waits in place while its turn is near, and gets a permit or a refusal.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    come_back,
    error::Error,
    in_flight::Backend,
    metrics,
    model::ModelQuota,
    numbers::Numbers,
    permit::{Permit, Renewal, State},
    quota::Quota,
    refused::Refused,
    request::Request,
    shared::Shared,
    store::{Ask, Decision, Hold, Meter},
};

/// The longest wait in place for a closed gate: another refusal may close it again before it opens.
const MAX_PAUSE_IN_PLACE: Duration = Duration::from_secs(1);

/// Delay before a call that cannot be decided while Redis is away asks again.
const UNDECIDED: Duration = Duration::from_secs(2);

impl Quota {
    /// Admits one call: at once, or after a wait of at most
    /// [`Options::max_slot_wait`](crate::Options::max_slot_wait). Nothing is reserved during the
    /// wait.
    ///
    /// Dropping the future at any time costs nothing.
    ///
    /// # Errors
    /// [`Refused`]: come back later with the ticket, or never.
    pub async fn admit(&self, request: &Request) -> Result<Permit, Refused> {
        self.admit_until(request, std::future::pending()).await
    }

    /// Like [`Self::admit`], but the wait ends as soon as `stop` resolves, with a refusal that
    /// carries the ticket.
    ///
    /// # Errors
    /// The errors of [`Self::admit`].
    pub async fn admit_until(
        &self,
        request: &Request,
        stop: impl Future<Output = ()>,
    ) -> Result<Permit, Refused> {
        let mut stop = pin!(stop);
        let mut admission = Admission::begin(self, request)?;
        let (mut batched, mut stopped) = (None, false);
        tokio::select! {
            biased;
            () = &mut stop => stopped = true,
            answer = admission.wait_behind_others() => batched = answer,
        }
        loop {
            let answer = match batched.take() {
                Some(answer) => answer.map(|decision| (decision, Backend::Redis)),
                None => admission.ask().await,
            };
            let refused = match answer {
                Ok((Decision::Granted, backend)) => return Ok(admission.into_permit(backend)),
                Ok((decision, _)) => admission.refuse(decision).await,
                Err(Error::Away(why)) => admission.leave_undecided(why),
                Err(error) => Refused::Outdated(error.to_string()),
            };
            let Some(sleep) = admission.time_in_place(&refused).filter(|_| !stopped) else {
                return Err(refused);
            };
            let in_turn = matches!(refused, Refused::Wait { hold: Hold::Turn, .. });
            tokio::select! {
                biased;
                () = &mut stop => return Err(refused),
                answer = admission.wait(sleep, in_turn) => batched = answer,
            }
        }
    }
}

/// A call that is not admitted yet.
struct Admission<'a> {
    quota: &'a Quota,
    model: &'a Arc<ModelQuota>,
    request: &'a Request,
    ask: Ask,
    started: Instant,
}

impl<'a> Admission<'a> {
    fn begin(quota: &'a Quota, request: &'a Request) -> Result<Self, Refused> {
        let shared = &quota.shared;
        let model = shared
            .models
            .get(&request.model)
            .ok_or_else(|| Refused::UnknownModel(request.model.clone()))?;
        let lane = model
            .lanes
            .index(&request.lane)
            .ok_or_else(|| Refused::UnknownLane(request.lane.clone()))?;
        shared.poll_schedule.mark_busy(&model.id);
        let curious = shared.is_curious(model, request.template);
        let ask = Ask { curious, ..shared.new_ask(model, lane, request) };
        Ok(Self { quota, model, request, ask, started: Instant::now() })
    }

    fn shared(&self) -> &'a Arc<Shared> {
        &self.quota.shared
    }

    /// The longest wait: `most`, or less if the request states less.
    fn patience(&self, most: Duration) -> Duration {
        self.request.max_wait.map_or(most, |wait| wait.min(most))
    }

    /// Joins the batch of an earlier caller of this process that waits: before it, this one is not
    /// admitted.
    async fn wait_behind_others(&self) -> Option<Result<Decision, Error>> {
        let patience = self.patience(self.shared().options.max_slot_wait);
        let longest = patience.mul_f64(Numbers::DEFAULT.target);
        self.shared().wait_behind(self.model, &self.ask, self.started, longest).await
    }

    async fn ask(&mut self) -> Result<(Decision, Backend), Error> {
        self.update_amounts();
        self.shared().ask(self.model, &self.ask, self.started).await
    }

    /// Waits in place, or until a batch brings the answer.
    async fn wait(&mut self, length: Duration, in_turn: bool) -> Option<Result<Decision, Error>> {
        self.update_amounts();
        self.shared().wait(self.model, &self.ask, self.started, length, in_turn).await
    }

    /// Updates the amounts, because more may be known than at the last ask.
    fn update_amounts(&mut self) {
        self.ask.amounts = self.shared().amounts(self.model, self.request);
    }

    fn into_permit(self, backend: Backend) -> Permit {
        let Self { model, request, ask, .. } = self;
        let shared = &self.quota.shared;
        shared.state_changes.record_open(&model.id, self.started);
        shared.record_wait(model, &request.lane, &ask, Duration::ZERO);
        metrics::record_admission(&model.id, &request.lane, self.started.elapsed());
        let renewal =
            (backend == Backend::Redis).then(|| Renewal::start(shared, model, &ask.reservation));
        Permit {
            meter: Meter::default(),
            cached: None,
            _renewal: renewal,
            _in_flight: shared.in_flight.begin(model, backend),
            shared: Arc::clone(shared),
            model: Arc::clone(model),
            backend,
            reserved: ask.amounts,
            reservation: ask.reservation,
            lane: request.lane.clone(),
            estimated_input: request.input_tokens,
            max_output_tokens: request.max_output_tokens,
            template: request.template,
            state: State::Unsent,
        }
    }

    /// Turns a decision into a refusal. Keeps the ticket for the next ask.
    async fn refuse(&mut self, decision: Decision) -> Refused {
        let model = self.model.id.clone();
        match decision {
            Decision::Wait { wait, hold, deficit, ticket, turn } => {
                metrics::count_denial(&model, hold.name());
                self.shared().record_wait(self.model, &self.request.lane, &self.ask, wait);
                self.ask.ticket = Some(ticket);
                Refused::Wait { model, wait, hold, deficit, ticket, turn }
            }
            Decision::GateClosed { wait, ticket } => {
                metrics::count_denial(&model, Hold::Gate.name());
                self.shared().record_wait(self.model, &self.request.lane, &self.ask, wait);
                self.ask.ticket = Some(ticket);
                Refused::GateClosed { model, wait: wait + self.jitter(), ticket }
            }
            Decision::Exhausted { wait, day } => {
                let bound = if day.is_some() { "day" } else { Hold::Gate.name() };
                metrics::count_denial(&model, bound);
                let reason = match day {
                    // The day's count is full and the gate is open, so `resume` would have no
                    // effect.
                    Some(limit) => format!(
                        "the configured limit of {limit} is spent; where the account has more, raise it in the configuration of the workers"
                    ),
                    None => {
                        let seen = Box::pin(self.quota.inspect(&model)).await;
                        let why =
                            seen.map_or_else(|_| "it is exhausted".to_owned(), |seen| seen.reason);
                        format!("{why}; `tidegate resume {model}` opens it sooner")
                    }
                };
                Refused::Exhausted { model, wait, reason }
            }
            Decision::Never { dimension, capacity } => {
                let asked = self.ask.amounts[dimension];
                // A limit set by an operator is named in the error.
                let set = Box::pin(self.quota.inspect(&model)).await.ok();
                let set = set.and_then(|seen| seen.get(dimension).set);
                Refused::NeverFits { model, dimension, asked, capacity, set }
            }
            Decision::Granted => unreachable!("a granted call gets a permit"),
        }
    }

    /// The refusal while Redis is away and this worker alone cannot decide.
    fn leave_undecided(&self, why: String) -> Refused {
        metrics::count_denial(&self.model.id, "redis_away");
        self.shared().record_wait(self.model, &self.request.lane, &self.ask, UNDECIDED);
        // A worker without a first answer from Redis has met no pause of the fleet.
        let spread = if self.shared().is_joined() { self.jitter() } else { Duration::ZERO };
        let (model, ticket) = (self.model.id.clone(), self.ask.ticket);
        Refused::Undecided { model, wait: UNDECIDED + spread, ticket, why }
    }

    fn jitter(&self) -> Duration {
        self.shared().options.jitter.mul_f64(rand::random())
    }

    /// Time to wait in place before asking again; `None` if the caller should come back later, or
    /// never.
    fn time_in_place(&self, refused: &Refused) -> Option<Duration> {
        let longest = self.shared().options.max_slot_wait;
        let (wait, sleep, most) = match *refused {
            Refused::Wait { wait, .. } => (wait, come_back::in_place(wait), longest),
            Refused::GateClosed { wait, .. } => (wait, wait, longest.min(MAX_PAUSE_IN_PLACE)),
            _ => return None,
        };
        (self.started.elapsed() + wait <= self.patience(most)).then_some(sleep)
    }
}
