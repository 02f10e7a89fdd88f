//! Our requests fit the types of the vendors' own SDKs: each is compared with the SDK's types, and
//! an unknown name is a fault.
//!
//! `make test` fetches the SDKs.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "a test")]

mod common;

use std::{
    io::Write,
    process::{Command, Stdio},
};

use common::{APIS, Act, REQUEST, Server, answer, providers, response};
use serde_json::{Map, Value, json};
use tidegate_providers::{
    Api, Dialect, Document, EmbeddingRequest, Parameters, Picture, Request, Role, Said, Turn,
    Vendor,
};
use tidegate_testkit::python_with_sdks;
use tidegate_types::Effort;

/// Models that are asked in different ways.
fn models((vendor, _): (Vendor, Api)) -> &'static [&'static str] {
    match vendor.as_str() {
        "anthropic" => &["claude-sonnet-5", "claude-haiku-4-5", "claude-3-haiku-20240307"],
        "gemini" => &["gemini-2.5-flash", "gemini-3-pro"],
        "bedrock" => &["eu.anthropic.claude-sonnet-5-5", "amazon.nova-lite-v1:0"],
        _ => &["gpt-4.1-mini", "gpt-5-mini", "o4-mini"],
    }
}

/// The body of the server's only request.
fn body(server: &Server) -> Value {
    let request = server.requests.lock().unwrap().pop().unwrap();
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// One request of each kind, as sent.
async fn asked(api: (Vendor, Api)) -> Vec<Value> {
    let server = Server::start(Act::Send(answer(api))).await;
    let all = providers(api, &server.base_url(api.0));
    let name = match api {
        (_, Api::Responses) => "responses",
        (vendor, _) => vendor.as_str(),
    };
    let schema =
        json!({"type": "object", "properties": {"sum": {"type": "string"}}, "required": ["sum"]});
    let turns = [(Role::User, "Two and two?"), (Role::Assistant, "Four.")]
        .map(|(role, text)| Turn { role, text: text.to_owned() });
    let picture =
        Picture { media_type: "image/png".to_owned(), width: 1, height: 1, bytes: vec![1, 2] };
    let pictures = [picture];
    let mut bodies = Vec::new();
    for model in models(api) {
        let plain = Request { model, ..REQUEST };
        let mut requests = vec![
            plain,
            Request { schema: Some(&schema), ..plain },
            Request { turns: &turns, said: Said::Before("And three and three?"), ..plain },
            Request { cache_instructions: true, said: Said::Instead("Say yes."), ..plain },
            Request { document: Document::Pdf(b"%PDF-1.7"), ..plain },
            Request { document: Document::Pictures("Two", &pictures), ..plain },
        ];
        let dialect = Dialect::new(api.0, api.1);
        let checked = |effort, given: &Value| {
            dialect.check(model, effort, given.as_object().unwrap(), Some(8_000)).ok()
        };
        let efforts = [Effort::None, Effort::Low, Effort::Medium, Effort::High];
        let efforts: Vec<(Effort, Map<String, Value>)> = efforts
            .into_iter()
            .filter_map(|effort| Some((effort, checked(Some(effort), &json!({}))?)))
            .collect();
        assert!(
            !efforts.is_empty()
                || matches!(
                    *model,
                    "gpt-4.1-mini" | "claude-3-haiku-20240307" | "amazon.nova-lite-v1:0"
                ),
            "{model}"
        );
        let given: Vec<Map<String, Value>> = [
            json!({"temperature": 1, "top_p": 0.9, "seed": 7}),
            json!({"temperature": 1}),
            json!({"stop": ["a", "b"]}),
            json!({"stop_sequences": ["a", "b"]}),
            json!({"service_tier": "flex"}),
            json!({"service_tier": "standard_only"}),
            json!({"verbosity": "low"}),
            json!({"top_k": 3}),
            json!({"thinking_budget": 2_000}),
        ]
        .iter()
        .filter_map(|given| checked(None, given))
        .collect();
        assert!(given.len() > 1, "{model}: {given:?}");
        let room = Request { max_output_tokens: 8_000, ..plain };
        let parameters = efforts.iter().map(|(effort, fields)| (Some(*effort), fields));
        for (effort, fields) in parameters.chain(given.iter().map(|fields| (None, fields))) {
            let parameters = Parameters { effort, fields: Some(fields) };
            requests.push(Request { parameters, ..room });
        }
        for request in requests {
            let provider = all.get(&format!("mine:{model}").parse().unwrap()).unwrap();
            match provider.complete(&request).await {
                Ok(_) => bodies.push(json!({"api": name, "body": body(&server)})),
                // A parameter that a model refuses is refused before anything is sent.
                Err(error) => assert_eq!(server.counts().1, 0, "{model}: {error}"),
            }
        }
    }
    bodies
}

async fn embedded(vendor: Vendor) -> Value {
    let vector = [0.1; 8];
    let vectors = json!({
        "data": [{"index": 0, "embedding": vector}, {"index": 1, "embedding": vector}],
        "embeddings": [{"values": vector}, {"values": vector}],
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    });
    let server = Server::start(Act::Send(response("200 OK", "", &vectors.to_string()))).await;
    let api = (vendor, Api::ChatCompletions);
    let all = providers(api, &server.base_url(vendor));
    let request =
        EmbeddingRequest { model: "m", texts: &["one", "two"], dimensions: Some(8), fields: None };
    all.get(&"mine:m".parse().unwrap()).unwrap().embed(&request).await.unwrap();
    json!({"api": format!("{} embeddings", vendor.as_str()), "body": body(&server)})
}

/// The script's findings: a line for each request with a fault.
fn faults(python: &mut Command, bodies: &[Value]) -> Vec<String> {
    let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines: String = bodies.iter().map(|body| format!("{body}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    let (faults, checked): (Vec<_>, Vec<_>) =
        said.lines().partition(|line| !line.starts_with("checked "));
    assert_eq!(checked, [format!("checked {}", bodies.len())]);
    faults.into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn each_request_has_the_types_of_the_vendors_sdk() {
    let Some(mut python) = python_with_sdks() else { return };
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk_types/check.py"));
    let mut bodies = Vec::new();
    for api in APIS {
        let of_api = asked(api).await;
        assert!(of_api.len() > 12, "{api:?}: {}", of_api.len());
        bodies.extend(of_api);
    }
    for vendor in [Vendor::OPENAI, Vendor::GEMINI] {
        bodies.push(embedded(vendor).await);
    }
    let found = faults(&mut python, &bodies);
    assert!(found.is_empty(), "{}", found.join("\n"));

    // For each request, an unknown name and a value of the wrong type are found.
    let mut broken = Vec::new();
    for body in &bodies {
        let mut unknown = body.clone();
        unknown["body"]["tidegate"] = json!(1);
        broken.push(unknown);
    }
    let mut wrong = bodies[0].clone();
    wrong["body"]["max_tokens"] = json!("many");
    broken.push(wrong);
    assert_eq!(faults(&mut python, &broken).len(), broken.len());
}
