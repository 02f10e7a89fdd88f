//! Batches: workflows on the engine of documents, in the vendors' forms.

mod economy;

use std::{
    collections::BTreeSet,
    process::Stdio,
    time::{Duration, Instant},
};

use tidegate_testkit::{node_sdks, python_with_sdks};
use tokio::process::{Child, Command};

use super::{clients::printed, files::form, *};
use crate::fleet::{Fleet, fleet, free_address, full_scale, number};

const OTHER_KEY: &str = "another-key-of-the-tests";

/// A fleet, and one replica of its door in a separate process.
struct Stage {
    fleet: Fleet,
    url: String,
    doors: Vec<Child>,
    http: reqwest::Client,
}

async fn stage(simulator: &str, limits: &str) -> Option<Stage> {
    let address = free_address();
    let settings = format!(
        "[serve]\nlisten = \"{address}\"\nfiles = \"{{here}}/files\"\n\
         [serve.keys.web]\nkey-env = \"DOOR_KEY\"\n[serve.keys.other]\nkey-env = \"OTHER_KEY\"\n\
         [providers.openai]\nbase-url = \"{{simulator}}/v1\"\napi-key-env = \"SIMULATED_KEY\"\n\
         [models.\"openai:m\"]\n{limits}\n[models.\"anthropic:claude-sonnet-5\"]\nrpm = 6000\n\
         [models.\"openai:text-embedding-3-small\"]\nrpm = 6000\n"
    );
    let mut fleet = fleet(simulator, &settings).await?;
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let config = config.replace("{here}", fleet.uri("").trim_end_matches('/'));
    std::fs::write(&file, config.replace("{simulator}", &fleet.simulator.base_url())).unwrap();
    fleet.worker_with(&[("DOOR_KEY", KEY), ("OTHER_KEY", OTHER_KEY)]);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut stage = Stage { fleet, url: format!("http://{address}"), doors: Vec::new(), http };
    stage.door().await;
    Some(stage)
}

