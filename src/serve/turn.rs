//! Tickets that clients carry, and names of turns for clients that know no tickets.

use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tidegate_providers::Operation;
use tidegate_quota::Ticket;
use tidegate_types::{ModelId, seconds_since_1970};

use super::keys::Holder;

/// A turn lapses if it is not taken within this time after it is due.
pub(super) const LAPSE_TIME: Duration = Duration::from_secs(10);

fn mac(holder: &Holder, parts: &[&[u8]]) -> Hmac<Sha256> {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(holder.secret()).expect("a key of any length");
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name under which the turn at a model is kept for a client that knows no tickets: it comes back
/// with an identical body.
pub(super) fn turn_name(
    holder: &Holder,
    operation: Operation,
    model: &ModelId,
    body: &[u8],
) -> String {
    let parts = [b"turn", operation.path().as_bytes(), model.as_str().as_bytes(), body];
    hex(&mac(holder, &parts).finalize().into_bytes()[..16])
}

/// A ticket as a client carries it: signed, for one model, with the time at which it lapses.
pub(super) fn sign_ticket(
    holder: &Holder,
    model: &ModelId,
    ticket: Ticket,
    wait: Duration,
) -> String {
    let lapses = seconds_since_1970(SystemTime::now() + wait + LAPSE_TIME);
    let text = format!("{}.{}.{lapses}", ticket.epoch, ticket.position);
    let bytes = mac(holder, &[b"ticket", model.as_str().as_bytes(), text.as_bytes()]).finalize();
    format!("{text}.{}", hex(&bytes.into_bytes()[..16]))
}

/// Reads a signed ticket. Returns the index of the first of these models that it was signed for, and the
/// ticket; `None` if it is for none of them or has lapsed.
pub(super) fn read_ticket(
    holder: &Holder,
    models: &[ModelId],
    text: &str,
) -> Option<(usize, Ticket)> {
    let (ticket, given) = text.trim().rsplit_once('.')?;
    let given: Vec<u8> = (0..given.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(given.get(at..at + 2)?, 16).ok())
        .collect::<Option<_>>()?;
    let index = models.iter().position(|model| {
        let mac = mac(holder, &[b"ticket", model.as_str().as_bytes(), ticket.as_bytes()]);
        given.len() == 16 && mac.verify_truncated_left(&given).is_ok()
    })?;
    let mut numbers = ticket.split('.').map(|number| number.parse::<u64>().ok());
    let (epoch, position, lapses) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let now = seconds_since_1970(SystemTime::now());
    (now <= lapses).then_some((index, Ticket { epoch, position }))
}
