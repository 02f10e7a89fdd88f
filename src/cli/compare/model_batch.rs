//! The batch in which one model is asked.

use anyhow::Context;
use tidegate_activities::Services;
use tidegate_types::ModelId;
use tidegate_workflows::{
    contract::{Job, Progress},
    input::{self, BatchInput},
};

use crate::{
    cli::{
        exit::usage,
        fleet::Fleet,
        follow::completed,
        output, paths,
        sample_report::{self, Answered},
    },
    signal,
    temporal::{self, Temporal},
};

/// The batch of one model.
pub(super) struct ModelBatch {
    pub(super) model: ModelId,
    pub(super) id: String,
    pub(super) input: BatchInput,
    pub(super) job: Job,
}

impl ModelBatch {
    pub(super) fn new(model: ModelId, input: BatchInput) -> anyhow::Result<Self> {
        let job = input::parse(&temporal::json(&input)).map_err(usage)?.job;
        let source = input.source.as_deref().unwrap_or_default();
        let id = paths::batch_id(source, chrono::Utc::now(), rand::random());
        Ok(Self { model, id, input, job })
    }

    pub(super) async fn start(&self, temporal: &Temporal) -> anyhow::Result<()> {
        temporal.start(&self.id, &self.input).await?;
        let id = output::styled(output::STRONG, &self.id);
        output::print_message(&format!("{}: batch {id}", self.model));
        Ok(())
    }

    /// Follows it to its end; `None` if the user detached.
    pub(super) async fn completed(&self, fleet: Fleet<'_>) -> anyhow::Result<Option<Progress>> {
        let hint = |_: &str| Some("; run the same command to continue it".to_owned());
        let progress = completed(fleet, &self.id, signal::stop(), hint).await?;
        if progress.is_none() {
            output::print_message(
                "detached; the batches go on. Run the same command later to compare; no answer is bought twice",
            );
        }
        Ok(progress)
    }

    /// The results in its output.
    pub(super) async fn answers(&self, services: &Services) -> anyhow::Result<Vec<Answered>> {
        let place = services.storage.resolve(&self.job.output).context("output")?;
        let lines = place.child("results.jsonl").read_if_there().await;
        let lines = lines.with_context(|| format!("reading the answers of {}", self.model))?;
        sample_report::lines(&lines.unwrap_or_default())
    }
}
