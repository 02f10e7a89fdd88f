//! Many batches at once, end to end: each ends with every document, and none waits for the end of
//! another.
//!
//! ```text
//! TIDEGATE_FULL_SCALE=1 cargo test --workspace --locked --test end_to_end -- many:: --nocapture
//! ```

use std::time::Instant;

use futures::StreamExt;
use serde_json::json;

use crate::{
    fleet::{Fleet, fleet_with_its_own_redis, full_scale, number},
    workers::server,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_batches_at_once_end_together() {
    let (batches, documents) = if full_scale() { (100, 100) } else { (8, 10) };
    let batches = number("TIDEGATE_BATCHES", batches);
    let documents = number("TIDEGATE_DOCUMENTS", documents);
    let settings = "[models.\"anthropic:claude-sonnet-5\"]\nrpm = 600_000\n";
    let Some(mut fleet) = fleet_with_its_own_redis("", settings).await else { return };
    fleet.documents(documents as usize, 60);
    fleet.worker();
    fleet.worker();
    fleet.working().await;
    let redis = |fleet: &Fleet| server(fleet.own_redis.as_ref().unwrap());
    let before = redis(&fleet);
    let started = Instant::now();
    let start = async |number: u32| {
        let input = fleet.batch(&format!("out-{number:03}"));
        fleet.start(&format!("one-{number:03}"), &input).await;
    };
    // The command line takes longer than the start.
    futures::stream::iter(0..batches).map(start).buffer_unordered(8).collect::<()>().await;
    println!("{batches} batches are started after {:.1} s", started.elapsed().as_secs_f64());
    for number in 0..batches {
        let result = fleet.result(&format!("one-{number:03}")).await.unwrap();
        assert_eq!(
            (&result["succeeded"], &result["failed"], &result["done"]),
            (&json!(documents), &json!(0), &json!(true)),
            "{result}"
        );
        let lines = fleet.lines(&format!("out-{number:03}/results.jsonl"));
        assert_eq!(lines.len(), documents as usize);
    }
    let took = started.elapsed().as_secs_f64();
    let after = redis(&fleet);
    let all = f64::from(batches * documents);
    let calls = fleet.account().requests;
    let of_redis = |name: &str| (after[name] - before[name]) / all;
    println!(
        "{all} documents: all ended after {took:.1} s; for each {:.1} ms of the workers' processors, {:.2} ms of Redis's, \
         {:.1} commands in Redis with those of scripts; {} MB at most in a worker",
        1e3 * fleet.processor_time().as_secs_f64() / all,
        1e3 * (of_redis("used_cpu_user") + of_redis("used_cpu_sys")),
        of_redis("total_commands_processed"),
        fleet.peak_memory(),
    );
    assert_eq!(calls, u64::from(batches * documents), "each document is asked once");
    fleet.stop().await;
}
