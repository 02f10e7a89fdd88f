//! Batches whose documents go through their provider's batch API.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_activities::{batch::plan, provider_batch};
use tidegate_workflows::contract::{Job, SubmitBatch};

use crate::{
    fleet::{Fleet, fleet},
    why::tidegate,
};

/// All APIs with batches at one simulator; `{sim}` stands for its address. The direct path makes one call
/// at a time.
const PROVIDERS: &str = "[providers.openai]\nbase-url = \"{sim}/v1\"\napi-key-env = \"SIMULATED_KEY\"\n\
    [providers.newer]\nkind = \"openai\"\napi = \"responses\"\nbase-url = \"{sim}/v1\"\napi-key-env = \"SIMULATED_KEY\"\n\
    [providers.gemini]\nbase-url = \"{sim}\"\napi-key-env = \"SIMULATED_KEY\"\n\
    [providers.bedrock]\nbase-url = \"{sim}\"\nregion = \"eu-central-1\"\napi-key-env = \"SIMULATED_KEY\"\n\
    [gate]\nbase-backoff = \"20ms\"\nmax-backoff = \"100ms\"\n";

const PRICE: &str = "price = { input-usd-per-mtok = 10.0, output-usd-per-mtok = 40.0 }";

const MODELS: [&str; 4] =
    ["anthropic:claude", "openai:gpt", "newer:gpt-r", "gemini:gemini-3.8-flash"];

async fn with_batches(simulator: &str) -> Option<Fleet> {
    let models: String = MODELS
        .iter()
        .chain(&["bedrock:nova"])
        .map(|model| format!("[models.\"{model}\"]\nrpm = 600\n{PRICE}\n"))
        .collect();
    let fleet = fleet(simulator, &format!("{PROVIDERS}{models}")).await?;
    let file = fleet.path("tidegate.toml");
    let config =
        std::fs::read_to_string(&file).unwrap().replace("{sim}", &fleet.simulator.base_url());
    std::fs::write(file, config).unwrap();
    Some(fleet)
}

fn batch(fleet: &Fleet, output: &str, more: Value) -> Value {
    let mut batch = json!({"source": fleet.uri("in/"), "output": fleet.uri(output), "instructions": "Sum up.", "mode": "economy"});
    batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    batch
}

/// US dollars at the price above.
fn list_price(result: &Value) -> f64 {
    let tokens = |field: &str| result[field].as_f64().unwrap();
    (tokens("input_tokens") * 10.0 + tokens("output_tokens") * 40.0) / 1e6
}

