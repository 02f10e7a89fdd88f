//! A provider that answers some calls with a row of the table, and all others with a good answer.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use tidegate_testkit::ReplyRow;

use super::Pattern;

/// The number of good answers before a bad spell, and before a single bad reply.
pub(super) const GOOD_FIRST: usize = 3;
/// The length of a bad spell.
const SPELL: Duration = Duration::from_secs(3);
/// The duration of an answer: the documents of a batch are under way together.
const LATENCY: Duration = Duration::from_millis(300);

/// The first byte of a TLS client.
const TLS: u8 = 0x16;

/// One batch's provider.
pub(super) struct Case {
    pub(super) row: Arc<ReplyRow>,
    pub(super) pattern: Pattern,
    calls: Vec<Instant>,
    bad: Vec<Instant>,
}

impl Case {
    pub(super) fn new(row: Arc<ReplyRow>, pattern: Pattern) -> Self {
        Self { row, pattern, calls: Vec::new(), bad: Vec::new() }
    }

    fn is_bad_now(&mut self) -> bool {
        let now = Instant::now();
        let before = self.calls.len();
        self.calls.push(now);
        let is_bad = match self.pattern {
            Pattern::Always => true,
            Pattern::Once => before == GOOD_FIRST,
            Pattern::Spell => {
                let first = self.bad.first();
                before >= GOOD_FIRST && first.is_none_or(|first| now - *first < SPELL)
            }
        };
        if is_bad {
            self.bad.push(now);
        }
        is_bad
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn bad_replies(&self) -> usize {
        self.bad.len()
    }
}

/// All cases, by the first segment of their base URL.
pub(super) type Cases = Arc<Mutex<HashMap<String, Case>>>;

/// Serves the cases on a port of loopback until the runtime ends; returns the port.
pub(super) async fn serve(cases: Cases) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let cases = Arc::clone(&cases);
            tokio::spawn(async move { converse(connection, &cases).await });
        }
    });
    port
}

/// Answers requests one after the other; `None` when the connection ends.
async fn converse(connection: TcpStream, cases: &Cases) -> Option<()> {
    let mut connection = BufReader::new(connection);
    if connection.fill_buf().await.ok()?.first() == Some(&TLS) {
        reply(&mut connection, 400, &[], b"", None).await?;
        return None;
    }
    loop {
        let (path, body) = request(&mut connection).await?;
        let name = path.split('/').nth(1)?.to_owned();
        tokio::time::sleep(LATENCY).await;
        let (row, is_bad) = {
            let mut cases = cases.lock();
            let case = cases.get_mut(&name)?;
            let is_bad = body.is_some() && case.is_bad_now();
            (Arc::clone(&case.row), is_bad)
        };
        // A request without a body asks for the list of models, or probes the server.
        let Some(body) = body else {
            reply(&mut connection, 404, &[], b"{}", None).await?;
            continue;
        };
        if !is_bad {
            let good = good(&row.kind, &body).to_string();
            let json = [("content-type".to_owned(), "application/json".to_owned())];
            reply(&mut connection, 200, &json, good.as_bytes(), None).await?;
            continue;
        }
        if row.net.is_some() && row.status == 0 {
            return None;
        }
        reply(&mut connection, row.status, &row.headers(), &row.body(), row.cut).await?;
    }
}

async fn request(connection: &mut BufReader<TcpStream>) -> Option<(String, Option<Value>)> {
    let (mut path, mut length) = (None, 0_usize);
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if path.is_none() {
            path = line.split(' ').nth(1).map(str::to_owned);
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.ok()?;
    let body = (length > 0).then(|| serde_json::from_slice(&body).unwrap_or_default());
    Some((path?, body))
}

async fn reply(
    connection: &mut BufReader<TcpStream>,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
    cut: Option<f64>,
) -> Option<()> {
    let mut head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    connection.write_all(head.as_bytes()).await.ok()?;
    let sent = cut.map_or(body.len(), |part| (body.len() as f64 * part) as usize);
    connection.write_all(&body[..sent]).await.ok()?;
    connection.flush().await.ok()?;
    cut.is_none().then_some(())
}

/// A good answer in each dialect.
fn good(kind: &str, request: &Value) -> Value {
    let text = "{\"title\":\"ok\"}";
    if let Some(input) = request.get("input").and_then(Value::as_array) {
        let length = request["dimensions"].as_u64().unwrap_or(4);
        let vector: Vec<f64> = (0..length).map(|place| (place + 1) as f64 / 10.0).collect();
        let of = |index| json!({"object": "embedding", "index": index, "embedding": vector});
        let all: Vec<Value> = (0..input.len()).map(of).collect();
        let usage = json!({"prompt_tokens": 12, "total_tokens": 12});
        return json!({"object": "list", "model": "m", "data": all, "usage": usage});
    }
    match kind {
        "anthropic" => json!({
            "id": "x", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 60, "output_tokens": 8},
        }),
        "gemini" => json!({
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 60, "candidatesTokenCount": 8, "totalTokenCount": 68},
        }),
        "bedrock" => json!({
            "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
            "stopReason": "end_turn", "metrics": {"latencyMs": 1},
            "usage": {"inputTokens": 60, "outputTokens": 8, "totalTokens": 68},
        }),
        _ => json!({
            "id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 60, "completion_tokens": 8, "total_tokens": 68},
        }),
    }
}
