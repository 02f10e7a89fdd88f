//! One HTTP exchange: exactly one request is sent in every case.
//!
//! Three layers below this file would send a second request, and each is switched off:
//!
//! * reqwest replays HTTP/2 requests that a server refused: `retry::never`, and HTTP/1.1 only.
//! * reqwest follows redirects: `redirect::Policy::none`.
//! * hyper-util replays a request whose pooled connection turns out to be dead, and reqwest has no
//!   switch for that. So there is no pool: every call has its own connection. The price is one TCP
//!   and one TLS handshake per call (two round trips, with TLS sessions resumed), a percent or two
//!   of calls that take seconds. It also avoids calls that fail with an unknown outcome because an
//!   idle connection died.

use std::{
    borrow::Cow,
    error::Error as _,
    fmt,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use reqwest::{multipart, redirect};
use serde_json::Value;
use url::Url;

use crate::{
    endpoint,
    error::{Charged, Error, Kind},
    key::Key,
    large_replies,
    message::Redactor,
    settings::{Setup, SetupError},
    vendor::Vendor,
};

/// Longest answer of a model that is read; half a million tokens, more than any model writes, are some 3 MB.
pub(crate) const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Longest reply of another kind: the vectors of 2,048 texts, a line of a file of results, a caller's own
/// request.
pub(crate) const MAX_REPLY_BYTES: usize = 32 << 20;

/// Longest error body that is read.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// Time-out of a connection: a host that takes longer counts as away. The vendors' SDKs use 5 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const USER_AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// An endpoint, with the state that its calls share.
pub(crate) struct Exchange {
    http: reqwest::Client,
    endpoint: Url,
    headers: HeaderMap,
    vendor: Vendor,
    key: Key,
    /// Longest reply that is read, in bytes.
    longest: usize,
}

/// A response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// The reason why `body` is incomplete, if it is.
    pub(crate) cut: Option<Cut>,
}

/// The reason why a body is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Longer than the limit.
    TooLong,
    /// Other large replies took this process's memory for too long.
    NoRoom,
    /// The connection broke or time ran out; holds the reason.
    Broken(String),
}

impl Reply {
    /// Reads a response to its end, or up to `most` bytes. More than a small one is read when there is room
    /// for it.
    pub(crate) async fn read(mut response: reqwest::Response, most: usize) -> Self {
        if !response.status().is_success() {
            return Self::read_most(&mut response, MAX_ERROR_BYTES).await;
        }
        let mut reply = Self::read_most(&mut response, large_replies::SMALL).await;
        if reply.cut != Some(Cut::TooLong) {
            return reply;
        }
        let began = Instant::now();
        let share = large_replies::share().await;
        let has_waited = began.elapsed() > Duration::from_secs(1);
        if share.is_some() {
            reply.read_on(&mut response, most).await;
        }
        // The call's time also ran while nothing was read.
        if share.is_none() || has_waited && matches!(reply.cut, Some(Cut::Broken(_))) {
            reply.cut = Some(Cut::NoRoom);
        }
        reply
    }

    /// Reads a response to its end, or up to `most` bytes.
    pub(crate) async fn read_most(response: &mut reqwest::Response, most: usize) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut reply = Self { status, headers, body: Vec::new(), cut: None };
        reply.read_on(response, most).await;
        reply
    }

    /// Reads further, to the end or up to `most` bytes in all.
    async fn read_on(&mut self, response: &mut reqwest::Response, most: usize) {
        self.cut = None;
        while self.cut.is_none() {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    self.body.extend_from_slice(&chunk);
                    self.cut = (self.body.len() > most).then_some(Cut::TooLong);
                }
                Ok(None) => break,
                Err(error) if error.is_timeout() => {
                    self.cut = Some(Cut::Broken("time ran out (request-timeout)".to_owned()));
                }
                Err(error) => self.cut = Some(Cut::Broken(reason(&error))),
            }
        }
    }

    /// A reply inside another one.
    pub(crate) fn from_json(status: u16, body: &Value) -> Self {
        Self { status, headers: HeaderMap::new(), body: body.to_string().into_bytes(), cut: None }
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The whole body as JSON, or the reason why there is none.
    pub(crate) fn json(&self) -> Result<Value, &'static str> {
        if self.cut.is_some() {
            return Err("it is not whole");
        }
        crate::json::lenient(&self.utf8())
    }

    /// The body in UTF-8. JSON is UTF-8 whatever its type declares (RFC 8259, 8.1), and only a body that
    /// is not is read in the declared charset.
    pub(crate) fn utf8(&self) -> Cow<'_, [u8]> {
        let declared = || {
            let kind = self.headers.get(header::CONTENT_TYPE)?.to_str().ok()?.to_ascii_lowercase();
            let (_, charset) = kind.split_once("charset=")?;
            let name = charset.split(';').next()?.trim_matches(['"', ' ']);
            encoding_rs::Encoding::for_label(name.as_bytes())
        };
        match std::str::from_utf8(&self.body).err().and_then(|_| declared()) {
            Some(charset) => Cow::Owned(charset.decode(&self.body).0.into_owned().into_bytes()),
            None => Cow::Borrowed(&self.body),
        }
    }
}

