//! What each failure means to Temporal, and whether and when it is tried again: the only place
//! that decides it.
//!
//! | what happened | type | retried | delay of the next attempt |
//! |---|---|---|---|
//! | 429 for a limit that refills | `RateLimited` | yes | grows with the 429s, at least Retry-After |
//! | no quota for longer than a slot may be held | `QuotaWait`, benign | yes | the turn, a little early |
//! | the gate is closed | `QuotaWait`, benign | yes | until it opens |
//! | 529, 503 | `Overloaded` | up to [`MAX_FAULTS`] calls | grows with the faults, at least Retry-After |
//! | 500, 502, 504, connection faults, time-outs | `Transient` | up to [`MAX_FAULTS`] calls | the same |
//! | a model's circuit is open | `Overloaded` | yes | when it is tried again, and a little later |
//! | this worker stops before the call has left | `QuotaWait`, benign | yes | at once, or the turn |
//! | workers die while they read a document | Temporal's own, then `UnreadableDocument` | until [`MAX_DEAD_READERS`] have died | |
//! | a document's reader cannot be started | `Transient` | yes | grows with the attempts |
//! | a store is busy or away | `Transient` | for [`STORE_DEADLINE`]; a plan for [`PLAN_DEADLINE`] | grows with the faults |
//! | a store forbids it, is not set up for it, or has lost what was there | `Transient`, at the end `InvalidInput` | up to [`MAX_STORE_REFUSALS`] tries | the same |
//! | results of the batch cannot be written now | `Transient` | yes; an answer is held meanwhile | [`UNWRITABLE`] |
//! | its answer lies in the spool of a worker that is away | `Transient` | for [`SPOOL_PATIENCE`]; then it is bought again | [`SPOOLED`], and a little later |
//! | either of these for the document itself | at the end `UnreadableDocument` | the same | the same |
//! | Redis is away and a budget must be kept | `Transient` | yes | grows with the attempts |
//! | credit, spend, per-day limits, the provider's or ours | `QuotaExhausted` | no | |
//! | too little is left of a budget, and calls under way may give some back | `QuotaWait`, benign | yes | [`BUDGET_RETURNS`], up to three times that |
//! | Redis has lost what was spent of a budget | `QuotaWait`, benign | yes | [`BUDGET_LOST`], up to twice that |
//! | a tenant's or a batch's budget is spent, or its retry budget | `BudgetExceeded` | no | |
//! | the answer is cut or empty, and more room can be had | `Truncated` | twice | at once |
//! | the same, and no more room can be had or is wanted | `Truncated` | no | |
//! | the answer does not satisfy the schema | `InvalidOutput` | once | at once |
//! | a key is refused, and another worker may have a good one | `Unauthorized` | yes | [`KEY_ELSEWHERE`], up to twice that |
//! | the same, and no call was made | `Unauthorized`, benign | yes | the same |
//! | no live worker has a key that is accepted, for [`KEYS_GONE`] | `Unauthorized` | no | |
//! | refused, too large, unreadable, bad input | by name | no | |
//! | any of these, and the route has another model | as above | yes | within [`REROUTED`] |
//! | a step of a provider's batch | by the provider's error | a few times, see below | grows with the attempts |
//!
//! A delay that grows has full jitter: anything up to [`Backoff::base`] × 2ⁿ. No delay is longer
//! than [`Backoff::max`]: a longer Retry-After keeps the gate closed, and the document waits there.

use std::time::{Duration, SystemTime};

use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use tidegate_providers::{self as providers, Kind};
use tidegate_quota::{
    Dimension, Refused,
    budget::{BudgetRefused, Payer, Unheld},
    store::Binding,
};
use tidegate_types::ModelId;
use tidegate_workflows::contract::{CallCounts, FailureDetails, FailureType, WaitsFor};

use crate::{
    call::attempt::{Attempt, StoreFault, StoreFaults},
    storage,
};

/// Calls that a document may spend on faults of the provider before it is given up. Refusals for
/// quota do not count.
pub const MAX_FAULTS: u32 = 8;

