//! How far a batch is at this moment: its shards report to it now and then, and are asked here for
//! what they have not told yet.

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use tidegate_workflows::contract::{Live, LiveChild, Progress, Totals};

use super::{NoProgress, Temporal};

/// Shards that are asked, of a batch and of each group; what the others have reported is a little
/// older. Each question is an action, which Temporal Cloud charges for.
const ASKED: usize = 20;

/// So many are asked at a time.
const AT_ONCE: usize = 8;

impl Temporal {
    /// Asks a batch for its progress, and its shards.
    pub fn progress<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Progress, NoProgress>> {
        async move {
            let live = self.ask::<Live>(id, "live").await?;
            Ok(self.asked(live).await)
        }
        .boxed()
    }

    async fn asked(&self, live: Live) -> Progress {
        if live.running.is_empty() {
            return live.progress;
        }
        let progress = live.progress.clone();
        Progress { totals: self.totals(live).await, ..progress }
    }

    /// What has ended, and what those that run say of themselves.
    fn totals(&self, live: Live) -> BoxFuture<'_, Totals> {
        async move {
            let children = live.running.into_iter().enumerate();
            let mut totals = stream::iter(children)
                .map(|(number, child)| async move {
                    if number < ASKED { self.child(child).await } else { child.totals }
                })
                .buffer_unordered(AT_ONCE);
            let mut sum = live.ended;
            while let Some(totals) = totals.next().await {
                sum += totals;
            }
            sum
        }
        .boxed()
    }

    /// What it reported last, where it does not answer.
    async fn child(&self, child: LiveChild) -> Totals {
        if child.is_group {
            match self.ask::<Live>(&child.id, "live").await {
                Ok(live) => self.totals(live).await,
                Err(_) => child.totals,
            }
        } else {
            self.ask(&child.id, "progress").await.unwrap_or(child.totals)
        }
    }
}
