//! Keys that are refused, in each vendor's words.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Stage, message};
use serde_json::{Value, json};

/// Status, kind and words of a refusal at each of the five APIs.
async fn refusals(section: &str) -> Vec<(u16, String)> {
    let stage = Stage::new(&format!("[[refused-keys]]\nkey = \"k\"\n{section}")).await;
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "One."}]});
    let responses = json!({"model": "m", "input": "One.", "store": false});
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "One."}]}]});
    let bedrock = json!({"messages": [{"role": "user", "content": [{"text": "One."}]}]});
    let replies = [
        stage.anthropic(&message("One.", 100)).await,
        stage.openai(&chat).await,
        stage.responses(&responses).await,
        stage.gemini("m", &gemini).await,
        stage.bedrock("m", &bedrock).await,
    ];
    let account = stage.simulator.account();
    assert_eq!(account.model("m").admitted.total(), 0, "{section}");
    let kind = |reply: common::Reply| {
        let (body, header) = (reply.json(), reply.header("x-amzn-errortype").map(str::to_owned));
        let kind = ["/error/details/0/reason", "/error/code", "/error/type", "/error/status"]
            .into_iter()
            .find_map(|at| body.pointer(at)?.as_str().map(str::to_owned));
        let status = body.pointer("/error/status").and_then(|it| it.as_str().map(str::to_owned));
        let class = header.map(|it| it.split(':').next().unwrap_or_default().to_owned());
        (reply.status, kind.or(status).or(class).unwrap_or_default())
    };
    replies.into_iter().map(|reply| kind(reply.unwrap())).collect()
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_refused_as_each_vendor_says_it() {
    let expected = [
        (401, "authentication_error"),
        (401, "invalid_api_key"),
        (401, "invalid_api_key"),
        (400, "API_KEY_INVALID"),
        (403, "UnrecognizedClientException"),
    ];
    assert_eq!(refusals("").await, expected.map(|(status, kind)| (status, kind.to_owned())));
}

#[tokio::test]
async fn a_key_without_access_to_a_model_is_good_for_others() {
    let expected = [
        (403, "permission_error"),
        (403, "insufficient_permissions"),
        (403, "insufficient_permissions"),
        (403, "PERMISSION_DENIED"),
        (403, "AccessDeniedException"),
    ];
    let seen = refusals("models = [\"m\"]").await;
    assert_eq!(seen, expected.map(|(status, kind)| (status, kind.to_owned())));
    let stage = Stage::new("[[refused-keys]]\nkey = \"k\"\nmodels = [\"other\"]").await;
    assert_eq!(stage.ask("One.").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_key_is_refused_only_in_its_time_and_others_never() {
    let stage = Stage::new("[[refused-keys]]\nkey = \"k\"\nfrom = \"1h\"").await;
    assert_eq!(stage.ask("One.").await.unwrap().status, 200);
    let stage = Stage::new("[[refused-keys]]\nkey = \"another\"").await;
    assert_eq!(stage.ask("One.").await.unwrap().status, 200);
}

/// The list is a question that costs nothing.
const CONFIG: &str = "[models.\"m-1\"]\nrpm = 5\n[[refused-keys]]\nkey = \"bad\"\n[[refused-keys]]\nkey = \"half\"\nmodels = [\"m-1\"]\n";

async fn get(stage: &Stage, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = stage.client.get(format!("{}{path}", stage.simulator.base_url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn every_vendor_lists_its_models_to_those_with_a_key() {
    let stage = Stage::new(CONFIG).await;
    let version = ("anthropic-version", "2023-06-01");
    for (path, key, prefix, version, pointer, refused) in [
        ("/v1/models?limit=1", "x-api-key", "", Some(version), "/data/0/id", 401),
        ("/v1/models", "authorization", "Bearer ", None, "/data/0/id", 401),
        ("/v1beta/models?pageSize=1", "x-goog-api-key", "", None, "/models/0/name", 400),
        ("/foundation-models", "authorization", "Bearer ", None, "/modelSummaries/0/modelId", 403),
    ] {
        let ask = async |value: &str| {
            let value = format!("{prefix}{value}");
            let headers: Vec<_> = [(key, value.as_str())].into_iter().chain(version).collect();
            get(&stage, path, &headers).await
        };
        for good in ["good", "half"] {
            let (status, list) = ask(good).await;
            let id = list.pointer(pointer).and_then(Value::as_str).unwrap();
            assert!(status == 200 && id.ends_with("m-1"), "{path}: {list}");
        }
        let (status, _) = ask("bad").await;
        assert_eq!(status, refused, "{path}");
        let headers: Vec<_> = version.into_iter().collect();
        assert!((400..404).contains(&get(&stage, path, &headers).await.0), "{path}: no key");
    }
    let account = stage.simulator.account();
    assert_eq!(account.rejected, 0, "a list is no call");
}
