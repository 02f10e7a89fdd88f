//! A model's input tokens that the fleet's batches have waiting at its provider, which limits them.

use tidegate_quota::enqueued::Enqueued;
use tidegate_types::ModelId;

use crate::services::Services;

/// Fraction of the limit, as 1 in this many, that must be free before documents are read for
/// another batch.
const LEAST_PART: u64 = 50;

/// Maximum input tokens of a model that may wait at its provider, if configured.
pub(super) fn limit(services: &Services, model: &ModelId) -> Option<u64> {
    services.providers.defaults(model).and_then(|it| it.enqueued_batch_tokens)
}

/// Whether there is room for a batch at all. Holds a little of it until [`enqueue`] or [`dequeue`]
/// sets the amount.
pub(super) async fn has_room(services: &Services, model: &ModelId, id: &str) -> bool {
    let Some(limit) = limit(services, model) else { return true };
    enqueue(services, model, id, &[limit.div_ceil(LEAST_PART)]).await > 0
}

/// Counts the first documents of a batch that fit beside the waiting tokens, by their input tokens,
/// and returns their number. They count until [`dequeue`]. Without a configured limit, and while
/// Redis is away, all documents fit: the provider then refuses by itself.
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

/// Releases the tokens of a batch that has ended, or was never submitted. Returns whether they are
/// released; while Redis is away they count for a day at most.
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

/// Number of the first of these tokens that have no more than `room` together; less than all.
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
