//! A refused caller's turn.

use serde::{Deserialize, Serialize};

/// Keeps a caller's turn in its lane: whoever asks next with it stands where the first asker stood.
///
/// It means nothing outside the store that gave it: `epoch` tells one life of the store from the
/// next, so that no ticket waits for ever after a restart. A ticket that is never redeemed harms
/// nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The life of the store, as its time of birth in microseconds.
    pub epoch: u64,
    /// The place in the lane's virtual time, in microseconds.
    pub position: u64,
}