/// In each batch, some requests fail and some expire: these documents take the direct path at its price,
/// the others cost half.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_cost_half_and_what_fails_there_takes_the_direct_path() {
    let Some(mut fleet) =
        with_batches("[batches]\nduration = \"6s\"\nerror-rate = 0.1\nexpire-rate = 0.1\n").await
    else {
        return;
    };
    fleet.documents(40, 100);
    std::fs::write(fleet.path("in/noise.bin"), [0, 159, 146, 150, 0, 1, 2, 255]).unwrap();
    fleet.worker();
    for (number, model) in MODELS.iter().enumerate() {
        // Separate instructions keep the prompts of each batch apart.
        let more = json!({"model": model, "instructions": format!("Sum up, {number}.")});
        fleet.start(&format!("b{number}"), &batch(&fleet, &format!("out{number}"), more)).await;
    }
    for (number, model) in MODELS.iter().enumerate() {
        let result = fleet.result(&format!("b{number}")).await.unwrap();
        assert_eq!(
            (&result["succeeded"], &result["failed"]),
            (&json!(40), &json!(1)),
            "{model}: {result}"
        );
        let direct = fleet.simulator.account().model(model.split_once(':').unwrap().1).requests;
        assert!((1..20).contains(&direct), "{model}: {direct} calls on the direct path");
        let results = fleet.results(&format!("out{number}"));
        let halved = results.values().filter(|result| {
            let part = result["cost_usd"].as_f64().unwrap() / list_price(result);
            assert!((part - 0.5).abs() < 1e-6 || (part - 1.0).abs() < 1e-6, "{result}");
            part < 0.75
        });
        assert_eq!(halved.count() as u64, 40 - direct, "{model}");
        let cost: f64 = results.values().map(|result| result["cost_usd"].as_f64().unwrap()).sum();
        assert!(
            (result["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-6,
            "{model}: the sum of the parts; {result}"
        );
        let calls = result["provider_calls"].as_u64().unwrap();
        assert!((40..=40 + direct).contains(&calls), "{model}: {result}");
        // Each answer is about its own document.
        for (id, result) in &results {
            let number =
                id.trim_start_matches("report-").trim_end_matches(".md").trim_start_matches('0');
            let number = if number.is_empty() { "0" } else { number };
            assert!(
                result["answer"].as_str().unwrap().contains(&format!("of report {number} ")),
                "{id}: {}",
                result["answer"]
            );
        }
        assert_eq!(
            fleet.lines(&format!("out{number}/failures.jsonl"))[0]["error_type"],
            "UnreadableDocument"
        );
    }
    let account = fleet.simulator.account();
    assert_eq!(
        (account.batches, account.batch_requests),
        (4, 160),
        "unreadable documents are not handed in"
    );
    assert_eq!(account.answered_twice, 0);
    // The batch runs again: all results are there.
    let more = json!({"model": MODELS[0], "instructions": "Sum up, 0."});
    fleet.start("again", &batch(&fleet, "out0", more)).await;
    let result = fleet.result("again").await.unwrap();
    assert_eq!(
        (&result["skipped"], &result["failed"], &result["provider_calls"]),
        (&json!(40), &json!(1), &json!(0)),
        "{result}"
    );
    assert_eq!(fleet.simulator.account().batches, 4);
    fleet.stop().await;
}

/// Workers are replaced while the provider works. Submitted requests are neither submitted again nor
/// lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_outlives_its_workers_and_a_cancelled_one_keeps_what_is_paid_for() {
    let Some(mut fleet) = with_batches("[batches]\nduration = \"12s\"\n").await else { return };
    fleet.documents(30, 100);
    fleet.worker();
    fleet.start("long", &batch(&fleet, "out", json!({"model": MODELS[0]}))).await;
    until(&fleet, |account| account.batches == 1).await;
    fleet.kill_worker(0).await;
    fleet.worker();
    let result = fleet.result("long").await.unwrap();
    assert_eq!(
        (&result["succeeded"], &result["provider_calls"]),
        (&json!(30), &json!(30)),
        "{result}"
    );
    let account = fleet.simulator.account();
    assert_eq!((account.batches, account.answered_twice), (1, 0), "{account:?}");

    fleet
        .start(
            "cut",
            &batch(&fleet, "cut", json!({"model": MODELS[1], "instructions": "Once more."})),
        )
        .await;
    until(&fleet, |account| account.batches == 2).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(fleet.cli(&["workflow", "cancel", "--workflow-id", "cut"]).await.status.success());
    let ended = fleet.result("cut").await.unwrap_err();
    assert!(ended["status"].as_str().unwrap().contains("CANCEL"), "{ended}");
    let kept = fleet.results("cut").len() as u64;
    assert!((1..30).contains(&kept), "{kept} answers were there by then");
    assert_eq!(
        fleet.simulator.account().prompts,
        60 - (30 - kept),
        "all that was paid for is kept"
    );
    assert_eq!(
        fleet.simulator.account().model("gpt").requests,
        0,
        "a cancelled batch asks nothing more"
    );
    fleet.stop().await;
}

