//! The page's server and its routes.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use axum::{
    Json, Router,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{
        Html, IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use futures::{Stream, stream};
use tokio::{net::TcpListener, task::AbortHandle};
use tracing::{info, warn};

use super::{access::Access, actions::Action, html};
use crate::{cli::snapshot::SnapshotCache, config::Config, listener};

/// The interval of updates of an open page.
const EVERY: Duration = Duration::from_secs(2);

/// Policy that loads only this page's own files, and lets no site frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// A served page. Dropping it ends the server.
#[derive(Debug)]
pub(in crate::cli) struct Page {
    bound: SocketAddr,
    token: Option<String>,
    server: AbortHandle,
}

impl Page {
    pub(in crate::cli) fn url(&self) -> String {
        format!("http://{}/", self.bound)
    }

    /// The page's URL with its token, for the single user of an embedded stack. Browsers do not
    /// send the part after `#`; the page's script reads the token from it.
    pub(in crate::cli) fn url_with_token(&self) -> String {
        let token = self.token.as_ref().map_or_else(String::new, |token| format!("#token={token}"));
        format!("{}{token}", self.url())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Shared {
    cache: SnapshotCache,
    access: Access,
}

/// Serves the page, if it is configured.
///
/// # Errors
/// It is configured and cannot be served there.
pub(in crate::cli) async fn start(config: &Config) -> anyhow::Result<Option<Page>> {
    let Some(listen) = config.dashboard.address() else { return Ok(None) };
    let page = serve(config, listen, config.dashboard.token()?).await?;
    info!("the page is at {}", page.url());
    Ok(Some(page))
}

/// Serves the page of an embedded stack, with a token of its own if none is configured. If it
/// cannot be served, the stack runs without it.
pub(in crate::cli) async fn start_for_one(config: &Config) -> Option<Page> {
    let listen = config.dashboard.address().unwrap_or("127.0.0.1:0");
    let token = || format!("{:016x}{:016x}", rand::random::<u64>(), rand::random::<u64>());
    let page = async {
        let token = config.dashboard.token()?.unwrap_or_else(token);
        serve(config, listen, Some(token)).await
    };
    page.await.inspect_err(|error| warn!("no page: {error:#}")).ok()
}

async fn serve(config: &Config, listen: &str, token: Option<String>) -> anyhow::Result<Page> {
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("the page cannot be served at {listen}; free the port, or set dashboard.listen to another address or \"off\"")
    })?;
    let bound = listener.local_addr()?;
    if token.is_none() && !bound.ip().is_loopback() {
        bail!(
            "dashboard.listen is {listen}, which other machines reach; name the variable of a token in dashboard.token-env"
        );
    }
    let access = Access { bound, token: token.clone() };
    let shared = Arc::new(Shared { cache: SnapshotCache::new(config)?, access });
    let file = |kind, text| get(move || async move { ([(header::CONTENT_TYPE, kind)], text) });
    let router = Router::new()
        .route("/", get(whole_page))
        .route("/snapshot.json", get(json))
        .route("/events", get(events))
        .route("/actions", post(act))
        .route("/page.css", file("text/css", include_str!("page.css")))
        .route("/page.js", file("text/javascript", include_str!("page.js")))
        .route("/favicon.svg", file("image/svg+xml", include_str!("favicon.svg")))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared);
    let server = tokio::spawn(listener::serve(listener, router));
    Ok(Page { bound, token, server: server.abort_handle() })
}

/// Refuses foreign hosts and readers without the token, and sets the security headers.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !listener::is_own_host(shared.access.bound, headers) {
        return (StatusCode::FORBIDDEN, "this page is not served under that name").into_response();
    }
    if !shared.access.may_read(headers) {
        let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"tidegate: the token as password\"")];
        return (StatusCode::UNAUTHORIZED, ask, "the token is missing or wrong").into_response();
    }
    let mut response = next.run(request).await;
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn whole_page(State(shared): State<Arc<Shared>>) -> Html<String> {
    let seen = shared.cache.get().await;
    let longest_pause = shared.cache.config.gate.pause_ttl;
    Html(html::page(&seen, shared.access.token.is_some(), longest_pause).into_string())
}

