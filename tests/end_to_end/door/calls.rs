//! Inputs and outputs of the door.

use serde_json::{Value, json};

use super::{Activity, asked, door, prompt};
use crate::{fleet::MODEL, why::tidegate};

const LIMITS: &str =
    "rpm = 6_000\nprice = { input-usd-per-mtok = 10.0, output-usd-per-mtok = 40.0 }";

/// Checks that a call fails finally, with a message about the remedy.
async fn refused(activity: Activity<'_>, kind: &str, input: Value, says: &[&str]) {
    activity.start(kind, &input).await;
    let failure = activity.result().await.unwrap_err().to_string();
    for says in says {
        assert!(failure.contains(says), "{says}: {failure}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_a_conversation_and_a_schema_are_answered() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    fleet.worker();
    let answer =
        Activity::new(&fleet, "prompt").call(&prompt("Why is the sea salty?")).await.unwrap();
    assert!(answer["answer"].as_str().unwrap().len() > 20, "{answer}");
    assert_eq!((&answer["model"], &answer["provider_calls"]), (&json!(MODEL), &json!(1)));
    assert!(answer["input_tokens"].as_u64() > Some(0), "{answer}");
    assert!(answer["cost_usd"].as_f64() > Some(0.0), "{answer}");
    assert!(["complete", "cut"].contains(&answer["finish"].as_str().unwrap()));
    assert!(answer.get("value").is_none() && answer.get("answer_uri").is_none(), "{answer}");

    let turns = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "Two."}, {"role": "user", "content": "Three?"}]);
    let input =
        json!({"model": MODEL, "messages": turns, "max_output_tokens": 256, "on_cut": "keep"});
    Activity::new(&fleet, "messages").call(&input).await.unwrap();

    let schema = json!({"type": "object", "additionalProperties": false, "required": ["city"],
        "properties": {"city": {"type": "string"}}});
    let mut input = prompt("Which city is it?");
    input["schema"] = schema;
    let answer = Activity::new(&fleet, "schema").call(&input).await.unwrap();
    assert!(answer["value"]["city"].is_string(), "{answer}");
    let text: Value = serde_json::from_str(answer["answer"].as_str().unwrap()).unwrap();
    assert_eq!(text, answer["value"]);

    // No answer satisfies this schema: the call is repeated once, then fails.
    input["schema"] = json!({"type": "object", "required": ["depth"], "additionalProperties": false,
        "properties": {"depth": {"type": "integer", "minimum": 1_000_000_000}}});
    let before = asked(&fleet);
    let failure = Activity::new(&fleet, "wrong").call(&input).await.unwrap_err().to_string();
    assert!(failure.contains("InvalidOutput"), "{failure}");
    assert_eq!(asked(&fleet), before + 2);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_asked_is_refused_by_its_name() {
    let other = "anthropic:claude-haiku-4-5";
    let unlike = format!(
        "[models.\"{other}\"]\nrpm = 600\n[routes.unlike]\nmodels = [\"{MODEL}\", \"{other}\"]\n"
    );
    let Some(mut fleet) = door("", LIMITS, &unlike).await else { return };
    fleet.worker();
    let activity = |id: &str| Activity::new(&fleet, id);
    let call = "tidegate.call";
    let unknown = json!({"model": MODEL, "promt": "x"});
    let says = ["InvalidInput", "unknown field", "promt", "did you mean"];
    refused(activity("field"), call, unknown, &says).await;
    let model = json!({"model": "anthropic:claude-none", "prompt": "x"});
    refused(activity("model"), call, model, &["InvalidInput", "claude-none"]).await;
    let route = json!({"route": "none", "prompt": "x"});
    refused(activity("route"), call, route, &["InvalidInput", "route"]).await;
    let unlike = json!({"route": "unlike", "prompt": "x"});
    let says = ["InvalidInput", "falls back from", other, "unchecked = true"];
    refused(activity("unlike"), call, unlike, &says).await;
    let parameters = json!({"model": MODEL, "prompt": "x", "parameters": {"temprature": 1}});
    refused(activity("parameter"), call, parameters, &["InvalidInput", "temprature"]).await;
    let elsewhere = json!({"model": MODEL, "prompt": {"uri": "file:///etc/hostname"}});
    refused(activity("elsewhere"), call, elsewhere, &["InvalidInput", "prompt", "[calls]"]).await;
    let gone = json!({"model": MODEL, "prompt": {"uri": fleet.uri("inputs/gone.txt")}});
    refused(activity("gone"), call, gone, &["InvalidInput", "there is nothing"]).await;
    let queue = activity("queue").with("--task-queue", "tidegate");
    refused(queue, call, prompt("x"), &["InvalidInput", "tidegate-lane-interactive"]).await;
    let many = json!({"model": "openai:text-embedding-3-small", "inputs": vec!["tide"; 2_050]});
    refused(activity("many"), "tidegate.embed", many, &["TooLarge", "the first 2048 fit"]).await;
    let embeds_not = json!({"model": MODEL, "inputs": ["tide"]});
    refused(activity("vectors"), "tidegate.embed", embeds_not, &["InvalidInput", "no embeddings"])
        .await;
    assert_eq!(asked(&fleet), 0, "nothing was asked");
    fleet.stop().await;
}

