//! A batch on its way, until it ends or nobody watches any more.

use std::{future::Future, time::Duration};

use crate::temporal::{Ending, Silent, Temporal};

use super::bar::Bar;

/// How often a batch is asked.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// After so many questions without an answer, the reason is shown.
const PATIENCE: u32 = 4;

/// Why the watching ended.
#[derive(Debug)]
pub(super) enum Followed {
    /// The batch ended.
    Ended(Ending),
    /// Nobody watches any more; the batch goes on.
    Detached,
}

/// Shows a batch's progress on stderr.
pub(super) async fn follow(
    temporal: &Temporal,
    id: &str,
    detach: impl Future<Output = ()>,
) -> anyhow::Result<Followed> {
    let mut bar = Bar::new();
    let followed = tokio::select! {
        ending = temporal.ending(id) => ending.map(Followed::Ended),
        () = detach => Ok(Followed::Detached),
        never = show(temporal, id, &mut bar) => match never {},
    };
    bar.end();
    followed
}

async fn show(temporal: &Temporal, id: &str, bar: &mut Bar) -> std::convert::Infallible {
    let mut unanswered = 0;
    loop {
        match temporal.progress(id).await {
            Ok(progress) => {
                unanswered = 0;
                bar.show(&progress);
            }
            // Waiting for an answer took seconds already.
            Err(Silent::NoWorker) => bar.note(&no_worker(temporal)),
            // A batch that has just begun cannot answer yet.
            Err(Silent::Unknown) => unanswered += 1,
            Err(Silent::Failed(error)) => {
                unanswered += 1;
                if unanswered >= PATIENCE {
                    bar.note(&format!("no progress to be had: {error:#}"));
                }
            }
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

pub(super) fn no_worker(temporal: &Temporal) -> String {
    format!(
        "no worker answers on the task queue \"{}\"; start one with `tidegate worker`",
        temporal.task_queue()
    )
}
