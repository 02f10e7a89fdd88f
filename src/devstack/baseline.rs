//! The load without tidegate: many independent callers, each under two layers of retries.
//!
//! The inner layer repeats the vendors' SDKs: two retries, after 0.5 s doubled up to 8 s and reduced by
//! up to a quarter, or after the time that the provider asks for. The outer layer is a usual wrapper or a
//! durable queue: exponential backoff from 1 s up to a minute.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use futures::{StreamExt, stream};
use serde_json::json;

/// The SDK's default retries.
const HIDDEN_RETRIES: u32 = 2;

/// The number of rounds of the outer layer.
const ROUNDS: u32 = 12;

/// The load of each caller.
#[derive(Debug, Clone)]
pub struct Load {
    /// The provider, which speaks Anthropic's Messages.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The instructions for each document.
    pub instructions: String,
    /// For each document.
    pub max_output_tokens: u32,
}

/// Calls the provider for each document until it answers. `done` gets each document that ended, with its
/// answer if there is one.
///
/// # Errors
/// A document cannot be read, or the HTTP client cannot be made.
pub async fn run(
    load: Load,
    documents: Vec<PathBuf>,
    callers: usize,
    mut done: impl FnMut(PathBuf, Option<String>),
) -> anyhow::Result<()> {
    let http =
        reqwest::Client::builder().no_proxy().build().context("the HTTP client cannot be made")?;
    let calls = documents.into_iter().map(|path| {
        let (http, load) = (&http, &load);
        async move {
            let bytes = tokio::fs::read(&path)
                .await
                .with_context(|| format!("{} cannot be read", path.display()))?;
            anyhow::Ok((answer(http, load, &String::from_utf8_lossy(&bytes)).await, path))
        }
    });
    let mut ended = stream::iter(calls).buffer_unordered(callers);
    while let Some(answered) = ended.next().await {
        let (answer, path) = answered?;
        done(path, answer);
    }
    Ok(())
}

/// The outer layer of retries.
async fn answer(http: &reqwest::Client, load: &Load, document: &str) -> Option<String> {
    for round in 0..ROUNDS {
        if let Some(answer) = sdk_call(http, load, document).await {
            return Some(answer);
        }
        tokio::time::sleep(outer_delay(round)).await;
    }
    None
}

/// One call of an SDK: up to three requests.
async fn sdk_call(http: &reqwest::Client, load: &Load, document: &str) -> Option<String> {
    for retry in 0..=HIDDEN_RETRIES {
        let asked = match call(http, load, document).await {
            Ok(answer) => return Some(answer),
            Err(asked) => asked,
        };
        if retry < HIDDEN_RETRIES {
            tokio::time::sleep(hidden_delay(retry, asked, rand::random())).await;
        }
    }
    None
}

/// The answer, or the wait that the provider asks for.
async fn call(
    http: &reqwest::Client,
    load: &Load,
    document: &str,
) -> Result<String, Option<Duration>> {
    let body = json!({
        "model": load.model,
        "max_tokens": load.max_output_tokens,
        "system": load.instructions,
        "messages": [{ "role": "user", "content": document }],
    });
    let request = http
        .post(format!("{}/v1/messages", load.base_url))
        .header("x-api-key", "simulated")
        .header("anthropic-version", "2023-06-01");
    let response = request.json(&body).send().await.map_err(|_| None)?;
    if !response.status().is_success() {
        let seconds = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.parse().ok());
        return Err(seconds.map(Duration::from_secs));
    }
    let answer: serde_json::Value = response.json().await.map_err(|_| None)?;
    Ok(answer
        .pointer("/content/0/text")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
        .to_owned())
}

/// The provider's wait, if it is at most a minute; otherwise 0.5 s doubled up to 8 s, reduced by up to a
/// quarter.
fn hidden_delay(retry: u32, asked: Option<Duration>, chance: f64) -> Duration {
    match asked {
        Some(asked) if !asked.is_zero() && asked <= Duration::from_secs(60) => asked,
        _ => Duration::from_secs_f64(
            (0.5 * f64::from(1u32 << retry.min(4))).min(8.0) * (1.0 - 0.25 * chance),
        ),
    }
}

/// 1 s doubled up to a minute.
fn outer_delay(round: u32) -> Duration {
    Duration::from_secs(1 << round.min(6)).min(Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_those_of_the_sdks() {
        assert_eq!(hidden_delay(0, None, 0.0), Duration::from_millis(500));
        assert_eq!(hidden_delay(1, None, 1.0), Duration::from_millis(750));
        assert_eq!(hidden_delay(9, None, 0.0), Duration::from_secs(8));
        assert_eq!(hidden_delay(0, Some(Duration::from_secs(7)), 0.5), Duration::from_secs(7));
        assert_eq!(hidden_delay(0, Some(Duration::from_secs(90)), 0.0), Duration::from_millis(500));
        assert_eq!(
            [0, 1, 5, 6, 20].map(outer_delay).map(|delay| delay.as_secs()),
            [1, 2, 32, 60, 60]
        );
    }

    #[tokio::test]
    async fn without_limits_each_document_takes_one_call() {
        let simulator = tidegate_simulator::Simulator::start(tidegate_simulator::Config::default())
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        std::fs::write(&path, "The tide turns twice a day.").unwrap();
        let load = Load {
            base_url: simulator.base_url(),
            model: "claude-sonnet-5".to_owned(),
            instructions: "Summarise.".to_owned(),
            max_output_tokens: 100,
        };
        let mut answered = 0;
        run(load, vec![path], 3, |_, answer| answered += u32::from(answer.is_some()))
            .await
            .unwrap();
        assert_eq!(answered, 1);
        assert_eq!(simulator.account().model("claude-sonnet-5").ok, 1);
        simulator.shutdown().await;
    }
}
