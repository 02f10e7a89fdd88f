//! The simulator as a server, or inside a test.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{ConnectInfo, DefaultBodyLimit, RawPathParams, State as Shared},
    http::{HeaderMap, StatusCode, Uri},
    response::Response,
    routing::{delete, get, post},
};
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::JoinHandle,
};

use crate::{
    account::Account,
    anthropic::Anthropic,
    azure::{self, Azure, AzureEmbeddings, AzureV1},
    batch,
    bedrock::Bedrock,
    config::Config,
    gemini::Gemini,
    models,
    openai::{Embeddings, OpenAi},
    provider,
    responses::Responses,
    state::State,
    vertex::Claude,
    wire::{Listener, Wire},
};

/// The largest body, as with the vendors.
const MAX_BODY_BYTES: usize = 32 << 20;

/// The largest batch, as with anthropic, and the largest file, as with openai and with room for the
/// form around it.
const MAX_BATCH: usize = 256 << 20;
const MAX_FILE: usize = 201 << 20;

/// How long a shutdown waits for responses that are being written.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until `shutdown` is ready. Calls at work are then answered at once, and hanging ones cut
/// off.
///
/// `POST /v1/messages`, `/v1/chat/completions`, `/v1/responses`, `/v1/embeddings`,
/// `/v1beta/models/{model}:generateContent` (and `:batchEmbedContents`) and `/model/{model}/converse` are the providers, so
/// that `http://host:port` is the base URL for anthropic, gemini and bedrock, and
/// `http://host:port/v1` the one for openai. `/v1/messages/batches` are anthropic's batches,
/// `/v1/files` and `/v1/batches` openai's, `:batchGenerateContent`, `/v1beta/batches` and files gemini's; their length is [`crate::Batches`]' to say. `GET` of
/// `/v1/models`, `/v1beta/models` and `/foundation-models` lists the configured models.
/// `GET /account` is the [`Account`] (`?series` for all of it), `POST /account/reset` begins it
/// anew, `GET /healthz` says that the simulator is there.
///
/// # Errors
/// The configuration is not valid, or the listener fails.
pub async fn serve(
    listener: TcpListener,
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (state, stop) = checked(config)?;
    run(listener, state, stop, shutdown).await
}

/// The state of a configuration that is valid, and what ends its waits.
fn checked(config: Config) -> io::Result<(Arc<State>, watch::Sender<bool>)> {
    config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let (stop, stopped) = watch::channel(false);
    Ok((Arc::new(State::new(config, stopped)), stop))
}

async fn run(
    listener: TcpListener,
    state: Arc<State>,
    stop: watch::Sender<bool>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    // The sender outlives the server: without it every sleep would end.
    let stop = Arc::new(stop);
    let graceful = {
        let stop = Arc::clone(&stop);
        async move {
            shutdown.await;
            stop.send_replace(true);
        }
    };
    let service = router(state).into_make_service_with_connect_info::<Wire>();
    let serving = axum::serve(Listener(listener), service).with_graceful_shutdown(graceful);
    let mut stopping = stop.subscribe();
    let late = async {
        // It cannot fail while the sender is there.
        let _ = stopping.wait_for(|stop| *stop).await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        outcome = serving.into_future() => outcome,
        () = late => Ok(()),
    }
}

fn router(state: Arc<State>) -> Router {
    Router::new()
        .route("/v1/messages", post(provider::call::<Anthropic>))
        .route("/v1/chat/completions", post(provider::call::<OpenAi>))
        .route("/v1/embeddings", post(provider::call::<Embeddings>))
        .merge(azure())
        .merge(vertex())
        .route("/v1/responses", post(provider::call::<Responses>))
        .route("/v1/models", get(models::of_v1))
        .route("/v1beta/models", get(models::of_gemini))
        .route("/foundation-models", get(models::of_bedrock))
        .route("/v1beta/models/{method}", post(gemini_method))
        // The version that the newest SDK asks for.
        .route("/v1/models/{method}", post(provider::call::<Gemini>))
        .route("/model/{model}/converse", post(provider::call::<Bedrock>))
        .merge(batches())
        .route("/account", get(account))
        .route("/account/reset", post(reset))
        .route("/healthz", get(|| async { "ok" }))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state)
}