/// Provider calls beyond the first that a batch may spend for each of its documents, where its
/// author names no number.
pub const RETRIES_PER_DOCUMENT: u64 = 3;

/// Answers of one document that may fail the schema: the model may keep to it the next time.
pub const MAX_INVALID_OUTPUTS: u32 = 2;

/// Attempts to hand in a provider's batch. After these the workflow waits, which knows of pauses,
/// of deadlines and of cancellation.
pub const MAX_BATCH_SUBMITS: u32 = 3;

/// Attempts to cancel a provider's batch. One that goes on is waited for all the same.
pub const MAX_BATCH_CANCELS: u32 = 3;

/// Attempts to collect a provider's batch: an hour of a provider that does not give out what it
/// has. Then the documents take the direct path.
pub const MAX_BATCH_COLLECTS: u32 = 60;

/// Tries of what a store forbids or is not set up for. More than one, because rights, keys and a
/// share that is just being mounted take their time; few, because time alone mends none of them.
pub const MAX_STORE_REFUSALS: u32 = 4;

/// How long a store that is busy or away is waited for without a break: longer than any outage of
/// the large clouds' stores so far.
pub const STORE_DEADLINE: Duration = Duration::from_hours(24);

/// The same while a batch is planned: nothing has been paid for, and its author waits.
pub const PLAN_DEADLINE: Duration = Duration::from_hours(1);

/// How an attempt that holds an answer tries to write it.
pub const WRITE_AGAIN: Backoff =
    Backoff { base: Duration::from_secs(1), max: Duration::from_secs(30) };

/// While results cannot be written, documents come back after this long, and ask nothing.
pub const UNWRITABLE: Duration = Duration::from_secs(5);

/// Workers that die one after the other while they read a document, until it is not read any more.
pub const MAX_DEAD_READERS: u32 = 2;

/// How often a worker tries to write what lies in its spool.
pub const DRAIN_SPOOL: Duration = Duration::from_secs(15);

/// A document whose answer lies in a spool that is not here comes back after this long, and a little
/// later.
pub const SPOOLED: Duration = Duration::from_secs(15);

/// So long it does. A worker that is restarted is back in minutes; one whose machine is gone never.
pub const SPOOL_PATIENCE: Duration = Duration::from_hours(1);

/// Where no attempt holds an answer that cannot be written, one call finds out after this long.
pub const PROBE_UNWRITTEN: Duration = Duration::from_secs(30);

/// A document that goes on to another model comes back within this time, by chance, so that
/// documents that failed together do not ask the next model together.
pub const REROUTED: Duration = Duration::from_secs(2);

/// With a key that was refused, one call finds out again after this long, whether or not it has
/// changed.
pub const KEY_REFUSED: Duration = Duration::from_secs(30);

/// A document that met a refused key goes to another worker after this long, and by chance up to
/// as long again.
pub const KEY_ELSEWHERE: Duration = Duration::from_millis(1_500);

/// Documents fail for good when for this long no live worker has had a key that is accepted: a
/// worker that starts says within 5 s that it is there, and keys are being replaced at times.
pub const KEYS_GONE: Duration = Duration::from_secs(10);

/// A spent account says when its day or month ends, or nothing. Then one call finds out again after
/// this long, unless an operator opens the gate sooner.
pub const UNKNOWN_RESET: Duration = Duration::from_secs(900);

/// A budget's refusal is remembered for this long: the documents behind it fail without taking
/// quota. Then one asks again, because calls that cost less than was held give the rest back.
pub const BUDGET_REFUSED: Duration = Duration::from_secs(5);

/// The same where calls under way may give something back; documents wait this long for it, and by
/// chance up to three times as long.
pub const BUDGET_RETURNS: Duration = Duration::from_secs(1);

/// Documents whose budget is lost wait this long, and by chance up to twice as long: an operator
/// has to say what was spent.
pub const BUDGET_LOST: Duration = Duration::from_secs(10);

