//! Workers that are killed while they finish a batch: the next worker goes on and does not read again
//! what is recorded.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    time::Duration,
};

use serde_json::{Value, json};

use crate::fleet::{Fleet, fleet};

/// Two full shards and a part of a third.
const DOCUMENTS: usize = 1_050;

/// Each shard has some 20 MB of results, so that the first is recorded before the next is done.
fn provider() -> String {
    "mean-output-tokens = 10_000\noutput-spread = 0.0\n".to_owned()
}

/// The recorded state of a finish; `None` if there is none yet.
fn state(run: &Path) -> Option<Value> {
    let file = std::fs::File::open(run.join("finish.state")).ok()?;
    let mut line = String::new();
    BufReader::new(file).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// Kills the worker when its finish has reached this state.
async fn kill_at(fleet: &mut Fleet, worker: usize, batch: &str, far: impl Fn(&Value) -> bool) {
    for _ in 0..600_000 {
        let runs = std::fs::read_dir(fleet.path("out/_tidegate")).into_iter().flatten();
        let mut runs = runs.map(|entry| entry.unwrap().path());
        let of_batch = |run: &std::path::PathBuf| {
            run.file_name().is_some_and(|name| name.to_string_lossy().starts_with(batch))
        };
        if runs.find(of_batch).and_then(|run| state(&run)).is_some_and(|state| far(&state)) {
            fleet.kill_worker(worker).await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the finish of {batch} never came so far");
}

/// First as lines, from shards; then as a table, from recorded parts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finish_goes_on_where_its_worker_was_killed() {
    let settings = "[models.\"anthropic:claude-sonnet-5\"]\nrpm = 60_000\n";
    let Some(mut fleet) = fleet(&provider(), settings).await else { return };
    fleet.documents(DOCUMENTS, 60);
    fleet.worker();
    let mut batch = fleet.batch("out");
    batch["max_output_tokens"] = json!(16_000);
    batch["per_document"] = json!(false);
    fleet.start("lines", &batch).await;
    kill_at(&mut fleet, 0, "lines", |state| state["shards"].as_u64() >= Some(1)).await;
    let (report, part) =
        (fleet.path("out/report.json"), fleet.path("out/results/part-00000.jsonl"));
    assert!(!report.exists() && !fleet.path("out/results.jsonl").exists(), "it died on the way");
    let paid = fleet.account().requests;
    // Recorded results are not read again.
    let first = std::fs::read(&part).unwrap();
    std::fs::write(&part, "").unwrap();
    fleet.worker();
    let result = fleet.result("lines").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(DOCUMENTS), &json!(0)));
    let ids: Vec<String> = fleet
        .lines("out/results.jsonl")
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), DOCUMENTS);
    assert!(ids.is_sorted_by(|one, next| one < next), "each once, in the plan's order");
    std::fs::write(&part, &first).unwrap();
    std::fs::remove_file(&report).unwrap();

    batch["results"] = json!("parquet");
    fleet.start("table", &batch).await;
    kill_at(&mut fleet, 1, "table", |state| state["settled"].as_u64() >= Some(500)).await;
    assert!(!report.exists() && !fleet.path("out/results.parquet").exists(), "it died on the way");
    std::fs::write(&part, "").unwrap();
    fleet.worker();
    let result = fleet.result("table").await.unwrap();
    assert_eq!((&result["skipped"], &result["failed"]), (&json!(DOCUMENTS), &json!(0)));
    assert_eq!(table(&fleet.path("out/results.parquet")), ids);
    assert_eq!(fleet.account().requests, paid, "nobody was asked again");
    fleet.stop().await;
}

/// The ids in a table, read by a general reader of the format.
fn table(path: &Path) -> Vec<String> {
    use parquet::file::{reader::FileReader, serialized_reader::SerializedFileReader};
    let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let rows = file.get_row_iter(None).unwrap();
    let id = |row: parquet::record::Row| {
        let (_, field) = row.get_column_iter().next().unwrap();
        field.to_string().trim_matches('"').to_owned()
    };
    rows.map(|row| id(row.unwrap())).collect()
}
