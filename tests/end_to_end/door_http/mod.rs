//! The HTTP door: bodies pass unchanged, calls wait for their turn, and the vendors' unmodified clients
//! are answered.

mod batches;
mod clients;
mod dialects;
mod ends;
mod fields;
mod files;
mod outages;
mod passing;
mod vendor;
mod waiting;

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::{config::Config, serve::Serve, telemetry};
use tidegate_testkit::{Redis, unique};
use tokio::{
    process::{Child, Command},
    sync::oneshot,
    task::JoinHandle,
};

use crate::fleet::free_address;

const KEY: &str = "door-key-of-the-tests";
const PROGRAM: &str = env!("CARGO_BIN_EXE_tidegate");
/// The setting of where a process shows its metrics.
const METRICS: &str = "TIDEGATE_WORKER__METRICS_LISTEN";

/// The doors of one fleet, in this process.
struct Doors {
    folder: TempDir,
    prefix: String,
    redis: String,
    serve: String,
    settings: String,
    config: Option<Config>,
    running: Vec<(String, oneshot::Sender<()>, JoinHandle<()>)>,
    http: reqwest::Client,
}

impl Doors {
    /// Starts one door, with these settings beside a key; `None`, with a message, without a Redis.
    async fn start(settings: &str) -> Option<Self> {
        Self::start_with("", settings).await
    }

    /// Starts one door with further lines in its `[serve]` section.
    async fn start_with(serve: &str, settings: &str) -> Option<Self> {
        Some(Self::made(&Redis::shared()?.url, serve, settings).await)
    }

    /// Starts one door with a Redis that may be killed.
    async fn start_at(redis: &str, settings: &str) -> Self {
        Self::made(redis, "", settings).await
    }

    async fn made(redis: &str, serve: &str, settings: &str) -> Self {
        let mut doors = Self {
            folder: tempfile::tempdir().unwrap(),
            prefix: unique("door"),
            redis: redis.to_owned(),
            serve: serve.to_owned(),
            settings: settings.to_owned(),
            config: None,
            running: Vec::new(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        };
        doors.one_more().await;
        doors
    }

    async fn one_more(&mut self) -> String {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let key = self.folder.path().join("key");
        std::fs::write(&key, KEY).unwrap();
        let (key, folder) = (key.display(), self.folder.path().display());
        let text = format!(
            "[redis]\nurl = \"{}\"\nkey-prefix = \"{}\"\n[storage]\nroots = [\"file://{folder}\"]\n[gate]\njitter = \"100ms\"\n\
             [serve]\nlisten = \"127.0.0.1:0\"\n{}\n[serve.keys.web]\nkey-file = \"{key}\"\n{}\n",
            self.redis, self.prefix, self.serve, self.settings
        );
        let file = self.folder.path().join("tidegate.toml");
        std::fs::write(&file, text).unwrap();
        let config = Config::load(Some(&file)).unwrap();
        let door = Serve::bind(&config).await.unwrap();
        self.config = Some(config);
        let url = format!("http://{}", door.address());
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let telemetry = telemetry::start(None).await;
            let stopped = async {
                let _ = stopped.await;
            };
            Box::pin(door.run(&telemetry, stopped)).await.unwrap();
        });
        self.running.push((url.clone(), stop, running));
        url
    }

    /// Starts one more door as a process of its own, with the arguments added to this command. Returns it
    /// with its address when it answers.
    async fn process(&self, command: &mut Command) -> (Child, String) {
        let address = free_address();
        let config = self.folder.path().join("tidegate.toml");
        let command = command.arg("--config").arg(config).arg("serve");
        let command = command.env("TIDEGATE_SERVE__LISTEN", &address).kill_on_drop(true);
        let (door, url) = (command.spawn().unwrap(), format!("http://{address}"));
        while self.http.get(format!("{url}/readyz")).send().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        (door, url)
    }

    fn url(&self) -> &str {
        &self.running[0].0
    }

    fn post(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.http.post(format!("{}{path}", self.url())).bearer_auth(KEY).json(body)
    }

    async fn stop(self) {
        for (_, stop, running) in self.running {
            let _ = stop.send(());
            running.await.unwrap();
        }
    }
}

/// The configuration of one provider of this kind at this address, with one model `m` with these limits.
fn provider(kind: &str, url: &str, limits: &str) -> String {
    let url = if kind == "openai" { format!("{url}/v1") } else { url.to_owned() };
    format!(
        "[providers.{kind}]\nbase-url = \"{url}\"\napi-key-env = \"PATH\"\n[models.\"{kind}:m\"]\n{limits}\n"
    )
}

fn chat(text: &str, more: Value) -> Value {
    let mut body = json!({"model": "openai:m", "messages": [{"role": "user", "content": text}]});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}
