//! Batches whose documents become vectors.

use serde_json::{Value, json};

use crate::fleet::{Fleet, fleet};

const SETTINGS: &str = "[providers.openai]\nbase-url = \"{sim}/v1\"\napi-key-env = \"SIMULATED_KEY\"\n\
    [providers.gemini]\nbase-url = \"{sim}\"\napi-key-env = \"SIMULATED_KEY\"\n\
    [providers.azure]\nbase-url = \"{sim}\"\napi-key-env = \"SIMULATED_KEY\"\n\
    [models.\"openai:text-embedding-3-small\"]\nrpm = 600\ntpm = 1_000_000\n\
    [models.\"gemini:gemini-embedding-001\"]\nrpm = 600\n\
    [models.\"azure:vectors\"]\nrpm = 600\n\
    [models.\"anthropic:claude-sonnet-5\"]\nrpm = 600\n\
    [routes.two]\nmodels = [\"openai:text-embedding-3-small\", \"gemini:gemini-embedding-001\"]\n";

async fn with_embeddings() -> Option<Fleet> {
    let limits = "[models.text-embedding-3-small]\nrpm = 600\ntpm = 1_000_000\n";
    let fleet = fleet(limits, SETTINGS).await?;
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, config.replace("{sim}", &fleet.simulator.base_url())).unwrap();
    Some(fleet)
}

fn batch(fleet: &Fleet, output: &str, model: &str, more: Value) -> Value {
    let mut batch = json!({"task": "embed", "source": fleet.uri("in/"), "output": fleet.uri(output), "model": model});
    batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    batch
}

fn vector(result: &Value) -> Vec<f64> {
    let numbers = result["embedding"].as_array().unwrap_or_else(|| panic!("{result}"));
    numbers.iter().map(|number| number.as_f64().unwrap()).collect()
}

fn near(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Texts share calls. A text that is too long is named, and a model that truncates silently is refused
/// before the batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_becomes_vectors() {
    let Some(mut fleet) = with_embeddings().await else { return };
    fleet.documents(60, 100);
    let long = "The tide comes in and goes out again. ".repeat(1_600);
    std::fs::write(fleet.path("in/book.md"), &long).unwrap();
    std::fs::write(fleet.path("in/empty.md"), "\n").unwrap();
    fleet.worker();
    let openai = "openai:text-embedding-3-small";
    fleet.start("openai", &batch(&fleet, "openai", openai, json!({"dimensions": 256}))).await;
    let gemini = "gemini:gemini-embedding-001";
    let parameters = json!({"parameters": {"task_type": "CLUSTERING"}, "results": "parquet"});
    fleet.start("gemini", &batch(&fleet, "gemini", gemini, parameters)).await;
    fleet.start("azure", &batch(&fleet, "azure", "azure:vectors", json!({}))).await;
    for (name, length) in [("openai", 256), ("gemini", 3_072), ("azure", 1_536)] {
        let result = fleet.result(name).await.unwrap();
        assert_eq!(
            (&result["succeeded"], &result["failed"]),
            (&json!(60), &json!(2)),
            "{name}: {result}"
        );
        assert!(result["provider_calls"].as_u64().unwrap() <= 6, "{name}: {result}");
        assert_eq!(result["output_tokens"], 0);
        let results = fleet.results(name);
        let vectors: Vec<Vec<f64>> = results.values().map(vector).collect();
        assert!(vectors.iter().all(|vector| vector.len() == length), "{name}");
        let different = near(&vectors[0], &vectors[1]);
        assert!(different > 0.3 && different < 0.999, "{name}: {different}");
        let failures = fleet.lines(&format!("{name}/failures.jsonl"));
        let of = |id: &str| failures.iter().find(|it| it["id"] == id).unwrap();
        assert_eq!(of("book.md")["error_type"], "TooLarge", "{name}: {failures:?}");
        assert!(of("book.md")["message"].as_str().unwrap().contains("records"), "{failures:?}");
        assert_eq!(of("empty.md")["error_type"], "UnreadableDocument", "{name}: {failures:?}");
    }
    let priced = fleet.results("openai");
    assert!(priced.values().all(|it| it["cost_usd"].as_f64().unwrap() > 0.0));
    assert_eq!(fleet.lines("openai/results.jsonl").len(), 60);
    assert!(fleet.path("gemini/results/part-00000.parquet").exists());
    let again = batch(&fleet, "openai", openai, json!({"dimensions": 256}));
    fleet.start("again", &again).await;
    assert_eq!(fleet.result("again").await.unwrap()["skipped"], 60);
    // Records that are kept apart share calls too.
    let text = "The harbour is open. ".repeat(900);
    let record = |ship| json!({"text": format!("{ship}: {text}")}).to_string() + "\n";
    std::fs::write(fleet.path("ships.jsonl"), (0..20).map(record).collect::<String>()).unwrap();
    let records = json!({"source": fleet.uri("ships.jsonl"), "records": true});
    fleet.start("records", &batch(&fleet, "records", openai, records)).await;
    let result = fleet.result("records").await.unwrap();
    assert_eq!(result["succeeded"], 20, "{result}");
    assert!(result["provider_calls"].as_u64().unwrap() <= 4, "{result}");
    let account = fleet.simulator.account();
    assert_eq!(account.models.values().map(|model| model.refused.total()).sum::<u64>(), 0);
    fleet.stop().await;
}

