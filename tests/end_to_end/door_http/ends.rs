//! The end of a door, of a stream and of a connection.

use std::path::Path;

use tidegate_types::ModelId;

use super::{
    vendor::{RawVendor, Reply},
    *,
};
use crate::fleet::free_address;

const LIMITS: &str = "rpm = 6000\ntpm = 1_000_000";
const DELTA: &str = r#"data: {"choices":[{"index":0,"delta":{"content":"12345678"}}]}"#;

async fn streaming(events: usize) -> Option<(RawVendor, Doors)> {
    let vendor = RawVendor::start(move |_| {
        let events: Vec<&str> =
            std::iter::repeat_n(DELTA, events).chain(["data: [DONE]"]).collect();
        Reply { between: Duration::from_millis(100), ..Reply::events(&events) }
    })
    .await;
    let settings = provider("openai", &vendor.url, LIMITS);
    let doors = Doors::start(&settings).await?;
    Some((vendor, doors))
}

async fn used(doors: &Doors) -> u64 {
    let quota = doors.config.as_ref().unwrap().quota().unwrap();
    let model: ModelId = "anthropic:m".parse().unwrap();
    quota.inspect(&model).await.unwrap().used().output
}

#[tokio::test]
async fn a_stream_whose_client_hangs_up_is_settled_by_what_came() {
    let begins = r#"data: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#;
    let delta =
        r#"data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"12345678"}}"#;
    let vendor = RawVendor::start(move |_| {
        let events: Vec<&str> =
            std::iter::once(begins).chain(std::iter::repeat_n(delta, 100)).collect();
        Reply { between: Duration::from_millis(100), ..Reply::events(&events) }
    })
    .await;
    let settings = provider("anthropic", &vendor.url, "rpm = 6000\notpm = 1_000_000");
    let Some(doors) = Doors::start(&settings).await else { return };
    let messages = json!([{"role": "user", "content": "hi"}]);
    let body =
        json!({"model": "anthropic:m", "stream": true, "max_tokens": 4_000, "messages": messages});
    let mut got = doors.post("/v1/messages", &body).send().await.unwrap();
    for _ in 0..4 {
        got.chunk().await.unwrap().unwrap();
    }
    let held = used(&doors).await;
    drop(got);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while used(&doors).await > 40 {
        let now = used(&doors).await;
        assert!(std::time::Instant::now() < deadline, "{now} of {held}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(used(&doors).await >= 6, "what came is charged, of {held}");
    doors.stop().await;
}

#[tokio::test]
async fn a_door_that_stops_ends_its_streams_and_takes_no_call() {
    let Some((_vendor, mut doors)) = streaming(10).await else { return };
    let body = chat("hi", json!({"stream": true}));
    let got = doors.post("/v1/chat/completions", &body).send().await.unwrap();
    let (url, stop, running) = doors.running.remove(0);
    stop.send(()).unwrap();
    let text = got.text().await.unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    tokio::time::timeout(Duration::from_secs(10), running).await.unwrap().unwrap();
    assert!(doors.http.get(format!("{url}/healthz")).send().await.is_err());
}

/// The call was never answered; the log and the metrics contain it nevertheless.
#[tokio::test]
async fn a_call_whose_client_hangs_up_is_told_as_499() {
    let vendor =
        RawVendor::start(|_| Reply { between: Duration::from_secs(60), ..Reply::json(200, "{}") });
    let settings = provider("openai", &vendor.await.url, LIMITS);
    let Some(doors) = Doors::start(&settings).await else { return };
    let (address, metrics) = (free_address(), free_address());
    let log = doors.folder.path().join("door.log");
    let mut door = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("--config")
        .arg(doors.folder.path().join("tidegate.toml"))
        .arg("serve")
        .env("TIDEGATE_SERVE__LISTEN", &address)
        .env("TIDEGATE_WORKER__METRICS_LISTEN", &metrics)
        .stderr(std::fs::File::create(&log).unwrap())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let url = format!("http://{address}");
    while doors.http.get(format!("{url}/readyz")).send().await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let call = doors.http.post(format!("{url}/v1/chat/completions")).bearer_auth(KEY);
    let call = call.json(&chat("hi", json!({}))).timeout(Duration::from_secs(1));
    assert!(call.send().await.unwrap_err().is_timeout());
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    loop {
        let told = doors.http.get(format!("http://{metrics}/metrics")).send().await.unwrap();
        let told = told.text().await.unwrap();
        let is_counted = |line: &str| {
            line.starts_with("tidegate_http_calls_total{") && line.contains("status=\"499\"")
        };
        if told.lines().any(is_counted) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = std::fs::read_to_string(&log).unwrap();
    let line = log.lines().find(|line| line.contains("tidegate::access")).unwrap();
    assert!(line.contains("499") && line.contains("openai:m") && line.contains("web"), "{line}");
    door.kill().await.unwrap();
    doors.stop().await;
}

#[tokio::test]
async fn tls_is_by_configuration() {
    let file = |name: &str| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/certificates").join(name)
    };
    let serve = format!(
        "tls-certificate-file = \"{}\"\ntls-key-file = \"{}\"",
        file("server.pem").display(),
        file("server.key").display()
    );
    let settings = provider("openai", "http://127.0.0.1:1", LIMITS);
    let Some(doors) = Doors::start_with(&serve, &settings).await else { return };
    let port = doors.url().rsplit_once(':').unwrap().1.to_owned();
    let authority = std::fs::read(file("authority.pem")).unwrap();
    let authority = reqwest::Certificate::from_pem(&authority).unwrap();
    let https = reqwest::Client::builder().no_proxy().tls_certs_only([authority]).build().unwrap();
    let models = https.get(format!("https://localhost:{port}/v1/models")).bearer_auth(KEY);
    assert_eq!(models.send().await.unwrap().status(), 200);
    assert!(
        doors.http.get(format!("{}/healthz", doors.url())).send().await.is_err(),
        "no plain HTTP"
    );
    doors.stop().await;
}