impl Exchange {
    /// Creates the exchange. `headers` are sent with each request, in addition to the key.
    pub(crate) fn new(
        setup: &Setup<'_>,
        path: &[&str],
        headers: HeaderMap,
    ) -> Result<Self, SetupError> {
        let endpoint = setup.settings.endpoint(setup.name, path)?;
        let (http, vendor) = (client(setup, &endpoint)?, setup.settings.vendor);
        let mut headers = headers;
        // The client sends the configured headers unless a request has its own.
        setup.settings.headers.keys().for_each(|name| drop(headers.remove(name)));
        let (key, longest) = (setup.key.clone(), MAX_ANSWER_BYTES);
        Ok(Self { http, endpoint, headers, vendor, key, longest })
    }

    /// Another endpoint of the same provider.
    pub(crate) fn at(&self, setup: &Setup<'_>, path: &[&str]) -> Result<Self, SetupError> {
        let endpoint = setup.settings.endpoint(setup.name, path)?;
        let (http, headers) = (self.http.clone(), self.headers.clone());
        let (key, longest) = (self.key.clone(), self.longest);
        Ok(Self { http, endpoint, headers, vendor: self.vendor, key, longest })
    }

    /// Reads vectors.
    pub(crate) fn of_vectors(self) -> Self {
        Self { longest: MAX_REPLY_BYTES, ..self }
    }

    /// Adds this query to each request.
    pub(crate) fn with_query(mut self, query: &[(&str, &str)]) -> Self {
        if !query.is_empty() {
            self.endpoint.query_pairs_mut().extend_pairs(query);
        }
        self
    }

