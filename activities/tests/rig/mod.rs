//! One batch, a scripted provider, quota in memory.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part of this module")]

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_activities::{
    attempt::{Attempt, AttemptState},
    batch::plan,
    document::process,
    failure::{Backoff, Failure},
    output::job::Shards,
    services::{self, Services},
    storage::Storage,
};
use tidegate_calls::{
    budget::Budgets,
    route::{Queues, Route, Routes},
};
use tidegate_documents::{Limits as DocumentLimits, Reader};
use tidegate_providers::{
    Bounds, BoxFuture, Charged, Completion, Error, Kind, Observed, Prices, Provider, Providers,
    Request, StopReason,
};
use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota};
use tidegate_types::{ModelId, Usage};
use tidegate_workflows::contract::{DocumentOutcome, DocumentTask, FailureDetails, Plan};

pub const MODEL: &str = "anthropic:claude-sonnet-5-5";

/// The next model of the route `up`, which begins with [`MODEL`].
pub const NEXT: &str = "anthropic:claude-opus-5-5";

/// Gives answers from a list; records its calls.
#[derive(Debug, Clone, Default)]
pub struct Scripted {
    pub answers: Arc<Mutex<VecDeque<Result<Completion, Error>>>>,
    /// The cap on output and the instructions of each call.
    pub asked: Arc<Mutex<Vec<(u32, String)>>>,
    /// The models of the calls.
    pub models: Arc<Mutex<Vec<String>>>,
    /// The kinds and sizes of the documents that were sent.
    pub sent: Arc<Mutex<Vec<String>>>,
    cap: Arc<Mutex<Option<u32>>>,
    context: Arc<Mutex<Option<u64>>>,
}

impl Scripted {
    /// Sets the model's context length.
    pub fn context(&self, tokens: u64) {
        *self.context.lock().unwrap() = Some(tokens);
    }

    /// Sets the model's own cap on output.
    pub fn cap(&self, tokens: u32) {
        *self.cap.lock().unwrap() = Some(tokens);
    }
}

impl Provider for Scripted {
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        let asked = (request.max_output_tokens, request.instructions.to_owned());
        self.asked.lock().unwrap().push(asked);
        self.models.lock().unwrap().push(request.model.to_owned());
        self.sent.lock().unwrap().push(format!("{:?}", request.document));
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move { answer.unwrap() })
    }

    fn bounds(&self, _: &str) -> Bounds {
        Bounds {
            output_tokens: *self.cap.lock().unwrap(),
            context_tokens: *self.context.lock().unwrap(),
            ..Bounds::default()
        }
    }
}

/// Finds one text in whatever needs a parser, and counts in a file how often it was run.
pub fn reader(readings: &Path) -> Reader {
    let found = r#"{"Ok":{"text":"Found.","format":"Html","pages":null}}"#;
    let script = format!("cat > /dev/null; echo >> '{}'; echo '{found}'", readings.display());
    Reader::isolated("/bin/sh", ["-c".to_owned(), script], DocumentLimits::default())
}

pub fn says(answer: &str, stop_reason: StopReason) -> Result<Completion, Error> {
    Ok(Completion {
        answer: answer.to_owned(),
        stop_reason,
        usage: Some(Usage { uncached_input: 1_000, output: 100, ..Usage::default() }),
        observed: Observed::default(),
    })
}

pub fn cut(answer: &str) -> Result<Completion, Error> {
    says(answer, StopReason::MaxTokens)
}

pub fn whole(answer: &str) -> Result<Completion, Error> {
    says(answer, StopReason::EndTurn)
}

pub fn fails(kind: Kind, charged: Charged) -> Result<Completion, Error> {
    Err(Error {
        kind,
        span: None,
        message: "max_tokens: 400 > 128".to_owned(),
        retry_after: None,
        charged,
        status: None,
        timed_out: false,
        observed: Box::default(),
    })
}

/// One document of a batch, and a provider.
pub struct Rig {
    pub services: Services,
    pub provider: Scripted,
    pub folder: TempDir,
    pub plan: Plan,
    pub task: DocumentTask,
    /// Attempts so far, and the state of the last one.
    pub attempts: u32,
    pub state: Value,
}

impl Rig {
    pub async fn new(more: Value, answers: Vec<Result<Completion, Error>>) -> Self {
        Self::reading("The tide is high.", more, answers).await
    }

    pub async fn reading(text: &str, more: Value, answers: Vec<Result<Completion, Error>>) -> Self {
        Self::with_documents(&[text], more, answers).await
    }

    /// Several documents: `a.txt`, `b.txt` …
    pub async fn with_documents(
        texts: &[&str],
        more: Value,
        answers: Vec<Result<Completion, Error>>,
    ) -> Self {
        let limits = Limits { margin: 1.0, ..Limits::default() }.with(Dimension::Requests, 6_000);
        Self::limited(limits, texts, more, answers).await
    }

