//! The Temporal door: activities that any workflow calls by name, and that run without a workflow, too.

mod bought;
mod calls;
mod lines;
mod sdks;
mod waits;

use serde_json::{Value, json};
use tidegate_simulator::ModelAccount;

use crate::fleet::{Fleet, MODEL, fleet};

/// A fleet with a store for answers and a folder for inputs, with these limits.
async fn door(simulator: &str, limits: &str, more: &str) -> Option<Fleet> {
    let settings = format!(
        "[calls]\nanswers = \"{{here}}/calls\"\ninputs = [\"{{here}}/inputs\"]\n\
         [providers.openai]\nbase-url = \"{{simulator}}/v1\"\napi-key-env = \"SIMULATED_KEY\"\n\
         [models.\"{MODEL}\"]\n{limits}\n[models.\"openai:text-embedding-3-small\"]\nrpm = 600\n{more}"
    );
    let fleet = fleet(simulator, &settings).await?;
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let config = config.replace("{here}", fleet.uri("").trim_end_matches('/'));
    std::fs::write(&file, config.replace("{simulator}", &fleet.simulator.base_url())).unwrap();
    std::fs::create_dir(fleet.path("inputs")).unwrap();
    Some(fleet)
}

/// The input of a call.
fn prompt(prompt: &str) -> Value {
    json!({"model": MODEL, "prompt": prompt, "max_output_tokens": 256, "on_cut": "keep"})
}

/// One standalone activity of the `temporal` CLI.
struct Activity<'a> {
    fleet: &'a Fleet,
    id: String,
    options: Vec<String>,
}

impl<'a> Activity<'a> {
    /// On the interactive lane's task queue, with the documented time-outs.
    fn new(fleet: &'a Fleet, id: &str) -> Self {
        let options = [
            ("--task-queue", "tidegate-lane-interactive"),
            ("--start-to-close-timeout", "900s"),
            ("--heartbeat-timeout", "20s"),
        ];
        let this = Self { fleet, id: id.to_owned(), options: Vec::new() };
        options.into_iter().fold(this, |this, (name, value)| this.with(name, value))
    }

    /// Sets an option, or replaces its value.
    fn with(mut self, name: &str, value: &str) -> Self {
        self.without(name);
        self.options.extend([name.to_owned(), value.to_owned()]);
        self
    }

    fn without(&mut self, name: &str) {
        if let Some(place) = self.options.iter().position(|option| option == name) {
            self.options.drain(place..place + 2);
        }
    }

    async fn start(&self, kind: &str, input: &Value) {
        let input = input.to_string();
        let own = ["activity", "start", "--activity-id", &self.id, "--type", kind, "-i", &input];
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let output = self.fleet.cli(&[&own, options.as_slice()].concat()).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The activity's result or failure.
    async fn result(&self) -> Result<Value, Value> {
        let id = self.id.as_str();
        let output =
            self.fleet.cli(&["activity", "result", "--activity-id", id, "-o", "json"]).await;
        let text = String::from_utf8(output.stdout).unwrap();
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        if value["status"] == "COMPLETED" { Ok(value["result"].clone()) } else { Err(value) }
    }

    async fn call(&self, input: &Value) -> Result<Value, Value> {
        self.start("tidegate.call", input).await;
        self.result().await
    }

    async fn embed(&self, input: &Value) -> Result<Value, Value> {
        self.start("tidegate.embed", input).await;
        self.result().await
    }

    /// The number of the attempt in which it ended.
    async fn attempts(&self) -> u64 {
        let id = self.id.as_str();
        let output =
            self.fleet.cli(&["activity", "describe", "--activity-id", id, "-o", "json"]).await;
        let described: Value = serde_json::from_slice(&output.stdout).unwrap();
        let attempt = described.get("attempt").or_else(|| described["info"].get("attempt"));
        attempt.and_then(Value::as_u64).unwrap_or_else(|| panic!("{described}"))
    }
}

/// The number of calls that the provider has received, whatever their outcome.
fn asked(fleet: &Fleet) -> u64 {
    let ModelAccount { requests, .. } = fleet.account();
    requests
}
