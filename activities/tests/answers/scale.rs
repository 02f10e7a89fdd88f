//! A large batch from its plan to its end, with shards that only write answers. `TIDEGATE_DOCUMENTS`
//! sets its size; the printed times are for `docs/scale.md`:
//!
//! ```text
//! TIDEGATE_DOCUMENTS=100000 cargo test --release -p tidegate-activities --test answers -- \
//!     --exact scale::a_large_batch_is_planned_finished_and_found_done --nocapture
//! ```

use std::{io::Write, time::Instant};

use super::*;

#[tokio::test]
async fn a_large_batch_is_planned_finished_and_found_done() {
    let documents = std::env::var("TIDEGATE_DOCUMENTS").ok();
    let documents: u64 = documents.map_or(3_000, |documents| documents.parse().unwrap());
    let rig = Rig::new();
    let file = std::fs::File::create(rig.path("in/log.csv")).unwrap();
    let mut file = std::io::BufWriter::new(file);
    for number in 0..documents {
        let line = format!("letter {:03}/{number:07},The tide turns {number} times.", number % 500);
        writeln!(file, "{}{line}", if number == 0 { "letter,text\n" } else { "" }).unwrap();
    }
    drop(file);
    let job = rig.job(&json!({"records": {"id": "letter", "text": "text"}, "per_document": false}));
    let asks = StatedQuestion::of(&job).fingerprint();
    // Small files of records make one page.
    let room = Room::page();
    let clock = Instant::now();
    let plan = pages::plan(&rig.services, &job, "run-1", &room).await.unwrap();
    said("planned (pages behind the first twice)", clock, documents);
    assert_eq!((plan.documents, plan.settled), (documents, 0));
    assert_eq!(u64::from(plan.shards()), documents.div_ceil(500));

    let clock = Instant::now();
    (0..plan.shards()).for_each(|shard| answered(&rig, shard, &json!(asks)));
    said("shards written by the script", clock, documents);

    let progress = Progress {
        documents,
        totals: Totals { succeeded: documents, ..Totals::default() },
        started_at: Some("2026-11-22T10:00:00Z".to_owned()),
        done: true,
        ..Progress::default()
    };
    let clock = Instant::now();
    let of = Finish { plan: plan.clone(), output: job.output.clone(), progress };
    let finished = finish::finish(&rig.services.storage, &of).await.unwrap();
    said("finished", clock, documents);
    assert_eq!((finished.succeeded, finished.missing, finished.failed), (documents, 0, 0));
    let in_one = rig.path("out/results.jsonl");
    assert_eq!(in_one.exists(), documents <= 100_000, "larger ones stay in parts");
    if in_one.exists() {
        let lines =
            std::io::BufRead::lines(std::io::BufReader::new(std::fs::File::open(in_one).unwrap()));
        assert_eq!(lines.count() as u64, documents);
    }
    assert_eq!(rig.lines("out/failures.jsonl").len(), 0);

    let clock = Instant::now();
    let again = pages::plan(&rig.services, &job, "run-2", &room).await.unwrap();
    said("found to be done", clock, documents);
    assert_eq!((again.settled, again.shards()), (documents, 0));
}

/// A shard's answers, as its seal leaves them.
fn answered(rig: &Rig, shard: u32, asks: &Value) {
    answered_with(rig, shard, asks, || "The tide turns. ".repeat(60));
}

/// Like `answered`, with these answers.
pub(super) fn answered_with(
    rig: &Rig,
    shard: u32,
    asks: &Value,
    mut answer: impl FnMut() -> String,
) {
    let object = |what: &str| format!("out/_tidegate/w-run-1/{what}-{shard:05}.jsonl");
    let (mut part, mut index) = (String::new(), String::new());
    for line in rig.lines(&object("shard")) {
        let (id, content) = (&line["id"], &line["content"]);
        let result = json!({"id": id, "uri": line["uri"], "model": MODEL, "answer": answer(),
            "stop_reason": "end_turn", "finish": "complete", "input_tokens": 1_000, "cached_input_tokens": 0,
            "output_tokens": 240, "cost_usd": 0.01, "provider_calls": 1, "completed_at": "2026-11-22T10:00:01Z",
            "question": asks, "content": content});
        part += &format!("{result}\n");
        index += &format!("{}\n", json!({"id": id, "question": asks, "content": content}));
    }
    for folder in ["out/results", "out/_tidegate/sealed"] {
        std::fs::create_dir_all(rig.path(folder)).unwrap();
    }
    std::fs::write(rig.path(&format!("out/results/part-{shard:05}.jsonl")), part).unwrap();
    std::fs::write(rig.path(&format!("out/_tidegate/sealed/index-{shard:05}.jsonl")), index)
        .unwrap();
    std::fs::write(rig.path(&object("failures")), "").unwrap();
}

/// Prints the time of a step, and the peak memory so far.
fn said(what: &str, clock: Instant, documents: u64) {
    let took = clock.elapsed();
    let each = took / u32::try_from(documents).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    println!("{documents} documents {what}: {took:.1?}, {each:.0?} each; at most {}", peak.trim());
}