    pub async fn limited(
        limits: Limits,
        texts: &[&str],
        more: Value,
        answers: Vec<Result<Completion, Error>>,
    ) -> Self {
        let names: Vec<String> =
            ('a'..).zip(texts).map(|(name, _)| format!("{name}.txt")).collect();
        let files: Vec<(&str, &[u8])> =
            names.iter().zip(texts).map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
        Self::of_files(limits, &files, more, answers).await
    }

    /// Files with their own names, the first of which is asked about first.
    pub async fn of_files(
        limits: Limits,
        files: &[(&str, &[u8])],
        more: Value,
        answers: Vec<Result<Completion, Error>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.path().join("in").join(name), bytes).unwrap();
        }
        let uri = |name: &str| format!("file://{}/{name}", folder.path().display());
        let models = [MODEL, NEXT].map(|model| model.parse::<ModelId>().unwrap());
        let quotas = models.clone().map(|model| {
            ModelQuota::new(model, limits, Charge::default(), Arc::new(Lanes::single())).unwrap()
        });
        let quota = Quota::in_memory(quotas, Options::default());
        let up = Route { models: models.to_vec(), ..Route::single(models[0].clone()) };
        let provider =
            Scripted { answers: Arc::new(Mutex::new(answers.into())), ..Scripted::default() };
        let prices = Prices::default();
        let pending_writes = Arc::default();
        let services = Services {
            storage: Storage::new([uri("").as_str()]).unwrap(),
            answers: None,
            calls: None,
            reader: reader(&folder.path().join("readings")),
            providers: Providers::default().with("anthropic", provider.clone()),
            budgets: Budgets::new(quota.budgets(), Default::default(), prices.clone()).into(),
            prices,
            webhooks: Default::default(),
            routes: Routes::from([("up".to_owned(), up)]),
            heartbeats: Default::default(),
            queues: Queues::default(),
            warmth: Arc::default(),
            guard: services::guard(quota, Backoff::default(), &pending_writes),
            pending_writes,
            truncation_stats: Arc::default(),
            archives: Default::default(),
            memory: Default::default(),
            shards: Shards::default(),
            slots: 200,
        };
        let mut job = json!({
            "source": {"prefix": uri("in/")}, "output": uri("out/"), "instructions": "Sum up.",
            "model": MODEL, "lane": "batch", "tenant": "default", "max_output_tokens": 100,
        });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        if job.get("route").is_some() {
            job.as_object_mut().unwrap().remove("model");
        }
        let job = serde_json::from_value(job).unwrap();
        let plan = plan::plan(&services, &job, "w", "run-1").await.unwrap();
        let task = DocumentTask {
            job: plan.job.clone(),
            workflow: "w".into(),
            shard: 0,
            index: 0,
            raised: false,
            asked: false,
            escalated: None,
        };
        Self { services, provider, folder, plan, task, attempts: 0, state: json!({}) }
    }

    /// Goes on to the next document.
    pub fn next_document(&mut self) {
        self.task.index += 1;
        self.attempts = 0;
        self.state = json!({});
    }

    /// The next attempt, which gets the state that a heartbeat carries.
    pub fn attempt(&mut self) -> Attempt {
        self.attempts += 1;
        let state: AttemptState = serde_json::from_value(self.state.clone()).unwrap();
        Attempt::new(
            format!("run#0.{}.{}", self.task.index, self.attempts),
            "w".to_owned(),
            0,
            state.for_next_attempt(),
        )
    }

    /// Runs attempts until none is to follow; returns the outcome of the last one, and its details.
    pub async fn end(&mut self) -> (Result<DocumentOutcome, Failure>, FailureDetails) {
        loop {
            let attempt = self.attempt();
            let ended = process::process(&self.services, &attempt, &self.task).await;
            self.state = serde_json::to_value(attempt.state()).unwrap();
            match ended {
                Err(failure) if failure.is_retried() => {}
                ended => return (ended, attempt.details()),
            }
        }
    }

    pub fn caps(&self) -> Vec<u32> {
        self.provider.asked.lock().unwrap().iter().map(|(cap, _)| *cap).collect()
    }

    /// How often a parser was run.
    pub fn readings(&self) -> usize {
        std::fs::read(self.folder.path().join("readings")).unwrap_or_default().len()
    }

    pub fn result(&self) -> Option<Value> {
        self.result_of("a.txt")
    }

    pub fn result_of(&self, document: &str) -> Option<Value> {
        let object = format!("out/results/{document}.json");
        let bytes = std::fs::read(self.folder.path().join(object)).ok()?;
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    /// The object at this URI.
    pub fn at(uri: &str) -> Value {
        serde_json::from_slice(&std::fs::read(uri.strip_prefix("file://").unwrap()).unwrap())
            .unwrap()
    }
}
