//! Logs to stderr, and the metrics page: our metrics, then the Temporal SDK's. `/livez` and `/readyz` are
//! served beside it, for supervisors of this process.

use std::{
    fmt::{Debug, Formatter, Result as Shown},
    io::IsTerminal,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::IntoResponse as _,
    routing::get,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use temporalio_common::telemetry::{
    PrometheusExporterOptions, TelemetryOptions, metrics::CoreMeter, metrics::TemporalMeter,
    start_prometheus_metric_exporter, telemetry_init,
};
use tokio::{net::TcpListener, task::AbortHandle};
use tracing::{info, warn};
use tracing_subscriber::{
    EnvFilter, Layer as _, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::listener;

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A worker's default filter: its own steps, and warnings of the libraries below. The client's retries
/// are many; the worker itself says when Temporal does not answer.
pub const WORKER: &str = "info,temporalio_sdk_core=warn,temporalio_client=warn,temporalio_client::retry=error,temporalio_common=warn,h2=warn,hyper=warn";

/// A filter for lines about batches alone: the libraries below warn of each retried attempt.
pub const OURS: &str = "off,tidegate=info,tidegate_activities=info,tidegate_quota=info,tidegate_workflows=info,tidegate_providers=info";

/// Bounds of histograms: providers answer in seconds, quota waits take up to minutes.
const SECONDS: [f64; 14] =
    [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0];

/// Starts logging to stderr, filtered by `RUST_LOG`, otherwise by `usual`. Also starts traces if
/// OpenTelemetry's variables name a collector; that needs a Tokio runtime now and [`end`] at the end. A
/// second call changes nothing.
pub fn log(format: LogFormat, usual: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let lines =
        fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    #[cfg(feature = "traces")]
    {
        let (spans, fault) = match crate::traces::layer() {
            Ok(spans) => (spans, None),
            Err(fault) => (None, Some(fault)),
        };
        let _ = tracing_subscriber::registry().with(lines).with(spans).try_init();
        if let Some(fault) = fault {
            warn!("no traces: {fault}");
        }
    }
    #[cfg(not(feature = "traces"))]
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

/// Sends the remaining traces.
pub async fn end() {
    #[cfg(feature = "traces")]
    crate::traces::end().await;
}

/// The state that `/readyz` reports.
#[derive(Debug, Default)]
struct Readiness {
    takes_work: AtomicBool,
    is_cut_off: AtomicBool,
}

/// The metrics of this process. Dropping it ends the page.
pub struct Telemetry {
    meter: Option<Arc<dyn CoreMeter>>,
    bound: Option<SocketAddr>,
    readiness: Arc<Readiness>,
    tasks: Vec<AbortHandle>,
}

impl Debug for Telemetry {
    fn fmt(&self, f: &mut Formatter<'_>) -> Shown {
        f.debug_struct("Telemetry").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Serves `/metrics`, `/livez` and `/readyz` at `listen`, if given. If the page cannot be served (a
/// taken port, a second call in one process), it warns and the process works without it.
pub async fn start(listen: Option<&str>) -> Telemetry {
    let mut telemetry =
        Telemetry { meter: None, bound: None, readiness: Arc::default(), tasks: Vec::new() };
    let Some(listen) = listen else { return telemetry };
    if let Err(error) = telemetry.serve(listen).await {
        warn!(
            "no metrics page: {error:#}; free the port, or set worker.metrics-listen to another address or \"off\""
        );
    }
    telemetry
}

impl Telemetry {
    /// The page's address, if it is served.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }

    /// Sets whether this worker takes work, for `/readyz`.
    pub fn set_ready(&self, ready: bool) {
        self.readiness.takes_work.store(ready, Ordering::Relaxed);
    }

    /// Sets whether Temporal is unreachable, so that the worker cannot take work.
    pub fn set_cut_off(&self, cut_off: bool) {
        self.readiness.is_cut_off.store(cut_off, Ordering::Relaxed);
    }

    /// The meter for the SDK's runtime, which puts its workers' metrics on the page.
    pub fn meter(&self) -> Option<Arc<dyn CoreMeter>> {
        self.meter.clone()
    }

    /// The meter for the connection, which counts its calls.
    pub fn client_meter(&self) -> Option<TemporalMeter> {
        telemetry_init(TelemetryOptions::builder().maybe_metrics(self.meter.clone()).build())
            .ok()?
            .get_temporal_metric_meter()
    }

    async fn serve(&mut self, listen: &str) -> anyhow::Result<()> {
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("the address {listen} cannot be used (worker.metrics-listen)")
        })?;
        let ours = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
            .install_recorder()
            .context("another metrics recorder is installed")?;
        tidegate_quota::metrics::describe();
        tidegate_activities::metrics::describe();
        tidegate_calls::metrics::describe();
        crate::metrics::describe();
        let exporter = PrometheusExporterOptions::builder()
            .socket_addr(SocketAddr::from(([127, 0, 0, 1], 0)))
            .counters_total_suffix(true)
            .unit_suffix(true)
            .use_seconds_for_durations(true)
            .build();
        let sdk = start_prometheus_metric_exporter(exporter)
            .context("the Temporal SDK's metrics could not be started")?;
        let bound = listener.local_addr()?;
        self.meter = Some(sdk.meter);
        self.bound = Some(bound);
        self.tasks.push(sdk.abort_handle);
        self.tasks.push(tokio::spawn(upkeep(ours.clone())).abort_handle());
        let page = Page {
            ours,
            theirs: format!("http://{}/metrics", sdk.bound_addr),
            http: reqwest::Client::builder().no_proxy().build()?,
        };
        let page = Arc::new(page);
        let answer = move || {
            let page = Arc::clone(&page);
            async move {
                (
                    [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
                    page.text().await,
                )
            }
        };
        let router = Router::new()
            .route("/metrics", get(answer))
            .route("/livez", get(async || "alive\n"))
            .route("/readyz", get(readiness))
            .with_state(Arc::clone(&self.readiness))
            .layer(middleware::from_fn(move |request: Request, next: Next| async move {
                match listener::is_own_host(bound, request.headers()) {
                    true => next.run(request).await,
                    false => {
                        (StatusCode::FORBIDDEN, "not served under this host name; use the address of worker.metrics-listen\n").into_response()
                    }
                }
            }));
        let server = tokio::spawn(async move {
            listener::serve(listener, router).await;
        });
        self.tasks.push(server.abort_handle());
        info!("metrics at http://{bound}/metrics");
        Ok(())
    }
}

/// 200 while this worker takes work; 503 before that, while Temporal is unreachable, and while it stops.
async fn readiness(State(readiness): State<Arc<Readiness>>) -> (StatusCode, &'static str) {
    if !readiness.takes_work.load(Ordering::Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "starting or stopping\n")
    } else if readiness.is_cut_off.load(Ordering::Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "no Temporal server answers\n")
    } else {
        (StatusCode::OK, "ready\n")
    }
}

struct Page {
    ours: PrometheusHandle,
    theirs: String,
    http: reqwest::Client,
}

impl Page {
    async fn text(&self) -> String {
        tidegate_calls::metrics::refresh();
        let ours = self.ours.render();
        let theirs = async {
            self.http.get(&self.theirs).timeout(Duration::from_secs(2)).send().await?.text().await
        };
        match theirs.await {
            Ok(theirs) => format!("{}\n{theirs}", ours.trim_end()),
            Err(error) => {
                warn!(%error, "the Temporal SDK's metrics are left out");
                ours
            }
        }
    }
}

/// Runs the recorder's upkeep, which keeps the histograms small.
async fn upkeep(handle: PrometheusHandle) {
    let mut beat = tokio::time::interval(Duration::from_secs(5));
    loop {
        beat.tick().await;
        handle.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn off_serves_nothing_and_a_taken_port_is_no_fault() {
        assert_eq!(start(None).await.bound(), None);
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert_eq!(start(Some(&taken.local_addr().unwrap().to_string())).await.bound(), None);
    }

    /// One test for the whole page: a process has one metrics recorder.
    #[tokio::test]
    async fn the_page_has_our_metrics_and_the_sdks_and_readiness() {
        let telemetry = start(Some("127.0.0.1:0")).await;
        let meter = telemetry.client_meter().unwrap();
        let counter = meter.counter(
            temporalio_common::telemetry::metrics::MetricParameters::builder()
                .name("test_calls")
                .build(),
        );
        counter.add(1, meter.get_default_attributes());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let get = async |page: &str| {
            let url = format!("http://{}/{page}", telemetry.bound().unwrap());
            http.get(url).send().await.unwrap()
        };
        let text = get("metrics").await.text().await.unwrap();
        assert!(text.contains("tidegate_redis_degraded 0"), "{text}");
        assert!(text.contains("temporal_test_calls"), "{text}");
        for ready in [false, true, false] {
            telemetry.set_ready(ready);
            assert_eq!(get("livez").await.status(), 200);
            assert_eq!(get("readyz").await.status(), if ready { 200 } else { 503 });
        }
        telemetry.set_ready(true);
        for cut_off in [true, false] {
            telemetry.set_cut_off(cut_off);
            assert_eq!(get("readyz").await.status(), if cut_off { 503 } else { 200 });
        }
    }
}
