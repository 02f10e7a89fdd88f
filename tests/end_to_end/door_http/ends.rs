//! The end of a door, of a stream and of a connection.

use std::path::Path;

use tidegate_types::ModelId;
use tokio::io::AsyncWriteExt as _;

use super::{
    vendor::{RawVendor, Reply},
    *,
};
use crate::fleet::assert_is_private;

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
    let metrics = free_address();
    let log = doors.folder.path().join("door.log");
    let mut program = Command::new(PROGRAM);
    program.env(METRICS, &metrics).stderr(std::fs::File::create(&log).unwrap());
    let (mut door, url) = doors.process(&mut program).await;
    for path in ["/v1/chat/completions", "/v1/batches/batch_1/cancel", "/v1/secret-of-a-client"] {
        let wrong = doors.http.post(format!("{url}{path}")).bearer_auth("wrong").send().await;
        assert_eq!(wrong.unwrap().status(), 401);
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
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("tidegate::access")).collect();
    let [wrong @ .., line] = lines.as_slice() else { panic!("{log}") };
    for (line, path) in wrong.iter().zip(["/v1/chat/completions", "/v1/batches/{id}/cancel", ""]) {
        assert!(line.contains("401") && line.contains(&format!("\"{path}\"")), "{line}");
    }
    assert!(wrong.len() == 3 && !log.contains("secret-of-a-client"), "{log}");
    assert!(line.contains("499") && line.contains("openai:m") && line.contains("web"), "{line}");
    door.kill().await.unwrap();
    doors.stop().await;
}

/// The process may have few files open. Clients that send half a request get none of those that calls
/// need; and what a client stores is its user's alone.
#[tokio::test]
async fn half_sent_requests_leave_files_for_calls() {
    const FILES: usize = 256;
    let vendor = RawVendor::start(|_| Reply::json(200, "{\"choices\":[]}")).await;
    let settings = provider("openai", &vendor.url, LIMITS);
    let files = tempfile::tempdir().unwrap();
    let path = files.path().canonicalize().unwrap().join("files");
    let serve = format!("files = \"file://{}\"", path.display());
    let Some(doors) = Doors::start_with(&serve, &settings).await else { return };
    let script = format!("umask 022; ulimit -n {FILES}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &script, PROGRAM]).env(METRICS, "off");
    let (mut door, url) = doors.process(&mut shell).await;
    let call = async || {
        let call = doors.http.post(format!("{url}/v1/chat/completions")).bearer_auth(KEY);
        let answer = call.json(&chat("hi", json!({}))).send().await.unwrap();
        answer.text().await.unwrap()
    };
    // This client's connection stays open.
    assert_eq!(call().await, "{\"choices\":[]}");
    let mut half = Vec::new();
    for _ in 0..2 * FILES {
        let mut client =
            tokio::net::TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
        client.write_all(b"POST /v1/chat/completions HTTP/1.1\r\n").await.unwrap();
        half.push(client);
    }
    assert_eq!(call().await, "{\"choices\":[]}");
    drop(half);

    let upload = doors.upload(super::files::form(&[("purpose", "batch")], "{}"));
    let (client, upload) = upload.build_split();
    let mut upload = upload.unwrap();
    *upload.url_mut() = format!("{url}/v1/files").parse().unwrap();
    assert_eq!(client.execute(upload).await.unwrap().status(), 200);
    assert_is_private(&path);
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
