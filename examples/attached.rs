//! tidegate's workers in your own program, beside a worker of yours whose activities share the quota.
//!
//! ```text
//! API=https://api.anthropic.com ANTHROPIC_API_KEY=… cargo run --example attached -- worker --config tidegate.toml
//! temporal workflow start --type AskAll --task-queue own-questions --workflow-id w --input 12
//! tidegate run documents/ --output out/ --instructions "Summarise." --model anthropic:claude-sonnet-5
//! ```

#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "an example talks to people, and the macros want what they read to be public"
)]

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use serde_json::json;
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    Worker, WorkerOptions,
    activities::{ActivityContext, ActivityError},
    runtime::Runtime,
};
use temporalio_workflow::{ActivityOptions, WorkflowContext, WorkflowResult, workflows};
use tidegate::{Plugin, attach, config::Config, signal, telemetry, temporal::Temporal};
use tidegate_activities::own::{Ask, Quota};

const TASK_QUEUE: &str = "own-questions";
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
            let question = format!("What is {number} times {number}?");
            ctx.execute_activity(Questions::ask, question, options)
        };
        let answers = workflows::join_all((0..questions).map(ask)).await;
        Ok(answers.into_iter().filter(Result::is_ok).count())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // First of all: this program is started again for each document that tidegate reads.
    attach::read_documents_here();
    telemetry::log(Default::default(), "info");
    let file = std::env::args().nth(3);
    let config = Config::load(file.as_deref().map(Path::new))?;
    let client = Temporal::open(&config).await?.client().clone();
    let ours = Plugin::new(config)?;

    let questions = Questions {
        quota: ours.quota("anthropic:claude-sonnet-5")?,
        http: reqwest::Client::builder().retry(reqwest::retry::never()).build()?,
        api: std::env::var("API").context("set API to your provider's base URL")?,
        key: std::env::var("SIMULATED_KEY").or_else(|_| std::env::var("ANTHROPIC_API_KEY"))?,
    };
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let options = WorkerOptions::new(TASK_QUEUE)
        .register_activities(questions)
        .register_workflow::<AskAll>()?
        .worker_plugin(ours)
        .build();
    let mut worker = Worker::new(&runtime, client, options)?;
    let stop = worker.shutdown_handle();
    let told = async {
        signal::stop().await;
        stop();
    };
    let ((), ended) = tokio::join!(told, worker.run());
    telemetry::end().await;
    Ok(ended?)
}
