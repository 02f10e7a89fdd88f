//! The reason why a call was refused admission.

use std::time::Duration;

use tidegate_types::{Lane, ModelId};

use crate::{conversions::format_wait, dimension::Dimension, request::Ticket, store::Hold};

/// The reason why [`crate::Quota::admit`] gave no permit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// There is no room yet, and the turn is too far away to wait for it here. Come back after
    /// `wait` with the ticket.
    #[error("{model} has no room for {}: {hold}", format_wait(*.wait))]
    Wait {
        /// The requested model.
        model: ModelId,
        /// Time until it is worth asking again.
        wait: Duration,
        /// The cause of the wait.
        hold: Hold,
        /// Amount by which it exceeds the room there.
        deficit: u64,
        /// Keeps the turn.
        ticket: Ticket,
        /// Time until its turn at the present rate; at least `wait`.
        turn: Duration,
    },
    /// The gate is closed for the whole fleet. Come back after `wait`, which already includes a
    /// random part.
    #[error("the gate of {model} is closed for {}; `tidegate quota {model}` says why", format_wait(*.wait))]
    GateClosed {
        /// The requested model.
        model: ModelId,
        /// Time until it is worth asking again, the random part included.
        wait: Duration,
        /// Keeps the turn.
        ticket: Ticket,
    },
    /// Redis is away, and this worker cannot decide alone: it has never reached Redis and does not
    /// know how many workers share the limits, or the call is larger than its own share of them.
    #[error(
        "{model} cannot be shared without Redis ({why}); next try in {}",
        format_wait(*.wait)
    )]
    Undecided {
        /// The requested model.
        model: ModelId,
        /// Time until it is worth asking again, a random part included.
        wait: Duration,
        /// The ticket of an earlier refusal, if the call has one.
        ticket: Option<Ticket>,
        /// What Redis failed with, or what this worker cannot decide.
        why: String,
    },
    /// The provider gives nothing more before its day ends or the account is paid. Asking again
    /// before `wait` is useless.
    #[error("{model} gives nothing more for {}: {reason}", format_wait(*.wait))]
    Exhausted {
        /// The requested model.
        model: ModelId,
        /// Time until the day ends, or until it is worth trying again.
        wait: Duration,
        /// The spent limit, and the remedy.
        reason: String,
    },
    /// The call is larger than the whole limit: waiting does not help.
    #[error(
        "the call needs {asked} {dimension} of {model}, of which {capacity} is the most that is ever free; {}",
        too_small(*.set)
    )]
    NeverFits {
        /// The requested model.
        model: ModelId,
        /// The dimension that is too small.
        dimension: Dimension,
        /// The amount that the call needs.
        asked: u64,
        /// The most that could be free.
        capacity: u64,
        /// The limit, if an operator has set it while the fleet runs.
        set: Option<u64>,
    },
    /// This program is older than the one that stores the quota: another worker must take the call.
    #[error("{0}")]
    Outdated(String),
    /// No limits are configured for the model.
    #[error("no limits are configured for {0}; add a [models.\"{0}\"] section")]
    UnknownModel(ModelId),
    /// No such lane is configured.
    #[error("there is no lane \"{0}\"; add a [lanes.{0}] section")]
    UnknownLane(Lane),
}

impl Refused {
    /// Time until it is worth asking again, and the ticket to ask with; `None` if asking again is
    /// useless here.
    pub fn comes_back(&self) -> Option<(Duration, Option<Ticket>)> {
        match *self {
            Self::Wait { wait, ticket, .. } | Self::GateClosed { wait, ticket, .. } => {
                Some((wait, Some(ticket)))
            }
            Self::Undecided { wait, ticket, .. } => Some((wait, ticket)),
            Self::Exhausted { .. }
            | Self::NeverFits { .. }
            | Self::Outdated(_)
            | Self::UnknownModel(_)
            | Self::UnknownLane(_) => None,
        }
    }

    /// Time until the call's turn: after a wait at the present rate, else as [`Self::comes_back`].
    pub fn turn(&self) -> Option<Duration> {
        match *self {
            Self::Wait { turn, .. } => Some(turn),
            _ => self.comes_back().map(|(wait, _)| wait),
        }
    }
}

fn too_small(set: Option<u64>) -> String {
    match set {
        Some(limit) => format!("an operator has set that limit to {limit}"),
        None => "make it smaller or raise the limit".to_owned(),
    }
}
