//! One trace of a batch, as an OpenTelemetry collector receives it: from the command line through
//! workflow and activity to the provider's call and the written answer.

use std::{collections::BTreeMap, path::Path, process::Stdio, sync::Arc, time::Duration};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, any_value::Value},
    trace::v1::{Span, status::StatusCode as Code},
};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::{net::TcpListener, process::Command, task::JoinHandle};

use crate::fleet::{Fleet, MODEL, fleet, free_address};

/// This word is in every document and in the question, and must be in no span.
const WORD: &str = "Zwischenahn";

/// A collector that keeps all received spans by service.
struct Collector {
    url: String,
    got: Arc<Mutex<ReceivedSpans>>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct ReceivedSpans {
    spans: Vec<(String, Span)>,
    bytes: Vec<u8>,
}

async fn take(State(got): State<Arc<Mutex<ReceivedSpans>>>, body: Bytes) -> StatusCode {
    let request = ExportTraceServiceRequest::decode(body.clone()).unwrap();
    let mut got = got.lock();
    got.bytes.extend_from_slice(&body);
    for resource in request.resource_spans {
        let attributes = resource.resource.map(|it| it.attributes).unwrap_or_default();
        let service = attributes.into_iter().find(|it| it.key == "service.name");
        let service = service.and_then(|it| text(it.value.as_ref())).unwrap_or_default();
        for scope in resource.scope_spans {
            got.spans.extend(scope.spans.into_iter().map(|span| (service.clone(), span)));
        }
    }
    StatusCode::OK
}

impl Collector {
    async fn start() -> Self {
        let got = Arc::<Mutex<ReceivedSpans>>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&got));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, got, server }
    }

    /// The variables that make a process send its spans here, and soon.
    fn variables(&self) -> [(&str, &str); 2] {
        [("OTEL_EXPORTER_OTLP_ENDPOINT", &self.url), ("OTEL_BSP_SCHEDULE_DELAY", "100")]
    }

    /// Waits for spans of all these names, and returns all spans.
    async fn until(&self, names: &[&str]) -> Vec<(String, Span)> {
        let mut missing = Vec::new();
        for _ in 0..300 {
            let spans = self.got.lock().spans.clone();
            missing = names
                .iter()
                .filter(|name| !spans.iter().any(|(_, span)| span.name == **name))
                .collect();
            if missing.is_empty() {
                return spans;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let names: Vec<_> = self.got.lock().spans.iter().map(|(_, it)| it.name.clone()).collect();
        panic!("no span {missing:?} among {names:?}");
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn text(value: Option<&AnyValue>) -> Option<String> {
    match value?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::ArrayValue(list) => Some(format!(
            "[{}]",
            list.values.iter().filter_map(|it| text(Some(it))).collect::<Vec<_>>().join(", ")
        )),
        other => Some(format!("{other:?}")),
    }
}

fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let one = |it: &opentelemetry_proto::tonic::common::v1::KeyValue| text(it.value.as_ref());
    span.attributes.iter().filter_map(|it| Some((it.key.as_str(), one(it)?))).collect()
}

/// The names of a span and its ancestors, up to the root.
fn way(spans: &[(String, Span)], span: &Span) -> Vec<String> {
    let (mut way, mut at) = (vec![span.name.clone()], span);
    while !at.parent_span_id.is_empty() {
        let parent = spans.iter().find(|(_, it)| it.span_id == at.parent_span_id);
        let Some((_, parent)) = parent else {
            way.push("a span that never came".to_owned());
            break;
        };
        assert_eq!(parent.trace_id, span.trace_id, "{} is of another trace", parent.name);
        way.push(parent.name.clone());
        at = parent;
    }
    way
}

/// `tidegate run`, to its end.
async fn run(fleet: &Fleet, id: &str, variables: &[(&str, &str)]) {
    let ran = Command::new(Path::new(env!("CARGO_BIN_EXE_tidegate")))
        .args(["run", "--config"])
        .arg(fleet.path("tidegate.toml"))
        .arg(fleet.path("in"))
        .args(["--workflow-id", id, "--model", MODEL, "--max-output-tokens", "256"])
        .args(["--on-cut", "keep", "--instructions", &format!("What lies at {WORD}?")])
        .arg("--output")
        .arg(fleet.path("out"))
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_trace_from_the_command_line_to_each_call_and_its_answer() {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 3_000\n");
    let fault = "[[faults]]\nkind = \"overloaded\"\ntimes = 1\n";
    let Some(mut fleet) = fleet(fault, &settings).await else { return };
    for number in 0..3 {
        let text = format!("# {WORD} {number}\n\nThe harbour of {WORD} lies at {number}.\n");
        std::fs::write(fleet.path(&format!("in/report-{number}.md")), text).unwrap();
    }
    let collector = Collector::start().await;
    let variables = collector.variables();
    fleet.worker_with(&[&variables[..], &[("RUST_LOG", "info,tidegate_providers=debug")]].concat());
    run(&fleet, "traced", &[&variables[..], &[("OTEL_SERVICE_NAME", "desk")]].concat()).await;
    let spans = collector
        .until(&["tidegate run", "RunWorkflow:ProcessDocuments", "StartActivity:tidegate.finish"])
        .await;

    let chats: Vec<_> =
        spans.iter().filter(|(_, span)| span.name == "chat claude-sonnet-5").collect();
    assert_eq!(chats.len(), 4, "three documents, one of them twice");
    for (service, chat) in &chats {
        assert_eq!(
            way(&spans, chat),
            [
                "chat claude-sonnet-5",
                "attempt",
                "RunActivity:tidegate.process_document",
                "StartActivity:tidegate.process_document",
                "RunWorkflow:ProcessDocuments",
                "StartWorkflow:ProcessDocuments",
                "tidegate run",
            ]
        );
        assert_eq!(service, "tidegate");
    }
    let root = spans.iter().find(|(_, span)| span.name == "tidegate run").unwrap();
    assert_eq!(root.0, "desk");
    for name in ["admission", "result"] {
        let span = spans.iter().find(|(_, span)| span.name == name).unwrap();
        assert_eq!(way(&spans, &span.1)[1], "attempt");
    }

    let (failed, answered): (Vec<_>, Vec<_>) = chats
        .iter()
        .map(|(_, chat)| chat)
        .partition(|chat| chat.status.as_ref().is_some_and(|it| it.code() == Code::Error));
    assert_eq!((failed.len(), answered.len()), (1, 3));
    assert_eq!(attributes(failed[0])["error.type"], "overloaded");
    assert_eq!(attributes(failed[0])["http.response.status_code"], "529");
    let said = attributes(answered[0]);
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "anthropic"),
        ("gen_ai.request.model", "claude-sonnet-5"),
        ("gen_ai.request.max_tokens", "256"),
    ] {
        assert_eq!(said[name], value, "{said:?}");
    }
    for name in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert!(said[name].parse::<u64>().unwrap() > 0, "{said:?}");
    }
    assert!(
        ["[end_turn]", "[max_tokens]"].contains(&said["gen_ai.response.finish_reasons"].as_str()),
        "{said:?}"
    );

    // The log line of a call names its document and its trace.
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    let trace: String = root.1.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let is_call = |line: &&str| line.contains("provider replied") && line.contains("report-");
    let line = log.lines().find(is_call).unwrap();
    assert!(line.contains(&trace), "{trace} is not in {line}");

    // Following the batch has asked for its progress all the time.
    assert!(!spans.iter().any(|(_, span)| span.name.contains("Query")), "questions are left out");
    let sent = String::from_utf8_lossy(&collector.got.lock().bytes).into_owned();
    assert!(sent.contains("report-0.md"), "the check can see what is there");
    for secret in [WORD, "sk-simulated-secret"] {
        assert!(!sent.contains(secret), "{secret} was sent");
    }
    let answer = fleet.results("out").into_values().next().unwrap()["answer"].to_string();
    assert!(!sent.contains(answer.trim_matches('"')), "an answer was sent");
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_at_the_http_door_is_in_the_trace_of_its_client() {
    let address = free_address();
    let settings = format!(
        "[serve]\nlisten = \"{address}\"\nopen-on-loopback = true\n[models.\"{MODEL}\"]\nrpm = 3_000\n"
    );
    let Some(fleet) = fleet("", &settings).await else { return };
    let collector = Collector::start().await;
    let mut door = Command::new(Path::new(env!("CARGO_BIN_EXE_tidegate")))
        .args(["serve", "--config"])
        .arg(fleet.path("tidegate.toml"))
        .envs(collector.variables())
        .env("SIMULATED_KEY", "sk-simulated-secret")
        .env("TIDEGATE_WORKER__METRICS_LISTEN", "off")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let body = serde_json::json!({"model": MODEL, "max_tokens": 20, "messages": [{"role": "user", "content": WORD}]});
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let call = || {
        let post = http.post(format!("http://{address}/v1/messages")).json(&body);
        post.header("traceparent", format!("00-{trace}-{parent}-01")).send()
    };
    let mut answer = call().await;
    for _ in 0..600 {
        if answer.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        answer = call().await;
    }
    assert_eq!(answer.unwrap().status(), 200);

    let spans = collector.until(&["POST /v1/messages", "chat claude-sonnet-5"]).await;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let named = |name| spans.iter().map(|(_, span)| span).find(|span| span.name == name).unwrap();
    let served = named("POST /v1/messages");
    assert_eq!(hex(&served.trace_id), trace);
    assert_eq!(hex(&served.parent_span_id), parent);
    assert_eq!(attributes(served)["http.response.status_code"], "200");
    for inner in ["admission", "chat claude-sonnet-5"] {
        assert_eq!(named(inner).parent_span_id, served.span_id, "{inner}");
    }
    let said = attributes(named("chat claude-sonnet-5"));
    for name in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert!(said[name].parse::<u64>().unwrap() > 0, "{said:?}");
    }
    assert!(!String::from_utf8_lossy(&collector.got.lock().bytes).contains(WORD));
    door.kill().await.unwrap();
    fleet.stop().await;
}

/// Work goes on, and one line of the log reports the loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_costs_a_line_of_the_log() {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 3_000\n");
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(6, 100);
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let away = format!("http://someone:sesame@{}", taken.local_addr().unwrap());
    drop(taken);
    fleet.worker_with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &away), ("OTEL_BSP_SCHEDULE_DELAY", "50")]);
    fleet.start("dark", &fleet.batch("out")).await;
    assert_eq!(fleet.result("dark").await.unwrap()["succeeded"], 6);
    let lost = || {
        let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
        assert!(!log.contains("sesame"), "a password was logged");
        log.matches("the collector does not accept spans").count()
    };
    for _ in 0..100 {
        if lost() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fleet.start("dark-too", &fleet.batch("out-too")).await;
    assert_eq!(fleet.result("dark-too").await.unwrap()["succeeded"], 6);
    assert_eq!(lost(), 1);
    fleet.stop().await;
}
