//! A vendor whose exact bytes the test writes, and which records its requests.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use futures::StreamExt as _;
use parking_lot::Mutex;

/// A received request: path, headers, body.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) path: String,
    pub(super) headers: axum::http::HeaderMap,
    pub(super) body: String,
}

/// An answer: a status, a content type, and pieces that are sent one after the other.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) pieces: Vec<String>,
    pub(super) between: Duration,
}

type Answers = dyn Fn(&Sent) -> Reply + Send + Sync;

struct Shared {
    sent: Mutex<Vec<Sent>>,
    answers: Box<Answers>,
}

pub(super) struct RawVendor {
    shared: Arc<Shared>,
    pub(super) url: String,
}

impl Reply {
    pub(super) fn json(status: u16, body: &str) -> Self {
        let pieces = vec![body.to_owned()];
        Self { status, kind: "application/json", pieces, between: Duration::ZERO }
    }

    pub(super) fn events(events: &[&str]) -> Self {
        let pieces = events.iter().map(|event| format!("{event}\n\n")).collect();
        Self { status: 200, kind: "text/event-stream", pieces, between: Duration::from_millis(20) }
    }
}

impl RawVendor {
    pub(super) async fn start(answers: impl Fn(&Sent) -> Reply + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { sent: Mutex::default(), answers: Box::new(answers) });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { shared, url }
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.shared.sent.lock().clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let sent = Sent { path: parts.uri.path().to_owned(), headers: parts.headers, body };
    shared.sent.lock().push(sent.clone());
    let Reply { status, kind, pieces, between } = (shared.answers)(&sent);
    let pieces = futures::stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(between).await;
        Ok::<_, std::io::Error>(Bytes::from(piece))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", kind.parse().unwrap());
    response
}
