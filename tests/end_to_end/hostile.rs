//! Hostile batches and answers harm no other batch, and no worker.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

use crate::fleet::{Fleet, MODEL, fleet};

/// A value whose text has 2⁴⁰ characters.
fn doubled() -> String {
    format!("{{% set x=[1] %}}{}{{{{ x|string|length }}}}", "{% set x=[x,x] %}".repeat(40))
}

fn batch(fleet: &Fleet, output: &str, more: Value) -> Value {
    let mut batch = fleet.batch(output);
    batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    batch
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_that_takes_everything_ends_its_own_batch() {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 3_000\n");
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(1, 60);
    fleet.worker();
    fleet.working().await;
    let template = json!({"template": true, "instructions": doubled()});
    fleet.start("template", &batch(&fleet, "template", template)).await;

    // At the same time: a harmless batch whose template is filled in the same kind of process.
    let listed = json!({"template": true,
        "instructions": "{% for word in ['Sum', 'up'] %}{{ word }} {% endfor %}{{ name }}: {{ document }}"});
    let began = Instant::now();
    fleet.start("well", &batch(&fleet, "well", listed)).await;
    let well = fleet.result("well").await.unwrap();
    let took = began.elapsed();
    assert_eq!((&well["succeeded"], &well["failed"]), (&json!(1), &json!(0)), "{well}");

    let refused = fleet.result("template").await.unwrap_err().to_string();
    assert!(refused.contains("InvalidInput") && refused.contains("to be filled"), "{refused}");
    assert_eq!(fleet.account().requests, 1, "of the one that is well");
    println!("the batch that is well took {took:?}; the worker's peak: {} MB", fleet.peak_memory());
    assert!(took.as_secs() < 20, "it waited {took:?} for the others");
    assert!(fleet.peak_memory() < 500, "{} MB", fleet.peak_memory());
    fleet.stop().await;
}

/// The process that judges answers: all alternatives judge each level of this answer, and each
/// alternative judges the next level.
#[test]
fn a_schema_that_takes_everything_ends_the_process_that_judges() {
    let judge = |depth: u32| {
        let link = json!({"properties": {"a": {"$ref": "#"}}, "required": ["zz"]});
        let answer = (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
        json!({"validate": {"schema": {"anyOf": vec![link; 8]}, "answer": answer.to_string()}})
    };
    let done = |work: &Value| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["read-document", "work"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(work.to_string().as_bytes()).unwrap();
        process.wait_with_output().unwrap()
    };
    let small = done(&judge(1));
    assert!(small.status.success());
    let said: Result<(), String> = serde_json::from_slice(&small.stdout).unwrap();
    assert!(said.unwrap_err().starts_with("at its top"));
    let (began, large) = (Instant::now(), done(&judge(20)));
    assert!(!large.status.success() && large.stdout.is_empty(), "{large:?}");
    // The limit counts the process's own processor time, of which a busy machine gives little.
    println!("ended after {:?}: {}", began.elapsed(), large.status);
}
