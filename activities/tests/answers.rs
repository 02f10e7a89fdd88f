//! What counts as done: an answer to one question about one content. Whole batches, run by hand one
//! activity after the other, with a provider that repeats its prompt, and quota in memory.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

#[path = "answers/broken_off.rs"]
mod broken_off;
#[path = "answers/namespaces.rs"]
mod namespaces;
#[path = "answers/pages.rs"]
mod pages;
#[path = "answers/reread.rs"]
mod reread;
#[path = "answers/said.rs"]
mod said;
#[path = "answers/sampled.rs"]
mod sampled;
#[path = "answers/scale.rs"]
mod scale;
#[path = "answers/sealed.rs"]
mod sealed;
#[cfg(feature = "parquet")]
#[path = "answers/tables.rs"]
mod tables;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_activities::{
    attempt::{Attempt, AttemptState},
    batch::{plan, source::PageBudget},
    document::{long, pack, process},
    failure::{Backoff, Failure},
    output::{
        answers::Answers, finish, job::Shards, lease::Holder, question::StatedQuestion, seal,
    },
    services::{self, Services},
    storage::Storage,
};
use tidegate_calls::{
    budget::Budgets,
    route::{Queues, Routes},
};
use tidegate_documents::{Limits as DocumentLimits, Reader};
use tidegate_providers::{
    BoxFuture, Charged, Completion, Document, Error, Kind, Observed, Prices, Provider, Providers,
    Request, StopReason, prompt,
};
use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota};
use tidegate_types::Usage;
use tidegate_workflows::contract::{
    DocumentTask, FailedDocument, FailureFacts, FailureType, Finish, Finished, Job, PackTask,
    PartTask, Plan, Progress, SealShard, Step, Totals,
};

const MODEL: &str = "anthropic:claude-sonnet-5-5";
const OTHER_MODEL: &str = "anthropic:claude-haiku-5-5";

/// A provider that answers with its prompt.
#[derive(Debug, Clone, Default)]
struct Echo {
    asked: Arc<Mutex<Vec<String>>>,
    /// The system prompt, the turns, and the user's last message.
    said: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Provider for Echo {
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        let Document::Text(text) = request.document else { panic!("no text") };
        self.asked.lock().unwrap().push(text.to_owned());
        let turns = request.turns.iter().map(|turn| turn.text.clone());
        let own = prompt::turn(request.said, text);
        let said = [request.instructions.to_owned()].into_iter().chain(turns).chain([own]);
        self.said.lock().unwrap().push(said.collect());
        let answered = if text.contains("refuse this") {
            Err(Error {
                kind: Kind::ContentRefused,
                span: None,
                message: "no".to_owned(),
                retry_after: None,
                charged: Charged::No,
                status: None,
                timed_out: false,
                observed: Box::default(),
            })
        } else {
            let ids = text.split("<item id=\"").skip(1).filter_map(|item| item.split('"').next());
            let packed: Vec<Value> =
                ids.map(|id| json!({"id": id, "answer": "one of several"})).collect();
            let alone = format!("{} {text}", request.instructions);
            Ok(Completion {
                answer: if packed.is_empty() {
                    alone
                } else {
                    json!({"answers": packed}).to_string()
                },
                stop_reason: StopReason::EndTurn,
                usage: Some(Usage { uncached_input: 10, output: 5, ..Usage::default() }),
                observed: Observed::default(),
            })
        };
        Box::pin(async move { answered })
    }
}

/// The outcome of a batch.
#[derive(Debug)]
struct Ran {
    totals: Totals,
    finished: Finished,
    /// The prompts that the provider received in it.
    asked: Vec<String>,
    plan: Plan,
}

impl Ran {
    /// Succeeded, failed, skipped, updated; and calls.
    fn figures(&self) -> ([u64; 4], usize) {
        let Finished { succeeded, failed, skipped, .. } = self.finished;
        ([succeeded, failed, skipped, self.totals.updated], self.asked.len())
    }
}