/// A body in the vendor's own form passes unchanged, and so does the reply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_passes_with_its_tools() {
    let more = "[models.\"openai:gpt-5.4-mini\"]\nrpm = 600\n";
    let Some(mut fleet) = door("", LIMITS, more).await else { return };
    fleet.worker();
    let tool = json!({"name": "tide", "description": "The tide at a port.",
        "input_schema": {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}});
    let body = json!({"max_tokens": 200, "tools": [tool], "messages": [{"role": "user", "content": "When is high water at Husum?"}]});
    let input = json!({"model": MODEL, "body": body});
    let answer = Activity::new(&fleet, "anthropic").call(&input).await.unwrap();
    assert_eq!(answer["reply"]["type"], "message", "{answer}");
    assert_eq!(answer["reply"]["usage"]["input_tokens"], answer["input_tokens"], "{answer}");
    assert!(answer.get("answer").is_none() && answer["cost_usd"].as_f64() > Some(0.0), "{answer}");

    std::fs::write(fleet.path("inputs/body.json"), body.to_string()).unwrap();
    let by_uri = json!({"model": MODEL, "body": {"uri": fleet.uri("inputs/body.json")}});
    let answer = Activity::new(&fleet, "by-uri").call(&by_uri).await.unwrap();
    assert_eq!(answer["reply"]["type"], "message", "{answer}");

    let body =
        json!({"max_completion_tokens": 200, "messages": [{"role": "user", "content": "When?"}]});
    let input = json!({"model": "openai:gpt-5.4-mini", "body": body});
    let answer = Activity::new(&fleet, "openai").call(&input).await.unwrap();
    assert!(answer["reply"]["choices"][0]["message"].is_object(), "{answer}");

    let streams = json!({"model": MODEL, "body": {"messages": [], "stream": true}});
    let says = ["InvalidInput", "body.stream must be false"];
    refused(Activity::new(&fleet, "stream"), "tidegate.call", streams, &says).await;
    let strange = json!({"model": MODEL, "body": {"input": "x"}});
    let says = ["InvalidInput", "does not take this form"];
    refused(Activity::new(&fleet, "strange"), "tidegate.call", strange, &says).await;
    fleet.stop().await;
}

/// Data that exceed Temporal's limit are in a store, in both directions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_inputs_and_answers_go_by_their_uri() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    fleet.worker_with(&[("TIDEGATE_CALLS__INLINE", "2kB")]);
    let long = "The tide comes in and goes out again. ".repeat(80_000);
    assert!(long.len() > 3_000_000);
    std::fs::write(fleet.path("inputs/long.txt"), &long).unwrap();
    let mut input = prompt("x");
    input["prompt"] = json!({"uri": fleet.uri("inputs/long.txt")});
    let answer = Activity::new(&fleet, "long").call(&input).await.unwrap();
    assert!(answer["input_tokens"].as_u64() > Some(500_000), "{answer}");

    std::fs::write(fleet.path("inputs/texts.json"), json!(vec!["ebb"; 20]).to_string()).unwrap();
    let texts = json!({"uri": fleet.uri("inputs/texts.json")});
    let input =
        json!({"model": "openai:text-embedding-3-small", "inputs": texts, "dimensions": 256});
    let vectors = Activity::new(&fleet, "vectors").embed(&input).await.unwrap();
    assert!(
        vectors.get("vectors").is_none() && vectors["input_tokens"].as_u64() > Some(0),
        "{vectors}"
    );
    let uri = vectors["answer_uri"].as_str().unwrap();
    assert!(uri.starts_with(&fleet.uri("calls/")), "{uri}");
    let whole = std::fs::read(uri.strip_prefix("file://").unwrap()).unwrap();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(whole["vectors"].as_array().unwrap().len(), 20);
    assert_eq!(whole["vectors"][0].as_array().unwrap().len(), 256);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_place_for_answers_nothing_is_bought() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let kept = |line: &&str| !line.starts_with("answers = ");
    std::fs::write(&file, config.lines().filter(kept).collect::<Vec<_>>().join("\n")).unwrap();
    fleet.worker();
    let doctor = tidegate(&fleet, &["doctor"]).await;
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("because calls.answers is not set"), "{doctor}");
    let says = ["InvalidInput", "[calls] section"];
    refused(Activity::new(&fleet, "nowhere"), "tidegate.call", prompt("x"), &says).await;
    assert_eq!(asked(&fleet), 0);
    fleet.stop().await;
}

/// One call by an id: repeating it pays nothing, and another input with that id is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_submitted_once_by_its_id() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    fleet.worker();
    let submit = async |id: &str, input: &Value| {
        let input = input.to_string();
        let output =
            tidegate(&fleet, &["submit", "tidegate.call", "--id", id, "--input", &input]).await;
        let (told, complaint) = (output.stdout, String::from_utf8(output.stderr).unwrap());
        (output.status.code(), String::from_utf8(told).unwrap(), complaint)
    };
    let input = prompt("Why is the sea salty?");
    let (first, second) = tokio::join!(submit("why", &input), submit("why", &input));
    assert_eq!((first.0, &first.1), (Some(0), &second.1), "{} {}", first.2, second.2);
    let outcome: Value = serde_json::from_str(&first.1).unwrap();
    assert!(outcome["answer"].is_string(), "{outcome}");
    assert_eq!(submit("why", &input).await, first);
    assert_eq!(asked(&fleet), 1);
    let (code, _, complaint) = submit("why", &prompt("Something else?")).await;
    assert_eq!(code, Some(2), "{complaint}");
    assert!(complaint.contains("another call was submitted"), "{complaint}");
    let (code, _, complaint) = submit("typo", &json!({"model": MODEL, "promt": "x"})).await;
    assert!(code == Some(1) && complaint.contains("did you mean"), "{complaint}");
    fleet.stop().await;
}
