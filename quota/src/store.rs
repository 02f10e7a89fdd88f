//! The operations of a store. [`crate::memory::Store`] and [`crate::redis_store::Store`] are the
//! two; both pass the same list of tests.

use std::{fmt, future::Future, time::Duration};

use tidegate_types::Tenant;

use crate::{
    dimension::{Amounts, Change, DayLimit, Dimension, PerDimension, PerLimit},
    error::Error,
    model::ModelQuota,
    request::Ticket,
    snapshot::Snapshot,
};

/// A call that asks for admission.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The attempt's id; an id is admitted once.
    pub reservation: String,
    /// The lane's index in [`crate::Lanes`].
    pub lane: usize,
    /// The amounts to reserve.
    pub amounts: Amounts,
    /// From an earlier refusal.
    pub ticket: Option<Ticket>,
    /// Names similar calls, which are learned together.
    pub template: u64,
    /// Whether to return the expected use of such calls.
    pub curious: bool,
    /// The tenant. The tenants of a lane get equal parts of its tokens.
    pub tenant: Tenant,
}

/// The cause of a call's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Too much is drawn ahead of the rate.
    Level(Dimension),
    /// The window is full.
    Window(Dimension),
    /// The limit on calls in flight is reached.
    InFlight,
    /// Other calls of its lane come first.
    Turn,
    /// The room is kept for other lanes, or its own lane is at its ceiling.
    Lane,
    /// After a refusal one call goes first.
    Probe,
    /// The gate is closed.
    Gate,
}

impl Hold {
    /// Low-cardinality name, for metrics and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level(dimension) | Self::Window(dimension) => dimension.name(),
            Self::InFlight => "in_flight",
            Self::Turn => "turn",
            Self::Lane => "lane",
            Self::Probe => "probe",
            Self::Gate => "gate",
        }
    }

    /// Converts a number in the scripts' replies (`lua/include/holds.lua`).
    pub(crate) fn from_code(code: i64) -> Option<Self> {
        const WINDOW: i64 = 10;
        Some(match code {
            0 => Self::Gate,
            5 => Self::InFlight,
            6 => Self::Turn,
            7 => Self::Probe,
            10 => Self::Lane,
            code if code > WINDOW => Self::Window(Dimension::from_code(code - WINDOW)?),
            code => Self::Level(Dimension::from_code(code)?),
        })
    }
}

/// A sentence for people.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level(dimension) | Self::Window(dimension) => {
                return write!(f, "the limit on {dimension} is used up");
            }
            Self::InFlight => "too many calls are in flight",
            Self::Turn => "other calls of its lane come first",
            Self::Lane => "the room is kept for other lanes, or its lane is at its ceiling",
            Self::Probe => "one call tests the model after a refusal",
            Self::Gate => "its gate is closed",
        })
    }
}

/// A store's answer to [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Reserved.
    Granted,
    /// Not yet.
    Wait {
        /// Time until it is worth asking again.
        wait: Duration,
        /// The cause of the wait.
        hold: Hold,
        /// Amount by which the call exceeds the room there.
        deficit: u64,
        /// Keeps the turn.
        ticket: Ticket,
        /// Time until its turn at the present rate; at least `wait`.
        turn: Duration,
    },
    /// The gate is closed.
    GateClosed {
        /// Time until it opens.
        wait: Duration,
        /// Keeps the turn.
        ticket: Ticket,
    },
    /// The provider gives nothing more until its day ends (a configured limit of the day is spent)
    /// or until the account is paid (the provider refused; the gate is closed until then).
    Exhausted {
        /// Time until the day ends, or until it is worth trying again.
        wait: Duration,
        /// The limit of the day that is spent; `None` if the provider refused.
        day: Option<DayLimit>,
    },
    /// The call never fits, after any wait.
    Never {
        /// The dimension that is too small.
        dimension: Dimension,
        /// The most that could be free.
        capacity: u64,
    },
}

/// The expected use of a template's next call, from past calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectation {
    /// Real over estimated input.
    pub input_ratio: f64,
    /// Expected output tokens, each past call weighted by its latency.
    pub output: u64,
    /// Input tokens that a cache gives and the provider does not count.
    pub cached: u64,
}

/// The end of a reservation.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The attempt's id.
    pub reservation: String,
    /// The amounts used; `None` releases the reservation of a call that was never sent.
    pub used: Option<Amounts>,
    /// The call's tokens, from which its template is learned.
    pub sample: Option<UsageSample>,
    /// Names similar calls, which are learned together.
    pub template: u64,
    /// The provider's signal about its load.
    pub signal: ProviderSignal,
    /// A pause, which closes the gate in the same step.
    pub pause: Option<Pause>,
    /// The provider's own count.
    pub meter: Meter,
    /// Input tokens from a cache that the provider does not count; `None` if it counts them or the
    /// number is unknown.
    pub cached: Option<u64>,
}

impl Settlement {
    /// A call that used these amounts.
    pub fn used(reservation: impl Into<String>, used: Amounts) -> Self {
        Self { used: Some(used), ..Self::released(reservation) }
    }

