//! A running simulator, and calls to it, for every test.
#![allow(dead_code, reason = "each test file is a program of its own and uses a part of this")]
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

use reqwest::{Client, Response};
use serde_json::{Value, json};
use tidegate_simulator::{Config, Simulator};

/// A simulator and a client for it.
pub(crate) struct Stage {
    pub(crate) simulator: Simulator,
    pub(crate) client: Client,
}

/// An answer that has arrived whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) async fn read(response: Response) -> reqwest::Result<Self> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Self { status, headers, text: response.text().await? })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.header(name).unwrap_or_else(|| panic!("no header {name}")).parse().expect("a number")
    }

    /// One JSON object a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("JSON")
    }
}

impl Stage {
    pub(crate) async fn new(toml: &str) -> Self {
        let simulator =
            Simulator::start(Config::from_toml(toml).expect("valid")).await.expect("a free port");
        Self { simulator, client: Client::builder().no_proxy().build().expect("a client") }
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> reqwest::Result<Reply> {
        let mut request =
            self.client.post(format!("{}{path}", self.simulator.base_url())).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Reply::read(request.send().await?).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let response = self
            .client
            .get(format!("{}{path}", self.simulator.base_url()))
            .send()
            .await
            .expect("sent");
        Reply::read(response).await.expect("read")
    }

    /// A GET that needs a key; either vendor finds its own.
    pub(crate) async fn get_with_key(&self, path: &str) -> Reply {
        let request = self.client.get(format!("{}{path}", self.simulator.base_url()));
        let request = request.bearer_auth("k").header("anthropic-version", "2023-06-01");
        Reply::read(request.send().await.expect("sent")).await.expect("read")
    }

    pub(crate) async fn delete_with_key(&self, path: &str) -> Reply {
        let request =
            self.client.delete(format!("{}{path}", self.simulator.base_url())).bearer_auth("k");
        Reply::read(request.send().await.expect("sent")).await.expect("read")
    }

    /// Asks until the answer is as it should be.
    pub(crate) async fn until(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let value = self.get_with_key(path).await.json();
            if is(&value) {
                return value;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn anthropic(&self, body: &Value) -> reqwest::Result<Reply> {
        self.post(
            "/v1/messages",
            &[("x-api-key", "k"), ("anthropic-version", "2023-06-01")],
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn openai(&self, body: &Value) -> reqwest::Result<Reply> {
        self.post("/v1/chat/completions", &[("authorization", "Bearer k")], body.to_string()).await
    }

    pub(crate) async fn responses(&self, body: &Value) -> reqwest::Result<Reply> {
        self.post("/v1/responses", &[("authorization", "Bearer k")], body.to_string()).await
    }

    pub(crate) async fn gemini(&self, model: &str, body: &Value) -> reqwest::Result<Reply> {
        self.post(
            &format!("/v1beta/models/{model}:generateContent"),
            &[("x-goog-api-key", "k")],
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn bedrock(&self, model: &str, body: &Value) -> reqwest::Result<Reply> {
        self.post(
            &format!("/model/{model}/converse"),
            &[("authorization", "Bearer k")],
            body.to_string(),
        )
        .await
    }

    /// A plain call to anthropic's model `m`.
    pub(crate) async fn ask(&self, document: &str) -> reqwest::Result<Reply> {
        self.anthropic(&message(document, 1_000)).await
    }
}

pub(crate) fn message(document: &str, max_tokens: u64) -> Value {
    let content = format!("<document>\n{document}\n</document>");
    json!({"model": "m", "max_tokens": max_tokens, "messages": [{"role": "user", "content": content}]})
}
