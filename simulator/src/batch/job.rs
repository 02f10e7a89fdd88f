//! A batch as OpenAI has it: what its file says, and the objects that describe it.

use std::{collections::HashSet, time::Duration};

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    item::{Item, Outcome},
    progress::{Disposition, Progress, Stage},
};
use crate::{
    config::Config,
    openai::{Embeddings, OpenAi},
    responses::Responses,
    rng, tokens,
};

/// The most requests of a batch, and the most texts of one that embeds.
const MAX_REQUESTS: usize = 50_000;
const MAX_TEXTS: usize = 50_000;

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) progress: Progress,
    /// Fields of the caller's request.
    endpoint: String,
    input_file_id: String,
    metadata: Value,
    /// The model of the first request.
    model: Value,
    /// Input tokens, by the length of the file.
    tokens: u64,
    /// Faults of the file, with which the batch fails as a whole.
    errors: Vec<Value>,
}

/// Which of a batch's two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Answers,
    Errors,
}

impl Job {
    /// Reads the file. A line that is no request fails the whole batch, later on; a request that
    /// cannot be read fails alone. The batch begins `now`, when the file is read.
    pub(crate) fn new(
        config: &Config,
        now: impl FnOnce() -> Duration,
        headers: &HeaderMap,
        number: u64,
        asked: &Value,
        file: &[u8],
    ) -> Self {
        let text = |key: &str| asked[key].as_str().unwrap_or_default().to_owned();
        let endpoint = text("endpoint");
        let (mut items, mut errors, mut names, mut model, mut texts) =
            (Vec::new(), Vec::new(), HashSet::new(), Value::Null, 0);
        let lines = file
            .split(|byte| *byte == b'\n')
            .zip(1_u64..)
            .filter(|(line, _)| !line.trim_ascii().is_empty());
        for (line, n) in lines {
            let Ok(line) = serde_json::from_slice::<Value>(line) else {
                errors.push(error(
                    "invalid_json_line",
                    "This line is not parseable as valid JSON.",
                    Some(n),
                ));
                continue;
            };
            let name = line["custom_id"].as_str().unwrap_or_default();
            let wrong = if name.is_empty() || !line["body"].is_object() {
                Some((
                    "missing_required_parameter",
                    "A line needs custom_id, method, url and body.",
                ))
            } else if line["method"] != "POST" {
                Some(("invalid_method", "The method of a batch request must be POST."))
            } else if line["url"] != endpoint.as_str() {
                Some((
                    "invalid_url",
                    "The URL provided for this request does not match the batch endpoint.",
                ))
            } else if !names.insert(name.to_owned()) {
                Some((
                    "duplicate_custom_id",
                    "The custom_id for this request is a duplicate of another request.",
                ))
            } else if !model.is_null() && line["body"]["model"] != model {
                // The vendor's words for this are not documented.
                Some(("mismatched_model", "All requests of a batch must be for the same model."))
            } else {
                None
            };
            if let Some((code, message)) = wrong {
                errors.push(error(code, message, Some(n)));
                continue;
            }
            if model.is_null() {
                model = line["body"]["model"].clone();
            }
            let id = rng::draw(&[config.seed, number, n]);
            texts += line["body"]["input"].as_array().map_or(1, Vec::len);
            let asked = (None, &line["body"]);
            items.push(match endpoint.as_str() {
                "/v1/responses" => Item::new::<Responses>(config, headers, id, name, asked),
                "/v1/embeddings" => Item::new::<Embeddings>(config, headers, id, name, asked),
                _ => Item::new::<OpenAi>(config, headers, id, name, asked),
            });
            if items.len() > MAX_REQUESTS {
                break;
            }
        }
        if items.is_empty() && errors.is_empty() {
            errors.push(error(
                "empty_file",
                "The input file is empty. Please ensure that the batch contains at least one request.",
                None,
            ));
        }
        if items.len() > MAX_REQUESTS {
            errors.push(error(
                "too_many_tasks",
                "The batch contains too many requests. The maximum is 50,000.",
                None,
            ));
        }
        if endpoint == "/v1/embeddings" && texts > MAX_TEXTS {
            errors.push(error(
                "too_many_tasks",
                "The batch contains too many embedding inputs. The maximum is 50,000.",
                None,
            ));
        }
        if !errors.is_empty() {
            items.clear();
        }
        let progress = Progress::new(now(), config.batches.duration, items);
        let input_file_id = text("input_file_id");
        Self {
            progress,
            endpoint,
            input_file_id,
            metadata: asked["metadata"].clone(),
            model,
            tokens: tokens::count(file.len()),
            errors,
        }
    }

    /// The input tokens that it takes in the queue now.
    pub(crate) fn queued(&self, now: Duration) -> u64 {
        if self.errors.is_empty() && self.progress.stage(now) != Stage::Ended {
            self.tokens
        } else {
            0
        }
    }

    /// Fails, as there is room for no more than so many tokens.
    pub(crate) fn find_no_room(&mut self, config: &Config, now: Duration, most: u64) {
        let model = self.model.as_str().unwrap_or_default();
        let message = format!(
            "Enqueued token limit reached for {model}. Limit: {most} enqueued tokens. Please try again once some in_progress batches have been completed."
        );
        self.errors.push(error("token_limit_exceeded", &message, None));
        self.progress = Progress::new(now, config.batches.duration, Vec::new());
    }

