//! A document's result, as it lies under `results/`.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use tidegate_providers::Completion;
use tidegate_types::{DocumentId, ModelId, Usage};
use tidegate_workflows::contract::{CallCounts, DocumentOutcome};

use crate::{
    batch::source::{Document, store_failure},
    failure::Failure,
    storage::{Error, Location},
};

/// One answered document. Written once, whole or not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentResult {
    /// The document.
    pub id: DocumentId,
    /// Where it lay.
    pub uri: String,
    /// The model that was asked.
    pub model: ModelId,
    /// The model's answer.
    pub answer: String,
    /// The answers to each part, for a long document whose parts stand side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<String>>,
    /// `end_turn`, `max_tokens` when the answer was cut, or the provider's own word.
    pub stop_reason: String,
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// US dollars; absent where no price is known.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Calls that it took, the last one included; of documents that shared a call, the first has it
    /// and the others none.
    pub provider_calls: u32,
    /// RFC 3339.
    pub completed_at: String,
}

impl DocumentResult {
    /// A completion as a document's result.
    #[must_use]
    pub fn new(
        document: Document,
        model: &ModelId,
        completion: Completion,
        cost_usd: Option<f64>,
        provider_calls: u32,
    ) -> Self {
        let usage = completion.usage.unwrap_or_default();
        Self {
            id: document.id,
            uri: document.uri,
            model: model.clone(),
            answer: completion.answer,
            parts: None,
            stop_reason: completion.stop_reason.as_str().to_owned(),
            input_tokens: usage.input(),
            cached_input_tokens: usage.cache_read,
            output_tokens: usage.output,
            cost_usd,
            provider_calls,
            completed_at: now(),
        }
    }

    /// Where the result of `id` lies.
    #[must_use]
    pub fn location(output: &Location, id: &DocumentId) -> Location {
        output.child("results").child(&format!("{id}.json"))
    }

    /// The result that is there already.
    ///
    /// # Errors
    /// `Transient` when the store fails.
    pub async fn read(location: &Location) -> Result<Option<Self>, Failure> {
        match location.read().await {
            // A file that is no result of ours was put there by somebody else; it is kept and the
            // document is done anew elsewhere.
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                Failure::invalid_input(format!(
                    "{location} is there, but is no result of tidegate ({error}); move it away or choose another output"
                ))
            }),
            Err(Error::Missing(_)) => Ok(None),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// Writes the result unless one is there.
    ///
    /// # Errors
    /// `Transient` when the store fails.
    pub async fn create(&self, location: &Location) -> Result<(), Failure> {
        let json =
            serde_json::to_vec(self).map_err(|error| Failure::invalid_input(error.to_string()))?;
        match location.create(json).await {
            // Two attempts overlapped, and the other was faster. Its result is as good as ours.
            Ok(()) | Err(Error::Exists(_)) => Ok(()),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// When it was completed, in milliseconds since 1970.
    #[must_use]
    pub fn completed_millis(&self) -> i64 {
        DateTime::parse_from_rfc3339(&self.completed_at).map_or(0, |time| time.timestamp_millis())
    }

    /// What the workflow is told.
    #[must_use]
    pub fn outcome(&self, effort: CallCounts) -> DocumentOutcome {
        DocumentOutcome {
            skipped: false,
            parts: None,
            effort,
            input_tokens: self.input_tokens,
            cached_input_tokens: self.cached_input_tokens,
            output_tokens: self.output_tokens,
            cost_usd: self.cost_usd.unwrap_or(0.0),
        }
    }
}

/// What a call took, apart from any document.
#[must_use]
pub fn spent(usage: Option<&Usage>, cost_usd: Option<f64>) -> DocumentOutcome {
    let usage = usage.copied().unwrap_or_default();
    DocumentOutcome {
        input_tokens: usage.input(),
        cached_input_tokens: usage.cache_read,
        output_tokens: usage.output,
        cost_usd: cost_usd.unwrap_or(0.0),
        ..DocumentOutcome::default()
    }
}

/// Now, as RFC 3339 with milliseconds.
#[must_use]
pub fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}
