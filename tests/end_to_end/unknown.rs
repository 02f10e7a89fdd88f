//! A model that its provider does not know.

use serde_json::json;
use tidegate_simulator::{Config, Simulator};

use crate::fleet::{MODEL, fleet};

/// A few calls find out, not one for each document; a route goes on to its next model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_calls_find_out_and_a_route_goes_on() {
    let second = Simulator::start(Config::default()).await.unwrap();
    let settings = format!(
        "[models.\"{MODEL}\"]\nrpm = 6_000\nconcurrent = 5\n[models.\"second:good\"]\nrpm = 6_000\n\
         [providers.second]\nkind = \"anthropic\"\nbase-url = \"{}\"\napi-key-env = \"SIMULATED_KEY\"\n\
         [routes.two]\nmodels = [\"{MODEL}\", \"second:good\"]\nunchecked = true\n",
        second.base_url()
    );
    let faults = "[[faults]]\nkind = \"unknown-model\"\n";
    let Some(mut fleet) = fleet(faults, &settings).await else { return };
    fleet.documents(100, 60);
    fleet.worker();
    fleet.start("none", &fleet.batch("none")).await;
    let result = fleet.result("none").await.unwrap();
    assert_eq!(result["failures"], json!({ "InvalidRequest": 100 }), "{result}");
    let calls = result["provider_calls"].as_u64().unwrap();
    println!("{calls} calls for 100 documents of a model that is not known");
    // Only calls that were under way at the third refusal.
    assert!((3..=3 + 5).contains(&calls), "{result}");
    for failure in fleet.lines("none/failures.jsonl") {
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("does not know the model claude-sonnet-5"), "{failure}");
    }

    let mut batch = fleet.batch("two");
    batch.as_object_mut().unwrap().remove("model");
    batch["route"] = json!("two");
    fleet.start("two", &batch).await;
    let result = fleet.result("two").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(100), &json!(0)), "{result}");
    let calls = result["provider_calls"].as_u64().unwrap();
    assert!(calls <= 100 + 3 + 5, "a new run asks the first model anew, a few times: {result}");
    fleet.stop().await;
    second.shutdown().await;
}
