//! Every provider's API, routes and schemas, on worker processes.

use serde_json::{Value, json};

use crate::fleet::{Fleet, fleet};

const QUICK: &str = "[gate]\njitter = \"50ms\"\nbase-backoff = \"20ms\"\nmax-backoff = \"100ms\"\n";

/// All APIs at one simulator; `{sim}` stands for its address.
const PROVIDERS: &str = "request-timeout = \"2s\"\n\
    [providers.openai]\nbase-url = \"{sim}/v1\"\napi-key-env = \"SIMULATED_KEY\"\nrequest-timeout = \"2s\"\n\
    [providers.newer]\nkind = \"openai\"\napi = \"responses\"\nbase-url = \"{sim}/v1\"\napi-key-env = \"SIMULATED_KEY\"\nrequest-timeout = \"2s\"\n\
    [providers.gemini]\nbase-url = \"{sim}\"\napi-key-env = \"SIMULATED_KEY\"\nrequest-timeout = \"2s\"\n\
    [providers.bedrock]\nbase-url = \"{sim}\"\nregion = \"eu-central-1\"\napi-key-env = \"SIMULATED_KEY\"\nrequest-timeout = \"2s\"\n";

pub(crate) const MODELS: [&str; 5] = [
    "anthropic:claude",
    "openai:gpt",
    "newer:gpt-r",
    "gemini:gemini",
    "bedrock:anthropic.claude-v1:0",
];

pub(crate) async fn every_provider(simulator: &str, more: &str) -> Option<Fleet> {
    let models: String =
        MODELS.iter().map(|model| format!("[models.\"{model}\"]\nrpm = 60_000\n")).collect();
    let fleet = fleet(simulator, &format!("{PROVIDERS}{models}{QUICK}{more}")).await?;
    let config = std::fs::read_to_string(fleet.path("tidegate.toml")).unwrap();
    std::fs::write(
        fleet.path("tidegate.toml"),
        config.replace("{sim}", &fleet.simulator.base_url()),
    )
    .unwrap();
    Some(fleet)
}

/// Truncated answers are kept, because the tests count calls.
fn batch(fleet: &Fleet, output: &str, more: Value) -> Value {
    let mut batch = json!({"source": fleet.uri("in/"), "output": fleet.uri(output), "instructions": "Sum up.", "max_output_tokens": 256, "on_cut": "keep"});
    batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    batch
}

/// One call in ten meets each of seven faults, at each API.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_goes_wrong_each_document_ends_and_no_call_is_wasted() {
    let kinds = [
        "overloaded",
        "server-error",
        "rate-limited",
        "hang",
        "reset-before",
        "reset-after",
        "malformed",
    ];
    let faults: String =
        kinds.iter().map(|kind| format!("[[faults]]\nkind = \"{kind}\"\nrate = 0.1\n")).collect();
    let Some(mut fleet) = every_provider(&faults, "").await else { return };
    fleet.documents(12, 100);
    fleet.worker();
    for (number, model) in MODELS.iter().enumerate() {
        let more = json!({"model": model, "retry_budget": 1_000});
        fleet.start(&format!("b{number}"), &batch(&fleet, &format!("out{number}"), more)).await;
    }
    for (number, model) in MODELS.iter().enumerate() {
        let result = fleet.result(&format!("b{number}")).await.unwrap();
        let ended = |field: &str| result[field].as_u64().unwrap();
        assert_eq!(ended("succeeded") + ended("failed"), 12, "{model}: {result}");
        assert!(ended("succeeded") >= 10, "{model}: {result}");
        let account = fleet.simulator.account().model(model.split_once(':').unwrap().1);
        let injected: u64 = account.faults.values().sum();
        assert!(injected > 0 && account.requests <= 12 + injected, "{model}: {account:?}");
        assert_eq!(ended("provider_calls"), account.requests, "{model}: every call is counted");
        for answer in fleet.results(&format!("out{number}")).values() {
            assert_eq!(answer["model"], json!(model));
            assert!(
                !answer["answer"].as_str().unwrap().is_empty()
                    && answer["output_tokens"].as_u64().unwrap() > 0,
                "{answer}"
            );
        }
        for failure in fleet.lines(&format!("out{number}/failures.jsonl")) {
            assert!(
                ["Transient", "Overloaded"].contains(&failure["error_type"].as_str().unwrap()),
                "{failure}"
            );
        }
    }
    fleet.stop().await;
}

