//! What a model's batches hold, over the whole fleet, of the tokens that its provider lets wait.

use tidegate_quota::enqueued::Enqueued;
use tidegate_types::ModelId;

use crate::services::Services;

/// How many of the documents that a batch would hold, by their input tokens, find room beside what
/// waits already: the first of them, which then count until [`leave`]. All where nobody has said
/// what the provider lets wait, and while Redis is away: the provider says so itself then.
pub(super) async fn enter(services: &Services, model: &ModelId, id: &str, tokens: &[u64]) -> usize {
    let limit = services.providers.defaults(model).and_then(|it| it.enqueued_batch_tokens);
    let Some(limit) = limit else { return tokens.len() };
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
                return tokens.len();
            }
        }
    }
    0
}

/// A batch has ended, or was never handed in.
pub(super) async fn leave(services: &Services, model: &ModelId, id: &str) {
    if services.providers.defaults(model).and_then(|it| it.enqueued_batch_tokens).is_none() {
        return;
    }
    if let Err(error) = services.guard.quota.dequeue(model, id).await {
        tracing::warn!(%model, %error, "a batch that waits no longer counts for a day");
    }
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
