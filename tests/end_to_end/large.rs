//! Batches with several pages, and batches whose results are only in sealed parts, with workers that are
//! killed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fleet::fleet;

const ROWS: u64 = 24_000;

fn settings() -> String {
    "[gate]\njitter = \"1s\"\n[models.\"anthropic:claude-sonnet-5\"]\nrpm = 60_000\n".to_owned()
}

/// The field `documents` of the batch's progress.
fn documents(progress: &Value) -> u64 {
    progress["documents"].as_u64().unwrap_or(0)
}

/// One worker dies while it plans a later page, and another while it finishes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_goes_on_where_its_worker_was_killed() {
    let Some(mut fleet) = fleet("", &settings()).await else { return };
    let note = "The tide turns and the harbour master writes it down. ".repeat(40);
    let rows: String = (0..ROWS).map(|row| format!("ship-{row:05},{note}\n")).collect();
    assert!(rows.len() > 48 << 20, "three pages at least");
    std::fs::write(fleet.path("in/log.csv"), format!("ship,note\n{rows}")).unwrap();
    drop(rows);
    fleet.worker();
    let mut batch = fleet.batch("out");
    batch["records"] = json!({"id": "ship", "text": "note"});
    batch["max_in_flight"] = json!(2);
    fleet.start_paused("large", &batch).await;
    // The second page is written by the activity that plans more pages.
    let folder = loop {
        let runs = std::fs::read_dir(fleet.path("out/_tidegate")).into_iter().flatten();
        let mut runs = runs.map(|entry| entry.unwrap().path());
        if let Some(run) = runs.find(|run| run.join("page-00002.json").exists()) {
            break run;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    fleet.kill_worker(0).await;
    assert!(!folder.join("page-00005.json").exists(), "it died on the way");
    let written = |shard: &str| folder.join(shard).metadata().unwrap().modified().unwrap();
    let first = written("shard-00000.jsonl");
    fleet.worker();
    let all = fleet.until("large", |progress| documents(progress) == ROWS).await;
    assert_eq!(written("shard-00000.jsonl"), first, "it does not begin anew");
    let mut ids: Vec<String> = (0..ROWS.div_ceil(500))
        .flat_map(|shard| crate::fleet::lines(&folder.join(format!("shard-{shard:05}.jsonl"))))
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len() as u64, ROWS, "each once: {all}");

    let cancel = fleet.cli(&["workflow", "cancel", "--workflow-id", "large"]).await;
    assert!(cancel.status.success());
    fleet.kill_worker(1).await;
    fleet.worker();
    assert!(fleet.result("large").await.is_err());
    let report = std::fs::read(fleet.path("out/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let of = |name: &str| report[name].as_u64().unwrap();
    let ended = of("succeeded") + of("failed") + of("skipped");
    assert_eq!(ended + of("cancelled"), ROWS, "{report}");
    fleet.stop().await;
}

/// Answers are separate objects until their shard is sealed, and then only in its part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealed_parts_alone_survive_a_kill() {
    let slow = "[latency]\nbase = \"200ms\"\n";
    let small = format!("{}[worker]\nmax-concurrent-documents = 8\n", settings());
    let Some(mut fleet) = fleet(slow, &small).await else { return };
    fleet.documents(90, 60);
    fleet.worker();
    let mut batch = fleet.batch("out");
    batch["per_document"] = json!(false);
    fleet.start("parts", &batch).await;
    for _ in 0..400 {
        if fleet.account().requests >= 30 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fleet.kill_worker(0).await;
    fleet.worker();
    let result = fleet.result("parts").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(90), &json!(0)), "{result}");
    assert!(fleet.results("out").is_empty(), "the parts have them");
    let ids = |object: &str| -> Vec<Value> {
        fleet.lines(object).into_iter().map(|line| line["id"].clone()).collect()
    };
    assert_eq!(ids("out/results/part-00000.jsonl").len(), 90);
    assert_eq!(ids("out/results.jsonl"), ids("out/results/part-00000.jsonl"));
    let paid = fleet.account().requests;
    assert!((90..=90 + 8).contains(&paid), "{paid} calls: what was in flight, once more at most");
    // All results are known, so no call is made.
    fleet.start("again", &batch).await;
    let again = fleet.result("again").await.unwrap();
    assert_eq!((&again["skipped"], &again["succeeded"]), (&json!(90), &json!(0)), "{again}");
    assert_eq!(fleet.account().requests, paid);
    assert_eq!(ids("out/results.jsonl").len(), 90);
    fleet.stop().await;
}

/// One call takes very long. The rest of its shard, and later shards, end in the meantime; the next shard
/// is sealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_straggler_delays_no_other_document() {
    const DOCUMENTS: usize = 520;
    let slow =
        "[[faults]]\nkind = \"slow\"\ndelay = \"100s\"\nmatching = \"the one that drags on\"\n";
    let Some(mut fleet) = fleet(slow, &settings()).await else { return };
    fleet.documents(DOCUMENTS - 1, 60);
    std::fs::write(fleet.path("in/a.md"), "This is the one that drags on.").unwrap();
    fleet.worker();
    let mut batch = fleet.batch("out");
    batch["max_in_flight"] = json!(10);
    fleet.start("straggler", &batch).await;
    for _ in 0..1_000 {
        if fleet.path("out/results/part-00001.jsonl").exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let sealed = |part: &str| fleet.path(&format!("out/results/{part}.jsonl")).exists();
    let results = fleet.results("out");
    assert_eq!(results.len(), DOCUMENTS - 1, "every place is used by others until the last");
    assert!(!results.contains_key("a.md"), "it drags on");
    assert_eq!((sealed("part-00000"), sealed("part-00001")), (false, true));
    let result = fleet.result("straggler").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(DOCUMENTS), &json!(0)));
    assert_eq!(fleet.account().requests, DOCUMENTS as u64);
    fleet.stop().await;
}
