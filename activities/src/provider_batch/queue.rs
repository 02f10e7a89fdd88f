//! What a model's batches hold, over the whole fleet, of the tokens that its provider lets wait.

use tidegate_quota::enqueued::Enqueued;
use tidegate_types::ModelId;

use crate::services::Services;

/// While less than this part of what may wait is free, nothing is read for another batch.
const LEAST_PART: u64 = 50;

/// What the provider lets wait of a model, in input tokens, where somebody has said.
pub(super) fn limit(services: &Services, model: &ModelId) -> Option<u64> {
    services.providers.defaults(model).and_then(|it| it.enqueued_batch_tokens)
}

/// Whether there is room for a batch at all; a little of it then counts until [`enqueue`] says how
/// much it is, or [`dequeue`].
pub(super) async fn has_room(services: &Services, model: &ModelId, id: &str) -> bool {
    let Some(limit) = limit(services, model) else { return true };
    enqueue(services, model, id, &[limit.div_ceil(LEAST_PART)]).await > 0
}

/// How many of the documents that a batch would hold, by their input tokens, find room beside what
/// waits already: the first of them, which then count until [`dequeue`]. All where nobody has said
/// what the provider lets wait, and while Redis is away: the provider says so itself then.
pub(super) async fn enqueue(
    services: &Services,
    model: &ModelId,
    id: &str,
    tokens: &[u64],
) -> usize {
    let Some(limit) = limit(services, model) else { return tokens.len() };
    let mut fitting = tokens.len();
    while fitting > 0 {
        let held = tokens[..fitting].iter().sum();
        match services.guard.quota.enqueue(model, id, held, limit).await {
            Ok(Enqueued::Entered) => return fitting,
            Ok(Enqueued::Full { others }) => {
                fitting = first(&tokens[..fitting], limit.saturating_sub(others));
            }
            Err(error) => {
                tracing::warn!(%model, %error, "what waits at the provider is not counted");
                return fitting;
            }
        }
    }
    0
}

/// A batch has ended, or was never handed in. Whether it counts no longer: it does for a day at most
/// while Redis cannot be asked.
pub(super) async fn dequeue(services: &Services, model: &ModelId, id: &str) -> bool {
    if limit(services, model).is_none() {
        return true;
    }
    let left = services.guard.quota.dequeue(model, id).await;
    left.inspect_err(|error| {
        tracing::warn!(%model, %error, "a batch that waits no longer is still counted");
    })
    .is_ok()
}

/// How many of these, less than all, have no more than `room` together.
fn first(tokens: &[u64], room: u64) -> usize {
    let mut sum = 0_u64;
    let fits = |tokens: &&u64| {
        sum = sum.saturating_add(**tokens);
        sum <= room
    };
    tokens.iter().take_while(fits).count().min(tokens.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_fit_and_never_all_once_all_were_refused() {
        assert_eq!(first(&[5, 5, 5], 11), 2);
        assert_eq!(first(&[5, 5, 5], 4), 0);
        assert_eq!(first(&[5, 5, 5], 99), 2, "somebody left meanwhile: the next question tells");
        assert_eq!(first(&[], 9), 0);
    }
}
