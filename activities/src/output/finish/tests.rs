use serde_json::{Value, json};
use tidegate_workflows::contract::{Plan, Totals};

use super::*;

/// An output on the disk, with the folder of one job in it.
struct Rig {
    folder: tempfile::TempDir,
    storage: Storage,
    output: String,
    job: String,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let output = url::Url::from_directory_path(&path).unwrap().to_string();
        let storage = Storage::new([output.as_str()]).unwrap();
        let job = format!("{output}_tidegate/batch-1/");
        std::fs::create_dir_all(path.join("_tidegate/batch-1")).unwrap();
        std::fs::create_dir_all(path.join("results")).unwrap();
        Self { folder, storage, output, job }
    }

    fn write(&self, name: &str, lines: &[Value]) {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.folder.path().join(name), lines).unwrap();
    }

    /// The documents of one shard.
    fn planned(&self, shard: u32, ids: &[&str]) {
        let lines: Vec<_> = ids.iter().map(|id| json!({"id": id, "uri": "file:///x"})).collect();
        self.write(&format!("_tidegate/batch-1/shard-{shard:05}.jsonl"), &lines);
    }

    /// The results of a shard's part, and its failures.
    fn sealed(&self, shard: u32, results: &[Value], failed: &[&str]) {
        self.write(&format!("results/part-{shard:05}.jsonl"), results);
        let failed: Vec<_> = failed
            .iter()
            .map(|id| json!({"id": id, "uri": "file:///x", "error_type": "TooLarge", "message": "", "provider_calls": 0}))
            .collect();
        self.write(&format!("_tidegate/batch-1/failures-{shard:05}.jsonl"), &failed);
    }

    fn result(&self, result: &Value) {
        let name = result["id"].as_str().unwrap();
        let text = serde_json::to_string_pretty(result).unwrap();
        std::fs::write(self.folder.path().join(format!("results/{name}.json")), text).unwrap();
    }

    /// Finishes a batch of shards of two documents; `done` is whether it has processed all of them.
    async fn finish(&self, documents: u64, done: bool, totals: Totals) -> Finished {
        let plan = Plan { job: self.job.clone(), documents, renamed: 3, ..plan() };
        let started_at = Some("2026-11-22T10:00:00Z".to_owned());
        let progress =
            Progress { documents, totals, started_at, done, renamed: 3, ..Progress::default() };
        let of = Finish { plan, output: self.output.clone(), progress };
        finish(&self.storage, &of).await.unwrap()
    }

    fn ids(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap();
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].to_string();
        text.lines().map(|line| id(line).trim_matches('"').to_owned()).collect()
    }

    fn report(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.folder.path().join("report.json")).unwrap())
            .unwrap()
    }
}

fn plan() -> Plan {
    Plan { shard_size: 2, pack: 1, ..Plan::default() }
}

fn result(id: &str, hour: u32) -> Value {
    json!({"id": id, "uri": "file:///x", "model": "a:b", "answer": "An answer.", "stop_reason": "end_turn",
        "finish": "complete", "input_tokens": 10,
        "cached_input_tokens": 0, "output_tokens": 5, "provider_calls": 1, "completed_at": format!("2026-11-22T{hour:02}:00:00.500Z")})
}

fn totals(succeeded: u64, failed: u64, skipped: u64) -> Totals {
    Totals { succeeded, failed, skipped, ..Totals::default() }
}