/// At each API, one call in five meets its phase's fault; the instructions select the phase.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_by_itself_strikes_one_call_in_five() {
    let kinds = [
        "rate-limited",
        "overloaded",
        "server-error",
        "hang",
        "reset-before",
        "reset-after",
        "malformed",
        "slow",
    ];
    let faults: String = kinds
        .iter()
        .map(|kind| {
            format!(
                "[[faults]]\nkind = \"{kind}\"\nrate = 0.2\nmatching = \"The phase is {kind}.\"\n"
            )
        })
        .collect();
    let Some(mut fleet) = every_provider(&faults, "").await else { return };
    fleet.documents(10, 60);
    fleet.worker();
    for (number, model) in MODELS.iter().enumerate() {
        for kind in kinds {
            let more = json!({"model": model, "retry_budget": 1_000, "instructions": format!("The phase is {kind}.")});
            fleet
                .start(
                    &format!("{kind}-{number}"),
                    &batch(&fleet, &format!("{kind}-{number}"), more),
                )
                .await;
        }
    }
    let mut met = std::collections::BTreeSet::new();
    for (number, model) in MODELS.iter().enumerate() {
        let mut calls = 0;
        for kind in kinds {
            let result = fleet.result(&format!("{kind}-{number}")).await.unwrap();
            assert_eq!(result["succeeded"], json!(10), "{model}, {kind}: {result}");
            calls += result["provider_calls"].as_u64().unwrap();
        }
        let account = fleet.simulator.account().model(model.split_once(':').unwrap().1);
        let injected: u64 = account.faults.values().sum();
        assert_eq!(calls, account.requests, "{model}: {account:?}");
        assert!(
            account.requests <= 80 + injected,
            "{model}: at most a call more for each fault; {account:?}"
        );
        met.extend(account.faults.into_keys());
    }
    assert_eq!(met.len(), kinds.len(), "{met:?}");
    fleet.stop().await;
}

/// The first model's account is empty: three calls of one document find out, and all documents go to the
/// next model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_goes_on_to_the_next_model_or_says_why_not() {
    let faults = "[[faults]]\nkind = \"spend-limit\"\ntimes = 3\n";
    let routes = "[routes.both]\nmodels = [\"anthropic:claude\", \"gemini:gemini\"]\nunchecked = true\n\
        [routes.strict]\nmodels = [\"anthropic:claude\"]\n\
        [routes.equal]\nmodels = [\"openai:gpt\", \"newer:gpt-r\"]\nequivalent = [\"newer:gpt-r\"]\n";
    let Some(mut fleet) = every_provider(faults, routes).await else { return };
    fleet.documents(12, 100);
    fleet.worker();
    let one = json!({"model": "anthropic:claude", "source": fleet.uri("in/report-0000.md")});
    fleet.start("one", &batch(&fleet, "one", one)).await;
    assert_eq!(fleet.result("one").await.unwrap()["failed"], json!(1));
    let failure = &fleet.lines("one/failures.jsonl")[0];
    assert_eq!(
        (&failure["error_type"], &failure["provider_calls"]),
        (&json!("QuotaExhausted"), &json!(3)),
        "{failure}"
    );

    fleet.start("both", &batch(&fleet, "both", json!({"route": "both"}))).await;
    let result = fleet.result("both").await.unwrap();
    assert_eq!(result["succeeded"], json!(12), "{result}");
    assert!(
        fleet.results("both").values().all(|result| result["model"] == "gemini:gemini"),
        "the model that answered is named"
    );
    assert_eq!(
        fleet.simulator.account().model("claude").requests,
        3,
        "an empty account is not asked"
    );

    fleet.start("strict", &batch(&fleet, "strict", json!({"route": "strict"}))).await;
    let result = fleet.result("strict").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(0), &json!(12)), "{result}");
    assert_eq!(
        fleet.simulator.account().model("claude").requests,
        3,
        "an empty account is not asked"
    );
    assert!(
        fleet
            .lines("strict/failures.jsonl")
            .iter()
            .all(|failure| failure["error_type"] == "QuotaExhausted")
    );

    // One of two equivalent models is paused: the other answers.
    let config = fleet.path("tidegate.toml");
    let paused = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["pause", "openai:gpt", "--for", "60s", "--reason", "test", "--config"])
        .arg(&config)
        .output()
        .unwrap();
    assert!(paused.status.success(), "{}", String::from_utf8_lossy(&paused.stderr));
    fleet.start("equal", &batch(&fleet, "equal", json!({"route": "equal"}))).await;
    let result = fleet.result("equal").await.unwrap();
    assert_eq!(result["succeeded"], json!(12), "{result}");
    assert!(fleet.results("equal").values().all(|result| result["model"] == "newer:gpt-r"));

    fleet.start("none", &batch(&fleet, "none", json!({"route": "nowhere"}))).await;
    let message = fleet.result("none").await.unwrap_err().to_string();
    assert!(
        message.contains("InvalidInput") && message.contains("configured: both, equal, strict"),
        "{message}"
    );
    fleet.stop().await;
}