impl Stage {
    async fn door(&mut self) {
        let log = std::fs::File::create(self.fleet.path("door.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["serve", "--config"])
            .arg(self.fleet.path("tidegate.toml"))
            .env("SIMULATED_KEY", "sk-simulated-secret")
            .env("TIDEGATE_WORKER__METRICS_LISTEN", "off")
            .envs([("DOOR_KEY", KEY), ("OTHER_KEY", OTHER_KEY)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        self.doors.push(child.unwrap());
        for _ in 0..600 {
            if self.http.get(format!("{}/readyz", self.url)).send().await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{}", std::fs::read_to_string(self.fleet.path("door.log")).unwrap());
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let got = request.bearer_auth(KEY).send().await.unwrap();
        (got.status().as_u16(), got.json().await.unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, told) = self.send(self.http.get(format!("{}{path}", self.url))).await;
        assert_eq!(status, 200, "{told}");
        told
    }

    fn upload(&self, lines: usize) -> reqwest::RequestBuilder {
        self.upload_of(lines, "")
    }

    /// Uploads `lines` questions, each followed by this text.
    fn upload_of(&self, lines: usize, text: &str) -> reqwest::RequestBuilder {
        let line = |number: usize| {
            let body = chat(&format!("Question {number} {text}"), json!({"max_tokens": 50}));
            json!({"custom_id": format!("q-{number}"), "method": "POST", "url": "/v1/chat/completions", "body": body})
        };
        let file: String = (0..lines).map(|number| format!("{}\n", line(number))).collect();
        let post = self.http.post(format!("{}/v1/files", self.url));
        post.header("content-type", "multipart/form-data; boundary=tests")
            .body(form(&[("purpose", "batch")], &file))
    }

    /// Starts a batch of `lines` questions.
    async fn begin(&self, lines: usize, window: &str) -> Value {
        self.begin_of(self.upload(lines), window).await
    }

    async fn begin_of(&self, upload: reqwest::RequestBuilder, window: &str) -> Value {
        let (status, file) = self.send(upload).await;
        assert_eq!(status, 200, "{file}");
        let body = json!({"input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": window});
        let (status, batch) =
            self.send(self.http.post(format!("{}/v1/batches", self.url)).json(&body)).await;
        assert_eq!((status, &batch["object"]), (200, &json!("batch")), "{batch}");
        batch
    }

    async fn until(&self, id: &Value, reached: impl Fn(&Value) -> bool) -> Value {
        let (path, began) = (format!("/v1/batches/{}", id.as_str().unwrap()), Instant::now());
        loop {
            let batch = self.get(&path).await;
            if reached(&batch) {
                return batch;
            }
            assert!(began.elapsed() < Duration::from_secs(150), "{batch}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn lines(&self, file: &Value) -> Vec<Value> {
        let Some(file) = file.as_str() else { return Vec::new() };
        let get = self.http.get(format!("{}/v1/files/{file}/content", self.url));
        let text = get.bearer_auth(KEY).send().await.unwrap().text().await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn stop(mut self) {
        for door in &mut self.doors {
            let _ = door.kill().await;
        }
        self.fleet.stop().await;
    }
}

fn has_ended(batch: &Value) -> bool {
    let ended = ["completed", "failed", "expired", "cancelled"];
    ended.iter().any(|state| batch["status"] == *state)
}

fn done(batch: &Value) -> u64 {
    batch["request_counts"]["completed"].as_u64().unwrap()
}

/// Checks that each name is there only once.
fn names(lines: &[Value]) -> BTreeSet<String> {
    let names: BTreeSet<String> =
        lines.iter().map(|line| line["custom_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), lines.len(), "each custom_id once");
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_vendors_python_sdks_send_batches_and_read_them() {
    let Some(python) = python_with_sdks() else { return };
    let Some(stage) = stage("mean-output-tokens = 20", "rpm = 6000").await else { return };
    let told = printed(python, "batches.py", &[&stage.url, KEY, OTHER_KEY, "60"]).await;

    let chat = &told["chat"];
    assert_eq!(chat["status"], "completed", "{told:#}");
    assert_eq!(chat["counts"], json!({"total": 68, "completed": 61, "failed": 7}));
    assert_eq!(chat["metadata"], json!({"of": "tests"}));
    assert_eq!(chat["output"].as_array().unwrap().len(), 61);
    assert_eq!(
        (&chat["codes"], &chat["words"], &chat["in_order"]),
        (&json!([200]), &json!(true), &json!(true))
    );
    for (custom_id, status, says) in [
        ("unknown-model", 404, "line 62: the model openai:other does not exist"),
        ("good-0", 400, "line 63: custom_id is that of line 1, too"),
        ("not-translated", 400, "line 64: body.seed is not translated"),
        ("streams", 400, "line 65: body.stream must be false"),
        ("other-url", 400, "line 66: url must be /v1/chat/completions"),
        ("other-method", 400, "line 67: method must be POST"),
        ("None", 400, "line 68: it is not one JSON object"),
    ] {
        let error = &chat["errors"][custom_id];
        let message = error[1].as_str().unwrap_or_default();
        assert!(error[0] == status && message.starts_with(says), "{custom_id}: {error}");
    }
    assert_eq!(told["files"], json!(["batch", "batch_output", "batch_output"]));
    assert_eq!(told["batches"][0], true);
    assert_eq!(told["other_key"], json!(vec!["NotFoundError"; 5]));
    assert_eq!(told["others"], json!([[], []]));
    assert_eq!(told["cancelled_too_late"], "ConflictError");
    assert_eq!(told["wrong_window"], "BadRequestError");
    assert_eq!(told["embeddings"], json!(["completed", 20, 40, 0]));
    assert_eq!(told["no_jsonl"], json!(["failed", "invalid_json_line", 1]));

    let messages = &told["messages"];
    assert_eq!(messages["first"], "in_progress");
    assert_eq!(
        messages["counts"],
        json!({"processing": 0, "succeeded": 60, "errored": 1, "canceled": 0, "expired": 0})
    );
    assert_eq!(messages["results"].as_array().unwrap().len(), 61);
    assert_eq!(
        (&messages["words"], &messages["error"]),
        (&json!(true), &json!(["not_found_error"]))
    );
    assert_eq!(messages["listed"][0], true);
    assert_eq!(messages["other_key"], "NotFoundError");
    assert_eq!(messages["twice"], "BadRequestError");
    assert_eq!(messages["deleted"], "message_batch_deleted");
    assert_eq!(messages["gone"], "NotFoundError");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_vendors_node_sdks_send_batches_and_read_them() {
    let Some(modules) = node_sdks() else { return };
    let Some(stage) = stage("mean-output-tokens = 20", "rpm = 6000").await else { return };
    let arguments = [modules.to_str().unwrap(), stage.url.as_str(), KEY, "60"];
    let told = printed(std::process::Command::new("node"), "batches.mjs", &arguments).await;
    let asked: Vec<String> = (0..60).map(|number| format!("q-{number}")).collect();
    let chat = &told["chat"];
    assert_eq!((&chat["status"], &chat["ids"]), (&json!("completed"), &json!(asked)), "{told:#}");
    assert_eq!(chat["counts"], json!({"total": 61, "completed": 60, "failed": 1}));
    assert_eq!(chat["errors"], json!(["unknown"]));
    assert_eq!(json!([chat["words"], chat["listed"], chat["deleted"]]), json!([true, true, true]));
    let messages = &told["messages"];
    let all: Vec<&str> = asked.iter().map(String::as_str).chain(["unknown"]).collect();
    assert_eq!((&messages["ids"], &messages["words"]), (&json!(all), &json!(true)), "{told:#}");
    assert_eq!(
        messages["counts"],
        json!({"processing": 0, "succeeded": 60, "errored": 1, "canceled": 0, "expired": 0})
    );
    assert_eq!(messages["deleted"], "message_batch_deleted");
    stage.stop().await;
}

/// Answers that arrived before the cancellation are in the output file, and no further line is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_cancelled_keeps_what_is_done() {
    let simulator = "mean-output-tokens = 20\n[latency]\nbase = \"300ms\"";
    let Some(stage) = stage(simulator, "rpm = 600\nburst = \"1s\"").await else { return };
    let batch = stage.begin(300, "24h").await;
    let id = &batch["id"];
    let at_work = stage.until(id, |batch| done(batch) >= 20).await;
    assert_eq!(at_work["status"], "in_progress", "{at_work}");
    let file = format!("{}/v1/files/{}", stage.url, batch["input_file_id"].as_str().unwrap());
    let (status, refused) = stage.send(stage.http.delete(file)).await;
    assert_eq!(status, 409, "it is read: {refused}");
    let cancel = format!("{}/v1/batches/{}/cancel", stage.url, id.as_str().unwrap());
    let (status, cancelling) = stage.send(stage.http.post(cancel)).await;
    assert_eq!((status, &cancelling["status"]), (200, &json!("cancelling")), "{cancelling}");
    let cancelled = stage.until(id, has_ended).await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert!(cancelled["cancelling_at"].is_u64() && cancelled["cancelled_at"].is_u64());
    let output = stage.lines(&cancelled["output_file_id"]).await;
    assert_eq!(names(&output).len() as u64, done(&cancelled));
    assert!((20..300).contains(&output.len()), "{}", output.len());
    let errors = stage.lines(&cancelled["error_file_id"]).await;
    assert!(errors.iter().all(|line| line["error"]["code"] == "batch_cancelled"), "{}", errors[0]);
    assert_eq!(names(&output).union(&names(&errors)).count(), 300);
    let calls = stage.fleet.simulator.account().models["m"].requests;
    assert!(calls < 300, "{calls}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_batch_puts_out_goes_when_its_author_wants() {
    let Some(mut stage) = stage("mean-output-tokens = 20", "rpm = 6000").await else { return };
    let (_, file) = stage.send(stage.upload(5)).await;
    let batches = format!("{}/v1/batches", stage.url);
    let create = async |stage: &Stage, policy: Value| {
        let body = json!({"input_file_id": file["id"], "endpoint": "/v1/chat/completions",
            "completion_window": "24h", "output_expires_after": policy});
        stage.send(stage.http.post(&batches).json(&body)).await
    };
    for (policy, param) in [
        (json!({"anchor": "now", "seconds": 3_600}), "output_expires_after.anchor"),
        (json!({"anchor": "created_at", "seconds": 2_592_001}), "output_expires_after.seconds"),
        (json!({"anchor": "created_at", "seconds": 3_600, "x": 1}), "output_expires_after.x"),
        (json!(3_600), "output_expires_after"),
    ] {
        let (status, said) = create(&stage, policy).await;
        assert_eq!((status, &said["error"]["param"]), (400, &json!(param)), "{said}");
    }
    let (_, batch) = create(&stage, json!({"anchor": "created_at", "seconds": 3_600})).await;
    let ended = stage.until(&batch["id"], has_ended).await;
    assert_eq!(stage.lines(&ended["output_file_id"]).await.len(), 5, "{ended}");
    let output = format!("/v1/files/{}", ended["output_file_id"].as_str().unwrap());
    let told = stage.get(&output).await;
    let lasts = told["expires_at"].as_u64().unwrap() - ended["completed_at"].as_u64().unwrap();
    assert_eq!(lasts, 3_600, "{told}");

    let id = batch["id"].as_str().unwrap();
    let known = stage.fleet.path(&format!("files/web/batches/{id}.ended.json"));
    let mut as_ended: Value = serde_json::from_slice(&std::fs::read(&known).unwrap()).unwrap();
    as_ended["output_expires_at"] = 1.into();
    std::fs::write(&known, as_ended.to_string()).unwrap();
    let gone = stage.http.get(format!("{}{output}/content", stage.url));
    assert_eq!(stage.send(gone).await.0, 404);
    stage.doors.pop().unwrap().kill().await.unwrap();
    // A description that cannot be read does not keep other batches' files.
    let damaged = format!("files/web/batches/{}{}.json", &id[..id.len() - 20], "f".repeat(20));
    std::fs::write(stage.fleet.path(&damaged), "{").unwrap();
    // A door sweeps at its start.
    stage.door().await;
    let results = stage.fleet.path(&format!("files/web/batches/{id}/results.jsonl"));
    let began = Instant::now();
    while results.exists() {
        assert!(began.elapsed() < Duration::from_secs(10), "it is removed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(stage.get(&format!("/v1/batches/{id}")).await["status"], "completed");
    stage.stop().await;
}

/// In the order of the route; a line that cannot be translated stays with the models of its own dialect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lines_of_a_batch_go_across_dialects_as_calls_do() {
    let route = "rpm = 6000\n[routes.both]\nmodels = [\"anthropic:claude-sonnet-5\", \"openai:m\"]\nunchecked = true";
    let Some(stage) = stage("mean-output-tokens = 20", route).await else { return };
    let line = |name: &str, more: Value| {
        let mut body = chat(&format!("Question {name}"), json!({"max_tokens": 50}));
        body["model"] = "both".into();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})
    };
    let file = format!("{}\n{}\n", line("across", json!({})), line("own", json!({"seed": 7})));
    let post = stage.http.post(format!("{}/v1/files", stage.url));
    let upload = post.header("content-type", "multipart/form-data; boundary=tests");
    let upload = upload.body(form(&[("purpose", "batch")], &file));
    let batch = stage.begin_of(upload, "24h").await;
    let ended = stage.until(&batch["id"], has_ended).await;
    let output = stage.lines(&ended["output_file_id"]).await;
    assert_eq!(names(&output).len(), 2, "{ended}");
    for line in &output {
        assert_eq!(line["response"]["body"]["object"], "chat.completion", "{line}");
    }
    let account = stage.fleet.simulator.account();
    let asked = |model: &str| account.models[model].requests;
    assert_eq!((asked("claude-sonnet-5"), asked("m")), (1, 1));
    stage.stop().await;
}

/// Whatever ends the batch's workflow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_workflow_is_ended_by_hand_has_failed() {
    let Some(stage) = stage("mean-output-tokens = 20", "rpm = 60\nburst = \"1s\"").await else {
        return;
    };
    let batch = stage.begin(50, "24h").await;
    let id = batch["id"].as_str().unwrap();
    stage.until(&batch["id"], |batch| batch["status"] == "in_progress").await;
    let ended = stage.fleet.cli(&["workflow", "terminate", "--workflow-id", id]).await;
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let failed = stage.until(&batch["id"], has_ended).await;
    assert_eq!(
        (&failed["status"], &failed["errors"]["data"][0]["code"]),
        (&json!("failed"), &json!("batch_failed")),
        "{failed}"
    );
    stage.stop().await;
}

/// The file is planned in pages; a batch that is cancelled during that lists each request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_cancelled_while_it_is_planned_names_each_request() {
    let Some(stage) = stage("mean-output-tokens = 20", "rpm = 6000").await else { return };
    let text = "the tide and the ship ".repeat(500);
    let request = |number| {
        let messages = json!([{"role": "user", "content": format!("{number} {text}")}]);
        let params =
            json!({"model": "anthropic:claude-sonnet-5", "max_tokens": 20, "messages": messages});
        json!({"custom_id": format!("q-{number}"), "params": params})
    };
    let count = 2_400;
    let body = json!({"requests": (0..count).map(request).collect::<Vec<_>>()});
    let batches = format!("{}/v1/messages/batches", stage.url);
    let (status, batch) = stage.send(stage.http.post(&batches).json(&body)).await;
    assert_eq!(status, 200, "{batch}");
    let id = batch["id"].as_str().unwrap();
    let path = format!("/v1/messages/batches/{id}");
    stage.fleet.until(id, |told| told["documents"] != 0).await;
    let (status, told) = stage.send(stage.http.post(format!("{}{path}/cancel", stage.url))).await;
    assert_eq!((status, &told["processing_status"]), (200, &json!("canceling")), "{told}");
    stage.fleet.result(id).await.unwrap_err();
    let ended = stage.get(&path).await;
    assert_eq!(ended["processing_status"], "ended", "{ended}");
    let counts = &ended["request_counts"];
    let of = |name: &str| counts[name].as_u64().unwrap();
    assert!(of("canceled") > 0, "{counts}");
    assert_eq!(of("succeeded") + of("canceled"), count, "{counts}");
    let results = stage.http.get(format!("{}{path}/results", stage.url)).bearer_auth(KEY);
    let results = results.send().await.unwrap().text().await.unwrap();
    let results: Vec<Value> =
        results.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(names(&results).len() as u64, count);
    stage.stop().await;
}

/// Lines that were not asked within the window are reported as expired, and the others have results.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_expires_with_what_is_done() {
    let Some(stage) = stage("mean-output-tokens = 20", "rpm = 120\nburst = \"1s\"").await else {
        return;
    };
    stage.fleet.working().await;
    let batch = stage.begin(100, "30s").await;
    let expired = stage.until(&batch["id"], has_ended).await;
    assert_eq!(expired["status"], "expired", "{expired}");
    let output = names(&stage.lines(&expired["output_file_id"]).await);
    let errors = stage.lines(&expired["error_file_id"]).await;
    assert!(errors.iter().all(|line| line["error"]["code"] == "batch_expired"), "{}", errors[0]);
    assert!(output.len() >= 5 && errors.len() >= 5, "{} and {}", output.len(), errors.len());
    assert_eq!(output.union(&names(&errors)).count(), 100);
    stage.stop().await;
}

/// A worker dies in the middle, and the replica during another upload: each line is answered once, and
/// the upload leaves nothing behind. `TIDEGATE_LINES` sets the number of lines; the limit grows with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_and_a_killed_door_lose_no_line() {
    let count = number("TIDEGATE_LINES", 240);
    let lines = usize::try_from(count).unwrap();
    let simulator = "mean-output-tokens = 20\n[latency]\nbase = \"500ms\"";
    let limits = format!("rpm = {}\nburst = \"1s\"", count * 15 / 4);
    let Some(mut stage) = stage(simulator, &limits).await else { return };
    let batch = stage.begin(lines, "24h").await;
    stage.until(&batch["id"], |batch| done(batch) >= u64::from(count / 4)).await;
    stage.fleet.kill_worker(0).await;
    let begun = futures::stream::iter([Ok::<_, std::io::Error>("--tests\r\n")]);
    let never = futures::StreamExt::chain(begun, futures::stream::pending());
    let uploading = stage.upload(0).body(reqwest::Body::wrap_stream(never));
    let upload = tokio::spawn(uploading.bearer_auth(KEY).send());
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.doors[0].kill().await.unwrap();
    assert!(upload.await.unwrap().is_err());
    stage.door().await;
    stage.fleet.worker_with(&[("DOOR_KEY", KEY), ("OTHER_KEY", OTHER_KEY)]);
    let ended = stage.until(&batch["id"], has_ended).await;
    assert_eq!((&ended["status"], done(&ended)), (&json!("completed"), count.into()), "{ended}");
    let output = stage.lines(&ended["output_file_id"]).await;
    assert_eq!((output.len(), names(&output).len()), (lines, lines));
    assert_eq!(stage.get("/v1/files").await["data"].as_array().unwrap().len(), 2);
    let account = &stage.fleet.simulator.account().models["m"];
    println!("{} calls, {} of them cut off", account.requests, account.abandoned);
    // Of the answers of its last second, a killed worker may not have written any.
    let unwritten = u64::from(count / 16);
    assert!(account.requests <= u64::from(count) + account.abandoned + unwritten, "{account:?}");
    stage.stop().await;
}

/// The maximum memory that a process ever had, in MB.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
        / 1_024
}

/// Compared with as many documents of equal length. `TIDEGATE_LINES` sets their number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_go_as_fast_as_documents() {
    let count = number("TIDEGATE_LINES", 200);
    let lines = usize::try_from(count).unwrap();
    let Some(stage) = stage("mean-output-tokens = 20", "rpm = 1_000_000").await else { return };
    stage.fleet.documents(lines, 950);
    // Warms up, and waits for the worker.
    let warm = stage.begin(20, "24h").await;
    stage.until(&warm["id"], has_ended).await;
    let mut documents = stage.fleet.batch("out");
    documents["model"] = json!("openai:m");
    documents["max_output_tokens"] = json!(50);
    let began = Instant::now();
    stage.fleet.start("documents", &documents).await;
    stage.fleet.result("documents").await.unwrap();
    let of_documents = f64::from(count) / began.elapsed().as_secs_f64();

    let text = "the tide and the ship ".repeat(180);
    let upload = stage.upload_of(lines, &text);
    let began = Instant::now();
    let batch = stage.begin_of(upload, "24h").await;
    let created = Instant::now();
    stage.until(&batch["id"], |batch| done(batch) > 0 || has_ended(batch)).await;
    let first = created.elapsed().as_secs_f64();
    let ended = stage.until(&batch["id"], has_ended).await;
    assert_eq!(done(&ended), u64::from(count), "{ended}");
    let of_lines = f64::from(count) / created.elapsed().as_secs_f64();
    let report = format!("files/web/batches/{}/report.json", batch["id"].as_str().unwrap());
    let report = std::fs::read(stage.fleet.path(&report)).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let actions = report["temporal_actions"].as_f64().unwrap() / f64::from(count);
    println!(
        "{count} lines of {} bytes: {of_lines:.1} a second, documents {of_documents:.1}, ratio {:.2}; \
         uploaded in {:.1} s; first answered {first:.2} s after create; {actions:.3} actions a line; \
         memory: worker {} MB, replica {} MB",
        text.len(),
        of_lines / of_documents,
        (created - began).as_secs_f64(),
        stage.fleet.peak_memory(),
        peak_memory(stage.doors[0].id().unwrap()),
    );
    if full_scale() {
        assert!(of_lines >= 0.85 * of_documents && first <= 3.0 && actions <= 1.05);
    }
    stage.stop().await;
}
