//! What is held for one call.

use std::sync::Arc;

use tracing::warn;

use super::Ledger;

/// Part of a budget, held for one call. Settle it with what the call cost.
///
/// * Dropped before [`Self::sent`]: given back, nothing was spent.
/// * Dropped after it: stays charged, because the provider may have to be paid.
#[derive(Debug)]
#[must_use = "a hold that is dropped is given back"]
pub struct Hold {
    /// US dollars that were left in the budget when this was held.
    pub left_usd: f64,
    ledger: Arc<Ledger>,
    key: String,
    id: String,
    returns: bool,
}

impl Hold {
    /// Made before anything is asked, so that whatever happens to the question, its hold is given
    /// back.
    pub(super) fn new(ledger: Arc<Ledger>, key: String, id: String) -> Self {
        Self { left_usd: 0.0, ledger, key, id, returns: true }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Nothing was held.
    pub(super) fn forget(mut self) {
        self.returns = false;
    }

    /// The request is about to leave: from here on it may have to be paid.
    pub fn sent(&mut self) {
        self.returns = false;
    }

    /// The call is over and cost this many US dollars. While Redis is away, it stays charged with
    /// what was held.
    pub async fn settle(mut self, cost_usd: f64) {
        self.returns = false;
        let (key, id) = (std::mem::take(&mut self.key), std::mem::take(&mut self.id));
        if let Err(error) = self.ledger.settle(key, id, cost_usd).await {
            warn!(%error, "a call's cost could not be settled; its budget stays charged with the most that it should cost");
        }
    }

    /// The call cost nothing.
    pub async fn release(self) {
        self.settle(0.0).await;
    }

    /// Nobody knows what the call cost (a time-out, a dropped connection): what was held stays
    /// charged.
    pub fn keep_charged(self) {
        self.forget();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Outside a runtime nothing can be sent; the hold then stays charged.
        if self.returns
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let ledger = Arc::clone(&self.ledger);
            let (key, id) = (std::mem::take(&mut self.key), std::mem::take(&mut self.id));
            runtime.spawn(async move {
                if let Err(error) = ledger.settle(key, id, 0.0).await {
                    warn!(%error, "a call that was never sent could not be given back to its budget, and stays charged");
                }
            });
        }
    }
}
