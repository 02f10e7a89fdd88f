//! The forecast of a batch, before anything is spent.

use serde::{Deserialize, Serialize};
use tidegate_providers::{Error, batch};
use tidegate_quota::Usd;
use tidegate_types::ModelId;
use tidegate_workflows::contract::FailureType;

use crate::{failure::Failure, storage::Location};

/// Seconds of a provider's batch: seldom less than a minute; it is given up after a day.
const BATCH_SECONDS: (f64, f64) = (60.0, 86_400.0);

/// A figure that is not known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Seldom undercut.
    pub from: f64,
    /// Seldom exceeded.
    pub to: f64,
}

impl Range {
    pub(crate) fn times(self, factor: f64) -> Self {
        self.by(Self { from: factor, to: factor })
    }

    pub(crate) fn by(self, factors: Self) -> Self {
        Self { from: self.from * factors.from, to: self.to * factors.to }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { from: self.from + other.from, to: self.to + other.to }
    }
}

/// The expected use of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// All documents, including those that are done already.
    pub documents: u64,
    /// Documents of these without an answer yet, as far as the sealed parts show it; `None` if it is not
    /// known.
    #[serde(skip)]
    pub asked: Option<u64>,
    /// Documents that were read for the forecast.
    pub sampled: u64,
    /// How many of these could not be read.
    pub unreadable: u64,
    /// Tokens, cached or not.
    pub input_tokens: Range,
    /// Tokens.
    pub output_tokens: Range,
    /// US dollars. Unknown where a model has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Range>,
    /// Seconds. Unknown where no limit is a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Range>,
    /// Documents in one call; 1 where they do not share calls.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pack: u32,
    /// Calls of a document, where its answers are checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Range>,
    /// The documents go through their provider's batch API.
    #[serde(rename = "economy", default, skip_serializing_if = "std::ops::Not::not")]
    pub provider_batch: bool,
    /// Actions that Temporal Cloud charges for, without queries by viewers of the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporal_actions: Option<Range>,
    /// Notes for the author: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Reason why documents that could wait are planned without the provider's batch API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_price: Option<String>,
    /// Whether the forecast was made from the batch's first documents, before the others were
    /// listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_the_first: bool,
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Forecast {
    /// The forecast for the provider's batch API: at its price, and with the bounds on its time,
    /// because nothing closer is known.
    pub fn in_provider_batch(self) -> Self {
        Self {
            cost_usd: self.cost_usd.map(|usd| usd.times(batch::PRICE)),
            seconds: Some(Range { from: BATCH_SECONDS.0, to: BATCH_SECONDS.1 }),
            provider_batch: true,
            ..self
        }
    }

    /// Scales the forecast to this many documents of the same kind.
    pub fn for_documents(self, documents: u64) -> Self {
        let factor = documents as f64 / self.documents.max(1) as f64;
        Self {
            documents,
            input_tokens: self.input_tokens.times(factor),
            output_tokens: self.output_tokens.times(factor),
            cost_usd: self.cost_usd.map(|usd| usd.times(factor)),
            temporal_actions: self.temporal_actions.map(|actions| actions.times(factor)),
            seconds: match self.provider_batch {
                true => self.seconds,
                false => self.seconds.map(|seconds| seconds.times(factor)),
            },
            ..self
        }
    }

    /// The forecast for the documents that are to be asked.
    pub(crate) fn of_asked(&self) -> Self {
        self.clone().for_documents(self.asked.unwrap_or(self.documents))
    }

    /// Fails a batch that cannot stay within its budget, before it spends any of it.
    ///
    /// # Errors
    /// `BudgetExceeded`.
    pub fn check(&self, budget_usd: Option<f64>) -> Result<(), Failure> {
        match (budget_usd, self.of_asked().cost_usd) {
            (Some(budget), Some(cost)) if cost.from > budget => Err(Failure::never(
                FailureType::BudgetExceeded,
                format!(
                    "the batch would cost {} to {}, and its budget is {}; nothing was spent; raise budget_usd, lower max_output_tokens, or choose another model or fewer documents",
                    Usd(cost.from),
                    Usd(cost.to),
                    Usd(budget)
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// The object that a shard leaves in the job's folder if the provider's batch API did not take its
/// documents.
const OBJECT: &str = "full-price.txt";

/// Records that the provider refused the batch, so that its documents take the direct path. If this
/// cannot be written, the reason is only in the worker's log.
pub(crate) async fn record_refusal(folder: &Location, model: &ModelId, error: &Error) {
    let why = format!(
        "documents that could wait were asked directly, at the full price: {} takes no batches ({})",
        model.provider(),
        error.message
    );
    if let Err(error) = folder.child(OBJECT).write(why).await {
        tracing::warn!(%error, "that documents cost the full price is not in the report");
    }
}

/// The reason that a shard of this job has recorded.
pub(crate) async fn recorded_reason(folder: &Location) -> Option<String> {
    let said = folder.child(OBJECT).read_if_there().await.ok()??;
    Some(String::from_utf8_lossy(&said).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn a_budget_below_the_least_is_refused() {
        let forecast = Forecast {
            documents: 10,
            asked: None,
            sampled: 10,
            unreadable: 0,
            input_tokens: Range { from: 1.0, to: 2.0 },
            output_tokens: Range { from: 1.0, to: 2.0 },
            cost_usd: Some(Range { from: 2.0, to: 5.0 }),
            seconds: None,
            pack: 1,
            calls: None,
            provider_batch: false,
            temporal_actions: None,
            notes: Vec::new(),
            full_price: None,
            of_the_first: false,
        };
        let tenfold = forecast.clone().for_documents(100);
        assert_eq!(tenfold.cost_usd, Some(Range { from: 20.0, to: 50.0 }));
        assert!(forecast.check(None).is_ok() && forecast.check(Some(3.0)).is_ok());
        let failure = forecast.check(Some(1.0)).unwrap_err();
        assert!(
            failure.kind == FailureType::BudgetExceeded
                && failure.message.contains("2.00 USD to 5.00 USD, and its budget is 1.00 USD"),
            "{failure}"
        );
        let half = Forecast { asked: Some(5), ..forecast.clone() };
        assert!(half.check(Some(1.0)).is_ok() && half.check(Some(0.9)).is_err());
        assert!(
            Forecast { cost_usd: None, ..forecast }.check(Some(1.0)).is_ok(),
            "without a price there is nothing to compare"
        );
    }
}

#[cfg(test)]
mod full_price_tests {
    use tidegate_providers::Charged;

    use super::*;

    #[tokio::test]
    async fn what_a_shard_left_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = format!("file://{}/", folder.path().canonicalize().unwrap().display());
        let folder = crate::Storage::new([root.as_str()]).unwrap().resolve(&root).unwrap();
        assert_eq!(recorded_reason(&folder).await, None);
        let error = Error::no_reply("404, no such page".to_owned(), Charged::No);
        // Two shards write the same object: the last one stays.
        for _ in 0..2 {
            record_refusal(&folder, &"odd:m".parse().unwrap(), &error).await;
        }
        let said = recorded_reason(&folder).await.unwrap();
        assert!(
            said.ends_with("at the full price: odd takes no batches (404, no such page)"),
            "{said}"
        );
    }
}
