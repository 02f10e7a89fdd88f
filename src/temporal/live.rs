//! A batch's progress at this moment. Shards report to their batch from time to time; here they are also
//! asked directly.

use futures::{StreamExt, stream};
use tidegate_workflows::contract::{Live, LiveChild, Progress, Totals};

use super::{NoProgress, Temporal};

/// Maximum number of children that are asked, of a batch and of each group; for the others, the last
/// report counts. Each query is an action, which Temporal Cloud charges for.
const MAX_ASKED: usize = 20;

/// Queries that are sent at once.
const AT_ONCE: usize = 8;

impl Temporal {
    /// Asks a batch and its shards for their progress.
    pub async fn progress(&self, id: &str) -> Result<Progress, NoProgress> {
        let live = self.ask::<Live>(id, "live").await?;
        if live.running.is_empty() {
            return Ok(live.progress);
        }
        let progress = live.progress.clone();
        Ok(Progress { totals: self.sum_totals(live).await, ..progress })
    }

    /// Totals of ended children, plus the totals that running children answer.
    async fn sum_totals(&self, live: Live) -> Totals {
        let children = live.running.into_iter().enumerate();
        let mut totals = stream::iter(children)
            .map(|(number, child)| async move {
                if number < MAX_ASKED { self.child_totals(child).await } else { child.totals }
            })
            .buffer_unordered(AT_ONCE);
        let mut sum = live.ended;
        while let Some(totals) = totals.next().await {
            sum += totals;
        }
        sum
    }

    /// A child's totals; if it does not answer, those of its last report.
    async fn child_totals(&self, child: LiveChild) -> Totals {
        if child.is_group {
            match self.ask::<Live>(&child.id, "live").await {
                Ok(live) => Box::pin(self.sum_totals(live)).await,
                Err(_) => child.totals,
            }
        } else {
            self.ask(&child.id, "progress").await.unwrap_or(child.totals)
        }
    }
}