#[tokio::test]
async fn a_batch_that_is_done_has_everything_and_can_be_finished_again() {
    let rig = Rig::new();
    rig.planned(0, &["a", "b"]);
    rig.planned(1, &["c"]);
    rig.sealed(0, &[result("a", 10)], &["b"]);
    rig.sealed(1, &[result("c", 9)], &[]);
    [result("a", 10), result("c", 9)].iter().for_each(|it| rig.result(it));
    let finished = rig.finish(3, true, totals(1, 1, 1)).await;
    let expected = Finished { succeeded: 1, failed: 1, skipped: 1, ..Finished::default() };
    assert_eq!(finished, expected);
    assert_eq!(
        (rig.ids("results.jsonl"), rig.ids("failures.jsonl")),
        (vec!["a".into(), "c".into()], vec!["b".to_owned()])
    );
    let (report, results) =
        (rig.report(), std::fs::read(rig.folder.path().join("results.jsonl")).unwrap());
    assert_eq!(
        (&report["done"], &report["renamed"], &report["models"]["a:b"]["documents"]),
        (&json!(true), &json!(3), &json!(2))
    );
    assert!(report.get("missing").is_none(), "{report}");
    assert_eq!(report["given_up"]["TooLarge"]["documents"], 1, "{report}");
    let html = std::fs::read_to_string(rig.folder.path().join("report.html")).unwrap();
    assert!(
        html.contains("<h1>1 of 3 documents failed</h1>") && html.contains("TooLarge"),
        "{html}"
    );
    // One answer of this run, half a second after it began.
    assert!(html.contains("Answers in each 1s, at most 1"), "{html}");

    // A crash in between leaves an upload that was broken off and no report.
    std::fs::remove_file(rig.folder.path().join("report.json")).unwrap();
    std::fs::write(rig.folder.path().join("results.jsonl#1"), "half").unwrap();
    assert_eq!(rig.finish(3, true, totals(1, 1, 1)).await, expected);
    assert_eq!(std::fs::read(rig.folder.path().join("results.jsonl")).unwrap(), results);
    assert_eq!(rig.report()["succeeded"], json!(1));
}

/// The first shard was sealed, the second has begun, the third has not. All of them have results of
/// an earlier run; one result belongs to a document that is no longer planned.
#[tokio::test]
async fn a_cancelled_rerun_keeps_every_result_and_counts_what_was_not_asked() {
    let rig = Rig::new();
    rig.planned(0, &["a", "b"]);
    rig.planned(1, &["c", "d"]);
    rig.planned(2, &["e", "f"]);
    rig.sealed(0, &[result("a", 9)], &["b"]);
    for (id, hour) in [("a", 9), ("c", 9), ("d", 10), ("e", 9), ("gone", 8)] {
        rig.result(&result(id, hour));
    }
    std::fs::write(rig.folder.path().join("results/other.json"), "{}").unwrap();
    // The activity of d was cancelled when its result was written; the workflow knows of a and b.
    let finished = rig.finish(6, false, totals(0, 1, 1)).await;
    assert_eq!(
        finished,
        Finished { succeeded: 1, failed: 1, skipped: 3, cancelled: 1, ..Finished::default() }
    );
    assert_eq!(rig.ids("results.jsonl"), ["a", "c", "d", "e", "gone"]);
    assert_eq!(rig.ids("failures.jsonl"), ["b"], "what was cancelled has not failed");
    let report = rig.report();
    assert_eq!((&report["cancelled"], &report["done"]), (&json!(1), &json!(false)));
}

#[tokio::test]
async fn a_document_that_is_nowhere_is_named() {
    let rig = Rig::new();
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for shard in 0..4 {
        rig.planned(shard, &ids[shard as usize * 2..][..2]);
        rig.sealed(shard, &[], &[]);
    }
    rig.sealed(0, &[result("a", 10)], &["a"]);
    let finished = rig.finish(8, true, totals(8, 0, 0)).await;
    assert_eq!(
        (finished.succeeded, finished.failed, finished.cancelled),
        (1, 0, 0),
        "one of them, once"
    );
    assert_eq!(
        (finished.missing, finished.first_missing),
        (7, ids[1..6].iter().map(|id| (*id).to_owned()).collect())
    );
    let report = rig.report();
    assert_eq!(
        (&report["done"], &report["missing"], &report["first_missing"][0]),
        (&json!(false), &json!(7), &json!("b"))
    );
    assert!(rig.ids("failures.jsonl").is_empty());
}

