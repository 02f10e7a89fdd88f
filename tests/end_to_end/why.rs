//! What an operator sees of a waiting batch, and the effect of limits that are set while it runs.

use std::{process::Output, time::Duration};

use serde_json::{Value, json};
use tokio::{process::Command, time::Instant};

use crate::fleet::{Fleet, MODEL, fleet};

pub(super) async fn tidegate(fleet: &Fleet, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command
        .args(arguments)
        .arg("--config")
        .arg(fleet.path("tidegate.toml"))
        .env("SIMULATED_KEY", "sk-simulated-secret");
    command.kill_on_drop(true).output().await.unwrap()
}

async fn value(fleet: &Fleet, arguments: &[&str]) -> Value {
    let output = tidegate(fleet, arguments).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Repeats `why` until `ready`.
pub(super) async fn why(fleet: &Fleet, id: &str, mut ready: impl FnMut(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let answer = value(fleet, &["why", id, "--json"]).await;
        if ready(&answer) {
            return answer;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{answer}");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// Three documents a minute; the others wait in Temporal and ask again every few seconds.
fn small() -> String {
    format!(
        "[models.\"{MODEL}\"]\ntpm = 2_000\n[worker]\nmax-slot-wait = \"1s\"\n[gate]\nbase-backoff = \"1s\"\nmax-backoff = \"5s\"\nmax-quota-wait = \"5s\"\njitter = \"1s\"\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_batch_says_why() {
    let Some(mut fleet) = fleet("", &small()).await else { return };
    fleet.documents(60, 400);
    fleet.start("small", &fleet.batch("out")).await;
    let answer = why(&fleet, "small", |answer| {
        answer["why"].as_str().is_some_and(|why| why.contains("tidegate worker"))
    })
    .await;
    assert_eq!((&answer["model"], &answer["lane"]), (&json!(MODEL), &json!("batch")));

    fleet.worker();
    let answer = why(&fleet, "small", |answer| {
        answer["waiting_for_turn"].as_u64() >= Some(10)
            && answer["next_attempt"].is_string()
            && answer["why"].as_str().is_some_and(|why| why.contains("tokens"))
    })
    .await;
    assert!(
        answer["why"].as_str().unwrap().starts_with("it waits for quota: tokens: "),
        "{answer}"
    );
    println!("{}", String::from_utf8_lossy(&tidegate(&fleet, &["why", "small"]).await.stdout));
    println!("{}", String::from_utf8_lossy(&tidegate(&fleet, &["quota"]).await.stdout));

    // The closed gate is the more serious cause.
    let pause = ["pause", MODEL, "--for", "120s", "--reason", "holiday"];
    assert!(tidegate(&fleet, &pause).await.status.success());
    let answer = why(&fleet, "small", |answer| {
        answer["why"].as_str().is_some_and(|why| why.contains("holiday"))
    })
    .await;
    assert!(
        answer["why"].as_str().unwrap().contains(&format!("`tidegate resume {MODEL}`")),
        "{answer}"
    );
    assert!(tidegate(&fleet, &["resume", MODEL]).await.status.success());

    let refused = tidegate(&fleet, &["limits", "set", MODEL, "--tpm", "0"]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let set = value(&fleet, &["limits", "set", MODEL, "--tpm", "5000000", "--json"]).await;
    assert_eq!(
        set[0]["limits"]["tpm"],
        json!({ "configured": 2_000, "set": 5_000_000, "in_force": 4_900_000 })
    );
    let seen = value(&fleet, &["quota", MODEL, "--json"]).await;
    assert!(
        seen[0]["limits"]["tokens"]["used"].as_u64() >= Some(400),
        "use in the window is forgotten: {seen}"
    );

    let cleared = value(&fleet, &["limits", "clear", MODEL, "--json"]).await;
    assert_eq!(cleared[0]["limits"]["tpm"]["in_force"], 1_960);
    assert!(fleet.cli(&["workflow", "cancel", "--workflow-id", "small"]).await.status.success());
    fleet.result("small").await.unwrap_err();
    let answer = value(&fleet, &["why", "small", "--json"]).await;
    assert!(answer["why"].as_str().unwrap().contains("waits for nothing"), "{answer}");
    let unknown = tidegate(&fleet, &["why", "nobody"]).await;
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no batch called nobody"));
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raised_limit_moves_the_queue() {
    let Some(mut fleet) = fleet("", &small()).await else { return };
    fleet.documents(60, 400);
    fleet.worker();
    fleet.start("raised", &fleet.batch("out")).await;
    why(&fleet, "raised", |answer| answer["waiting_for_turn"].as_u64() >= Some(10)).await;
    let before = fleet.account().requests;
    assert!(before < 20, "the quota was not small: {before}");
    let set = value(&fleet, &["limits", "set", MODEL, "--tpm", "5000000", "--json"]).await;
    assert_eq!(
        set[0]["limits"]["tpm"],
        json!({ "configured": 2_000, "set": 5_000_000, "in_force": 4_900_000 })
    );
    let raised = Instant::now();
    while fleet.account().requests < before + 10 {
        assert!(
            raised.elapsed() < Duration::from_secs(15),
            "the limits did not act: {:?}",
            fleet.account()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("ten calls within {:?} of raising the limit", raised.elapsed());
    fleet.result("raised").await.unwrap();
    fleet.stop().await;
}

/// A folder is in the place of `results.jsonl`; like a full disk, it makes the write fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_cannot_be_finished_says_what_it_meets() {
    let settings = format!("[models.\"{MODEL}\"]\ntpm = 100_000\n");
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(3, 40);
    std::fs::create_dir_all(fleet.path("out/results.jsonl/in the way")).unwrap();
    fleet.worker();
    fleet.start("stuck", &fleet.batch("out")).await;
    let names_it = |answer: &Value| {
        let why = answer["why"].as_str().unwrap_or_default();
        why.contains("its results cannot be put together: ") && why.contains("results.jsonl")
    };
    let answer = why(&fleet, "stuck", names_it).await;
    assert_eq!((&answer["stands"], &answer["eta"]), (&json!(true), &Value::Null), "{answer}");
    let status = value(&fleet, &["status", "stuck", "--json"]).await;
    assert!(names_it(&status), "{status}");
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    let told = log.lines().find(|line| line.contains("a step of the batch failed")).unwrap();
    assert!(told.contains("tidegate.finish") && told.contains("results.jsonl"), "{told}");

    std::fs::remove_dir_all(fleet.path("out/results.jsonl")).unwrap();
    assert_eq!(fleet.result("stuck").await.unwrap()["succeeded"], 3);
    fleet.stop().await;
}

/// A worker is killed while it has eight documents, and another lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_workers_documents_are_told_as_such() {
    let settings = format!("[models.\"{MODEL}\"]\nconcurrent = 8\n");
    let Some(mut fleet) = fleet("[latency]\nbase = \"120s\"\n", &settings).await else { return };
    fleet.documents(8, 40);
    fleet.worker();
    fleet.start("dead", &fleet.batch("out")).await;
    why(&fleet, "dead", |answer| answer["working"] == 8).await;
    fleet.worker();
    fleet.kill_worker(0).await;
    let answer = why(&fleet, "dead", |answer| answer["with_gone_workers"] == 8).await;
    let sentence = answer["why"].as_str().unwrap();
    assert!(
        sentence
            .starts_with("8 documents were with a worker that is gone; they begin again within"),
        "{answer}"
    );
    assert_eq!(answer["working"], 0, "{answer}");
    // The other worker gets them as soon as the server gives the first one up.
    let answer = why(&fleet, "dead", |answer| answer["working"] == 8).await;
    assert_eq!(answer["with_gone_workers"], 0, "{answer}");
    fleet.stop().await;
}

/// Each run of a batch has its own figures, also in the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_has_each_runs_own_figures() {
    let settings = format!("[models.\"{MODEL}\"]\ntpm = 100_000\n");
    let Some(mut fleet) = fleet("", &settings).await else { return };
    std::fs::create_dir_all(fleet.path("in")).unwrap();
    std::fs::write(fleet.path("in/a.md"), "").unwrap();
    std::fs::write(fleet.path("in/b.bin"), [0, 159, 146, 150, 0, 1, 2, 255]).unwrap();
    fleet.worker();
    fleet.start("twice", &fleet.batch("out")).await;
    fleet.result("twice").await.unwrap();
    let status = tidegate(&fleet, &["status", "twice"]).await;
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("2 × UnreadableDocument: 1 × "), "{status}");
    for name in ["a.md", "b.bin"] {
        std::fs::write(fleet.path(&format!("in/{name}")), "The tide is high.").unwrap();
    }
    fleet.start("twice", &fleet.batch("out")).await;
    fleet.result("twice").await.unwrap();
    let mut listed = value(&fleet, &["status", "--json"]).await;
    while listed.as_array().unwrap().iter().filter(|row| row["status"] == "completed").count() < 2 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        listed = value(&fleet, &["status", "--json"]).await;
    }
    let figures = |row: usize| (listed[row]["succeeded"].clone(), listed[row]["failed"].clone());
    assert_eq!((figures(0), figures(1)), ((2.into(), 0.into()), (0.into(), 2.into())), "{listed}");
    let cut = tidegate(&fleet, &["status", "--limit", "1"]).await;
    let said = String::from_utf8_lossy(&cut.stderr).into_owned();
    assert!(said.contains("there are more batches than 1; --limit N"), "{said}");

    // A batch or tenant that does not exist has no budget.
    for payer in [["--batch", "twcie"], ["--tenant", "nobody"]] {
        let set = ["budget", "set", payer[0], payer[1], "--spent-usd", "0.3"];
        let refused = tidegate(&fleet, &set).await;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(payer[1]) && said.contains("nothing was set"), "{said}");
        let forced = tidegate(&fleet, &[&set[..], &["--force"]].concat()).await;
        assert!(forced.status.success(), "{forced:?}");
    }
    fleet.stop().await;
}
