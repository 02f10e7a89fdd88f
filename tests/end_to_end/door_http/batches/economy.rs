//! Batches of lines that go through their vendor's batch API, at its price.

use tidegate_simulator::Account;

use super::*;

const PRICE: &str = "price = { input-usd-per-mtok = 10.0, output-usd-per-mtok = 40.0 }";

/// A stage with two models of one vendor; its batches take this long.
async fn stage_of(batches: &str) -> Option<Stage> {
    let limits = format!("rpm = 6000\n{PRICE}\n[models.\"openai:n\"]\nrpm = 6000\n{PRICE}");
    stage(&format!("mean-output-tokens = 20\n[batches]\n{batches}"), &limits).await
}

fn line(custom_id: &str, url: &str, body: &Value) -> String {
    let line = json!({"custom_id": custom_id, "method": "POST", "url": url, "body": body});
    format!("{line}\n")
}

impl Stage {
    /// Starts a batch of this file; returns the status and the door's answer.
    async fn begin_with(&self, file: &str, more: Value, header: Option<&str>) -> (u16, Value) {
        let post = self.http.post(format!("{}/v1/files", self.url));
        let upload = post
            .header("content-type", "multipart/form-data; boundary=tests")
            .body(form(&[("purpose", "batch")], file));
        let (status, file) = self.send(upload).await;
        assert_eq!(status, 200, "{file}");
        let mut body = json!({"input_file_id": file["id"], "completion_window": "24h"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let post = self.http.post(format!("{}/v1/batches", self.url)).json(&body);
        let post = header.into_iter().fold(post, |it, mode| it.header("x-tidegate-mode", mode));
        self.send(post).await
    }

    async fn account(&self, holds: impl Fn(&Account) -> bool) -> Account {
        for _ in 0..600 {
            let account = self.fleet.simulator.account();
            if holds(&account) {
                return account;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("never: {:?}", self.fleet.simulator.account());
    }

    /// For each line of a batch: the model that answered, and its price as a fraction of the vendor's
    /// list price.
    fn prices(&self, batch: &Value) -> Vec<(String, f64)> {
        let results = format!("files/web/batches/{}/results", batch["id"].as_str().unwrap());
        let parts = std::fs::read_dir(self.fleet.path(&results)).unwrap();
        let lines = parts.flat_map(|part| crate::fleet::lines(&part.unwrap().path()));
        let priced = lines.map(|it| {
            let tokens = |field: &str| it[field].as_f64().unwrap();
            let usual = tokens("input_tokens") * 10.0 + tokens("output_tokens") * 40.0;
            let part = it["cost_usd"].as_f64().unwrap() / usual * 1e6;
            (it["model"].as_str().unwrap().to_owned(), part)
        });
        priced.collect()
    }
}

/// Of sixty lines, all that can go into a vendor's batch do, once. Lines that fail or expire there, name
/// other models or are faulty take the direct path. The worker dies while the vendor works on the batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_cost_half_and_what_cannot_go_takes_the_direct_path() {
    let chat_at = |custom_id: &str, more: Value| {
        let body = chat(&format!("Question {custom_id}"), more);
        line(custom_id, "/v1/chat/completions", &body)
    };
    let Some(mut stage) =
        stage_of("duration = \"8s\"\nerror-rate = 0.1\nexpire-rate = 0.1\n").await
    else {
        return;
    };
    let mut file: String =
        (0..50).map(|n| chat_at(&format!("q-{n}"), json!({"max_tokens": 50}))).collect();
    for n in 0..2 {
        file += &chat_at(&format!("n-{n}"), json!({"model": "openai:n"}));
    }
    for n in 0..3 {
        let model = json!({"model": "anthropic:claude-sonnet-5", "max_tokens": 50});
        file += &chat_at(&format!("claude-{n}"), model);
    }
    file += &chat_at("unknown", json!({"model": "openai:other"}));
    file += &chat_at("streams", json!({"stream": true}));
    file += &chat_at("refused", json!({"messages": []}));
    file += &line("other-url", "/v1/embeddings", &chat("?", json!({})));
    file += "this is no JSON\n";
    let metadata = json!({"tidegate_mode": "economy", "of": "tests"});
    let more = json!({"endpoint": "/v1/chat/completions", "metadata": metadata});
    let (status, batch) = stage.begin_with(&file, more.clone(), None).await;
    assert_eq!((status, &batch["metadata"]), (200, &metadata), "{batch}");
    stage.account(|account| account.batches == 1).await;
    stage.fleet.kill_worker(0).await;
    stage.fleet.worker_with(&[("DOOR_KEY", KEY), ("OTHER_KEY", OTHER_KEY)]);
    let ended = stage.until(&batch["id"], has_ended).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(
        ended["request_counts"],
        json!({"total": 60, "completed": 55, "failed": 5}),
        "{ended}"
    );
    let output = stage.lines(&ended["output_file_id"]).await;
    assert_eq!(names(&output).len(), 55);
    for line in &output {
        assert_eq!((&line["response"]["status_code"], &line["error"]), (&json!(200), &Value::Null));
        let body = &line["response"]["body"];
        assert!(body["choices"][0]["message"]["content"].is_string(), "{line}");
        let custom_id = line["custom_id"].as_str().unwrap();
        let model = if custom_id.starts_with("q-") { "m" } else { "n" };
        assert!(custom_id.starts_with("claude-") || body["model"] == model, "{line}");
    }
    let errors = stage.lines(&ended["error_file_id"]).await;
    let messages: Vec<&str> = errors
        .iter()
        .map(|line| line["response"]["body"]["error"]["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages.len(), 5);
    for says in [
        "line 56: the model openai:other does not exist",
        "line 57: body.stream must be false",
        "Missing required parameter: 'messages'",
        "line 59: url must be /v1/chat/completions",
        "line 60: it is not one JSON object",
    ] {
        assert!(messages.iter().any(|message| message.contains(says)), "{says}: {messages:?}");
    }

    let account = stage.fleet.simulator.account();
    // A line that the vendor itself refuses is submitted, too.
    assert_eq!((account.batches, account.batch_requests), (1, 51), "{account:?}");
    assert_eq!((account.answered_twice, account.rejected), (0, 1), "{account:?}");
    assert_eq!(account.model("n").requests, 2);
    assert_eq!(account.model("claude-sonnet-5").requests, 3);
    let prices = stage.prices(&batch);
    assert_eq!(prices.len(), 55);
    let of = |model: &str, part: f64| {
        let is = |it: &&(String, f64)| it.0 == model && (it.1 - part).abs() < 1e-6;
        prices.iter().filter(is).count() as u64
    };
    let direct = account.model("m").requests;
    println!("{direct} of 50 lines failed in the vendor's batch and were asked directly");
    assert!((1..20).contains(&direct), "{direct}");
    assert_eq!((of("openai:m", 0.5), of("openai:m", 1.0)), (50 - direct, direct), "{prices:?}");
    assert_eq!(of("openai:n", 1.0), 2, "{prices:?}");

    // Without the metadata, or with too little time, the lines are asked directly.
    let direct = json!({"endpoint": "/v1/chat/completions"});
    let mut near = more.clone();
    near["completion_window"] = json!("1h");
    for (more, header) in [(direct.clone(), None), (near, None), (direct, Some("direct"))] {
        let (status, batch) = stage.begin_with(&chat_at("a", json!({})), more, header).await;
        assert_eq!(status, 200, "{batch}");
        assert_eq!(done(&stage.until(&batch["id"], has_ended).await), 1);
        assert_eq!(stage.fleet.simulator.account().batches, 1);
    }
    stage.stop().await;
}

/// The lines of each endpoint become a vendor's batch for that endpoint. A header means the same as the
/// metadata; an unknown word is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_endpoint_has_its_batches() {
    let Some(stage) = stage_of("duration = \"1s\"").await else { return };
    let embedding =
        json!({"model": "openai:text-embedding-3-small", "input": ["A text", "and more"]});
    let response = json!({"model": "openai:m", "input": "A question?"});
    let economy = Some("economy");
    for (number, (url, body, object)) in [
        ("/v1/responses", response, "response"),
        ("/v1/embeddings", embedding, "list"),
        ("/v1/chat/completions", chat("A question?", json!({})), "chat.completion"),
    ]
    .into_iter()
    .enumerate()
    {
        let file: String = (0..10).map(|n| line(&format!("a-{n}"), url, &body)).collect();
        let (status, batch) = stage.begin_with(&file, json!({"endpoint": url}), economy).await;
        assert_eq!(status, 200, "{batch}");
        let ended = stage.until(&batch["id"], has_ended).await;
        let output = stage.lines(&ended["output_file_id"]).await;
        assert_eq!(names(&output).len(), 10, "{ended}");
        assert!(output.iter().all(|line| line["response"]["body"]["object"] == object));
        let account = stage.fleet.simulator.account();
        assert_eq!((account.batches, account.models.len()), (number as u64 + 1, 0), "{account:?}");
    }

    let params = json!({"model": "anthropic:claude-sonnet-5", "max_tokens": 50, "messages": [{"role": "user", "content": "A question?"}]});
    let request = |n: u32| json!({"custom_id": format!("a-{n}"), "params": params});
    let requests = json!({"requests": (0..10).map(request).collect::<Vec<_>>()});
    let url = format!("{}/v1/messages/batches", stage.url);
    let post = |mode: &str| stage.http.post(&url).json(&requests).header("x-tidegate-mode", mode);
    let (status, batch) = stage.send(post("economy")).await;
    assert_eq!(status, 200, "{batch}");
    let path = format!("/v1/messages/batches/{}", batch["id"].as_str().unwrap());
    let mut told = batch;
    while told["processing_status"] != "ended" {
        tokio::time::sleep(Duration::from_millis(200)).await;
        told = stage.get(&path).await;
    }
    assert_eq!(told["request_counts"]["succeeded"], 10, "{told}");
    let results = stage.http.get(format!("{}{path}/results", stage.url)).bearer_auth(KEY);
    let results = results.send().await.unwrap().text().await.unwrap();
    let results: Vec<Value> =
        results.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(names(&results).len(), 10);
    assert!(results.iter().all(|it| it["result"]["message"]["type"] == "message"), "{results:?}");
    let account = stage.fleet.simulator.account();
    assert_eq!((account.batches, account.models.len()), (4, 0), "{account:?}");

    let (status, refused) = stage.send(post("cheap")).await;
    let says = "x-tidegate-mode must be \"direct\" or";
    assert_eq!((status, refused["type"].as_str()), (400, Some("error")), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().starts_with(says), "{refused}");
    let more = json!({"endpoint": "/v1/responses", "metadata": {"tidegate_mode": "cheap"}});
    // The batch's metadata take precedence over the header.
    let (status, refused) = stage.begin_with("{}\n", more, economy).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("metadata.tidegate_mode")));
    stage.stop().await;
}
