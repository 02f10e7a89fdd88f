//! An HTTP server for people and probes, with few connections and a time limit for headers: a client must
//! not exhaust the file descriptors that calls need.

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    extract::ConnectInfo,
    http::{HeaderMap, header},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::debug;

/// Open connections of a page; others wait until one ends.
const MAX_CONNECTIONS: usize = 64;

/// Time limit for a request's header, also for the next one on an open connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Delay after a failed accept, for instance for lack of file descriptors.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// This machine's own names.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The limits of a server.
pub(crate) struct Bounds {
    /// Open connections; others wait until one ends.
    pub(crate) connections: usize,
    /// If set, connections use only TLS.
    pub(crate) tls: Option<TlsAcceptor>,
    /// When cancelled, no further connection is accepted, and each ends after its current answer.
    pub(crate) stop: CancellationToken,
}

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router) {
    let stop = CancellationToken::new();
    serve_within(listener, router, Bounds { connections: MAX_CONNECTIONS, tls: None, stop }).await;
}

/// Serves until it is told to stop and the current answers have ended.
pub(crate) async fn serve_within(listener: TcpListener, router: Router, bounds: Bounds) {
    let Bounds { connections, tls, stop } = bounds;
    let places = Arc::new(Semaphore::new(connections));
    let open = TaskTracker::new();
    loop {
        // The place is taken first: a connection that finds none waits in the kernel.
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            accepted = accepted => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                debug!(%error, "a connection cannot be accepted");
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        // The events of a stream are small, and clients wait for each.
        let _ = stream.set_nodelay(true);
        let router = router.clone().layer(Extension(ConnectInfo(from)));
        let (tls, stop) = (tls.clone(), stop.clone());
        open.spawn(async move {
            match tls {
                None => serve_connection(stream, router, stop).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) =
                        tokio::time::timeout(HEADER_TIMEOUT, tls.accept(stream)).await
                    {
                        serve_connection(stream, router, stop).await;
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Serves one connection; a client that is gone or too slow gets no error.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    stop: CancellationToken,
) {
    // A server of HTTP/2 too would wait without a limit for the bytes that say which one it is.
    let mut server = Builder::new(TokioExecutor::new()).http1_only();
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = &mut connection => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Whether the host header is acceptable. On loopback, a name that is not this machine's own comes from
/// another site's page, through a browser.
pub(crate) fn is_own_host(bound: SocketAddr, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(port).map_or(host, |(name, _)| name);
    !bound.ip().is_loopback() || OWN.contains(&name)
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    async fn get_page(at: SocketAddr) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn half_sent_requests_do_not_block_others_for_long() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(async || "here"));
        let server = tokio::spawn(serve(listener, router));
        assert!(get_page(at).await.ends_with("here"));
        let mut half = Vec::new();
        let starts: [&[u8]; 3] = [b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n", b""];
        for start in starts.into_iter().cycle().take(MAX_CONNECTIONS) {
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream.write_all(start).await.unwrap();
            half.push(stream);
        }
        // The server closes the half-sent requests first.
        let answer = tokio::time::timeout(4 * HEADER_TIMEOUT, get_page(at)).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        server.abort();
    }

    #[tokio::test]
    async fn a_full_server_that_stops_listens_no_more() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (asked, answer) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (told, waits) = (Arc::clone(&asked), Arc::clone(&answer));
        let handler = move || async move {
            told.add_permits(1);
            drop(waits.acquire().await);
            "here"
        };
        let router = Router::new().route("/", get(handler));
        let stop = CancellationToken::new();
        let bounds = Bounds { connections: 1, tls: None, stop: stop.clone() };
        let server = tokio::spawn(serve_within(listener, router, bounds));
        let page = tokio::spawn(get_page(at));
        drop(asked.acquire().await.unwrap());
        stop.cancel();
        let refused = async {
            while TcpStream::connect(at).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(HEADER_TIMEOUT, refused).await.unwrap();
        answer.add_permits(1);
        assert!(page.await.unwrap().ends_with("here"), "the answer under way is ended");
        server.await.unwrap();
    }

    #[test]
    fn loopback_has_names_of_its_own() {
        let host = |bound: &str, name: &str| {
            let headers = HeaderMap::from_iter([(header::HOST, name.parse().unwrap())]);
            is_own_host(bound.parse().unwrap(), &headers)
        };
        let own = ["localhost:8080", "127.0.0.1:1", "[::1]:80", "[::1]", "localhost"];
        assert_eq!(own.map(|name| host("127.0.0.1:80", name)), [true; 5]);
        let others = ["evil.example", "localhost.evil.example:80", ""];
        assert_eq!(others.map(|name| host("127.0.0.1:80", name)), [false; 3]);
        assert!(host("10.0.0.1:80", "fleet.example"));
    }
}
