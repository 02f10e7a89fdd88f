//! The calls of `benches/ways.py` in Rust: behind the limiter, or with the usual means without it.
//!
//! `ways WAY PROVIDER REDIS TEMPORAL MODEL CALLS RPM`, where WAY is `rust`, `rust-alone`, `rust-temporal`
//! or `rust-temporal-alone`. Ends when every call is answered.

#![allow(
    clippy::print_stdout,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "a benchmark talks to people, and the macros want what they read to be public"
)]

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use futures::future::join_all;
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
use tidegate_activities::own::{self, Ask};
use tidegate_calls::Limit;
use tidegate_providers::Vendor;
use tidegate_quota::{Dimension, Lanes, Limits, ModelQuota, Options, Quota};
use tower_layer::Layer as _;
use tower_service::Service as _;

const MAX_OUTPUT: u64 = 50;

/// The calls that all ways make.
#[derive(Clone)]
pub struct Asking {
    http: reqwest::Client,
    url: String,
    model: String,
}

impl Asking {
    fn question(&self, number: u32) -> reqwest::RequestBuilder {
        let messages =
            json!([{"role": "user", "content": format!("What is {number} times {number}?")}]);
        let body =
            json!({"model": self.model, "max_completion_tokens": MAX_OUTPUT, "messages": messages});
        self.http.post(format!("{}/v1/chat/completions", self.url)).bearer_auth("sk-x").json(&body)
    }
}

pub struct Questions {
    asking: Asking,
    quota: Option<own::Quota>,
}

#[activities]
impl Questions {
    #[activity(name = "ways.ask")]
    pub async fn ask(
        self: Arc<Self>,
        ctx: ActivityContext,
        number: u32,
    ) -> Result<bool, ActivityError> {
        let Some(quota) = &self.quota else {
            // Temporal's retry policy makes all retries.
            let reply = self.asking.question(number).send().await.map_err(anyhow::Error::from)?;
            let reply = reply.error_for_status().map_err(anyhow::Error::from)?;
            return Ok(reply.json::<Value>().await.is_ok());
        };
        quota
            .run(&ctx, Ask::tokens(20, MAX_OUTPUT), async |call| {
                let reply = self.asking.question(number).send().await?;
                Ok(call.read(reply).await?["choices"].is_array())
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
            ctx.execute_activity(Questions::ask, number, options)
        };
        let answers = workflows::join_all((0..questions).map(ask)).await;
        Ok(answers.into_iter().filter(Result::is_ok).count())
    }
}

fn limiter(redis: &str, model: &str, rpm: u64) -> anyhow::Result<Quota> {
    let limits = Limits::default().with(Dimension::Requests, rpm);
    let (id, lanes) = (format!("openai:{model}").parse()?, Arc::new(Lanes::single()));
    let known = ModelQuota::new(id, limits, Vendor::OPENAI.charge(), lanes)?;
    let options = Options { key_prefix: format!("ways-{model}"), ..Options::default() };
    Ok(Quota::with_redis(redis, [known], options)?)
}

/// A layer around the HTTP client: a 429 closes the gate, and the call is repeated once behind it.
async fn limited(asking: &Asking, quota: Quota, calls: u32) -> usize {
    let http = Limit::new(quota, "openai").layer(asking.http.clone());
    let ask = |number| {
        let mut http = http.clone();
        async move {
            loop {
                let request = asking.question(number).build().ok()?;
                match http.call(request).await {
                    Ok(reply) if reply.status().is_success() => return Some(()),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    };
    join_all((0..calls).map(ask)).await.into_iter().flatten().count()
}

/// The usual own code: exponential backoff from half a second to a minute, with full jitter.
async fn alone(asking: &Asking, calls: u32) -> usize {
    let ask = |number| async move {
        let mut wait = Duration::from_millis(500);
        loop {
            let reply = asking.question(number).send().await.ok()?;
            if reply.status().is_success() {
                return Some(());
            }
            tokio::time::sleep(wait.mul_f64(rand::random())).await;
            wait = (wait * 2).min(Duration::from_mins(1));
        }
    };
    join_all((0..calls).map(ask)).await.into_iter().flatten().count()
}

async fn on_temporal(
    temporal: &str,
    asking: Asking,
    quota: Option<own::Quota>,
    calls: u32,
) -> anyhow::Result<usize> {
    let queue = format!("ways-{}", asking.model);
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let url = url::Url::parse(&format!("http://{temporal}"))?;
    let connection = Connection::connect(ConnectionOptions::new(url).build()).await?;
    let client = Client::new(connection, ClientOptions::new("default").build())?;
    let options = WorkerOptions::new(queue.clone())
        .register_activities(Questions { asking, quota })
        .register_workflow::<AskAll>()?
        .build();
    let mut worker = Worker::new(&runtime, client.clone(), options)?;
    let stop = worker.shutdown_handle();
    let work = async {
        let options = WorkflowStartOptions::new(queue.clone(), queue.clone()).build();
        let started = client.start_workflow(AskAll::run, calls, options).await?;
        let answered = started.get_result(WorkflowGetResultOptions::default()).await?;
        stop();
        anyhow::Ok(answered)
    };
    let (worked, answered) = tokio::join!(worker.run(), work);
    worked?;
    answered
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let given: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let [way, url, redis, temporal, model, calls, rpm] = &given[..] else {
        println!("SKIPPED: benches/ways.py starts this, with all that it needs");
        return Ok(());
    };
    let (calls, rpm): (u32, u64) = (calls.parse()?, rpm.parse()?);
    let http = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build()?;
    let asking = Asking { http, url: url.clone(), model: model.clone() };
    let answered = match way.as_str() {
        "rust" => limited(&asking, limiter(redis, model, rpm)?, calls).await,
        "rust-alone" => alone(&asking, calls).await,
        "rust-temporal" => {
            let id = format!("openai:{model}").parse()?;
            let quota = own::Quota::new(limiter(redis, model, rpm)?, id);
            on_temporal(temporal, asking, Some(quota), calls).await?
        }
        "rust-temporal-alone" => on_temporal(temporal, asking, None, calls).await?,
        other => return Err(anyhow::anyhow!("{other} is none of the ways")).context("WAY"),
    };
    println!("{answered}");
    Ok(())
}
