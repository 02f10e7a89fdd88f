//! The sample batches in `samples/batches/`.

use std::path::Path;

use serde_json::{Value, json};

use crate::fleet::{Fleet, MODEL, fleet};

/// A sample's input, with the locations of this test.
fn input(fleet: &Fleet, name: &str) -> Value {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let text = std::fs::read_to_string(samples.join("batches").join(name)).unwrap();
    let text = text.replace("file:///samples/", &format!("file://{}/", samples.display()));
    serde_json::from_str(&text.replace("file:///out/", &fleet.uri(""))).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sample_batch_runs_as_it_is_written() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let settings = format!(
        "[providers.openai]\nbase-url = \"{{sim}}/v1\"\napi-key-env = \"SIMULATED_KEY\"\n[models.\"{MODEL}\"]\nrpm = 6_000\n[models.\"openai:text-embedding-3-small\"]\nrpm = 6_000\n"
    );
    let Some(mut fleet) = fleet("", &settings).await else { return };
    // The samples' folder is a further root.
    let config = std::fs::read_to_string(fleet.path("tidegate.toml")).unwrap();
    let roots = format!("roots = [\"file://{}/\", ", samples.display());
    let config = config.replace("roots = [", &roots);
    let config = config.replace("{sim}", &fleet.simulator.base_url());
    std::fs::write(fleet.path("tidegate.toml"), config).unwrap();
    fleet.worker();

    let names = std::fs::read_dir(samples.join("batches")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    for name in &names {
        fleet.start(name, &input(&fleet, name)).await;
    }
    for name in &names {
        let result = fleet.result(name).await.unwrap();
        if name == "checked.json" {
            // The simulator's extracts do not add up, so checks fail.
            let failed = fleet.lines("checked/failures.jsonl");
            assert!(result["failed"] == json!(failed.len()) && !failed.is_empty(), "{result}");
            assert!(failed.iter().all(|it| it["error_type"] == "CheckFailed"), "{failed:?}");
            continue;
        }
        assert_eq!(result["succeeded"], result["documents"], "{name}: {result}");
    }
    let answers = |output: &str| -> Vec<Value> {
        let results = fleet.results(output).into_values();
        results.map(|it| serde_json::from_str(it["answer"].as_str().unwrap()).unwrap()).collect()
    };
    let invoices = answers("invoices");
    assert_eq!(invoices.len(), 5);
    assert!(invoices.iter().all(|it| it["total"].is_number() && it["lines"].is_array()));
    let desks = ["bookings", "complaints", "invoices", "other"].map(|desk| json!(desk));
    let mails = answers("mails");
    assert!(mails.len() == 3 && mails.iter().all(|mail| desks.contains(&mail["desk"])));
    let orders = fleet.results("orders");
    let order = &orders["orders.csv__1002"];
    assert_eq!(order["fields"], json!({"city": "Emden", "order": "1002", "product": "lamps"}));
    assert_eq!(orders.len(), 4);
    let vectors = fleet.results("vectors");
    assert!(vectors.values().all(|it| it["embedding"].as_array().unwrap().len() == 256));
    fleet.stop().await;
}
