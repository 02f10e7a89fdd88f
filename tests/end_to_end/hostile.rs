//! What a batch's author and a model write harms no other batch, and no worker.

use std::time::Instant;

use serde_json::{Value, json};

use crate::fleet::{Fleet, fleet};

/// A value whose text has 2⁴⁰ signs.
fn doubled() -> String {
    format!("{{% set x=[1] %}}{}{{{{ x|string|length }}}}", "{% set x=[x,x] %}".repeat(40))
}

/// Each level of an answer is judged by all alternatives, each of which judges the next level.
fn recursive() -> Value {
    let never = json!({"allOf": [{"type": "integer"}, {"type": "string"}]});
    let alternative = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": never}, "required": ["b"]});
    json!({"anyOf": vec![alternative; 300]})
}

fn batch(fleet: &Fleet, output: &str, more: Value) -> Value {
    let mut batch = fleet.batch(output);
    batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    batch
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_and_schemas_that_take_everything_end_their_own_batch() {
    let Some(mut fleet) = fleet("", "").await else { return };
    fleet.documents(1, 60);
    fleet.worker();
    fleet.working().await;
    let template = json!({"template": true, "instructions": doubled()});
    fleet.start("template", &batch(&fleet, "template", template)).await;
    let schema = batch(&fleet, "schema", json!({"schema": recursive()}));
    fleet.start("schema", &schema).await;

    // Beside them: one that is well, and whose template is filled in the same kind of process.
    let listed = json!({"template": true,
        "instructions": "{% for word in ['Sum', 'up'] %}{{ word }} {% endfor %}{{ name }}: {{ document }}"});
    let began = Instant::now();
    fleet.start("well", &batch(&fleet, "well", listed)).await;
    let well = fleet.result("well").await.unwrap();
    let took = began.elapsed();
    assert_eq!((&well["succeeded"], &well["failed"]), (&json!(1), &json!(0)), "{well}");

    let refused = fleet.result("template").await.unwrap_err().to_string();
    assert!(refused.contains("InvalidInput") && refused.contains("to be filled"), "{refused}");
    let judged = fleet.result("schema").await.unwrap();
    assert_eq!(judged["failed"], 1, "{judged}");
    let failures = fleet.lines("schema/failures.jsonl");
    assert_eq!(failures[0]["error_type"], "InvalidOutput", "{failures:?}");
    let message = failures[0]["message"].as_str().unwrap();
    assert!(message.contains("to judge the answer"), "{message}");

    assert_eq!(fleet.account().requests, 2, "no answer was bought twice");
    println!("the batch that is well took {took:?}; the worker's peak: {} MB", fleet.peak_memory());
    assert!(took.as_secs() < 20, "it waited {took:?} for the others");
    assert!(fleet.peak_memory() < 500, "{} MB", fleet.peak_memory());
    fleet.stop().await;
}
