//! Payloads through a codec server, which is configured for tidegate as for the Temporal CLI: no user's
//! text is readable in the history, and an absent codec server is waited for.

use std::{
    process::Output,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    routing::post,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command};

use crate::{
    content::history,
    fleet::{Fleet, MODEL, fleet},
};

const AUTHORIZATION: &str = "Bearer codec-secret";

/// Inverts each bit of a payload, the simplest cipher that is not readable, and requires a password.
#[derive(Default)]
struct CodecServer {
    is_away: AtomicBool,
    refused: AtomicUsize,
    /// The number of requests with a wrong namespace or none.
    unnamed: AtomicUsize,
}

fn invert(payload: &Value) -> Value {
    let mut metadata = payload["metadata"].as_object().cloned().unwrap_or_default();
    let sealed = Value::from(STANDARD.encode("binary/turned"));
    let is_sealed = metadata.get("encoding") == Some(&sealed);
    let before = metadata.remove(if is_sealed { "was" } else { "encoding" });
    let after = (!is_sealed).then_some(sealed);
    let (outside, inside) = if is_sealed { (before, None) } else { (after, before) };
    metadata.extend(outside.map(|name| ("encoding".to_owned(), name)));
    metadata.extend(inside.map(|name| ("was".to_owned(), name)));
    let data = payload["data"].as_str().unwrap_or_default();
    let data: Vec<u8> = STANDARD.decode(data).unwrap().iter().map(|byte| !byte).collect();
    json!({"metadata": metadata, "data": STANDARD.encode(data)})
}

async fn answer(
    State(codec): State<Arc<CodecServer>>,
    Path(what): Path<String>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    if headers.get("authorization").is_none_or(|value| value != AUTHORIZATION) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    codec.unnamed.fetch_add(usize::from(!headers.contains_key("x-namespace")), Relaxed);
    if codec.is_away.load(Relaxed) {
        codec.refused.fetch_add(1, Relaxed);
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    assert!(what == "encode" || what == "decode", "{what}");
    let payloads: Vec<Value> =
        message["payloads"].as_array().into_iter().flatten().map(invert).collect();
    Ok(Json(json!({ "payloads": payloads })))
}

async fn tidegate(fleet: &Fleet, settings: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).arg("--config").arg(fleet.path("tidegate.toml"));
    command.env("SIMULATED_KEY", "sk-simulated-secret").envs(settings.iter().copied());
    command.output().await.unwrap()
}

/// Repeats until it is true, for at most a minute and a half.
async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..360 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    panic!("never: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_codec_server_keeps_users_texts_unreadable() {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 60\n");
    let Some(mut fleet) = fleet("", &settings).await else { return };
    let codec = Arc::new(CodecServer::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/{what}", post(answer)).with_state(Arc::clone(&codec));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let told =
        [("TEMPORAL_CODEC_ENDPOINT", endpoint.as_str()), ("TEMPORAL_CODEC_AUTH", AUTHORIZATION)];

    fleet.documents(12, 60);
    fleet.worker_with(&told);
    let with_codec = ["--codec-endpoint", &endpoint, "--codec-auth", AUTHORIZATION];
    fleet.start_with("sealed", &fleet.batch("out"), &with_codec).await;

    // The codec server goes away during the batch: its requests fail and are repeated.
    let status = async || tidegate(&fleet, &told, &["status", "sealed", "--json"]).await;
    eventually("some documents are done", async || {
        let seen: Value = serde_json::from_slice(&status().await.stdout).unwrap_or_default();
        seen["succeeded"].as_u64() > Some(0)
    })
    .await;
    codec.is_away.store(true, Relaxed);
    eventually("the codec server is asked while it is away", async || {
        codec.refused.load(Relaxed) >= 3
    })
    .await;
    let unseen = tidegate(&fleet, &told, &["doctor"]).await;
    let words = String::from_utf8_lossy(&unseen.stdout).into_owned();
    assert!(words.contains("codec") && words.contains("503"), "doctor names the cause: {words}");
    codec.is_away.store(false, Relaxed);

    let result = ["workflow", "result", "--workflow-id", "sealed", "-o", "json"];
    let result = fleet.cli(&[&result[..], &with_codec].concat()).await;
    let result: Value = serde_json::from_slice(&result.stdout).unwrap();
    assert_eq!(result["result"]["succeeded"], json!(12), "{result}");
    assert_eq!(fleet.account().ok, 12, "no call was made twice");
    assert_eq!(codec.unnamed.load(Relaxed), 0, "each request names its namespace");

    let readable = history(&fleet, "sealed").await;
    for secret in ["Summarise in three points.", "report-0001", "\"succeeded\""] {
        assert!(!readable.contains(secret), "{secret} is readable: {readable}");
    }
    assert!(readable.contains("binary/turned"), "payloads are there: {readable}");

    // A client without the codec gets a message about it.
    let blind = tidegate(&fleet, &[], &["status", "sealed"]).await;
    let words = String::from_utf8_lossy(&blind.stdout).into_owned();
    assert!(
        words.contains("binary/turned") && words.contains("TEMPORAL_CODEC_ENDPOINT"),
        "{words}"
    );
    let seen = tidegate(&fleet, &told, &["doctor"]).await;
    let words = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert!(words.contains("returns payloads unchanged"), "{words}");
    fleet.stop().await;
}
