//! A finish whose worker dies, with results as lines and as tables, asked and settled: the next worker
//! writes what the first would have written, and reads nothing twice.

use std::path::PathBuf;

use super::*;

const SHARDS: u32 = 3;

/// Some 15 MiB for a shard, which do not compress.
const ANSWER: usize = 30_000;

struct Batch {
    rig: Rig,
    job: Job,
    format: &'static str,
}

impl Batch {
    /// A batch whose shards have answers; the last shard has a hundred.
    async fn answered(format: &'static str) -> (Self, Plan) {
        let rig = Rig::new();
        let rows = (0..1_100).map(|number| format!("{number:04},The tide turns.\n"));
        let table = format!("name,text\n{}", rows.collect::<String>());
        std::fs::write(rig.path("in/log.csv"), table).unwrap();
        let job = rig
            .job(&json!({"records": {"id": "name", "text": "text"}, "per_document": false,
            "results": format}));
        let batch = Self { rig, job, format };
        let plan = batch.plan("run-1").await;
        let asks = StatedQuestion::from_job(&batch.job).fingerprint();
        let mut seed = 7_u64;
        for shard in 0..SHARDS {
            scale::answered_with(&batch.rig, shard, &json!(asks), || {
                let mut letter = || {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    char::from(b'#' + u8::try_from((seed >> 33) % 57).unwrap())
                };
                (0..ANSWER).map(|_| letter()).collect()
            });
        }
        (batch, plan)
    }

    async fn plan(&self, run: &str) -> Plan {
        plan::plan(&self.rig.services, &self.job, "w", run).await.unwrap()
    }

    async fn finish(&self, plan: &Plan) -> Result<Finished, Failure> {
        let succeeded = if plan.settled > 0 { 0 } else { plan.documents };
        let progress = Progress {
            documents: plan.documents,
            totals: Totals { succeeded, skipped: plan.settled, ..Totals::default() },
            started_at: Some("2026-11-22T10:00:00Z".to_owned()),
            done: true,
            ..Progress::default()
        };
        let output = self.job.output.clone();
        let of = Finish { plan: plan.clone(), output, progress };
        finish::finish(&self.rig.services.storage, &of).await
    }

    fn documents_in_report(&self) -> u64 {
        let report = std::fs::read(self.rig.path("out/report.json")).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        report["models"][MODEL]["documents"].as_u64().unwrap()
    }

    fn results(&self) -> Vec<u8> {
        std::fs::read(self.rig.path(&format!("out/results.{}", self.format))).unwrap()
    }

    /// Finishes; first with an object that cannot be read, after the objects in `gone` were processed.
    async fn broken_off(&self, plan: &Plan, run: &str, object: &str, gone: &[&str]) -> Finished {
        let results = self.rig.path(&format!("out/results.{}", self.format));
        std::fs::remove_file(&results).unwrap();
        let (object, aside) = (self.rig.path(object), self.rig.path("aside"));
        std::fs::rename(&object, &aside).unwrap();
        // A link to itself: it exists, and cannot be read.
        std::os::unix::fs::symlink(&object, &object).unwrap();
        self.finish(plan).await.unwrap_err();
        assert!(!results.exists(), "it is seen when it is complete");
        let state = self.rig.path(&format!("out/_tidegate/w-{run}/finish.state"));
        assert!(state.exists(), "the next worker knows how far this one came");
        std::fs::remove_file(&object).unwrap();
        std::fs::rename(&aside, &object).unwrap();
        // They are written: they are not read again.
        let gone: Vec<(PathBuf, Vec<u8>)> = gone
            .iter()
            .map(|name| self.rig.path(name))
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        gone.iter().for_each(|(path, _)| std::fs::write(path, "").unwrap());
        let finished = self.finish(plan).await.unwrap();
        gone.iter().for_each(|(path, whole)| std::fs::write(path, whole).unwrap());
        assert!(!state.exists());
        finished
    }
}

/// Compares tables by their content and their description.
fn same(format: &str, one: &[u8], other: &[u8]) -> bool {
    if format == "jsonl" {
        return one == other;
    }
    #[cfg(feature = "parquet")]
    {
        use parquet::file::{reader::FileReader, serialized_reader::SerializedFileReader};
        let read =
            |table: &[u8]| SerializedFileReader::new(bytes::Bytes::from(table.to_vec())).unwrap();
        let rows = |table: &SerializedFileReader<bytes::Bytes>| -> Vec<String> {
            table.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
        };
        let (one, other) = (read(one), read(other));
        one.metadata().row_groups() == other.metadata().row_groups() && rows(&one) == rows(&other)
    }
    #[cfg(not(feature = "parquet"))]
    unreachable!("it is not asked for")
}

async fn another_worker_goes_on(format: &'static str) {
    let (batch, plan) = Batch::answered(format).await;
    assert_eq!((plan.documents, plan.shards()), (1_100, SHARDS));
    batch.finish(&plan).await.unwrap();
    let whole = batch.results();
    assert!(whole.len() > 24 << 20, "parts of it leave on the way");
    let parts = ["out/results/part-00000.jsonl", "out/results/part-00001.jsonl"];
    let last = "out/results/part-00002.jsonl";
    let manifest = "out/_tidegate/w-run-1/shard-00002.jsonl";
    let finished = batch.broken_off(&plan, "run-1", manifest, &parts).await;
    assert_eq!((finished.succeeded, finished.missing), (1_100, 0));
    assert!(same(format, &batch.results(), &whole));
    assert_eq!(batch.documents_in_report(), 1_100);

    // Everything is done: no shard is left, and the results come from the parts.
    let plan = batch.plan("run-2").await;
    assert_eq!((plan.settled, plan.shards()), (1_100, 0));
    let finished = batch.broken_off(&plan, "run-2", last, &parts[..1]).await;
    assert_eq!((finished.skipped, finished.missing), (1_100, 0));
    assert!(same(format, &batch.results(), &whole));
    assert_eq!(batch.documents_in_report(), 1_100);
}

#[tokio::test]
async fn lines_are_gone_on_with() {
    Box::pin(another_worker_goes_on("jsonl")).await;
}

#[cfg(feature = "parquet")]
#[tokio::test]
async fn a_table_is_gone_on_with() {
    Box::pin(another_worker_goes_on("parquet")).await;
}

/// Results that stay in their parts are neither written nor read again.
#[tokio::test]
async fn parts_alone_are_not_read_again() {
    let (mut batch, _) = Batch::answered("jsonl").await;
    batch.job.results_jsonl = Some(false);
    let plan = batch.plan("run-2").await;
    assert_eq!((plan.settled, plan.shards()), (1_100, 0));
    std::fs::write(batch.rig.path("out/results.jsonl"), "").unwrap();
    let parts = ["out/results/part-00000.jsonl"];
    let finished = batch.broken_off(&plan, "run-2", "out/results/part-00002.jsonl", &parts).await;
    assert_eq!((finished.skipped, finished.missing), (1_100, 0));
    assert_eq!(batch.documents_in_report(), 1_100);
}