/// Long instructions are cached, answers satisfy the schema, and an invalid schema fails the batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instructions_are_cached_and_answers_satisfy_the_schema() {
    let Some(mut fleet) = every_provider("latency = { base = \"300ms\" }", "").await else {
        return;
    };
    fleet.documents(30, 100);
    fleet.worker();
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["title", "n"], "additionalProperties": false});
    let instructions = "Read with care and say what it is. ".repeat(150);
    for (number, model) in MODELS.iter().enumerate() {
        let more = json!({"model": model, "schema": schema, "instructions": instructions});
        fleet.start(&format!("s{number}"), &batch(&fleet, &format!("s{number}"), more)).await;
    }
    for (number, model) in MODELS.iter().enumerate() {
        let result = fleet.result(&format!("s{number}")).await.unwrap();
        assert_eq!(result["succeeded"], json!(30), "{model}: {result}");
        for answer in fleet.results(&format!("s{number}")).values() {
            let value: Value = serde_json::from_str(answer["answer"].as_str().unwrap()).unwrap();
            assert!(value["title"].is_string() && value["n"].is_i64(), "{value}");
        }
        // The first document warms the cache for all others.
        let (cached, input) = (
            result["cached_input_tokens"].as_u64().unwrap(),
            result["input_tokens"].as_u64().unwrap(),
        );
        assert!(cached * 10 > input * 7, "{model}: {cached} of {input}");
        let account = fleet.simulator.account().model(model.split_once(':').unwrap().1);
        assert_eq!(account.cache_read, cached, "{model}");
        if ["anthropic", "bedrock"].iter().any(|vendor| model.starts_with(vendor)) {
            assert!(
                account.cache_written < 2_000,
                "{model}: written once: {}",
                account.cache_written
            );
        }
    }
    let dear = json!({"model": "openai:gpt", "budget_usd": 0.000_001});
    fleet.start("dear", &batch(&fleet, "dear", dear)).await;
    let message = fleet.result("dear").await.unwrap_err().to_string();
    assert!(
        message.contains("InvalidInput") && message.contains("no price is known for openai:gpt"),
        "{message}"
    );
    fleet
        .start(
            "bad",
            &batch(&fleet, "bad", json!({"model": MODELS[0], "schema": {"type": "objct"}})),
        )
        .await;
    let message = fleet.result("bad").await.unwrap_err().to_string();
    assert!(
        message.contains("InvalidInput") && message.contains("schema is no JSON Schema"),
        "{message}"
    );
    fleet.stop().await;
}