/// Different documents in a row whose calls fail, until a model's circuit opens. A single one may
/// itself be what the provider fails at.
pub const CIRCUIT_FAULTS: usize = 5;

/// A circuit stays open this long, then twice as long each time that the probe fails, up to the
/// longest.
pub const CIRCUIT_OPEN: Duration = Duration::from_secs(5);
/// The longest time for which a circuit stays open.
pub const MAX_CIRCUIT_OPEN: Duration = Duration::from_secs(60);

/// What comes back at once; zero would mean Temporal's own delay.
const AT_ONCE: Duration = Duration::from_millis(100);

/// A worker that is too old for the quota stops; by then another one can take its documents.
const OUTDATED: Duration = Duration::from_secs(10);

/// A document that waits for its turn elsewhere comes back a little early and waits the rest in
/// place: turns move up when calls use less than was reserved, and a turn must not pass while
/// Temporal dispatches it. By a part of the wait, because turns move the more the further off they
/// are; but not by more than seconds, because a long wait would then be asked about too often.
const EARLY: Duration = Duration::from_millis(500);
const EARLY_PART: f64 = 0.16;
const MAX_EARLY: Duration = Duration::from_secs(10);

/// Longest message in a history.
const MAX_MESSAGE_CHARS: usize = 500;

/// How delays grow: `[gate]` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Bound of the first delay. Default 10 s.
    pub base: Duration,
    /// Bound of every delay. Default 60 s: after a minute a limit of one minute has refilled.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(10), max: Duration::from_secs(60) }
    }
}

impl Backoff {
    /// Full jitter: anything up to `base × 2^before`, at least `floor`, never above `max`.
    fn jittered(&self, before: u32, floor: Duration) -> Duration {
        let bound = self.base.saturating_mul(2_u32.saturating_pow(before.min(16))).min(self.max);
        bound.mul_f64(rand::random()).max(floor).min(self.max)
    }
}

/// When an activity is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Never: the failure is final.
    Never,
    /// After this long.
    After(Duration),
    /// After this long, and by chance up to as long again, within [`Backoff::base`].
    AfterSpread(Duration),
    /// The more faults there were before, the later.
    ByFaults {
        /// Faults of this document before this one.
        before: u32,
        /// What the provider asks for.
        at_least: Duration,
    },
    /// The more attempts there were before, the later.
    ByAttempts,
    /// As [`Failure::counting`] says.
    ByStore {
        /// What the store has done.
        fault: StoreFault,
        /// What the failure is when it is not tried any more.
        last: FailureType,
    },
}

impl Retry {
    /// The delay before the next attempt; `None` never. `attempt` is this one, counted from 1.
    #[must_use]
    pub fn delay(self, backoff: Backoff, attempt: u32) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(delay) => Some(delay.min(backoff.max)),
            Self::AfterSpread(delay) => {
                let spread = backoff.jittered(0, Duration::ZERO).min(delay);
                Some(delay.saturating_add(spread).min(backoff.max))
            }
            Self::ByFaults { before, at_least } => Some(backoff.jittered(before, at_least)),
            Self::ByAttempts | Self::ByStore { .. } => {
                Some(backoff.jittered(attempt.saturating_sub(1), Duration::ZERO))
            }
        }
    }
}

/// Why an attempt ended without a result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind.
    pub kind: FailureType,
    /// A sentence for people.
    pub message: String,
    /// When it is tried again.
    pub retry: Retry,
    /// What a document without quota waits for.
    pub waits_for: Option<WaitsFor>,
    /// Whether it is no fault at all: nothing was asked, and the document comes back.
    pub benign: bool,
}

impl Failure {
    fn new(kind: FailureType, message: impl Into<String>, retry: Retry) -> Self {
        let benign = kind == FailureType::QuotaWait;
        Self { kind, message: message.into(), retry, waits_for: None, benign }
    }

    /// Final.
    #[must_use]
    pub fn never(kind: FailureType, message: impl Into<String>) -> Self {
        Self::new(kind, message, Retry::Never)
    }

