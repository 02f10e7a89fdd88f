//! A batch's budget, whatever happens to Redis.

use serde_json::json;

use crate::fleet::{Fleet, MODEL, fleet_with_its_own_redis, private_folder};

/// The price of the provider's calls in US dollars: 2 and 10 for a million tokens.
fn spent(fleet: &Fleet) -> f64 {
    let admitted = fleet.account().admitted;
    (admitted.input as f64 * 2.0 + admitted.output as f64 * 10.0) / 1e6
}

/// Redis comes back empty twice. `[storage] state` keeps what was spent, so the batch stops at its
/// budget, and not much before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_holds_over_two_losses_of_redis() {
    const BUDGET: f64 = 0.1;
    let settings = format!(
        "[models.\"{MODEL}\"]\nrpm = 3_000\nconcurrent = 4\n[gate]\nbase-backoff = \"1s\"\nmax-backoff = \"3s\"\n"
    );
    let simulator = "[latency]\nbase = \"200ms\"\n";
    let Some(mut fleet) = fleet_with_its_own_redis(simulator, &settings).await else { return };
    fleet.documents(100, 60);
    let (_folder, state) = private_folder();
    for _ in 0..2 {
        fleet.worker_with(&[("TIDEGATE_STORAGE__STATE", &state)]);
    }
    let mut batch = fleet.batch("out");
    batch["budget_usd"] = json!(BUDGET);
    fleet.start("money", &batch).await;
    for done in [6, 12] {
        fleet.until("money", |progress| progress["succeeded"].as_u64() >= Some(done)).await;
        let redis = fleet.own_redis.as_mut().unwrap();
        redis.kill();
        redis.restart();
    }
    let result = fleet.result("money").await.unwrap();
    let spent = spent(&fleet);
    println!("{spent:.3} of {BUDGET} USD over two losses: {result}");
    assert!(spent <= BUDGET, "{spent}");
    assert!(spent >= BUDGET / 3.0, "{spent}: what a checkpoint allows is a small part");
    assert!(result["failed"].as_u64() > Some(0), "{result}");
    for failure in fleet.lines("out/failures.jsonl") {
        assert_eq!(failure["error_type"], "BudgetExceeded", "{failure}");
    }
    fleet.stop().await;
}