    /// Posts with further headers, and to another path if one is named. The host stays the same: no
    /// other may get the key.
    pub(crate) async fn post_with(
        &self,
        place: Option<&Url>,
        headers: &[(&'static str, &str)],
        body: Vec<u8>,
    ) -> Result<Reply, Error> {
        let mut url = self.endpoint.clone();
        if let Some(place) = place {
            url.set_path(place.path());
            url.set_query(place.query());
        }
        let mut request = self.http.post(url).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.response(request).await?;
        Ok(self.reply(response).await)
    }

    /// Sends one request. Any response is a [`Reply`]; an [`Error`] means that none came.
    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<Reply, Error> {
        self.send(self.endpoint.clone(), body).await
    }

    /// Like [`Self::post`], with further path segments: for APIs with the model in the URL.
    pub(crate) async fn post_below(
        &self,
        segments: &[String],
        body: Vec<u8>,
    ) -> Result<Reply, Error> {
        self.send(self.below(segments), body).await
    }

    async fn send(&self, url: Url, body: Vec<u8>) -> Result<Reply, Error> {
        let json = HeaderValue::from_static("application/json");
        let response = self
            .response(self.http.post(url).header(header::CONTENT_TYPE, json).body(body))
            .await?;
        Ok(self.reply(response).await)
    }

    /// Sends a body to these path segments below the endpoint, with these headers, which override
    /// the client's own; returns the response before its body is read.
    pub(crate) async fn post_as_it_is(
        &self,
        below: &[&str],
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<reqwest::Response, Error> {
        let json = HeaderValue::from_static("application/json");
        let request = self.http.post(self.below(below));
        let request = request.header(header::CONTENT_TYPE, json).body(body);
        self.response_with(headers, request).await
    }

    /// Posts a form with a file.
    pub(crate) async fn upload(&self, form: multipart::Form) -> Result<Reply, Error> {
        let response = self.response(self.http.post(self.endpoint.clone()).multipart(form)).await?;
        Ok(self.reply(response).await)
    }

    /// Gets the resource at these path segments below the endpoint.
    pub(crate) async fn get(&self, below: &[&str], query: &[(&str, &str)]) -> Result<Reply, Error> {
        let mut url = self.below(below);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let response = self.response(self.http.get(url)).await?;
        Ok(self.reply(response).await)
    }

    /// Like [`Self::get`], read line by line; returns the reply if it is no success.
    pub(crate) async fn lines(&self, below: &[String]) -> Result<Result<Lines, Reply>, Error> {
        let response = self.response(self.http.get(self.below(below))).await?;
        if response.status().is_success() {
            Ok(Ok(Lines::new(response)))
        } else {
            Ok(Err(self.reply(response).await))
        }
    }

    /// Posts without a body to these path segments below the endpoint.
    pub(crate) async fn act(&self, below: &[String]) -> Result<Reply, Error> {
        let response = self.response(self.http.post(self.below(below))).await?;
        Ok(self.reply(response).await)
    }

    /// Deletes the resource at these path segments below the endpoint.
    pub(crate) async fn delete(&self, below: &[&str]) -> Result<Reply, Error> {
        let response = self.response(self.http.delete(self.below(below))).await?;
        Ok(self.reply(response).await)
    }

    fn below(&self, segments: &[impl AsRef<str>]) -> Url {
        let whole = self.endpoint.clone();
        segments.iter().fold(whole, |url, segment| endpoint::below(&url, segment.as_ref()))
    }

    async fn response(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Error> {
        self.response_with(&HeaderMap::new(), request).await
    }

    async fn response_with(
        &self,
        others: &HeaderMap,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, Error> {
        let mut headers = self.headers.clone();
        headers.extend(others.clone());
        self.vendor.add_key(&self.key, &mut headers);
        let request =
            request.headers(headers).header(header::CONNECTION, HeaderValue::from_static("close"));
        request.send().await.map_err(|error| self.fault(&error))
    }

    async fn reply(&self, response: reqwest::Response) -> Reply {
        let reply = Reply::read(response, self.longest).await;
        tracing::debug!(host = self.host(), status = reply.status, bytes = reply.body.len(), cut = ?reply.cut, "provider replied");
        reply
    }

    fn host(&self) -> &str {
        self.endpoint.host_str().unwrap_or_default()
    }

    fn fault(&self, error: &reqwest::Error) -> Error {
        no_reply(self.host(), &Fault::from_error(error), &Redactor::of_key(&self.key))
    }
}

/// Reads a body line by line that may exceed the memory.
#[derive(Debug)]
pub(crate) struct Lines {
    response: reqwest::Response,
    read: Vec<u8>,
    /// The first `searched` bytes hold no line break.
    searched: usize,
}

impl Lines {
    fn new(response: reqwest::Response) -> Self {
        Self { response, read: Vec::new(), searched: 0 }
    }

    /// The next line that is not empty; `None` after the last; the error is the reason why the rest
    /// cannot be read.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            let unsearched = self.read.get(self.searched..).unwrap_or_default();
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(self.searched + end + 1);
                self.searched = 0;
                let line = std::mem::replace(&mut self.read, rest);
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.read.len();
            if self.read.len() > MAX_REPLY_BYTES {
                return Err("a line is longer than any answer can be".to_owned());
            }
            match self.response.chunk().await.map_err(|error| reason(&error))? {
                Some(chunk) => self.read.extend_from_slice(&chunk),
                None => {
                    let last = std::mem::take(&mut self.read);
                    return Ok(Some(last).filter(|line| !line.trim_ascii().is_empty()));
                }
            }
        }
    }
}

/// The reason why no reply came.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct Fault {
    kind: Kind,
    charged: Charged,
    timed_out: bool,
    reason: String,
}

impl Fault {
    /// Converts an error. Nothing was sent before a connection was made; after that it is unknown.
    pub(crate) fn from_error(error: &reqwest::Error) -> Self {
        if let Some(reason) = unreachable(error) {
            let (kind, charged) = (Kind::Unreachable, Charged::No);
            return Self { kind, charged, timed_out: false, reason };
        }
        let (kind, charged) = match error {
            error if error.is_connect() => (Kind::Transient, Charged::No),
            error if error.is_builder() => (Kind::InvalidRequest, Charged::No),
            // hyper 1 tells it by its text alone. Another call would buy the same again.
            error if root_cause(error) == "message head is too large" => {
                (Kind::InvalidOutput, Charged::Unknown)
            }
            _ => (Kind::Timeout, Charged::Unknown),
        };
        // The connection has its own time-out.
        let timed_out = error.is_timeout() && kind == Kind::Timeout;
        let reason = match timed_out {
            true => "time ran out (request-timeout)".to_owned(),
            false => reason(error),
        };
        Self { kind, charged, timed_out, reason }
    }
}

/// The reason why no connection can be made as configured, and the remedy; `None` for passing
/// faults. The libraries report TLS and DNS faults only by their text (hyper-util 0.1, rustls
/// 0.23).
fn unreachable(error: &reqwest::Error) -> Option<String> {
    if !error.is_connect() || error.is_timeout() {
        return None;
    }
    let mut cause = error.source();
    while let Some(inner) = cause {
        let refused = inner
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
        let said = inner.to_string().to_ascii_lowercase();
        let says = |part| said.contains(part);
        let why = if refused {
            "it was refused: nothing listens at this address (is base-url right, and is the server up?)"
        } else if says("dns error") {
            "there is no host of this name (is base-url right?)"
        } else if says("certificate") {
            "its certificate is not trusted (is base-url right? is the authority that signed it known to this system?)"
        } else if says("corrupt message") || says("invalidcontenttype") {
            "it speaks no TLS there (should base-url begin with http://?)"
        } else {
            cause = inner.source();
            continue;
        };
        return Some(format!("{why}: {}", root_cause(error)));
    }
    None
}

/// A fault as the failure of a call to `host`.
pub(crate) fn no_reply(host: &str, fault: &Fault, redactor: &Redactor<'_>) -> Error {
    let Fault { kind, charged, timed_out, reason } = fault;
    let what = if *charged == Charged::No { "connection to" } else { "answer from" };
    tracing::debug!(host, kind = kind.label(), "no reply from provider");
    let message = redactor.clean(&format!("no {what} {host}: {reason}"));
    Error {
        kind: *kind,
        span: None,
        message,
        retry_after: None,
        charged: *charged,
        status: None,
        timed_out: *timed_out,
        observed: Box::default(),
    }
}

/// A client that sends each request once, over its own connection.
pub(crate) fn client(setup: &Setup<'_>, endpoint: &Url) -> Result<reqwest::Client, SetupError> {
    let settings = setup.settings;
    let mut builder = reqwest::Client::builder()
        .retry(reqwest::retry::never())
        .redirect(redirect::Policy::none())
        .http1_only()
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_TIMEOUT.min(settings.request_timeout))
        .timeout(settings.request_timeout)
        .user_agent(USER_AGENT)
        .default_headers(settings.headers.clone());
    if endpoint::is_loopback(endpoint) {
        builder = builder.no_proxy();
    }
    if endpoint.scheme() == "http" {
        // Without this the client could not be made on a bare system without certificates, and none
        // are needed here.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| SetupError::Client {
        provider: setup.name.to_owned(),
        reason: root_cause(&error),
    })
}

