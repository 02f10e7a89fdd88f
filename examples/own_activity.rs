//! Your own workflow and activity behind the fleet's limiter, without any of tidegate's.
//!
//! With `temporal server start-dev`, a Redis, and a provider or its stand-in:
//!
//! ```text
//! API_KEY=… cargo run --example own_activity -- 127.0.0.1:7233 redis://127.0.0.1:6379 https://api.anthropic.com
//! ```
//!
//! Starts a worker and one workflow that asks forty questions at once, of which two a second are
//! allowed. What matters is in
//! [`Questions::ask`]: admit, one call, settle. A refusal becomes a failure with a delay, so Temporal alone retries, and the
//! turn that was given travels in the last heartbeat to the attempt that comes back.

#![allow(
    clippy::print_stdout,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "an example talks to people, and the macros want what they read to be public"
)]

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, WorkflowGetResultOptions,
    WorkflowStartOptions,
};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    ApplicationFailure, Worker, WorkerOptions,
    activities::{ActivityContext, ActivityError},
    runtime::Runtime,
};
use temporalio_workflow::{ActivityOptions, WorkflowContext, WorkflowResult, workflows};
use tidegate_quota::{Charge, Lanes, Limits, ModelQuota, Options, Quota, Refused, Request, Ticket};
use tidegate_types::Usage;

const MODEL: &str = "anthropic:claude-sonnet-5";
const TASK_QUEUE: &str = "own-activity";
const QUESTIONS: u32 = 40;
const MAX_OUTPUT: u64 = 64;

pub struct Questions {
    quota: Quota,
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
        // A reservation belongs to one attempt; a ticket to whoever comes back for the same
        // question.
        let info = ctx.info();
        let attempt = format!(
            "{}#{}.{}",
            info.workflow_run_id.as_deref().unwrap_or_default(),
            info.activity_id,
            info.attempt
        );
        let ticket =
            ctx.heartbeat_details().deserialize::<Option<Ticket>>().ok().flatten().flatten();
        let tokens = question.len() as u64 / 4;
        let request = Request::new(model_id(), attempt).tokens(tokens, MAX_OUTPUT).ticket(ticket);
        let mut permit = match self.quota.admit(&request).await {
            Ok(permit) => permit,
            Err(Refused::Wait { wait, ticket, .. }) => {
                ctx.record_heartbeat(Some(ticket)).await.ok();
                return Err(again(wait, "not my turn yet"));
            }
            Err(Refused::Paused { wait, ticket, .. }) => {
                ctx.record_heartbeat(ticket).await.ok();
                return Err(again(wait, "everybody waits"));
            }
            Err(refused) => return Err(ApplicationFailure::non_retryable(refused).into()),
        };
        permit.sent();
        let answer = match self.call(&question).await {
            Ok(answer) => answer,
            Err(error) => {
                permit.keep_charged().await;
                return Err(again(Duration::from_secs(5), &error.to_string()));
            }
        };
        match answer.status().as_u16() {
            200 => {
                let answer: Value = answer.json().await.map_err(ApplicationFailure::new)?;
                let count = |kind: &str| answer["usage"][kind].as_u64().unwrap_or(0);
                let (input, output) = (count("input_tokens"), count("output_tokens"));
                permit.settle(&Usage { uncached_input: input, output, ..Usage::default() }).await;
                Ok(answer["content"][0]["text"].as_str().unwrap_or_default().to_owned())
            }
            429 => {
                permit.refused(Duration::from_secs(10), "rate_limited").await;
                Err(again(
                    Duration::from_secs(10),
                    "the provider said 429; nobody calls for a while",
                ))
            }
            status => {
                permit.settle_unused().await;
                Err(again(Duration::from_secs(5), &format!("the provider said {status}")))
            }
        }
    }
}

impl Questions {
    /// One request, and no retry in the client: Temporal is the only one that retries.
    async fn call(&self, question: &str) -> reqwest::Result<reqwest::Response> {
        let body = json!({
            "model": "claude-sonnet-5", "max_tokens": MAX_OUTPUT, "messages": [{ "role": "user", "content": question }],
        });
        let request =
            self.http.post(format!("{}/v1/messages", self.api)).header("x-api-key", &self.key);
        request.header("anthropic-version", "2023-06-01").json(&body).send().await
    }
}

/// A failure that Temporal answers with another attempt after `delay`, at most a minute.
fn again(delay: Duration, why: &str) -> ActivityError {
    let delay = delay.clamp(Duration::from_secs(1), Duration::from_mins(1));
    ApplicationFailure::builder(anyhow::anyhow!("{why}")).next_retry_delay(delay).build().into()
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

    let limits = Limits { requests: Some(120), ..Limits::default() };
    let model = ModelQuota::new(model_id(), limits, Charge::default(), Arc::new(Lanes::single()))?;
    let questions = Questions {
        // A longer wait is Temporal's: it holds no slot.
        quota: Quota::with_redis(
            &redis,
            [model],
            Options { max_slot_wait: Duration::from_secs(2), ..Options::default() },
        )?,
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