    /// Bad input, final: the sentence says what to change.
    #[must_use]
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::never(FailureType::InvalidInput, message)
    }

    /// What is wrong with the place that a field names: the field, or the store.
    #[must_use]
    pub fn of_field(field: &str, error: storage::Error) -> Self {
        match error {
            storage::Error::Missing(_) | storage::Error::Invalid(_) => {
                Self::invalid_input(format!("{field}: {error}"))
            }
            error => {
                let failure = Self::from(error);
                Self { message: format!("{field}: {}", failure.message), ..failure }
            }
        }
    }

    /// A document that the store does not give.
    #[must_use]
    pub fn of_document(error: storage::Error) -> Self {
        let failure = Self::from(error);
        let last = FailureType::UnreadableDocument;
        match failure.retry {
            Retry::ByStore { fault, .. } => {
                Self { retry: Retry::ByStore { fault, last }, ..failure }
            }
            _ => Self { kind: last, ..failure },
        }
    }

    /// Whether a store refused, so that time alone mends nothing.
    #[must_use]
    pub fn is_store_refusal(&self) -> bool {
        matches!(self.retry, Retry::ByStore { fault: StoreFault::Refused, .. })
    }

    /// A fault of a store is counted with the activity's earlier ones: the delay grows with them,
    /// and after [`MAX_STORE_REFUSALS`] or `deadline` it is final. Other failures stay as they are.
    #[must_use]
    pub fn counting(self, attempt: &Attempt, deadline: Duration) -> Self {
        let Retry::ByStore { fault, last } = self.retry else { return self };
        self.after_store_faults(last, attempt.store_failed(fault), deadline, SystemTime::now())
    }

    fn after_store_faults(
        self,
        last: FailureType,
        so_far: StoreFaults,
        deadline: Duration,
        now: SystemTime,
    ) -> Self {
        let lasting = so_far.lasting(now);
        if so_far.refusals >= MAX_STORE_REFUSALS {
            let message = format!("given up after {} tries: {}", so_far.refusals, self.message);
            return Self::never(last, message);
        }
        if lasting >= deadline {
            let hours = lasting.as_secs() / 3_600;
            return Self::never(last, format!("given up after {hours} h: {}", self.message));
        }
        let before = so_far.faults.saturating_sub(1);
        Self { retry: Retry::ByFaults { before, at_least: Duration::ZERO }, ..self }
    }

    /// So many workers have died while they read the document.
    #[must_use]
    pub fn kills_its_reader(dead: u32) -> Self {
        let message = format!(
            "{dead} workers in a row died while they read it, which is not tried again; give the workers more memory, or fewer documents at once (worker.max-concurrent-documents), or leave it out"
        );
        Self::never(FailureType::UnreadableDocument, message)
    }

    /// Results of the batch cannot be written for now, and an answer could not be kept: no call was
    /// made.
    #[must_use]
    pub fn unwritable(fault: &str) -> Self {
        let message = format!("nothing is asked while results cannot be written: {fault}");
        Self::unwritten(message, UNWRITABLE)
    }

    /// The answer was bought, and lies in the spool of a worker that is away, or busy with it.
    #[must_use]
    pub fn spooled() -> Self {
        let message = "the answer was bought and could not be written; it lies in the spool of a worker that is not this one, and is waited for";
        Self::unwritten(message.to_owned(), SPOOLED)
    }

    fn unwritten(message: String, delay: Duration) -> Self {
        let waits_for = Some(WaitsFor::Unwritten);
        Self { waits_for, ..Self::new(FailureType::Transient, message, Retry::AfterSpread(delay)) }
    }

    /// This worker stops, and no call of the attempt has left: another worker takes it over.
    #[must_use]
    pub fn worker_stops() -> Self {
        let message = "this worker is stopping, and hands this over to another one";
        Self::new(FailureType::QuotaWait, message, Retry::After(AT_ONCE))
    }

    /// A fault of this worker or of what it works with, and not of the document.
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(FailureType::Transient, message, Retry::ByAttempts)
    }

    /// The limiter gave no permit; no call was made.
    #[must_use]
    pub fn refused(refused: &Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Wait { wait, binding, .. } => {
                let early = EARLY + wait.mul_f64(EARLY_PART).min(MAX_EARLY);
                let delay = wait.saturating_sub(early).max(Duration::from_secs(1));
                Self::quota_wait(message, delay, waits_for(*binding))
            }
            Refused::Paused { wait, .. } => Self::quota_wait(message, *wait, WaitsFor::Gate),
            Refused::Outdated(_) => Self::quota_wait(message, OUTDATED, WaitsFor::Gate),
            Refused::Exhausted { .. } => Self::never(FailureType::QuotaExhausted, message),
            Refused::NeverFits { .. } => Self::never(FailureType::TooLarge, message),
            Refused::UnknownModel(_) | Refused::UnknownLane(_) => Self::invalid_input(message),
        }
    }

    fn quota_wait(message: String, delay: Duration, waits_for: WaitsFor) -> Self {
        let waits_for = Some(waits_for);
        Self { waits_for, ..Self::new(FailureType::QuotaWait, message, Retry::After(delay)) }
    }

    /// A model whose circuit stays open for so long; no call was made.
    #[must_use]
    pub fn circuit_open(model: &ModelId, open: Duration) -> Self {
        let message = format!(
            "{model} has failed several times in a row; one call tries it again in {open:.0?}"
        );
        Self::new(FailureType::Overloaded, message, Retry::AfterSpread(open))
    }

    /// A key was just refused, in these words of the provider's, and another worker may have a
    /// good one.
    #[must_use]
    pub fn key_refused(words: &str) -> Self {
        Self::new(FailureType::Unauthorized, words, Retry::AfterSpread(KEY_ELSEWHERE))
    }

    /// The same, of a key that was refused before: no call was made.
    #[must_use]
    pub fn handed_back(model: &ModelId, words: &str) -> Self {
        let message =
            format!("this worker's key for {model} is refused, another worker may do it: {words}");
        Self { benign: true, ..Self::key_refused(&message) }
    }

    /// No live worker has a key that is accepted.
    #[must_use]
    pub fn keys_gone(model: &ModelId, words: &str) -> Self {
        let message = format!("no worker has a key that is accepted for {model}: {words}");
        Self::never(FailureType::Unauthorized, message)
    }

    /// A budget has too little left; no call was made.
    #[must_use]
    pub fn over_budget(refused: &BudgetRefused) -> Self {
        if refused.may_come_back() {
            let wait = BUDGET_RETURNS + BUDGET_RETURNS.mul_f64(2.0 * rand::random::<f64>());
            return Self::quota_wait(refused.to_string(), wait, WaitsFor::Budget);
        }
        Self::never(FailureType::BudgetExceeded, refused.to_string())
    }

    /// Redis has lost what was spent of a budget; no call was made.
    #[must_use]
    pub fn budget_lost(payer: &Payer) -> Self {
        let (flag, name) = match payer {
            Payer::Tenant(tenant) => ("tenant", tenant.as_str()),
            Payer::Batch(batch) => ("batch", batch.as_str()),
        };
        let message = format!(
            "Redis has lost what {payer} has spent; say it with `tidegate budget set --{flag} {name} --spent-usd AMOUNT`, and let [storage] state keep it the next time"
        );
        let wait = BUDGET_LOST.mul_f64(1.0 + rand::random::<f64>());
        Self::quota_wait(message, wait, WaitsFor::Budget)
    }

    /// A provider call failed. `counts` has it already.
    #[must_use]
    pub fn from_provider(error: &providers::Error, counts: &CallCounts) -> Self {
        let kind = provider_failure(error.kind);
        let faults = counts.provider_calls.saturating_sub(counts.rate_limited);
        if !error.kind.is_retryable() {
            return Self::never(kind, &error.message);
        }
        if faults >= MAX_FAULTS {
            return Self::never(kind, format!("given up after {faults} calls: {}", error.message));
        }
        let so_far = if error.kind == Kind::RateLimited { counts.rate_limited } else { faults };
        let (before, at_least) = (so_far.saturating_sub(1), error.retry_after.unwrap_or_default());
        Self::new(kind, &error.message, Retry::ByFaults { before, at_least })
    }

    /// A step of a provider's batch failed. Whatever it is, it may pass: how often it is tried is
    /// the step's own.
    #[must_use]
    pub fn from_batch_api(error: &providers::Error, attempt: u32) -> Self {
        let provider_calls = attempt.min(MAX_FAULTS - 1);
        let failure =
            Self::from_provider(error, &CallCounts { provider_calls, ..CallCounts::default() });
        let retry = if failure.is_retried() { failure.retry } else { Retry::After(Duration::MAX) };
        Self { retry, ..failure }
    }

    /// An answer does not satisfy the schema; `count` of this document's answers did not.
    #[must_use]
    pub fn invalid_output(reason: &str, count: u32) -> Self {
        let message = format!("the answer does not satisfy the schema: {reason}");
        let again = count < MAX_INVALID_OUTPUTS;
        let retry = if again { Retry::After(AT_ONCE) } else { Retry::Never };
        Self::new(FailureType::InvalidOutput, message, retry)
    }

    /// An answer was cut at so many output tokens, or is empty; the next attempt has more room.
    #[must_use]
    pub fn cut(room: u32) -> Self {
        let message = format!(
            "the answer was cut or empty at {room} output tokens; it is asked for again with more room"
        );
        Self::new(FailureType::Truncated, message, Retry::After(AT_ONCE))
    }

    /// The same, and it stays as it is.
    #[must_use]
    pub fn truncated(room: u32) -> Self {
        let message = format!(
            "the answer was cut or empty at {room} output tokens; raise max_output_tokens, or take such answers with \"on_cut\": \"keep\""
        );
        Self::never(FailureType::Truncated, message)
    }

    /// The same, of a model that writes no more.
    #[must_use]
    pub fn truncated_at_cap(room: u32, model: &ModelId) -> Self {
        let message = format!(
            "the answer was cut or empty at {room} output tokens, which is all that {model} writes; ask for less, read long documents in parts (\"long\"), choose another model, or take such answers with \"on_cut\": \"keep\""
        );
        Self::never(FailureType::Truncated, message)
    }

    /// A cut answer that would be kept, were it not for the schema.
    #[must_use]
    pub fn truncated_json(room: u32, reason: &str) -> Self {
        let message = format!(
            "the answer was cut or empty at {room} output tokens and does not satisfy the schema ({reason}); raise max_output_tokens"
        );
        Self::never(FailureType::Truncated, message)
    }

    /// Whether a call with less room for its answer might have been made.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        let may_be = matches!(
            self.kind,
            FailureType::TooLarge | FailureType::InvalidRequest | FailureType::BudgetExceeded
        );
        may_be && !self.is_retried()
    }

    /// The same, tried again at once.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self { retry: Retry::After(AT_ONCE), ..self }
    }

    /// The same, of a document that was to be asked again with more room: where that cannot be
    /// had, the cut answer is all that there is.
    #[must_use]
    pub fn without_room(self) -> Self {
        if !self.lacks_room() {
            return self;
        }
        let message =
            format!("the answer was cut or empty, and more room cannot be had: {}", self.message);
        Self::never(FailureType::Truncated, message)
    }

    /// The same, where another model of the route is asked next.
    #[must_use]
    pub fn at_another_model(self) -> Self {
        Self { retry: Retry::After(REROUTED.mul_f64(rand::random())), ..self }
    }

    /// Whether the same attempt may succeed later.
    #[must_use]
    pub fn is_retried(&self) -> bool {
        self.retry != Retry::Never
    }

    /// Whether too little is left of a budget, for now or for good.
    #[must_use]
    pub fn waits_for_budget(&self) -> bool {
        self.kind == FailureType::BudgetExceeded || self.waits_for == Some(WaitsFor::Budget)
    }

    /// Whether the model cannot be asked at all for now, so that another one should be.
    #[must_use]
    pub fn model_is_gone(&self) -> bool {
        matches!(self.kind, FailureType::QuotaExhausted | FailureType::Unauthorized)
            && !self.is_retried()
    }

    /// Whether the model had no room or failed, so that after some of these another one should be
    /// asked.
    #[must_use]
    pub fn model_is_short(&self) -> bool {
        matches!(
            self.kind,
            FailureType::RateLimited
                | FailureType::QuotaWait
                | FailureType::Overloaded
                | FailureType::Transient
        )
    }

    /// As Temporal takes it: with type, delay, and what the document has taken so far. `attempt` is
    /// the activity's, counted from 1.
    #[must_use]
    pub fn into_application_failure(
        self,
        details: impl Into<FailureDetails>,
        backoff: Backoff,
        attempt: u32,
    ) -> ApplicationFailure {
        let message: String = self.message.chars().take(MAX_MESSAGE_CHARS).collect();
        let delay = self.retry.delay(backoff, attempt);
        ApplicationFailure::builder(Message(message))
            .type_name(self.kind.as_str().to_owned())
            .non_retryable(delay.is_none())
            .maybe_next_retry_delay(delay)
            .category(if self.benign {
                ApplicationErrorCategory::Benign
            } else {
                ApplicationErrorCategory::Unspecified
            })
            .details(FailureDetails { waits_for: self.waits_for, ..details.into() })
            .build()
    }
}

