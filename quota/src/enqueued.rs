//! Counts the input tokens of the fleet's batches that wait in a provider's batch API, which limits
//! them.

use std::time::Duration;

use tidegate_types::ModelId;

use crate::{error::Error, key::ModelKeys, quota::Quota, wire};

/// Any provider's batch ends within a day; an hour more to collect it. A batch that is not
/// collected stops counting.
const LIFE: Duration = Duration::from_secs(25 * 3_600);

/// The result of [`Quota::enqueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// The batch counts until [`Quota::dequeue`], for 25 hours at most.
    Entered,
    /// The batch does not fit together with the other batches.
    Full {
        /// Input tokens of the other batches.
        others: u64,
    },
}

impl Quota {
    /// Enters a provider's batch under `id` with its input tokens. `limit` is the maximum of the
    /// model's tokens that the provider lets wait. Entered again, the batch holds the new number. A
    /// single batch is entered with any number. Without a Redis nothing is counted.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn enqueue(
        &self,
        model: &ModelId,
        id: &str,
        tokens: u64,
        limit: u64,
    ) -> Result<Enqueued, Error> {
        let (entered, others) = self.run_script(model, id, tokens.max(1), limit).await?;
        Ok(if entered { Enqueued::Entered } else { Enqueued::Full { others } })
    }

    /// Removes a batch that has ended or was never submitted.
    ///
    /// # Errors
    /// The errors of [`Self::enqueue`]; the batch then counts until its time is over.
    pub async fn dequeue(&self, model: &ModelId, id: &str) -> Result<(), Error> {
        self.run_script(model, id, 0, 0).await.map(|_| ())
    }

    async fn run_script(
        &self,
        model: &ModelId,
        id: &str,
        tokens: u64,
        limit: u64,
    ) -> Result<(bool, u64), Error> {
        let model = self.find_model(model)?;
        let Some(redis) = &self.shared.redis else { return Ok((true, 0)) };
        let keys = [ModelKeys::new(&redis.prefix, &model.quota_name()).enqueued(&model.id)];
        let number = |number: u64| number.to_string().into_bytes();
        let arguments = [id.into(), number(tokens), number(limit), number(LIFE.as_secs())];
        let reply = redis.run(&redis.scripts.enqueue, &keys, &arguments).await?;
        let [entered, others] = wire::read_integers(&reply)?;
        Ok((entered == 1, wire::unsigned(others)))
    }
}
