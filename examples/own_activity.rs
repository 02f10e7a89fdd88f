//! Your own workflow and activity behind the fleet's limiter, without any of tidegate's workflows.
//!
//! With `temporal server start-dev`, a Redis, and a provider or its stand-in:
//!
//! ```text
//! API_KEY=… cargo run --example own_activity -- 127.0.0.1:7233 redis://127.0.0.1:6379 https://api.anthropic.com
//! ```
//!
//! Starts a worker and one workflow that asks forty questions at once, of which two a second are
//! allowed. What matters is in [`Questions::ask`]: one call around the request, in which it waits for
//! its turn, is settled by its answer, and fails so that Temporal alone retries.

#![allow(
    clippy::print_stdout,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "an example talks to people, and the macros want what they read to be public"
)]

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use serde_json::json;
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
use tidegate_activities::own::{Ask, Quota};
use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options};

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
        let ask = Ask::tokens(question.len() as u64 / 4, MAX_OUTPUT);
        self.quota
            .run(&ctx, ask, async |call| {
                let request = self.http.post(format!("{}/v1/messages", self.api)).json(&json!({
                    "model": "claude-sonnet-5",
                    "max_tokens": MAX_OUTPUT,
                    "messages": [{ "role": "user", "content": question }],
                }));
                let request = request.header("x-api-key", &self.key);
                let reply = request.header("anthropic-version", "2023-06-01").send().await?;
                let answer = call.read(reply).await?;
                Ok(answer["content"][0]["text"].as_str().unwrap_or_default().to_owned())
            })
            .await
    }
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

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut or = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (temporal, redis, api) =
        (or("127.0.0.1:7233"), or("redis://127.0.0.1:6379"), or("https://api.anthropic.com"));

    let limits = Limits::default().with(Dimension::Requests, 120);
    let (model, lanes) = (MODEL.parse()?, Arc::new(Lanes::single()));
    let known = ModelQuota::new(model, limits, Charge::default(), lanes)?;
    // A longer wait is Temporal's: it holds no slot.
    let options = Options { max_slot_wait: Duration::from_secs(2), ..Options::default() };
    let limiter = tidegate_quota::Quota::with_redis(&redis, [known], options)?;
    let questions = Questions {
        quota: Quota::new(limiter, MODEL.parse()?),
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