    /// Where the batch is, in the vendor's word, and what it became if it is over.
    fn status(&self, now: Duration) -> &'static str {
        match self.progress.stage(now) {
            Stage::Validating => "validating",
            _ if !self.errors.is_empty() => "failed",
            Stage::Running => "in_progress",
            Stage::Finalizing => "finalizing",
            Stage::Cancelling => "cancelling",
            Stage::Ended if self.progress.cancelled().is_some() => "cancelled",
            Stage::Ended
                if self
                    .progress
                    .dispositions(now)
                    .any(|(_, disposition)| matches!(disposition, Disposition::Expired)) =>
            {
                "expired"
            }
            Stage::Ended => "completed",
        }
    }

    /// Cancels it. Says whether it is a cancelled one now.
    pub(crate) fn cancel(&mut self, now: Duration) -> bool {
        self.errors.is_empty() && self.progress.cancel(now)
    }

    /// The vendor's batch object.
    pub(crate) fn object(&self, now: Duration, id: &str, file: impl Fn(Output) -> String) -> Value {
        let status = self.status(now);
        let (progress, ended) = (&self.progress, self.progress.stage(now) == Stage::Ended);
        let [mut completed, mut failed] = [0_u64; 2];
        for (_, disposition) in progress.dispositions(now) {
            match disposition {
                Disposition::Done(Outcome::Answered { .. }) => completed += 1,
                Disposition::Done(Outcome::Failed { .. })
                | Disposition::Cancelled
                | Disposition::Expired => failed += 1,
                Disposition::Waiting => {}
            }
        }
        let end = |wanted: &str| (status == wanted).then(|| progress.end().timestamp());
        let since = |tenths, passed: bool| {
            (passed && self.errors.is_empty()).then(|| progress.tenths(tenths).timestamp())
        };
        let is = |words: &[&str]| words.contains(&status);
        json!({
            "id": id,
            "object": "batch",
            "endpoint": self.endpoint,
            "model": self.model,
            "errors": (status == "failed").then(|| json!({"object": "list", "data": self.errors})),
            "input_file_id": self.input_file_id,
            "completion_window": "24h",
            "status": status,
            "output_file_id": (ended && completed > 0).then(|| file(Output::Answers)),
            "error_file_id": (ended && failed > 0).then(|| file(Output::Errors)),
            "created_at": progress.tenths(0).timestamp(),
            "in_progress_at": since(1, is(&["in_progress", "finalizing", "completed", "expired"])),
            "expires_at": progress.tenths(0).timestamp() + 24 * 3_600,
            "finalizing_at": since(9, is(&["finalizing", "completed", "expired"])),
            "completed_at": end("completed"),
            "failed_at": (status == "failed").then(|| progress.tenths(1).timestamp()),
            "expired_at": end("expired"),
            "cancelling_at": progress.cancelled().map(|moment| moment.timestamp()),
            "cancelled_at": end("cancelled"),
            "request_counts": {"total": progress.len(), "completed": completed, "failed": failed},
            "usage": ended.then(|| self.usage(now)),
            "metadata": self.metadata,
        })
    }

    /// The tokens of all answers.
    fn usage(&self, now: Duration) -> Value {
        let sum = |names: [&str; 2]| -> u64 {
            let of = |(_, disposition): (&Item, Disposition<'_>)| match disposition {
                Disposition::Done(Outcome::Answered { body, .. }) => {
                    names.iter().find_map(|name| body["usage"][*name].as_u64())
                }
                _ => None,
            };
            self.progress.dispositions(now).filter_map(of).sum()
        };
        let (input, output) =
            (sum(["prompt_tokens", "input_tokens"]), sum(["completion_tokens", "output_tokens"]));
        json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output,
        })
    }

    /// One of the two files: answers, or whatever else became of a request. `None` before the end,
    /// and for an empty one.
    pub(crate) fn output(&self, now: Duration, which: Output) -> Option<String> {
        if self.progress.stage(now) != Stage::Ended {
            return None;
        }
        let lines = self.progress.dispositions(now).filter(|(_, disposition)| {
            let answered = matches!(disposition, Disposition::Done(Outcome::Answered { .. }));
            answered == (which == Output::Answers)
        });
        let text: String =
            lines.map(|(item, disposition)| format!("{}\n", line(item, disposition))).collect();
        Some(text).filter(|text| !text.is_empty())
    }
}

/// A fault of one line of the input, or of all of it.
fn error(code: &str, message: &str, line: Option<u64>) -> Value {
    json!({"code": code, "message": message, "param": null, "line": line})
}

/// A line of an output. An error of the call itself stands in its response; `error` tells why there
/// is none.
fn line(item: &Item, disposition: Disposition<'_>) -> Value {
    let response = |status: u16, body: &Value| json!({"status_code": status, "request_id": format!("req_{:016x}", item.id), "body": body});
    let (response, error) = match disposition {
        Disposition::Done(Outcome::Answered { body, .. }) => (response(200, body), Value::Null),
        Disposition::Done(Outcome::Failed { status, body }) => {
            (response(*status, body), Value::Null)
        }
        Disposition::Cancelled => (
            Value::Null,
            json!({"code": "batch_cancelled", "message": "This request was not executed before the batch was cancelled."}),
        ),
        Disposition::Expired | Disposition::Waiting => {
            let message =
                "This request could not be executed before the completion window expired.";
            (Value::Null, json!({"code": "batch_expired", "message": message}))
        }
    };
    json!({"id": format!("batch_req_{:016x}", item.id), "custom_id": item.custom_id, "response": response, "error": error})
}