/// The next worker does not repeat the reading of parts by a worker that died.
#[tokio::test]
async fn a_finish_goes_on_where_it_was_broken_off() {
    let rig = Rig::new();
    let large = |id: &str| {
        let mut result = result(id, 10);
        result["answer"] = json!("x".repeat(9 << 20));
        result
    };
    for (shard, ids) in [["a", "b"], ["c", "d"], ["e", "f"]].into_iter().enumerate() {
        let shard = u32::try_from(shard).unwrap();
        rig.planned(shard, &ids);
        rig.sealed(shard, &[large(ids[0])], &[ids[1]]);
    }
    let manifest = rig.folder.path().join("_tidegate/batch-1/shard-00002.jsonl");
    let third = std::fs::read(&manifest).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let plan = |rig: &Rig| Plan { job: rig.job.clone(), documents: 6, shard_size: 2, ..plan() };
    let of = Finish {
        plan: plan(&rig),
        output: rig.output.clone(),
        progress: Progress { documents: 6, done: true, ..Progress::default() },
    };
    let failure = finish(&rig.storage, &of).await.unwrap_err();
    assert!(failure.message.contains("is gone"), "{failure}");
    assert!(!rig.folder.path().join("results.jsonl").exists(), "it is seen when it is complete");
    std::fs::write(&manifest, third).unwrap();
    // The parts are merged already, so they are not read again.
    for name in [
        "results/part-00000.jsonl",
        "_tidegate/batch-1/failures-00000.jsonl",
        "results/part-00001.jsonl",
    ] {
        std::fs::write(rig.folder.path().join(name), "").unwrap();
    }
    let finished = finish(&rig.storage, &of).await.unwrap();
    assert_eq!((finished.succeeded, finished.failed, finished.missing), (3, 3, 0));
    assert_eq!(rig.ids("results.jsonl"), ["a", "c", "e"]);
    assert_eq!(rig.ids("failures.jsonl"), ["b", "d", "f"]);
    assert_eq!(rig.report()["models"]["a:b"]["documents"], json!(3));
    let left = std::fs::read_dir(rig.folder.path().join("_tidegate/batch-1")).unwrap();
    let left: Vec<_> =
        left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(
        !left.iter().any(|name| name.contains("finish") || name.ends_with(".part")),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_report_tells_causes_apart_and_money_without_dust() {
    let rig = Rig::new();
    rig.planned(0, &["a", "b"]);
    rig.planned(1, &["c"]);
    [0, 1].iter().for_each(|shard| rig.sealed(*shard, &[], &[]));
    let failed = |id: &str, message: &str| json!({"id": id, "uri": format!("file:///x/{id}"), "error_type": "UnreadableDocument", "message": message, "provider_calls": 0});
    let lines = [
        failed("a", "the document is empty"),
        failed("b", "this is binary data"),
        failed("c", "this is binary data"),
    ];
    rig.write("_tidegate/batch-1/failures-00000.jsonl", &lines[..2]);
    rig.write("_tidegate/batch-1/failures-00001.jsonl", &lines[2..]);
    std::fs::write(rig.folder.path().join("_tidegate/batch-1/full-price.txt"), "why").unwrap();
    let mut totals = totals(0, 3, 0);
    totals.spend.cost_usd = 0.044_837_999_999_999_996;
    rig.finish(3, true, totals).await;
    let report = rig.report();
    let expected = json!({"documents": 3, "samples": ["a", "b", "c"], "messages": [
        {"message": "this is binary data", "documents": 2},
        {"message": "the document is empty", "documents": 1},
    ]});
    assert_eq!(report["given_up"]["UnreadableDocument"], expected, "{report}");
    assert_eq!(report["full_price"], "why", "{report}");
    let text = std::fs::read_to_string(rig.folder.path().join("report.json")).unwrap();
    assert!(text.contains("\"cost_usd\": 0.044838,"), "{text}");
}
