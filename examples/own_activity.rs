//! Your own workflow and activity behind the fleet's limiter, without any of tidegate's workflows.
//!
//! With `temporal server start-dev`, a Redis, and a provider or its stand-in:
//!
//! ```text
//! API_KEY=… cargo run --example own_activity -- 127.0.0.1:7233 redis://127.0.0.1:6379 https://api.anthropic.com
//! ```
//!
//! Starts a worker and one workflow that asks forty questions at once, of which two a second are
//! allowed. What matters is in [`Questions::ask`]: say what the call needs, admit it, send it, and
//! settle what it used or say how it failed. A refusal becomes a failure with a delay, so Temporal
//! alone retries, and the turn that was given travels in the last heartbeat to the next attempt.

#![allow(
    clippy::print_stdout,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "an example talks to people, and the macros want what they read to be public"
)]

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, WorkflowGetResultOptions,
    WorkflowStartOptions,
};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    Worker, WorkerOptions,
    activities::{ActivityContext, ActivityError},
    runtime::Runtime,
};
use temporalio_workflow::{ActivityOptions, WorkflowContext, WorkflowResult, workflows};
use tidegate_activities::{
    call::{attempt::Attempt, budget::Budgets, guard::Guard},
    failure::Backoff,
    heartbeat,
};
use tidegate_providers::{Charged, Error, Kind, Observed, Prices};
use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota};
use tidegate_types::Usage;

const MODEL: &str = "anthropic:claude-sonnet-5";
const TASK_QUEUE: &str = "own-activity";
const QUESTIONS: u32 = 40;
const MAX_OUTPUT: u64 = 64;

pub struct Questions {
    guard: Guard,
    budgets: Budgets,
    http: reqwest::Client,
    api: String,
    key: String,
}

#[activities]
impl Questions {
    #[activity(name = "own.ask")]
    pub async fn ask(
        self: Arc<Self>,
        ctx: ActivityContext,
        question: String,
    ) -> Result<String, ActivityError> {
        let attempt = Attempt::of(&ctx, &ctx.info().activity_id);
        let work = async {
            let request = attempt.request(model_id()).tokens(question.len() as u64 / 4, MAX_OUTPUT);
            let budget = self.budgets.call_budget(&attempt, &request, None)?;
            let call = self.guard.admit(&attempt, &request, &budget).await?.sent();
            match self.call(&question).await {
                Ok((answer, usage)) => {
                    call.settled(Some(&usage), &Observed::default()).await;
                    Ok(answer)
                }
                Err(error) => Err(call.refused(&error).await),
            }
        };
        heartbeat::beating(&ctx, &attempt, &self.guard, heartbeat::UNSENT, work).await
    }
}

impl Questions {
    /// One request, and no retry in the client: Temporal is the only one that retries.
    async fn call(&self, question: &str) -> Result<(String, Usage), Error> {
        let body = json!({
            "model": "claude-sonnet-5", "max_tokens": MAX_OUTPUT, "messages": [{ "role": "user", "content": question }],
        });
        let request =
            self.http.post(format!("{}/v1/messages", self.api)).header("x-api-key", &self.key);
        let request = request.header("anthropic-version", "2023-06-01").json(&body);
        // The provider may have done the work of what is lost on the way.
        let lost =
            |error: reqwest::Error| failed(Kind::Timeout, error.to_string(), Charged::Unknown);
        let answer = request.send().await.map_err(lost)?;
        let kind = match answer.status().as_u16() {
            200 => {
                let answer: Value = answer.json().await.map_err(lost)?;
                let count = |kind: &str| answer["usage"][kind].as_u64().unwrap_or(0);
                let (input, output) = (count("input_tokens"), count("output_tokens"));
                let usage = Usage { uncached_input: input, output, ..Usage::default() };
                return Ok((
                    answer["content"][0]["text"].as_str().unwrap_or_default().into(),
                    usage,
                ));
            }
            429 => Kind::RateLimited,
            503 | 529 => Kind::Overloaded,
            401 | 403 => Kind::Unauthorized,
            400..500 => Kind::InvalidRequest,
            _ => Kind::Transient,
        };
        Err(failed(kind, format!("the provider said {}", answer.status()), Charged::No))
    }
}

/// What went wrong, and what it has cost: the rest is decided by what tidegate knows of each kind.
fn failed(kind: Kind, message: String, charged: Charged) -> Error {
    Error { kind, message, retry_after: None, charged, status: None, observed: Box::default() }
}

#[workflow]
#[derive(Default)]
pub struct AskAll;

#[workflow_methods]
impl AskAll {
    #[run(name = "AskAll")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, questions: u32) -> WorkflowResult<usize> {
        let ask = |number| {
            let options =
                ActivityOptions::with_start_to_close_timeout(Duration::from_mins(5)).build();
            ctx.execute_activity(
                Questions::ask,
                format!("What is {number} times {number}?"),
                options,
            )
        };
        let answers = workflows::join_all((0..questions).map(ask)).await;
        Ok(answers.into_iter().filter(Result::is_ok).count())
    }
}

fn model_id() -> tidegate_types::ModelId {
    MODEL.parse().unwrap_or_else(|_| unreachable!("a valid id"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut or = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (temporal, redis, api) =
        (or("127.0.0.1:7233"), or("redis://127.0.0.1:6379"), or("https://api.anthropic.com"));

    let limits = Limits::default().with(Dimension::Requests, 120);
    let model = ModelQuota::new(model_id(), limits, Charge::default(), Arc::new(Lanes::single()))?;
    // A longer wait is Temporal's: it holds no slot.
    let options = Options { max_slot_wait: Duration::from_secs(2), ..Options::default() };
    let quota = Quota::with_redis(&redis, [model], options)?;
    let questions = Questions {
        // Without prices and daily budgets nothing is held.
        budgets: Budgets::new(quota.budgets(), HashMap::new(), Prices::default()),
        guard: Guard::new(quota, Backoff::default()),
        http: reqwest::Client::builder().retry(reqwest::retry::never()).build()?,
        api,
        key: std::env::var("API_KEY").context("set API_KEY to your provider's key")?,
    };

    let runtime = Runtime::from_current_tokio(Default::default())?;
    let connection = Connection::connect(
        ConnectionOptions::new(url::Url::parse(&format!("http://{temporal}"))?).build(),
    )
    .await?;
    let client = Client::new(connection, ClientOptions::new("default").build())?;
    let options = WorkerOptions::new(TASK_QUEUE)
        .register_activities(questions)
        .register_workflow::<AskAll>()?
        .build();
    let mut worker = Worker::new(&runtime, client.clone(), options)?;
    let stop = worker.shutdown_handle();

    let work = async {
        let id = format!("own-activity-{}", std::process::id());
        let started = client
            .start_workflow(
                AskAll::run,
                QUESTIONS,
                WorkflowStartOptions::new(TASK_QUEUE, id).build(),
            )
            .await?;
        let answered = started.get_result(WorkflowGetResultOptions::default()).await?;
        stop();
        anyhow::Ok(answered)
    };
    let (worked, answered) = tokio::join!(worker.run(), work);
    worked?;
    println!("{} of {QUESTIONS} questions were answered", answered?);
    Ok(())
}