async fn until(fleet: &Fleet, holds: impl Fn(&tidegate_simulator::Account) -> bool) {
    for _ in 0..600 {
        if holds(&fleet.simulator.account()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {:?}", fleet.simulator.account());
}

/// A worker dies between submission and its record: its successor finds the provider's batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_handed_in_once_whenever_its_worker_dies() {
    let Some(fleet) = with_batches("[batches]\nduration = \"60s\"\n").await else { return };
    fleet.documents(6, 100);
    std::fs::write(fleet.path("key"), "sk-simulated-secret").unwrap();
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let key = format!("api-key-file = \"{}\"", fleet.path("key").display());
    std::fs::write(&file, config.replace("api-key-env = \"SIMULATED_KEY\"", &key)).unwrap();
    let config = tidegate::config::Config::load(Some(file.as_path())).unwrap();
    let services = tidegate::worker::services(&config).unwrap();
    for (number, model) in MODELS.iter().enumerate() {
        let job: Job = serde_json::from_value(json!({
            "source": {"prefix": fleet.uri("in/")}, "output": fleet.uri(&format!("out{number}")), "instructions": "Sum up.",
            "model": model, "lane": "batch", "tenant": "default", "max_output_tokens": 256, "on_cut": "keep", "mode": "economy",
        }))
        .unwrap();
        let plan = plan::plan(&services, &job, &format!("w{number}"), "run-1").await.unwrap();
        let task = SubmitBatch {
            job: plan.job,
            workflow: "w".into(),
            shard: 0,
            from: 0,
            to: 6,
            round: 0,
            only_find: false,
            until: None,
        };
        let first = provider_batch::submit(&services, None, &task, 1).await.unwrap();
        assert_eq!((first.requests, first.next), (6, 6));
        assert_eq!(
            provider_batch::submit(&services, None, &task, 2).await.unwrap(),
            first,
            "its reply was lost"
        );
        // The state as it is written before a submission.
        let memo =
            fleet.path(&task.job.replace(&fleet.uri(""), "")).join("batch-00000-00000-0.json");
        let mut value: Value = serde_json::from_slice(&std::fs::read(&memo).unwrap()).unwrap();
        value.as_object_mut().unwrap().remove("batch").unwrap();
        std::fs::write(&memo, value.to_string()).unwrap();
        let find = SubmitBatch { only_find: true, ..task.clone() };
        assert_eq!(
            provider_batch::submit(&services, None, &find, 1).await.unwrap(),
            first,
            "found when time is up"
        );
        std::fs::write(&memo, value.to_string()).unwrap();
        assert_eq!(
            provider_batch::submit(&services, None, &task, 3).await.unwrap(),
            first,
            "its worker died"
        );
        let other = SubmitBatch { from: 3, only_find: true, ..task.clone() };
        assert_eq!(
            provider_batch::submit(&services, None, &other, 1).await.unwrap().batch,
            None,
            "it was never submitted"
        );
        let late = SubmitBatch { from: 3, until: Some(1), ..task.clone() };
        let late = provider_batch::submit(&services, None, &late, 1).await.unwrap();
        assert_eq!(
            (late.batch, late.next),
            (None, 6),
            "its time was over while no worker was there"
        );
        assert_eq!(fleet.simulator.account().batches, number as u64 + 1, "{model}");
    }
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_chooses_and_a_provider_without_batches_is_reported() {
    let Some(mut fleet) = with_batches("[batches]\nduration = \"1s\"\n").await else { return };
    fleet.documents(3, 100);
    fleet.worker();
    let direct = |more: Value| {
        let mut batch = batch(&fleet, "out", more);
        batch.as_object_mut().unwrap().remove("mode");
        batch
    };
    fleet.start("soon", &direct(json!({"model": MODELS[0], "deadline": "30m"}))).await;
    assert_eq!(fleet.result("soon").await.unwrap()["succeeded"], json!(3));
    assert_eq!(fleet.simulator.account().batches, 0, "there is no time");
    let full_price = |name: &str| {
        let report = std::fs::read(fleet.path(&format!("{name}/report.json"))).unwrap();
        serde_json::from_slice::<Value>(&report).unwrap()["full_price"].clone()
    };
    let told = full_price("out");
    assert!(told.as_str().unwrap().contains("leaves no time for"), "{told}");
    let mut dear = direct(json!({"model": "bedrock:nova", "deadline": "6h"}));
    dear["output"] = json!(fleet.uri("dear"));
    fleet.start("dear", &dear).await;
    assert_eq!(fleet.result("dear").await.unwrap()["succeeded"], json!(3));
    let told = full_price("dear");
    assert!(told.as_str().unwrap().ends_with("no batch API is known for bedrock:nova"), "{told}");
    let status = tidegate(&fleet, &["status", "dear"]).await;
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("each call costs the full price"), "{status}");
    let direct_calls = fleet.account().requests;
    let mut late = direct(json!({"model": MODELS[0], "deadline": "6h"}));
    late["output"] = json!(fleet.uri("late"));
    fleet.start("late", &late).await;
    assert_eq!(fleet.result("late").await.unwrap()["succeeded"], json!(3));
    assert_eq!(
        (fleet.simulator.account().batches, fleet.account().requests - direct_calls),
        (1, 0),
        "there is time enough"
    );
    assert_eq!(full_price("late"), Value::Null);
    let report: Value =
        serde_json::from_slice(&std::fs::read(fleet.path("late/report.json")).unwrap()).unwrap();
    assert_eq!(report["forecast"]["economy"], json!(true));

    for (id, more, expected) in [
        ("none", json!({"model": "bedrock:nova"}), "needs a provider with a batch API"),
        (
            "over",
            json!({"model": MODELS[0], "deadline": "2020-01-01T00:00:00Z"}),
            "deadline is over already",
        ),
    ] {
        fleet.start(id, &batch(&fleet, id, more)).await;
        let failed = fleet.result(id).await.unwrap_err().to_string();
        assert!(failed.contains(expected) && failed.contains("InvalidInput"), "{failed}");
    }
    fleet.stop().await;
}

/// The provider's queue has room for one batch of two: the other is submitted later. A budget's
/// reservation is returned when the answers arrive, and a document that exceeds the rest of the budget
/// pays nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_is_waited_for_and_budgets_are_kept() {
    let Some(mut fleet) =
        with_batches("[batches]\nduration = \"2s\"\nqueue-tokens = 15_000\n").await
    else {
        return;
    };
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{config}[tenants.acme]\ndaily-budget-usd = 0.16\n")).unwrap();
    fleet.documents(200, 50);
    fleet.worker();
    fleet.start("two", &batch(&fleet, "out", json!({"model": MODELS[1]}))).await;
    let result = fleet.result("two").await.unwrap();
    assert_eq!((&result["succeeded"], &result["in_flight"]), (&json!(200), &json!(0)), "{result}");
    let account = fleet.simulator.account();
    assert_eq!(
        (account.batches, account.model("gpt").requests),
        (3, 0),
        "one, and again in halves"
    );

    // Ten documents reserve some 0.11 dollars and cost some 0.02.
    for (id, model, succeeded) in
        [("first", MODELS[0], 10), ("second", MODELS[0], 10), ("dear", MODELS[0], 0)]
    {
        let output = if id == "dear" { 16_384 } else { 512 };
        let more = json!({"model": model, "tenant": "acme", "source": fleet.uri("in/report-000*.md"), "max_output_tokens": output});
        fleet.start(id, &batch(&fleet, id, more)).await;
        let result = fleet.result(id).await.unwrap();
        assert_eq!(result["succeeded"], json!(succeeded), "{id}: {result}");
    }
    assert!(
        fleet
            .lines("dear/failures.jsonl")
            .iter()
            .all(|failure| failure["error_type"] == "BudgetExceeded")
    );
    assert_eq!(
        (fleet.simulator.account().batches, fleet.simulator.account().model("claude").requests),
        (5, 0)
    );
    fleet.stop().await;
}