/// A source, an output, and a provider.
struct Rig {
    services: Services,
    provider: Echo,
    folder: TempDir,
    runs: u32,
    /// The bounds of the plan's pages.
    room: Option<PageBudget>,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        let root = format!("file://{}/", folder.path().display());
        let limits = Limits { margin: 1.0, ..Limits::default() }.with(Dimension::Requests, 600_000);
        let lanes = Arc::new(Lanes::single());
        let models = [MODEL, OTHER_MODEL].map(|model| {
            let (model, lanes) = (model.parse().unwrap(), Arc::clone(&lanes));
            ModelQuota::new(model, limits, Charge::default(), lanes).unwrap()
        });
        let quota = Quota::in_memory(models, Options::default());
        let (provider, prices) = (Echo::default(), Prices::default());
        let pending_writes = Arc::default();
        let services = Services {
            storage: Storage::new([root.as_str()]).unwrap(),
            answers: None,
            calls: None,
            reader: Reader::isolated("/nowhere", [], DocumentLimits::default()),
            providers: Providers::default().with("anthropic", provider.clone()),
            budgets: Budgets::new(quota.budgets(), Default::default(), prices.clone()).into(),
            prices,
            webhooks: Default::default(),
            routes: Routes::default(),
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
        Self { services, provider, folder, runs: 0, room: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A document that was modified at this second: a clock may be too coarse to tell.
    fn document(&self, name: &str, text: &str, second: u64) {
        let path = self.path("in").join(name);
        std::fs::write(&path, text).unwrap();
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000 + second);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }

    fn job(&self, more: &Value) -> Job {
        let uri = |name: &str| format!("file://{}/{name}", self.folder.path().display());
        let mut job = json!({
            "source": {"prefix": uri("in/")}, "output": uri("out/"), "instructions": "Sum up.",
            "model": MODEL, "lane": "batch", "tenant": "default", "max_output_tokens": 100, "in_pages": true,
        });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(job).unwrap()
    }

    /// Runs a whole batch.
    async fn run(&mut self, more: Value) -> Result<Ran, Failure> {
        Box::pin(self.run_until(more, u32::MAX)).await
    }

    /// Runs a batch that is cancelled after this many documents of each shard.
    async fn run_until(&mut self, more: Value, most: u32) -> Result<Ran, Failure> {
        self.runs += 1;
        // Results completed before are earlier than this batch.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        let now = chrono::Utc::now();
        let (job, mut totals) = (self.job(&more), Totals::default());
        let before = self.provider.asked.lock().unwrap().len();
        let run = format!("run-{:04}", self.runs);
        let plan = match &self.room {
            None => plan::plan(&self.services, &job, "w", &run).await?,
            Some(room) => pages::plan(&self.services, &job, &run, room).await?,
        };
        totals.skipped += plan.settled;
        for shard in 0..plan.shards() {
            let mut failures = Vec::new();
            let before = u64::from(shard) * u64::from(plan.shard_size);
            let left = u32::try_from(plan.asked() - before).unwrap();
            let documents = left.min(plan.shard_size).min(most);
            let mut alone: Vec<u32> = (0..documents).collect();
            if plan.pack > 1 {
                let task = PackTask {
                    job: plan.job.clone(),
                    workflow: "w".into(),
                    shard,
                    from: 0,
                    to: documents,
                };
                let packed =
                    pack::process(&self.services, &self.attempt(now), &task).await.unwrap();
                totals.succeeded += u64::from(packed.succeeded);
                totals.skipped += u64::from(packed.skipped);
                totals.updated += u64::from(packed.updated);
                alone = packed.left;
            }
            for index in alone {
                let task = DocumentTask {
                    job: plan.job.clone(),
                    workflow: "w".into(),
                    shard,
                    index,
                    raised: false,
                    asked: false,
                    escalated: None,
                };
                match self.document_ends(&task, now).await {
                    Ok(outcome) => totals.add(&outcome),
                    Err(failure) => {
                        totals.failed += 1;
                        failures.push(FailedDocument {
                            index,
                            facts: FailureFacts {
                                error_type: failure.kind.as_str().to_owned(),
                                message: failure.message,
                                provider_calls: 1,
                                ..FailureFacts::default()
                            },
                        });
                    }
                }
            }
            let sealed = SealShard { job: plan.job.clone(), shard, failures };
            seal::seal(&self.services.storage, &self.services.shards, &sealed).await.unwrap();
        }
        let progress = Progress {
            documents: plan.documents,
            totals,
            started_at: Some(now.to_rfc3339()),
            done: most == u32::MAX,
            ..Progress::default()
        };
        let of = Finish { plan: plan.clone(), output: job.output.clone(), progress };
        let finished = finish::finish(&self.services.storage, &of).await.unwrap();
        let asked = self.provider.asked.lock().unwrap().split_off(before);
        Ok(Ran { totals, finished, asked, plan })
    }

    fn attempt(&self, scheduled: chrono::DateTime<chrono::Utc>) -> Attempt {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (name, state) = (format!("run#0.0.{number}"), AttemptState::default());
        Attempt::new(name, "w".to_owned(), scheduled.timestamp_millis(), state)
    }

    /// Processes a document, in parts if need be.
    async fn document_ends(
        &self,
        task: &DocumentTask,
        scheduled: chrono::DateTime<chrono::Utc>,
    ) -> Result<tidegate_workflows::contract::DocumentOutcome, Failure> {
        let begun = process::process(&self.services, &self.attempt(scheduled), task).await?;
        let Some(parts) = begun.parts else { return Ok(begun) };
        let mut spent = tidegate_types::Spend::default();
        for step in (0..parts.count).map(Step::Part).chain([Step::Join]) {
            let task = PartTask { document: task.clone(), parts, step, spent };
            let attempt = self.attempt(scheduled);
            spent += long::process(&self.services, &attempt, &task).await?.spend;
        }
        Ok(tidegate_workflows::contract::DocumentOutcome {
            spend: spent,
            updated: begun.updated,
            ..Default::default()
        })
    }

    fn result(&self, id: &str) -> Value {
        let path = self.path("out/results").join(format!("{id}.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn refused(ran: Result<Ran, Failure>) -> String {
    let failure = ran.unwrap_err();
    assert_eq!(failure.kind, FailureType::InvalidInput, "{failure}");
    failure.message
}

#[tokio::test]
async fn the_same_question_about_the_same_content_is_asked_once() {
    let mut rig = Rig::new();
    ["a.md", "b.md", "c.md"].iter().for_each(|name| rig.document(name, name, 0));
    assert_eq!(rig.run(json!({})).await.unwrap().figures(), ([3, 0, 0, 0], 3));
    let result = rig.result("a.md");
    let digits = |name: &str| result[name].as_str().unwrap().len();
    assert_eq!((digits("question"), digits("content")), (64, 64), "{result}");
    // As printed by `printf a.md | sha256sum`.
    let content = "fecccc97532467adbf93017b357c8b17e0c75527df76a143de5cfecc2613f615";
    assert_eq!(result["content"], json!(content));
    assert_eq!(rig.run(json!({})).await.unwrap().figures(), ([0, 0, 3, 0], 0));

    // How it is asked is not part of the question.
    let other =
        json!({"max_output_tokens": 200, "lane": "batch", "tenant": "t", "pack": {"of": 2}});
    assert_eq!(rig.run(other).await.unwrap().figures(), ([0, 0, 3, 0], 0));

    // Rewritten with equal content: read, and not asked. With another content: asked.
    rig.document("a.md", "a.md", 7);
    rig.document("b.md", "b.md, changed", 7);
    let ran = rig.run(json!({})).await.unwrap();
    assert_eq!((ran.figures(), &ran.asked), (([1, 0, 2, 1], 1), &vec!["b.md, changed".to_owned()]));
    assert_eq!(rig.result("b.md")["answer"], json!("Sum up. b.md, changed"));
    assert_eq!(rig.lines("out/results.jsonl").len(), 3);
    let index = rig.lines("out/_tidegate/sealed/index-00001.jsonl");
    assert_eq!(
        (&index[1]["id"], &index[1]["content"]),
        (&json!("b.md"), &rig.result("b.md")["content"])
    );
    assert_eq!(index[1]["question"], result["question"]);
    assert_eq!(rig.run(json!({})).await.unwrap().figures(), ([0, 0, 3, 0], 0));
}

/// With equal size and time, the content is not read.
#[tokio::test]
async fn what_the_store_calls_the_same_is_not_read_again() {
    let mut rig = Rig::new();
    rig.document("a.md", "one text", 0);
    rig.run(json!({})).await.unwrap();
    rig.document("a.md", "two text", 0);
    assert_eq!(rig.run(json!({})).await.unwrap().figures(), ([0, 0, 1, 0], 0));
    // With documents named one by one, nothing is listed; the store is still asked for stamps.
    let uri = format!("file://{}/in/a.md", rig.folder.path().display());
    let named = json!({"source": {"documents": [uri]}, "output": format!("file://{}/named/", rig.folder.path().display())});
    rig.run(named.clone()).await.unwrap();
    rig.document("a.md", "new text", 0);
    assert_eq!(rig.run(named.clone()).await.unwrap().figures(), ([0, 0, 1, 0], 0));
    rig.document("a.md", "new text", 5);
    assert_eq!(rig.run(named).await.unwrap().figures(), ([1, 0, 0, 1], 1));
}

#[tokio::test]
async fn another_question_is_refused_by_its_parts_or_replaces() {
    let mut rig = Rig::new();
    ["a.md", "b.md", "c.md"].iter().for_each(|name| rig.document(name, name, 0));
    rig.run(json!({})).await.unwrap();
    let schema = json!({"type": "string"});
    for (more, differ) in [
        (json!({"instructions": "Translate."}), "instructions differs"),
        (json!({"model": OTHER_MODEL}), "model differs"),
        (json!({"schema": schema}), "schema differs"),
        (json!({"attach": "native", "instructions": "x"}), "attach and instructions differ"),
        (json!({"long": {"how": "per_chunk", "chunk_tokens": 500}}), "long differs"),
        (json!({"records": {}}), "records differs"),
    ] {
        let message = refused(rig.run(more).await);
        assert!(message.contains(&format!("another question: {differ};")), "{message}");
        assert!(message.contains("another output") && message.contains("\"replace\": true"));
    }
    assert!(rig.provider.asked.lock().unwrap().is_empty(), "nothing was asked");
    assert_eq!(rig.run(json!({})).await.unwrap().figures().1, 0, "nothing was changed");

    // Cancelled in the middle: each document has its old or its new result, whole.
    let replace = json!({"instructions": "Translate.", "replace": true});
    let ran = Box::pin(rig.run_until(replace.clone(), 1)).await.unwrap();
    let Finished { succeeded, skipped, cancelled, .. } = ran.finished;
    assert_eq!((succeeded, skipped, cancelled), (1, 0, 2));
    let answers = |rig: &Rig| {
        ["a.md", "b.md", "c.md"].map(|id| rig.result(id)["answer"].as_str().unwrap().to_owned())
    };
    assert_eq!(answers(&rig), ["Translate. a.md", "Sum up. b.md", "Sum up. c.md"]);
    assert_eq!(rig.lines("out/results.jsonl").len(), 1, "the answers to this question");
    // The old question is another one now, and the new one continues.
    assert!(refused(rig.run(json!({})).await).contains("instructions differs"));
    let ran = rig.run(json!({"instructions": "Translate."})).await.unwrap();
    assert_eq!(ran.figures(), ([2, 0, 1, 0], 2), "replaced is not updated");
    assert_eq!(answers(&rig), ["Translate. a.md", "Translate. b.md", "Translate. c.md"]);
    assert_eq!(rig.run(replace).await.unwrap().figures(), ([0, 0, 3, 0], 0), "nothing differs");
}

/// No batch deletes or overwrites what others have left in its output.
#[tokio::test]
async fn an_output_with_files_of_other_origin_is_refused() {
    let mut rig = Rig::new();
    rig.document("a.md", "a", 0);
    std::fs::create_dir(rig.path("out")).unwrap();
    for name in ["results.parquet", "report.json", "failures.jsonl"] {
        std::fs::write(rig.path("out").join(name), "mine").unwrap();
        let message = refused(rig.run(json!({})).await);
        assert!(message.contains(&format!("holds {name} and no record of a batch")), "{message}");
        assert!(message.contains("another output") && message.contains("--replace"), "{message}");
        assert_eq!(std::fs::read_to_string(rig.path("out").join(name)).unwrap(), "mine");
        let left: Vec<_> = std::fs::read_dir(rig.path("out")).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing of ours: {left:?}");
        std::fs::remove_file(rig.path("out").join(name)).unwrap();
    }
    std::fs::write(rig.path("out/report.json"), "mine").unwrap();
    rig.run(json!({"replace": true})).await.unwrap();
    // What a batch has written hinders none, even if nothing was answered.
    std::fs::remove_dir_all(rig.path("out/results")).unwrap();
    rig.run(json!({"instructions": "Translate."})).await.unwrap();
}

/// A document that fails has not been replaced, and its old answer does not count for the new question.
#[tokio::test]
async fn an_old_answer_does_not_stand_for_one_that_failed() {
    let mut rig = Rig::new();
    ["a", "b", "gone"].iter().for_each(|name| rig.document(&format!("{name}.md"), name, 0));
    rig.run(json!({})).await.unwrap();
    std::fs::remove_file(rig.path("in/gone.md")).unwrap();
    rig.document("b.md", "refuse this", 3);
    let ran = rig.run(json!({})).await.unwrap();
    assert_eq!(ran.figures(), ([0, 1, 1, 0], 1));
    assert_eq!(rig.lines("out/failures.jsonl").len(), 1);
    assert_eq!(rig.lines("out/results.jsonl").len(), 3, "no line is lost");
    rig.document("a.md", "refuse this", 3);
    rig.document("c.md", "c", 3);
    let ran = rig.run(json!({"instructions": "Translate.", "replace": true})).await.unwrap();
    assert_eq!(ran.figures(), ([1, 2, 0, 0], 3));
    let answers: Vec<Value> = rig.lines("out/results.jsonl");
    let answers: Vec<&Value> = answers.iter().map(|line| &line["answer"]).collect();
    assert_eq!(answers, [&json!("Translate. c")], "old answers, also to documents that are gone");
    let report = std::fs::read(rig.path("out/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["models"][MODEL]["documents"], json!(1), "{report}");
    assert_eq!(rig.result("a.md")["answer"], json!("Sum up. a"), "its own object stays");
    std::fs::remove_file(rig.path("in/c.md")).unwrap();
    // A cancelled batch that has not reached a changed document does not count it as done.
    rig.document("b.md", "b, again", 5);
    let ran = Box::pin(rig.run_until(json!({"instructions": "Translate."}), 0)).await.unwrap();
    assert_eq!((ran.finished.skipped, ran.finished.cancelled), (0, 2));
}

#[tokio::test]
async fn documents_in_parts_and_packs_know_what_they_answer() {
    let mut rig = Rig::new();
    let text = "The harbour master writes about the tide and the ships. ".repeat(8);
    rig.document("long.md", &text, 0);
    let long = json!({"long": {"how": "per_chunk", "chunk_tokens": 50}});
    let calls = rig.run(long.clone()).await.unwrap().figures().1;
    assert!(calls > 1);
    assert!(rig.result("long.md")["content"].is_string());
    assert_eq!(rig.run(long.clone()).await.unwrap().figures(), ([0, 0, 1, 0], 0));
    rig.document("long.md", &text.replace("tide", "ebb"), 3);
    assert_eq!(rig.run(long.clone()).await.unwrap().figures(), ([1, 0, 0, 1], calls));
    assert!(rig.result("long.md")["answer"].as_str().unwrap().contains("ebb"));
    let mut other = long;
    other["model"] = json!(OTHER_MODEL);
    other["replace"] = json!(true);
    assert_eq!(rig.run(other).await.unwrap().figures(), ([1, 0, 0, 0], calls));
    assert_eq!(rig.result("long.md")["model"], json!(OTHER_MODEL));

    let mut rig = Rig::new();
    (0..4).for_each(|number| rig.document(&format!("{number}.md"), &format!("text {number}"), 0));
    let pack = json!({"pack": {"of": 4}});
    assert_eq!(rig.run(pack.clone()).await.unwrap().figures(), ([4, 0, 0, 0], 1));
    assert_eq!(rig.run(pack.clone()).await.unwrap().figures(), ([0, 0, 4, 0], 0));
    rig.document("1.md", "another text", 3);
    rig.document("3.md", "yet another text", 3);
    assert_eq!(rig.run(pack).await.unwrap().figures(), ([2, 0, 2, 2], 1));
    // Packed or alone, the question is equal.
    assert_eq!(rig.run(json!({})).await.unwrap().figures(), ([0, 0, 4, 0], 0));
}

/// Rows without names.
#[tokio::test]
async fn an_inserted_row_moves_nobodys_answer_and_costs_one_call() {
    let mut rig = Rig::new();
    let rows = |rows: &[String]| format!("ship,note\n{}\n", rows.join("\n"));
    let mut log: Vec<String> = (0..1_000).map(|row| format!("ship-{row},note {row}")).collect();
    rig.document("log.csv", &rows(&log), 0);
    let records = json!({"records": {}});
    assert_eq!(rig.run(records.clone()).await.unwrap().figures(), ([1_000, 0, 0, 0], 1_000));
    let before = rig.result("log.csv__0000001");

    log.insert(0, "ship-new,a new note".to_owned());
    rig.document("log.csv", &rows(&log), 3);
    let ran = rig.run(records.clone()).await.unwrap();
    assert_eq!(ran.figures(), ([1, 0, 1_000, 0], 1), "{:?}", ran.asked);
    assert_eq!(rig.result("log.csv__0000001"), before, "it keeps its answer");
    let answers = rig.lines("out/results.jsonl");
    let of_new = |line: &&Value| line["answer"].as_str().unwrap().contains("ship-new");
    assert_eq!((answers.len(), answers.iter().filter(of_new).count()), (1_001, 1));
    assert_eq!(rig.run(records.clone()).await.unwrap().figures(), ([0, 0, 1_001, 0], 0));

    // A changed row is asked again, and two rows may be equal.
    log[500] = "ship-499,another note".to_owned();
    log.push("ship-999,note 999".to_owned());
    rig.document("log.csv", &rows(&log), 5);
    assert_eq!(rig.run(records.clone()).await.unwrap().figures(), ([2, 0, 1_000, 0], 2));
    // After a worker died before it sealed anything, the results themselves are read.
    for run in std::fs::read_dir(rig.path("out/_tidegate")).unwrap() {
        let index = run.unwrap().path().join("index-00000.jsonl");
        let _ = std::fs::remove_file(index);
    }
    log.remove(0);
    rig.document("log.csv", &rows(&log), 7);
    assert_eq!(rig.run(records).await.unwrap().figures(), ([0, 0, 1_001, 0], 0));
}

#[tokio::test]
async fn one_batch_at_a_time_has_an_output() {
    let rig = Rig::new();
    rig.document("a.md", "a", 0);
    let holder = |workflow: &str, run: &str| Holder {
        namespace: "n".to_owned(),
        workflow: workflow.to_owned(),
        run: run.to_owned(),
    };
    let job = rig.job(&json!({}));
    let plan = async |batch: Holder, ended: bool| {
        let has_ended = |_| std::future::ready(Ok(ended));
        plan::plan_in(&rig.services, None, &job, &batch, PageBudget::page(), has_ended)
            .await
            .map(drop)
    };
    plan(holder("first", "r1"), false).await.unwrap();
    plan(holder("first", "r1"), false).await.unwrap();
    let refused = plan(holder("second", "r2"), false).await.unwrap_err();
    assert_eq!(refused.kind, FailureType::InvalidInput);
    assert!(refused.message.contains("\"first\" (run r1), which is running"), "{refused}");
    // Of another server's namespace nothing is known.
    let elsewhere = Holder { namespace: "other".to_owned(), ..holder("second", "r2") };
    let refused = plan(elsewhere, false).await.unwrap_err().message;
    assert!(
        refused.contains("of the namespace \"n\", and its end is not known in \"other\""),
        "{refused}"
    );
    assert!(
        refused.contains("if it has ended, delete each _tidegate/lease-<number> in file://"),
        "{refused}"
    );
    plan(holder("second", "r2"), true).await.unwrap();
    // A workflow has only one open run, so a new run may take over.
    plan(holder("second", "r3"), false).await.unwrap();
    let mut leases: Vec<String> = std::fs::read_dir(rig.path("out/_tidegate"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("lease-"))
        .collect();
    leases.sort();
    assert_eq!(leases, ["lease-1", "lease-2", "lease-3"], "each is created once");

    // Both find that the last holder has ended: only one of them wins, and then runs.
    let race = async |workflow: &str| {
        let has_ended = |other: Holder| std::future::ready(Ok(other.workflow == "second"));
        {
            let batch = holder(workflow, "r4");
            plan::plan_in(&rig.services, None, &job, &batch, PageBudget::page(), has_ended)
                .await
                .is_ok()
        }
    };
    let (one, other) = tokio::join!(race("third"), race("fourth"));
    assert!(one != other, "{one} {other}");
}