    /// A call that was never sent.
    pub fn released(reservation: impl Into<String>) -> Self {
        Self {
            reservation: reservation.into(),
            used: None,
            sample: None,
            template: 0,
            signal: ProviderSignal::None,
            pause: None,
            meter: Meter::default(),
            cached: None,
        }
    }

    /// The longest pause. An exhausted quota stays closed until its reset; any other pause ends
    /// after `pause_ttl`, even if the worker that imposed it is gone.
    pub(crate) fn longest_pause(&self, pause_ttl: Duration) -> Duration {
        if self.signal == ProviderSignal::Exhausted { MAX_EXHAUSTION } else { pause_ttl }
    }
}

/// A month's budget resets within a month; an operator who has paid sooner opens the gate by hand.
const MAX_EXHAUSTION: Duration = Duration::from_secs(31 * 86_400);

/// The signal in a provider's answer about its load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProviderSignal {
    /// Nothing.
    #[default]
    None,
    /// Refused for a rate: the limits are lowered for a while, and a single probe call goes first
    /// when the gate opens.
    RateLimited,
    /// Overloaded: fewer calls in flight for a while.
    Overloaded,
    /// The provider gives nothing more before the day ends or the account is paid.
    Exhausted,
    /// No answer came: the reservation stays charged, the call is no longer in flight, and nothing
    /// is learned from it.
    Lost,
}

/// A provider's own count, from its response headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meter {
    /// Use in its window.
    pub used: PerDimension<Option<u64>>,
    /// Its limits.
    pub limits: PerDimension<Option<u64>>,
    /// Time until the used amount is all available again.
    pub resets: PerDimension<Option<Duration>>,
}

impl Meter {
    /// The meter divided by `parts`, for a process with its own share of the quota.
    pub fn share(self, parts: u64) -> Self {
        let part = |amount: Option<u64>| amount.map(|amount| amount / parts.max(1));
        Self { used: self.used.map(part), limits: self.limits.map(part), ..self }
    }
}

/// New limits for a running fleet, as the provider states them.
pub type LimitChanges = PerLimit<Change>;

/// One call's tokens, estimated and real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageSample {
    /// Input tokens as estimated before any correction.
    pub estimated_input: u64,
    /// Real input tokens.
    pub input: u64,
    /// Real output tokens.
    pub output: u64,
}

/// A pause to impose on a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Length of the pause from now.
    pub length: Duration,
    /// The reason, for people: at most a line. No prompt, answer or document name.
    pub reason: String,
}

/// The result of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Done.
    Done,
    /// The reservation was settled before; nothing changed.
    Before,
    /// The reservation has left the window, or the store was restarted; nothing changed.
    Unknown,
}

/// A store of reservations. Each operation is one atomic step.
pub trait Store: Send + Sync {
    /// Reserves the amounts, or returns when to come back.
    fn reserve(
        &self,
        model: &ModelQuota,
        ask: &Ask,
    ) -> impl Future<Output = Result<(Decision, Option<Expectation>), Error>> + Send {
        async move {
            let answer = self.reserve_all(model, std::slice::from_ref(ask)).await?.pop();
            answer.ok_or_else(|| Error::Protocol("no answer".to_owned()))
        }
    }

    /// Like [`Self::reserve`], for several calls of one lane, tenant and template (some dozens at
    /// most) in one step. Each is answered as if it had asked alone, in this order.
    fn reserve_all(
        &self,
        model: &ModelQuota,
        asks: &[Ask],
    ) -> impl Future<Output = Result<Vec<(Decision, Option<Expectation>)>, Error>> + Send;

    /// Ends a reservation. The last part of the answer is the room that is left now, as the time
    /// that an even pace takes to use it.
    fn settle(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
    ) -> impl Future<Output = Result<(Settled, Option<Expectation>, Duration), Error>> + Send;

    /// Closes the gate for at least the pause's length. Returns the time for which it is closed
    /// now.
    fn pause(
        &self,
        model: &ModelQuota,
        pause: &Pause,
    ) -> impl Future<Output = Result<Duration, Error>> + Send;

    /// Opens the gate.
    fn resume(&self, model: &ModelQuota) -> impl Future<Output = Result<(), Error>> + Send;

    /// Sets limits for every program that shares this quota; the use in the window stays.
    fn set_limits(
        &self,
        model: &ModelQuota,
        changes: &LimitChanges,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Charges use in the last window without a reservation, while the store could not be asked.
    /// `drawn` is the part that has not refilled yet.
    fn charge(
        &self,
        model: &ModelQuota,
        name: &str,
        lane: usize,
        used: Amounts,
        drawn: Amounts,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Renews the lease of a call that may have outlived the window.
    fn renew(
        &self,
        model: &ModelQuota,
        reservation: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Removes a tenant's waiting callers from a lane.
    fn leave(
        &self,
        model: &ModelQuota,
        lane: usize,
        tenant: &Tenant,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Removes the caller with this ticket from its lane.
    fn give_up(
        &self,
        model: &ModelQuota,
        ask: &Ask,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Reads the quota's present state.
    fn inspect(&self, model: &ModelQuota) -> impl Future<Output = Result<Snapshot, Error>> + Send;
}
