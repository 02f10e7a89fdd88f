//! Why a call was not admitted.

use std::time::Duration;

use tidegate_types::{Lane, ModelId};

use crate::{dimension::Dimension, number::told, request::Ticket, store::Hold};

/// Why [`crate::Quota::admit`] gave no permit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// No quota yet, and the turn is too far away to wait for it here. Come back after `wait` with
    /// the ticket.
    #[error("no quota for {model} for {}: {hold} holds it", told(*.wait))]
    Wait {
        /// The model asked for.
        model: ModelId,
        /// Until it is worth asking again.
        wait: Duration,
        /// What holds it.
        hold: Hold,
        /// By how much it is too large for that.
        deficit: u64,
        /// Keeps the turn.
        ticket: Ticket,
    },
    /// The gate is closed for the whole fleet. Come back after `wait`, which is already spread.
    #[error("{model} is paused for {}", told(*.wait))]
    Paused {
        /// The model asked for.
        model: ModelId,
        /// Until it is worth asking again, with the caller's own jitter.
        wait: Duration,
        /// Keeps the turn that an earlier refusal gave.
        ticket: Option<Ticket>,
    },
    /// Nothing more before the provider's day ends or the account is paid. Asking again before
    /// `wait` is of no use.
    #[error("{model} gives nothing more for {}: {reason}", told(*.wait))]
    Exhausted {
        /// The model asked for.
        model: ModelId,
        /// Until the day's end, or until it is worth trying again.
        wait: Duration,
        /// What is spent, and what a person can do.
        reason: String,
    },
    /// The call is larger than the whole limit: waiting does not help.
    #[error(
        "the call needs {asked} {dimension} of {model}, of which {capacity} is the most that is ever free; {}",
        too_small(*.set)
    )]
    NeverFits {
        /// The model asked for.
        model: ModelId,
        /// What binds.
        dimension: Dimension,
        /// What the call needs.
        asked: u64,
        /// The most that could be free.
        capacity: u64,
        /// The limit that an operator has set while the fleet runs, if it is that one.
        set: Option<u64>,
    },
    /// This program is older than the one that keeps the quota: another worker must take the call.
    #[error("{0}")]
    Outdated(String),
    /// No limits are configured for the model.
    #[error("no limits are configured for {0}; add a [models.\"{0}\"] section")]
    UnknownModel(ModelId),
    /// No such lane is configured.
    #[error("there is no lane \"{0}\"; add a [lanes.{0}] section")]
    UnknownLane(Lane),
}

fn too_small(set: Option<u64>) -> String {
    match set {
        Some(limit) => format!("an operator has set that limit to {limit}"),
        None => "make it smaller or raise the limit".to_owned(),
    }
}
