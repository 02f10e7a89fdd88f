//! A batch that is paused while its documents are started.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    fleet::{MODEL, fleet},
    why::{tidegate, why},
};

/// One call a second; the other documents wait in Temporal and ask again every few seconds.
fn slow() -> String {
    format!(
        "[models.\"{MODEL}\"]\nrpm = 60\n[worker]\nmax-slot-wait = \"1s\"\n[gate]\nbase-backoff = \"1s\"\nmax-backoff = \"5s\"\njitter = \"1s\"\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_begins_in_a_pause_and_none_is_lost() {
    let Some(mut fleet) = fleet("[latency]\nbase = \"500ms\"\n", &slow()).await else { return };
    fleet.documents(40, 60);
    fleet.worker();
    fleet.start("night", &fleet.batch("out")).await;
    fleet.until("night", |progress| progress["in_flight"].as_u64() >= Some(30)).await;
    fleet.signal("night", "pause").await;
    let answer = why(&fleet, "night", |answer| {
        answer["waiting_for_resume"].as_u64() >= Some(10) && answer["working"] == json!(0)
    })
    .await;
    let sentence = answer["why"].as_str().unwrap();
    assert!(sentence.starts_with("it is paused: 0 calls are under way and end, "), "{answer}");
    assert!(sentence.contains("documents are handed out and wait"), "{answer}");
    println!("{sentence}");
    let before = fleet.account();
    let began = Instant::now();
    // The time for six calls.
    while began.elapsed() < Duration::from_secs(6) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(fleet.account().requests, before.requests, "a call began in the pause");
    }
    assert!(before.requests < 40, "there was something left to do");
    let status = tidegate(&fleet, &["status", "night"]).await;
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("ETA") && status.contains("unknown"), "{status}");

    fleet.signal("night", "resume").await;
    let result = fleet.result("night").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(40), &json!(0)), "{result}");
    assert_eq!(result["provider_calls"], json!(40), "what was under way ended: {result}");
    fleet.stop().await;
}

/// The pause has no end: it lasts longer than any pause with an end may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_is_paused_until_it_is_resumed() {
    let settings = format!("{}pause-ttl = \"3s\"\n", slow());
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(3, 60);
    let paused = tidegate(&fleet, &["pause", MODEL]).await;
    let said = String::from_utf8_lossy(&paused.stderr).into_owned();
    assert!(said.contains(&format!("is paused until `tidegate resume {MODEL}`")), "{said}");
    fleet.worker();
    fleet.start("held", &fleet.batch("out")).await;
    let began = Instant::now();
    why(&fleet, "held", |answer| {
        answer["why"].as_str().is_some_and(|why| why.contains("paused by hand"))
            && began.elapsed() > Duration::from_secs(8)
    })
    .await;
    assert_eq!(fleet.account().requests, 0);
    let doctor = String::from_utf8_lossy(&tidegate(&fleet, &["doctor"]).await.stdout).into_owned();
    assert!(doctor.contains("the pause ends, too, if Redis loses its data"), "{doctor}");
    assert!(tidegate(&fleet, &["resume", MODEL]).await.status.success());
    let resumed = Instant::now();
    while fleet.account().requests == 0 && resumed.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let idle = resumed.elapsed();
    println!("the first call began {} ms after the resume", idle.as_millis());
    assert!(idle < Duration::from_secs(10), "no call in {idle:?}");
    // Without a name, the newest batch is followed.
    let followed = tidegate(&fleet, &["follow", "--json"]).await;
    let followed: Value = serde_json::from_slice(&followed.stdout).unwrap();
    let result = fleet.result("held").await.unwrap();
    assert_eq!(result["succeeded"], json!(3), "{result}");
    assert_eq!((&followed["workflow_id"], &followed["succeeded"]), (&json!("held"), &json!(3)));
    fleet.stop().await;
}
