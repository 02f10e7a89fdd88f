//! Every retry policy of a caller works.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Activity, door, prompt};
use crate::{
    fleet::{Fleet, MODEL},
    why::tidegate,
};

const SLOW: &str = "rpm = 6_000\n[worker]\nmax-slot-wait = \"2s\"\n\
    [gate]\nbase-backoff = \"1s\"\nmax-backoff = \"60s\"\njitter = \"500ms\"\n";

/// How an activity ended: its attempts, its duration and its result.
struct Ended {
    attempts: u64,
    took: Duration,
    result: Result<Value, String>,
}

impl Ended {
    fn kind(&self) -> &str {
        let Err(failure) = &self.result else { return "answer" };
        ["QuotaWait", "Truncated", "InvalidOutput", "Overloaded", "Transient", "RateLimited"]
            .into_iter()
            .find(|kind| failure.contains(&format!("\"{kind}\"")))
            .unwrap_or("another failure")
    }
}

async fn run_to_end(activity: &Activity<'_>, input: &Value) -> Ended {
    let began = Instant::now();
    let result = activity.call(input).await.map_err(|failure| failure.to_string());
    let took = began.elapsed();
    Ended { attempts: activity.attempts().await, took, result }
}

async fn pause(fleet: &Fleet, length: &str) {
    let paused = tidegate(fleet, &["pause", MODEL, "--for", length]).await;
    assert!(paused.status.success(), "{}", String::from_utf8_lossy(&paused.stderr));
}

/// A call waits for a gate that opens after eight seconds, with a request that may take two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_is_held_in_place_where_no_attempt_may_follow() {
    let more = "[providers.anthropic]\nrequest-timeout = \"2s\"\n";
    let Some(mut fleet) = door("", SLOW, "").await else { return };
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace("[providers.anthropic]\n", more)).unwrap();
    fleet.worker();
    fleet.working().await;
    let (last, close) = (("--retry-maximum-attempts", "1"), "--schedule-to-close-timeout");
    let begin = "--start-to-close-timeout";
    let rows = [
        ("closes before the turn", vec![(close, "6s")], "QuotaWait", true),
        ("the defaults", vec![(begin, "120s")], "answer", false),
        ("one attempt", vec![last], "answer", true),
        ("one attempt, too short", vec![last, (begin, "6s")], "QuotaWait", true),
        ("closes after the turn", vec![(close, "100s")], "answer", false),
        ("short attempts", vec![(begin, "5s")], "answer", false),
    ];
    for (name, options, kind, in_place) in rows {
        // A wait that is left to Temporal must still be long when a slow machine has begun the call.
        pause(&fleet, if in_place { "8s" } else { "20s" }).await;
        let activity = Activity::new(&fleet, &name.replace([' ', ','], "-"));
        let activity = options.iter().fold(activity, |it, (name, value)| it.with(name, value));
        let ended = run_to_end(&activity, &prompt("Why is the sea salty?")).await;
        let took = ended.took.as_secs_f64();
        println!("| {name} | {} | {} attempts | {took:.1} s |", ended.kind(), ended.attempts);
        assert_eq!(ended.kind(), kind, "{name}: {:?}", ended.result);
        assert_eq!(ended.attempts == 1, in_place, "{name}: {} attempts", ended.attempts);
        // The wait ends at the deadline, minus the request's time, and before the gate opens.
        let in_time = kind == "answer" || (3.0..8.0).contains(&took);
        assert!(in_time, "{name}: {took} s, {:?}", ended.result);
        if kind != "answer" {
            assert!(tidegate(&fleet, &["resume", MODEL]).await.status.success());
        }
    }
    fleet.stop().await;
}

/// The outcome of invalid answers, and of a provider that fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_tried_again_is_where_the_policy_lets_it() {
    let faults = "[[faults]]\nkind = \"overloaded\"\nmatching = \"overloads\"\ntimes = 2\n";
    let Some(mut fleet) = door(faults, SLOW, "").await else { return };
    fleet.worker();
    let input = |text: &str, more: Value| {
        let mut input = prompt(text);
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let cut = || json!({"max_output_tokens": 20, "on_cut": "raise"});
    let wrong = || {
        json!({"schema": {"type": "object", "required": ["depth"], "additionalProperties": false,
            "properties": {"depth": {"type": "integer", "minimum": 1_000_000_000}}}})
    };
    let rows = [
        ("cut", 0, input("Tell me of the sea.", cut()), "answer", 2),
        ("cut once", 1, input("Tell me of the sea.", cut()), "Truncated", 1),
        ("wrong", 0, input("How deep is it?", wrong()), "InvalidOutput", 2),
        ("wrong once", 1, input("How deep is it?", wrong()), "InvalidOutput", 1),
        ("fails once", 1, input("It overloads.", json!({})), "Overloaded", 1),
        ("fails", 0, input("It overloads.", json!({})), "answer", 2),
    ];
    for (name, most, input, kind, attempts) in rows {
        let most = most.to_string();
        let activity =
            Activity::new(&fleet, &name.replace(' ', "-")).with("--retry-maximum-attempts", &most);
        let ended = run_to_end(&activity, &input).await;
        println!("| {name} | {} | {} attempts |", ended.kind(), ended.attempts);
        assert_eq!(ended.kind(), kind, "{name}: {:?}", ended.result);
        assert!(ended.attempts >= attempts && (most == "0" || ended.attempts == 1), "{name}");
        if let Err(failure) = &ended.result {
            let again = failure.contains("asked for again");
            assert!(!again, "no attempt follows: {failure}");
        }
    }
    fleet.stop().await;
}
