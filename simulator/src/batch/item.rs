//! One request of a batch.

use std::time::Duration;

use axum::http::HeaderMap;
use serde_json::Value;

use crate::{
    answer::Answer,
    config::Config,
    problem::Problem,
    rng,
    vendor::{Style, Vendor},
};

#[derive(Debug)]
pub(crate) struct Item {
    /// The caller's name for it.
    pub(crate) custom_id: String,
    /// A number of its own.
    pub(crate) id: u64,
    /// How long after the batch was taken in it is done.
    pub(crate) after: Duration,
    /// Its outcome if it is not cancelled; `None` if the batch ends before it.
    pub(crate) outcome: Option<Outcome>,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The vendor's answer, and the prompt's fingerprint.
    Answered { body: Value, prompt: u64 },
    /// The status and body of the vendor's error.
    Failed { status: u16, body: Value },
}

impl Item {
    /// Decides what becomes of a request, which has this number. `named` is what the path would say
    /// of the model. One that cannot be read fails by itself.
    pub(crate) fn new<V: Vendor>(
        config: &Config,
        headers: &HeaderMap,
        id: u64,
        custom_id: &str,
        (named, body): (Option<&str>, &Value),
    ) -> Self {
        let failed = |problem: &Problem| {
            let (status, body) = V::Style::problem(problem, "", id);
            Outcome::Failed { status: status.as_u16(), body }
        };
        let chance = rng::uniform(rng::draw(&[id, 1]));
        let outcome = if chance < config.batches.expire_rate {
            None
        } else if chance < config.batches.expire_rate + config.batches.error_rate {
            Some(failed(&Problem::Server))
        } else {
            Some(match V::read(named, headers, body.to_string().as_bytes()) {
                Err(problem) => failed(&problem),
                Ok(call) => {
                    let answer = Answer::write(&call, config);
                    Outcome::Answered { body: V::answer(&call, &answer, id), prompt: call.hash }
                }
            })
        };
        let after =
            config.batches.duration.mul_f64(0.8f64.mul_add(rng::uniform(rng::draw(&[id, 2])), 0.1));
        Self { custom_id: custom_id.to_owned(), id, after, outcome }
    }
}