fn azure() -> Router<Arc<State>> {
    Router::new()
        .route("/openai/deployments/{deployment}/chat/completions", post(provider::call::<Azure>))
        .route(
            "/openai/deployments/{deployment}/embeddings",
            post(provider::call::<AzureEmbeddings>),
        )
        .route("/openai/models", get(models::of_v1))
        .layer(axum::middleware::from_fn(azure::versioned))
        .route("/openai/v1/chat/completions", post(provider::call::<AzureV1>))
}

fn vertex() -> Router<Arc<State>> {
    let at = "/v1/projects/{project}/locations/{location}/publishers";
    Router::new()
        .route(&format!("{at}/google/models/{{method}}"), post(provider::call::<Gemini>))
        .route(&format!("{at}/anthropic/models/{{method}}"), post(provider::call::<Claude>))
}

fn batches() -> Router<Arc<State>> {
    Router::new()
        .route(
            "/v1/messages/batches",
            post(batch::anthropic::create)
                .get(batch::anthropic::list)
                .layer(DefaultBodyLimit::max(MAX_BATCH)),
        )
        .route(
            "/upload/v1beta/files",
            post(batch::gemini::upload).layer(DefaultBodyLimit::max(MAX_FILE)),
        )
        .route("/v1beta/files/{id}", delete(batch::gemini::delete).get(batch::gemini::download))
        .route("/download/v1beta/files/{id}", get(batch::gemini::download))
        .route("/v1beta/batches", get(batch::gemini::list))
        .route("/v1beta/batches/{id}", get(batch::gemini::get).post(batch::gemini::cancel))
        .route("/v1/messages/batches/{id}", get(batch::anthropic::get))
        .route("/v1/messages/batches/{id}/results", get(batch::anthropic::results))
        .route("/v1/messages/batches/{id}/cancel", post(batch::anthropic::cancel))
        .route("/v1/files", post(batch::openai::upload).layer(DefaultBodyLimit::max(MAX_FILE)))
        .route("/v1/files/{id}/content", get(batch::openai::content))
        .route("/v1/files/{id}", delete(batch::openai::delete))
        .route("/v1/batches", post(batch::openai::create).get(batch::openai::list))
        .route("/v1/batches/{id}", get(batch::openai::get))
        .route("/v1/batches/{id}/cancel", post(batch::openai::cancel))
}

/// A method of one of Gemini's models: a batch, or what is answered at once.
async fn gemini_method(
    shared: Shared<Arc<State>>,
    wire: ConnectInfo<Wire>,
    named: RawPathParams,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let last = named.iter().last().map(|(_, named)| named.to_owned());
    match last.as_deref().and_then(|last| last.strip_suffix(":batchGenerateContent")) {
        Some(model) => batch::gemini::create(&shared.0, &headers, model, &body),
        None => provider::call::<Gemini>(shared, wire, named, headers, body).await,
    }
}

async fn account(Shared(state): Shared<Arc<State>>, uri: Uri) -> Json<Account> {
    let mut account = state.account();
    let asks = |part: &str| part.split('=').next() == Some("series");
    if !uri.query().is_some_and(|query| query.split('&').any(asks)) {
        account.models.values_mut().for_each(|model| model.series = None);
    }
    Json(account)
}

async fn reset(Shared(state): Shared<Arc<State>>) -> StatusCode {
    state.ledger().reset();
    StatusCode::NO_CONTENT
}

/// A simulator inside a test or another program. Dropping it stops it too.
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    state: Arc<State>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Simulator {
    /// Starts one on a free port of the loopback interface.
    ///
    /// # Errors
    /// The configuration is not valid, or there is no free port.
    pub async fn start(config: Config) -> io::Result<Self> {
        let (state, stopping) = checked(config)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (stop, shutdown) = oneshot::channel();
        let shutdown = async move {
            let _ = shutdown.await;
        };
        let task = tokio::spawn(run(listener, Arc::clone(&state), stopping, shutdown));
        Ok(Self { address, state, stop, task })
    }

    /// `http://127.0.0.1:PORT`: the base URL for anthropic; openai's ends in `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The account so far.
    pub fn account(&self) -> Account {
        self.state.account()
    }

    /// Time since the start, the clock of the account.
    pub fn uptime(&self) -> Duration {
        self.state.now()
    }

    /// Begins the account anew; limits stay as used as they are.
    pub fn reset_account(&self) {
        self.state.ledger().reset();
    }

    /// Stops it, and returns when its port is free.
    pub async fn shutdown(self) {
        let _ = self.stop.send(());
        match self.task.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the simulator failed"),
            Err(error) => tracing::warn!(%error, "the simulator broke off"),
        }
    }
}
