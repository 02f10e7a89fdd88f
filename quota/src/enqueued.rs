//! What a fleet's batches hold of the input tokens that a provider lets wait in its batch API.

use std::time::Duration;

use tidegate_types::ModelId;

use crate::{error::Error, key::ModelKeys, quota::Quota, wire};

/// A day, in which every provider's batch ends, and an hour until it is collected. A batch that
/// nobody collects counts no longer.
const LIFE: Duration = Duration::from_secs(25 * 3_600);

/// What became of a batch that was to be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// It counts until [`Quota::dequeue`], for 25 hours at most.
    Entered,
    /// It does not fit beside the others, which hold so many tokens.
    Full {
        /// Input tokens.
        others: u64,
    },
}

impl Quota {
    /// Enters a provider's batch by an `id` of its own, with its input tokens; `limit` is what the
    /// provider lets wait of the model. Again, with fewer tokens, the same batch holds less. One that
    /// is alone is entered whatever it holds. Without a Redis nothing is counted.
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
        let (entered, others) = self.ask(model, id, tokens.max(1), limit).await?;
        Ok(if entered { Enqueued::Entered } else { Enqueued::Full { others } })
    }

    /// A batch has ended, or was never handed in.
    ///
    /// # Errors
    /// As [`Self::enqueue`]; then it counts until its time is over.
    pub async fn dequeue(&self, model: &ModelId, id: &str) -> Result<(), Error> {
        self.ask(model, id, 0, 0).await.map(|_| ())
    }

    async fn ask(
        &self,
        model: &ModelId,
        id: &str,
        tokens: u64,
        limit: u64,
    ) -> Result<(bool, u64), Error> {
        let model = self.model(model)?;
        let Some(redis) = &self.shared.redis else { return Ok((true, 0)) };
        let keys = [ModelKeys::new(&redis.prefix, &model.quota_name()).enqueued(&model.id)];
        let number = |number: u64| number.to_string().into_bytes();
        let arguments = [id.into(), number(tokens), number(limit), number(LIFE.as_secs())];
        let reply = redis.run(&redis.scripts.enqueue, &keys, &arguments).await?;
        let [entered, others] = wire::integers(&reply)?;
        Ok((entered == 1, wire::unsigned(others)))
    }
}
