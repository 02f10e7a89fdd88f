//! The webhook of a batch's end: signed, sent once the batch has ended, and repeated until the receiver
//! accepts it.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Redirect, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use crate::{fleet::fleet, why::tidegate};

const KEY: &[u8] = b"thirty-two bytes of a secret key";

/// A request: its path, its headers and its body.
type Delivery = (String, HeaderMap, Bytes);

type Seen = Arc<Mutex<Vec<Delivery>>>;

/// Answers 500 first, then redirects, then accepts.
async fn receive(State(seen): State<Seen>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let mut seen = seen.lock().unwrap();
    seen.push((uri.path().to_owned(), headers, body));
    match seen.len() {
        1 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        2 => Redirect::temporary("/elsewhere").into_response(),
        _ => StatusCode::OK.into_response(),
    }
}

async fn receiver() -> (String, Seen) {
    let seen = Seen::default();
    let app = Router::new().fallback(receive).with_state(Arc::clone(&seen));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (format!("http://{address}/batches"), seen)
}

/// HMAC-SHA256 by RFC 2104, for keys of at most one block.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let pad = |with: u8| -> Vec<u8> {
        let mut block = [0_u8; 64];
        block[..key.len()].copy_from_slice(key);
        block.iter().map(|byte| byte ^ with).collect()
    };
    let inner = Sha256::digest([pad(0x36), message.to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers[name].to_str().unwrap()
}

/// The message's body, after its signature was verified.
fn verified((path, headers, body): &Delivery) -> Value {
    assert_eq!(path, "/batches");
    let (id, time) = (header(headers, "webhook-id"), header(headers, "webhook-timestamp"));
    let signed = [format!("{id}.{time}.").as_bytes(), body.as_ref()].concat();
    let expected = format!("v1,{}", STANDARD.encode(hmac(KEY, &signed)));
    assert_eq!(header(headers, "webhook-signature"), expected);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(time.parse().unwrap()) < 300, "{time}");
    serde_json::from_slice(body).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_receiver_of_a_batchs_webhook_knows_of_its_end() {
    let (url, seen) = receiver().await;
    let settings = format!(
        "[models.\"anthropic:claude-sonnet-5\"]\nrpm = 6_000\n\
         [webhooks.ours]\nurl = \"{url}\"\nsecret-env = \"WEBHOOK_SECRET\"\n\
         [webhooks.bare]\nurl = \"{url}\"\nsecret-env = \"NO_SUCH_SECRET\"\n"
    );
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(3, 100);
    let secret = format!("whsec_{}", STANDARD.encode(KEY));
    fleet.worker_with(&[("WEBHOOK_SECRET", &secret)]);

    let mut batch = fleet.batch("out");
    for (name, why) in [("other", "configured: bare, ours"), ("bare", "NO_SUCH_SECRET")] {
        batch["webhook"] = json!(name);
        fleet.start(name, &batch).await;
        let refused = fleet.result(name).await.unwrap_err().to_string();
        assert!(refused.contains("InvalidInput") && refused.contains(why), "{refused}");
    }
    assert_eq!(fleet.account().requests, 0, "nothing is bought");

    let (source, output) = (fleet.uri("in/"), fleet.uri("out/"));
    let model = crate::fleet::MODEL;
    let run = [
        "run",
        &source,
        "--output",
        &output,
        "--instructions",
        "Sum up.",
        "--model",
        model,
        "--webhook",
        "ours",
        "--workflow-id",
        "told",
    ];
    let ran = tidegate(&fleet, &run).await;
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let mut pending = String::new();
    for _ in 0..600 {
        if seen.lock().unwrap().len() >= 3 {
            break;
        }
        if !pending.contains("answers 500") {
            let why = tidegate(&fleet, &["why", "told"]).await;
            pending = String::from_utf8(why.stdout).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(pending.contains("webhook: not delivered yet: 127.0.0.1 answers 500"), "{pending}");

    let got = seen.lock().unwrap().clone();
    assert_eq!(got.len(), 3, "a redirect is not followed, and what was taken is not sent again");
    let said: Vec<Value> = got.iter().map(verified).collect();
    assert!(said.iter().all(|it| *it == said[0]), "{said:?}");
    let ids: Vec<&str> = got.iter().map(|(_, headers, _)| header(headers, "webhook-id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0]) && !ids[0].contains('.'), "{ids:?}");
    let told = &said[0];
    assert_eq!(told["type"], "batch.finished");
    assert!(told["timestamp"].as_str().unwrap().ends_with('Z'), "{told}");
    let data = &told["data"];
    assert_eq!((&data["batch"], &data["status"]), (&json!("told"), &json!("completed")));
    let report: Value =
        serde_json::from_slice(&std::fs::read(fleet.path("out/report.json")).unwrap()).unwrap();
    for field in ["documents", "succeeded", "failed", "output", "provider_calls", "cost_usd"] {
        assert_eq!(data[field], report[field], "{field} of {told}");
    }

    let mut state = String::new();
    for _ in 0..100 {
        let status = tidegate(&fleet, &["status", "told"]).await;
        state = String::from_utf8(status.stdout).unwrap();
        if state.contains("its receiver knows") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(state.contains("its receiver knows"), "{state}");
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    assert!(!log.contains(&secret), "the secret was logged");
    assert!(log.contains("NO_SUCH_SECRET"), "what cannot be used is said at the start: {log}");
    fleet.stop().await;
}
