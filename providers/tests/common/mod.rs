//! A server that sends raw bytes, so that client and server cannot share a mistake, and that counts
//! its requests.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tidegate_providers::{
    Api, Completion, Document, Error, Parameters, Providers, Request, Said, Secret, Settings,
    Vendor,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Every API that a client supports.
pub const APIS: [(Vendor, Api); 5] = [
    (Vendor::ANTHROPIC, Api::ChatCompletions),
    (Vendor::OPENAI, Api::ChatCompletions),
    (Vendor::OPENAI, Api::Responses),
    (Vendor::GEMINI, Api::ChatCompletions),
    (Vendor::BEDROCK, Api::ChatCompletions),
];

/// The server's reaction to each request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Sends these bytes and leaves the connection open.
    Send(String),
    /// Sends these bytes and drops the connection.
    SendAndDrop(String),
    /// Sends the reply that the function gives for a request.
    Answer(fn(&str) -> String),
    /// Sends nothing more.
    Hang,
}

#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub async fn start(act: Act) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let (connections, requests) =
            (Arc::clone(&server.connections), Arc::clone(&server.requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, act.clone(), Arc::clone(&requests)));
            }
        });
        server
    }

    pub fn base_url(&self, vendor: Vendor) -> String {
        format!("http://{}{}", self.address, vendor.base_path())
    }

    /// Connections and requests so far.
    pub fn counts(&self) -> (usize, usize) {
        (self.connections.load(Ordering::SeqCst), self.requests.lock().unwrap().len())
    }

    pub async fn call(&self, api: (Vendor, Api)) -> Result<Completion, Error> {
        call(&providers(api, &self.base_url(api.0))).await
    }
}

pub const REQUEST: Request<'static> = Request {
    model: "m",
    instructions: "Sum up.",
    turns: &[],
    said: Said::Nothing,
    document: Document::Text("Text"),
    max_output_tokens: 100,
    schema: None,
    cache_instructions: false,
    parameters: Parameters { effort: None, fields: None },
};

pub const KEY: &str = "K3Y-that-must-not-be-seen";

pub fn settings((vendor, api): (Vendor, Api), url: &str) -> Settings {
    let settings = Settings { api, ..Settings::new(vendor, url.parse().unwrap()) };
    settings.api_key(Secret::new(KEY).unwrap()).request_timeout(Duration::from_millis(500))
}

pub fn providers(api: (Vendor, Api), url: &str) -> Providers {
    Providers::new([("mine".to_owned(), settings(api, url))]).unwrap()
}

pub async fn call(providers: &Providers) -> Result<Completion, Error> {
    providers.get(&"mine:m".parse().unwrap()).unwrap().complete(&REQUEST).await
}

/// A whole response that offers to keep the connection.
pub fn response(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: keep-alive\r\n{headers}\r\n{body}",
        body.len()
    )
}

pub fn answer(api: (Vendor, Api)) -> String {
    let body = match (api.0.as_str(), api.1) {
        ("openai", Api::Responses) => {
            r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Yes"}]}],"model":"m-1","usage":{"input_tokens":3,"output_tokens":1}}"#
        }
        ("anthropic", _) => {
            r#"{"content":[{"type":"text","text":"Yes"}],"stop_reason":"end_turn","model":"m-1","usage":{"input_tokens":3,"output_tokens":1}}"#
        }
        ("gemini", _) => {
            r#"{"candidates":[{"content":{"parts":[{"text":"Yes"}]},"finishReason":"STOP"}],"modelVersion":"m-1","usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}"#
        }
        ("bedrock", _) => {
            r#"{"output":{"message":{"role":"assistant","content":[{"text":"Yes"}]}},"stopReason":"end_turn","metrics":{"latencyMs":1},"usage":{"inputTokens":3,"outputTokens":1,"totalTokens":4}}"#
        }
        _ => {
            r#"{"choices":[{"message":{"content":"Yes"},"finish_reason":"stop"}],"model":"m-1","usage":{"prompt_tokens":3,"completion_tokens":1}}"#
        }
    };
    response("200 OK", "", body)
}

async fn serve(mut stream: TcpStream, act: Act, requests: Arc<Mutex<Vec<String>>>) {
    while let Some(request) = read_request(&mut stream).await {
        requests.lock().unwrap().push(request.clone());
        match &act {
            Act::Answer(answer) => stream.write_all(answer(&request).as_bytes()).await.unwrap(),
            Act::Send(bytes) => stream.write_all(bytes.as_bytes()).await.unwrap(),
            Act::SendAndDrop(bytes) => {
                stream.write_all(bytes.as_bytes()).await.unwrap();
                return;
            }
            Act::Hang => std::future::pending().await,
        }
    }
}

/// Head and body of one request; `None` at the end of the connection.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some(head) = text.find("\r\n\r\n") {
            let length = text
                .split("\ncontent-length: ")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next())
                .map_or(0, |n| n.parse().unwrap());
            if bytes.len() >= head + 4 + length {
                return Some(String::from_utf8(bytes).unwrap());
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}