/// A template decides what is embedded. A model without vectors, and a route over several models, are
/// refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_decide_the_text_and_one_model_embeds_it() {
    let Some(mut fleet) = with_embeddings().await else { return };
    std::fs::write(fleet.path("in/a.md"), "High water at noon.").unwrap();
    std::fs::write(fleet.path("in/b.md"), "passage: High water at noon.").unwrap();
    fleet.worker();
    let openai = "openai:text-embedding-3-small";
    let prefixed = json!({"template": true, "instructions": "passage: {{ document }}"});
    fleet.start("plain", &batch(&fleet, "plain", openai, json!({}))).await;
    fleet.start("prefixed", &batch(&fleet, "prefixed", openai, prefixed)).await;
    fleet.result("plain").await.unwrap();
    fleet.result("prefixed").await.unwrap();
    let (plain, prefixed) = (fleet.results("plain"), fleet.results("prefixed"));
    assert_eq!(vector(&prefixed["a.md"]), vector(&plain["b.md"]), "the prefix is embedded too");
    assert_ne!(vector(&prefixed["a.md"]), vector(&plain["a.md"]));
    let mut route = batch(&fleet, "route", openai, json!({"route": "two"}));
    route.as_object_mut().unwrap().remove("model");
    let of = |more: Value| batch(&fleet, "refused", openai, more);
    for (name, input, said) in [
        ("claude", batch(&fleet, "x", "anthropic:claude-sonnet-5", json!({})), "has no embeddings"),
        ("route", route, "vectors of one mean nothing beside another's"),
        ("schema", of(json!({"schema": {"type": "object"}})), "schema is about answers"),
        ("words", of(json!({"instructions": "Sum up."})), "follows no instructions"),
        ("economy", of(json!({"mode": "economy"})), "do not go through batch APIs"),
        ("long", of(json!({"long": "per_chunk"})), "exclude each other"),
        (
            "field",
            of(json!({"parameters": {"temperature": 0}})),
            "temperature is not known at openai",
        ),
        (
            "bare",
            of(json!({"template": true, "instructions": "nothing"})),
            "do not name {{ document }}",
        ),
    ] {
        fleet.start(name, &input).await;
        let failure = fleet.result(name).await.unwrap_err().to_string();
        assert!(failure.contains(said) && failure.contains("InvalidInput"), "{name}: {failure}");
    }
    fleet.stop().await;
}
