//! Answers that are longer than the requested maximum.

use serde_json::{Value, json};

use crate::fleet::{MODEL, fleet};

/// Nearly every answer is truncated at first. The batch's settings decide: more room on the direct path
/// and behind the provider's batch API, the truncated answer as a result, or a failure that names the
/// location of the truncated answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_answer_is_no_silent_success() {
    const DOCUMENTS: usize = 20;
    let price = "price = { input-usd-per-mtok = 10.0, output-usd-per-mtok = 40.0 }";
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 6_000\n{price}\n");
    let Some(mut fleet) = fleet("[batches]\nduration = \"3s\"\n", &settings).await else { return };
    fleet.documents(DOCUMENTS, 400);
    fleet.worker();
    let batches = [
        ("raise", json!({})),
        ("economy", json!({"mode": "economy"})),
        ("later", json!({"max_in_flight": 2})),
        ("thrift", json!({"retry_budget": 1})),
        ("keep", json!({"on_cut": "keep"})),
        ("fail", json!({"on_cut": "fail"})),
    ];
    for (id, more) in &batches {
        let mut batch = fleet.batch(id);
        // Separate instructions keep the prompts of each batch apart.
        batch["instructions"] = json!(format!("Sum up, {id}."));
        batch["max_output_tokens"] = json!(60);
        batch["on_cut"] = Value::Null;
        batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fleet.start(id, &batch).await;
    }
    let all = json!(DOCUMENTS);
    for id in ["raise", "economy"] {
        let ended = fleet.result(id).await.unwrap();
        assert_eq!((&ended["succeeded"], &ended["cut"]), (&all, &json!(0)), "{id}: {ended}");
        let results = fleet.results(id);
        assert!(results.values().all(|result| result["finish"] == "complete"), "{id}");
        assert!(results.values().any(|result| result["output_tokens"].as_u64() > Some(60)));
        let (raised, began) =
            (ended["raised"].as_u64().unwrap(), ended["began_raised"].as_u64().unwrap());
        assert!(raised + began >= DOCUMENTS as u64 * 3 / 4, "{id}: {ended}");
        assert_eq!(ended["provider_calls"], json!(DOCUMENTS as u64 + raised), "{id}");
        let (cost, of_cut) = (&ended["cost_usd"], &ended["raised_cost_usd"]);
        assert!(of_cut.as_f64() > Some(0.0) && of_cut.as_f64() < cost.as_f64(), "{id}: {ended}");
        let report = std::fs::read(fleet.path(&format!("{id}/report.json"))).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!((&report["raised"], &report["raised_cost_usd"]), (&ended["raised"], of_cut));
        if id == "raise" {
            let sum = |name: &str| {
                results.values().map(|result| result[name].as_u64().unwrap()).sum::<u64>()
            };
            assert_eq!(ended["provider_calls"], json!(sum("provider_calls")));
            assert_eq!(ended["output_tokens"], json!(sum("output_tokens")), "what was cut counts");
        }
    }

    // Two at a time: later documents are asked after many truncations are known.
    let later = fleet.result("later").await.unwrap();
    let raised = later["raised"].as_u64().unwrap();
    assert_eq!((&later["succeeded"], &later["cut"]), (&all, &json!(0)), "{later}");
    assert!(raised <= DOCUMENTS as u64 / 4, "{later}");
    assert!(later["began_raised"].as_u64() >= Some(DOCUMENTS as u64 / 2), "{later}");
    assert_eq!(later["provider_calls"], json!(DOCUMENTS as u64 + raised), "{later}");

    let thrift = fleet.result("thrift").await.unwrap();
    assert_eq!(thrift["provider_calls"], json!(DOCUMENTS + 1), "raises are retries: {thrift}");
    let failures = fleet.lines("thrift/failures.jsonl");
    assert_eq!(thrift["failed"], json!(failures.len()), "{thrift}");
    assert!(failures.iter().all(|failure| {
        let message = failure["message"].as_str().unwrap();
        failure["error_type"] == "Truncated" && message.contains("retry budget of 1")
    }));
    assert!(!failures.is_empty() && failures.iter().all(|line| line["kept"].is_string()));

    let kept = fleet.result("keep").await.unwrap();
    let cut = fleet.results("keep").values().filter(|result| result["finish"] == "cut").count();
    assert_eq!((&kept["succeeded"], &kept["provider_calls"]), (&all, &all), "{kept}");
    assert!(cut >= DOCUMENTS * 3 / 4 && kept["cut"] == json!(cut), "{kept}");

    let failed = fleet.result("fail").await.unwrap();
    let failures = fleet.lines("fail/failures.jsonl");
    assert_eq!(failed["failed"], json!(failures.len()), "{failed}");
    assert!(failures.len() >= DOCUMENTS * 3 / 4, "{failed}");
    for failure in &failures {
        assert_eq!(
            (&failure["error_type"], &failure["provider_calls"]),
            (&json!("Truncated"), &json!(1))
        );
        let kept = failure["kept"].as_str().unwrap().strip_prefix("file://").unwrap();
        let kept: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
        assert!(!kept["answer"].as_str().unwrap().is_empty() && kept["id"] == failure["id"]);
    }
    fleet.stop().await;
}
