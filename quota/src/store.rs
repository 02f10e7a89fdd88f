//! What a store of quota can do. [`crate::memory::Store`] and [`crate::redis_store::Store`] are the
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

/// One question to a store: may this call go?
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Names the attempt; the same id is admitted once.
    pub reservation: String,
    /// The lane's place in [`crate::Lanes`].
    pub lane: usize,
    /// What to reserve.
    pub amounts: Amounts,
    /// From an earlier refusal.
    pub ticket: Option<Ticket>,
    /// Calls that learn from each other.
    pub template: u64,
    /// Whether to be told what is expected of such calls.
    pub curious: bool,
    /// Whose call it is: the tenants of a lane get equal parts of its tokens.
    pub tenant: Tenant,
}

/// What holds a call that has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// So much is drawn ahead of the rate that the call finds no room.
    Level(Dimension),
    /// The window is full.
    Window(Dimension),
    /// As many calls are in flight as may be.
    InFlight,
    /// Others of its lane come first.
    Turn,
    /// What there is is other lanes', or its own lane may have no more.
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

    /// By its number in the scripts' replies (`lua/README.md`).
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

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A store's answer to [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Reserved.
    Granted,
    /// Not yet.
    Wait {
        /// Until it is worth asking again.
        wait: Duration,
        /// What holds it.
        hold: Hold,
        /// By how much it is too large for what holds it.
        deficit: u64,
        /// Keeps the turn.
        ticket: Ticket,
    },
    /// The gate is closed.
    Paused {
        /// Until it opens.
        wait: Duration,
        /// The ticket that was shown, if it is still good.
        ticket: Option<Ticket>,
    },
    /// Nothing before the day ends, or before the account is paid: the gate is closed until then.
    Exhausted {
        /// Until the day's end, or until it is worth trying again.
        wait: Duration,
        /// Our own limit that is spent; `None` if the provider said so.
        day: Option<DayLimit>,
    },
    /// Never, however long one waits.
    Never {
        /// What binds.
        dimension: Dimension,
        /// The most that could be free.
        capacity: u64,
    },
}

/// What past calls of a template teach about the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectation {
    /// Real over estimated input.
    pub input_ratio: f64,
    /// Expected output tokens, each past call weighted by its latency.
    pub output: u64,
    /// Input tokens that a cache gives and the provider does not count.
    pub cached: u64,
}

/// How a reservation ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The attempt.
    pub reservation: String,
    /// What was used; `None` releases the reservation as never sent.
    pub used: Option<Amounts>,
    /// What this call teaches.
    pub sample: Option<UsageSample>,
    /// Calls that learn from each other.
    pub template: u64,
    /// What the provider said of its load.
    pub signal: ProviderSignal,
    /// Closes the gate in the same step.
    pub pause: Option<Pause>,
    /// What the provider's own meter says.
    pub meter: Meter,
    /// Input tokens that a cache gave and the provider does not count; `None` where it counts them,
    /// and where it is not known.
    pub cached: Option<u64>,
}

impl Settlement {
    /// The call used so much.
    pub fn used(reservation: impl Into<String>, used: Amounts) -> Self {
        Self { used: Some(used), ..Self::released(reservation) }
    }

    /// The call was never sent.
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

    /// What is exhausted stays closed until its reset; any other pause ends after `pause_ttl`, even
    /// if the worker that imposed it is gone.
    pub(crate) fn longest_pause(&self, pause_ttl: Duration) -> Duration {
        if self.signal == ProviderSignal::Exhausted { MAX_EXHAUSTION } else { pause_ttl }
    }
}

/// A month's budget resets within a month; an operator who has paid sooner opens the gate by hand.
const MAX_EXHAUSTION: Duration = Duration::from_secs(31 * 86_400);

/// What a provider's answer says about its load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProviderSignal {
    /// Nothing.
    #[default]
    None,
    /// Refused for a rate: the limits are lowered for a while, and one call goes first when the
    /// gate opens.
    Refused,
    /// Overloaded: fewer calls in flight for a while.
    Overloaded,
    /// Nothing more before the day ends or the account is paid.
    Exhausted,
    /// No answer came: what was reserved stays charged, the call is no longer in flight, and
    /// nothing is learned from it.
    Lost,
}

/// A provider's own count, as its response headers tell it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meter {
    /// Use in its window.
    pub used: PerDimension<Option<u64>>,
    /// Its limits.
    pub limits: PerDimension<Option<u64>>,
    /// How long until what is used is all there again.
    pub resets: PerDimension<Option<Duration>>,
}

impl Meter {
    /// What it tells a process that keeps to its part of the quota.
    pub fn part(self, parts: u64) -> Self {
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
    /// How long from now.
    pub length: Duration,
    /// Why, for people: at most a line. No prompt, answer or document name.
    pub reason: String,
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Done.
    Done,
    /// It had been settled before; nothing changed.
    Before,
    /// The reservation has left the window, or the store was restarted; nothing changed.
    Unknown,
}

/// Keeps reservations, one atomic step a call.
pub trait Store: Send + Sync {
    /// Reserves, or says when to come back.
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

    /// The same for calls of one lane, tenant and template, of which there may be some dozens: one
    /// step, which answers each as if they had been asked about one after the other.
    fn reserve_all(
        &self,
        model: &ModelQuota,
        asks: &[Ask],
    ) -> impl Future<Output = Result<Vec<(Decision, Option<Expectation>)>, Error>> + Send;

    /// Ends a reservation. Last in the answer: how much may go now, as the time that it takes at an even
    /// pace.
    fn settle(
        &self,
        model: &ModelQuota,
        settlement: &Settlement,
    ) -> impl Future<Output = Result<(Settled, Option<Expectation>, Duration), Error>> + Send;

    /// Closes the gate for at least so long, and says for how long it is closed now.
    fn pause(
        &self,
        model: &ModelQuota,
        pause: &Pause,
    ) -> impl Future<Output = Result<Duration, Error>> + Send;

    /// Opens the gate.
    fn resume(&self, model: &ModelQuota) -> impl Future<Output = Result<(), Error>> + Send;

    /// Sets limits for every program that shares this quota; use in the window stays as it is.
    fn set_limits(
        &self,
        model: &ModelQuota,
        changes: &LimitChanges,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Charges what was used in a window without a reservation, while the store could not be asked.
    /// `drawn` is how much of that has not refilled yet.
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

    /// Callers of a tenant that wait in a lane come no more.
    fn leave(
        &self,
        model: &ModelQuota,
        lane: usize,
        tenant: &Tenant,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The caller that waits with this ticket comes no more.
    fn give_up(
        &self,
        model: &ModelQuota,
        ask: &Ask,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Tells what the quota looks like.
    fn inspect(&self, model: &ModelQuota) -> impl Future<Output = Result<Snapshot, Error>> + Send;
}