/// Shows the endpoint without its query, and no headers.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("endpoint", &endpoint::printable(&self.endpoint))
            .finish_non_exhaustive()
    }
}

fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() { "time ran out".to_owned() } else { root_cause(error) }
}

/// The innermost cause: the outer ones repeat the URL or say "error sending request".
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|cause| cause.source()) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the HTTP client failed".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::{large_replies::ReplyShare, testing};

    /// The lines of a server that sends these pieces.
    async fn lines(pieces: impl Iterator<Item = &'static [u8]> + Send + 'static) -> Lines {
        let head = &b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"[..];
        Lines::new(served(std::iter::once(head).chain(pieces)).await.unwrap())
    }

    /// The response of a server that sends these pieces.
    async fn served(
        pieces: impl Iterator<Item = &'static [u8]> + Send + 'static,
    ) -> reqwest::Result<reqwest::Response> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            // An answer before the request is an error of its own.
            assert!(client.read(&mut [0; 1_024]).await.unwrap() > 0);
            for piece in pieces {
                if client.write_all(piece).await.is_err() {
                    break;
                }
            }
            client.shutdown().await
        });
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        http.get(url).send().await
    }

    /// Reads a reply of this many pieces of a MiB each.
    async fn read(pieces: usize) -> Reply {
        const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        const PIECE: &[u8] = &[b'x'; 1 << 20];
        let pieces = std::iter::once(HEAD).chain(std::iter::repeat_n(PIECE, pieces));
        Reply::read(served(pieces).await.unwrap(), MAX_ANSWER_BYTES).await
    }

    #[tokio::test]
    async fn large_replies_wait_for_those_that_are_not_written_and_none_is_without_end() {
        let endless = read(usize::MAX).await;
        assert_eq!(endless.cut, Some(Cut::TooLong));
        assert!(endless.body.len() <= MAX_ANSWER_BYTES + (1 << 20), "{}", endless.body.len());

        let calls: Vec<_> = (0..4).map(|_| ReplyShare::default()).collect();
        for call in &calls {
            let reply = call.hold_for(read(2)).await;
            assert_eq!((reply.body.len(), reply.cut), (2 << 20, None));
        }
        let mut fifth = Box::pin(read(2));
        let some_time = Duration::from_millis(300);
        assert!(tokio::time::timeout(some_time, &mut fifth).await.is_err(), "there is no room");
        assert_eq!(read(1).await.cut, None, "a small one does not wait");
        drop(calls);
        assert_eq!(fifth.await.cut, None);
    }

    #[tokio::test]
    async fn a_head_without_end_is_not_bought_again() {
        const HEADER: &[u8] = b"x-name: value\r\n";
        let head = std::iter::once(&b"HTTP/1.1 200 OK\r\n"[..]);
        let error = served(head.chain(std::iter::repeat(HEADER))).await.unwrap_err();
        let Fault { kind, charged, .. } = Fault::from_error(&error);
        assert_eq!((kind, charged), (Kind::InvalidOutput, Charged::Unknown), "{error:?}");
    }

    #[tokio::test]
    async fn lines_are_read_one_by_one_and_none_without_end() {
        let mut lines_of_two = lines([&b"\n{\"a\""[..], b":1}\n\n \n", b"last"].into_iter()).await;
        let mut read = Vec::new();
        while let Some(line) = lines_of_two.next().await.unwrap() {
            read.push(line.trim_ascii_end().to_vec());
        }
        assert_eq!(read, [&b"{\"a\":1}"[..], b"last"]);

        const PIECE: &[u8] = &[b'x'; 1 << 20];
        let mut endless = lines(std::iter::repeat(PIECE)).await;
        let why = endless.next().await.unwrap_err();
        assert_eq!(why, "a line is longer than any answer can be");
        assert!(endless.read.len() <= MAX_REPLY_BYTES + PIECE.len(), "{}", endless.read.len());
    }

    #[test]
    fn a_body_that_is_not_utf_8_is_read_in_its_charset() {
        let latin = b"{\"a\":\"Gr\xf6\xdfe\"}";
        for (kind, body) in [
            ("application/json; charset=ISO-8859-1", &latin[..]),
            ("application/json; Charset=\"iso-8859-1\"; v=1", &latin[..]),
            ("application/json; charset=ISO-8859-1", "{\"a\":\"Größe\"}".as_bytes()),
            ("application/json", "{\"a\":\"Größe\"}".as_bytes()),
        ] {
            let reply = testing::reply(200, &[("content-type", kind)], body);
            assert_eq!(reply.json(), Ok(json!({"a": "Größe"})), "{kind}");
        }
        let undeclared = testing::reply(200, &[("content-type", "application/json")], &latin[..]);
        assert_eq!(undeclared.json(), Ok(json!({"a": "Gr\u{fffd}\u{fffd}e"})));
    }
}