async fn json(State(shared): State<Arc<Shared>>) -> Response {
    Json(&*shared.cache.get().await).into_response()
}

/// Streams the changing part of the page.
async fn events(
    State(shared): State<Arc<Shared>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let parts = stream::unfold((shared, true), |(shared, first)| async move {
        if !first {
            tokio::time::sleep(EVERY).await;
        }
        let seen = shared.cache.get().await;
        let part = html::fleet(&seen, shared.access.token.is_some()).into_string();
        Some((Ok(Event::default().data(part)), (shared, false)))
    });
    Sse::new(parts).keep_alive(KeepAlive::default())
}

async fn act(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Json(action): Json<Action>,
) -> Response {
    if !shared.access.may_act(&headers) {
        warn!(%from, %action, "an action was refused: no token, or a wrong one");
        let why = match &shared.access.token {
            Some(_) => "the token is missing or wrong",
            None => {
                "there are no actions here: name the variable of a token in dashboard.token-env"
            }
        };
        return (StatusCode::UNAUTHORIZED, why).into_response();
    }
    let done = action.carry_out(&shared.cache).await;
    shared.cache.forget().await;
    match done {
        Ok(()) => {
            info!(%from, %action, "done from the page");
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => {
            warn!(%from, %action, "an action from the page failed: {error:#}");
            (StatusCode::BAD_REQUEST, format!("{error:#}")).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Config {
        let mut config = Config::default();
        config.redis.url = "redis://127.0.0.1:1".to_owned();
        config.temporal.address = Some("http://127.0.0.1:1".to_owned());
        config.dashboard.listen = "127.0.0.1:0".to_owned();
        config
    }

    /// Without Redis and Temporal, the page still answers, reports both, and refuses strangers.
    #[tokio::test]
    async fn the_page_says_what_is_away_and_keeps_strangers_out() {
        let page = start_for_one(&away()).await.unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = http.get(page.url()).send().await.unwrap();
        let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        let text = answer.text().await.unwrap();
        assert!(text.contains("Redis is away") && text.contains("/page.js"), "{text}");
        assert!(text.contains("cannot connect to Temporal at"), "{text}");
        let seen = http.get(page.url() + "snapshot.json").send().await.unwrap();
        let seen: serde_json::Value = seen.json().await.unwrap();
        assert!(seen["verdict"].as_str().unwrap().contains("Redis is away"), "{seen}");

        let foreign = http.get(page.url()).header(header::HOST, "evil.example");
        assert_eq!(foreign.send().await.unwrap().status(), StatusCode::FORBIDDEN);
        let act = async |token: Option<&str>| {
            let body = serde_json::json!({"action": "pause", "model": "a:b", "why": "a test"});
            let mut request = http.post(page.url() + "actions").json(&body);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let answer = request.send().await.unwrap();
            (answer.status(), answer.text().await.unwrap())
        };
        for stranger in [None, Some("ebb")] {
            assert_eq!(act(stranger).await.0, StatusCode::UNAUTHORIZED, "{stranger:?}");
        }
        let token = page.url_with_token();
        let (status, why) = act(token.split_once("#token=").map(|(_, token)| token)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(why.contains("no limits are configured for a:b"), "{why}");
    }

    #[tokio::test]
    async fn off_is_off_and_other_machines_are_let_in_with_a_token_alone() {
        assert!(start(&Config::default()).await.unwrap().is_none());
        let mut config = away();
        config.dashboard.listen = "0.0.0.0:0".to_owned();
        let refused = start(&config).await.unwrap_err().to_string();
        assert!(refused.contains("dashboard.token-env"), "{refused}");
        config.dashboard.token_env = Some("TIDEGATE_TEST_THAT_IS_NOT_SET".to_owned());
        let refused = start(&config).await.unwrap_err().to_string();
        assert!(refused.contains("TIDEGATE_TEST_THAT_IS_NOT_SET"), "{refused}");
    }
}