/// A store that fails may work later; one that refuses is tried a few times.
impl From<storage::Error> for Failure {
    fn from(error: storage::Error) -> Self {
        let (fault, last) = match &error {
            storage::Error::Invalid(_) => return Self::invalid_input(error.to_string()),
            storage::Error::Failed(_) => (StoreFault::Busy, FailureType::Transient),
            storage::Error::Missing(_)
            | storage::Error::Exists(_)
            | storage::Error::Forbidden(_)
            | storage::Error::Misconfigured(_) => (StoreFault::Refused, FailureType::InvalidInput),
        };
        Self::new(FailureType::Transient, error.to_string(), Retry::ByStore { fault, last })
    }
}

/// A budget with too little left is final; one that cannot be asked may be asked later.
impl From<Unheld> for Failure {
    fn from(unheld: Unheld) -> Self {
        match unheld {
            Unheld::Refused(refused) => Self::over_budget(&refused),
            Unheld::Lost { payer, .. } => Self::budget_lost(&payer),
            unsaved @ Unheld::Unsaved(_) => {
                Self::quota_wait(unsaved.to_string(), BUDGET_RETURNS, WaitsFor::Budget)
            }
            unknown @ Unheld::Unknown(_) => Self::transient(unknown.to_string()),
        }
    }
}

fn provider_failure(kind: Kind) -> FailureType {
    match kind {
        Kind::RateLimited => FailureType::RateLimited,
        Kind::Overloaded => FailureType::Overloaded,
        Kind::Transient | Kind::Timeout => FailureType::Transient,
        Kind::QuotaExhausted => FailureType::QuotaExhausted,
        Kind::Unauthorized => FailureType::Unauthorized,
        Kind::InvalidRequest => FailureType::InvalidRequest,
        Kind::TooLarge => FailureType::TooLarge,
        Kind::ContentRefused => FailureType::ContentRefused,
        Kind::InvalidOutput => FailureType::InvalidOutput,
    }
}

fn waits_for(binding: Binding) -> WaitsFor {
    match binding {
        Binding::Limit(Dimension::Requests) => WaitsFor::Requests,
        Binding::Limit(Dimension::Input) => WaitsFor::Input,
        Binding::Limit(Dimension::Output) => WaitsFor::Output,
        Binding::Limit(Dimension::Combined) => WaitsFor::Tokens,
        Binding::InFlight => WaitsFor::InFlight,
        Binding::Turn => WaitsFor::Turn,
        Binding::Canary => WaitsFor::Canary,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Message(String);

#[cfg(test)]
mod tests;