/// Each request of a batch contains its own document's values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_are_filled_for_each_document_of_a_batch() {
    let Some(mut fleet) = with_batches("[batches]\nduration = \"1s\"\n").await else { return };
    let rows = "nr,city,note\n1,Husum,High water at noon.\n2,Emden,The ferry waits.\n";
    std::fs::write(fleet.path("in/log.csv"), rows).unwrap();
    fleet.worker();
    let asked = json!({"records": {"id": "nr", "text": "note"}, "template": true,
        "instructions": "A pilot in {{ city }} writes the note {{ nr }}. {{ document }}"});
    for (number, model) in MODELS.iter().enumerate() {
        let mut asked = asked.clone();
        asked["model"] = json!(model);
        let (id, output) = (format!("words-{number}"), format!("words-{number}"));
        fleet.start(&id, &batch(&fleet, &output, asked)).await;
        let result = fleet.result(&id).await.unwrap();
        assert_eq!(result["succeeded"], json!(2), "{model}: {result}");
        let results = fleet.results(&output);
        for (name, city, nr) in [("log.csv__1", "Husum", 1), ("log.csv__2", "Emden", 2)] {
            // The provider answers with an extract of the prompt.
            let answer = results[name]["answer"].as_str().unwrap();
            let words = format!("A pilot in {city} writes the note {nr}.");
            assert!(answer.starts_with(&words), "{model}: {answer}");
        }
    }
    let account = fleet.simulator.account();
    assert_eq!(account.batches, MODELS.len() as u64);
    assert!(account.models.values().all(|model| model.requests == 0), "none went directly");
    fleet.stop().await;
}

/// The provider's queue limit is configured: no batch is larger, all waiting batches together stay within
/// it, and each document is submitted once. The provider counts each byte of a file, about twice the size
/// of documents and instructions: of 200 requests it accepts half at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_batch_is_larger_than_the_queue_that_is_stated() {
    let provider = "[batches]\nduration = \"1s\"\nqueue-tokens = 18_000\n";
    let Some(mut fleet) = with_batches(provider).await else { return };
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let section = "[models.\"openai:gpt\"]\n";
    let stated = format!("{section}enqueued-batch-tokens = 6_000\n");
    std::fs::write(&file, config.replace(section, &stated)).unwrap();
    fleet.documents(200, 50);
    fleet.worker();
    fleet.start("stated", &batch(&fleet, "out", json!({"model": "openai:gpt"}))).await;
    let result = fleet.result("stated").await.unwrap();
    assert_eq!(result["succeeded"], json!(200), "{result}");
    let account = fleet.simulator.account();
    assert_eq!(account.model("gpt").requests, 0, "none went directly");
    assert_eq!(account.batch_requests, 200, "each was handed in once");
    assert!(account.batches >= 3, "{}", account.batches);
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    assert!(!log.contains("the account's queue is full"), "it was never asked for too much");
    fleet.stop().await;
}
