//! The door's routes.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use percent_encoding::percent_decode_str;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tidegate_providers::Operation;
use tokio_rustls::TlsAcceptor;
use tracing::Instrument as _;

use super::{
    access::{self, AccessLine},
    batches,
    body::read_whole_body,
    call,
    client_call::ClientCall,
    door::Door,
    keys::Holder,
    models,
    problem::{Form, Problem},
};
use crate::{config::serve, listener};

const MODELS: &str = "/v1/models";

/// TLS, if a certificate is configured.
pub(super) fn tls(serve: &serve::Serve) -> Result<Option<TlsAcceptor>> {
    let (Some(chain), Some(key)) = (&serve.tls_certificate_file, &serve.tls_key_file) else {
        return Ok(None);
    };
    let read = |file: &std::path::Path| format!("reading {}", file.display());
    let certificates = CertificateDer::pem_file_iter(chain).with_context(|| read(chain))?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().with_context(|| read(chain))?;
    let private = PrivateKeyDer::from_pem_file(key).with_context(|| read(key))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .context("serve.tls-certificate-file and serve.tls-key-file")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

pub(super) fn router(door: &Arc<Door>) -> Router {
    // Each path has its own limit.
    let unbounded = DefaultBodyLimit::disable();
    Router::new().fallback(answer).layer(unbounded).with_state(Arc::clone(door))
}

async fn answer(State(door): State<Arc<Door>>, request: Request) -> Response {
    let path = request.uri().path().trim_end_matches('/').to_owned();
    let (path, headers) = (path.as_str(), request.headers().clone());
    // The server leaves out the body of an answer to HEAD.
    let method = match request.method() == Method::HEAD {
        true => Method::GET,
        false => request.method().clone(),
    };
    let form = Form::from_request(path, &headers);
    if !is_own(&door, &headers) {
        let message = format!(
            "on loopback the door accepts only its own address as host, and no pages of other sites; a proxy must send host: {}",
            door.bound
        );
        return Problem::new(StatusCode::FORBIDDEN, message).response(form);
    }
    match path {
        "/healthz" => return "alive\n".into_response(),
        "/readyz" => return ready(&door),
        _ => {}
    }
    let Some(holder) = door.keys.holder(&headers) else {
        let (problem, line) = (Problem::no_key(), AccessLine::new(known_path(&method, path), ""));
        line.record_answer(problem.status, None);
        return problem.response(form);
    };
    if let Some(route) = batches::Endpoint::from_request(&method, path) {
        return batches::answer(&door, &holder, route, request).await;
    }
    if let Some(name) = model_in_path(path).filter(|_| method == Method::GET) {
        let name = name.map(|name| percent_decode_str(name).decode_utf8_lossy());
        let answer = models::answer(&door, &holder, form, name.as_deref());
        return answer.unwrap_or_else(|problem| problem.response(form));
    }
    match Operation::at(path).filter(|_| method == Method::POST) {
        Some(operation) => {
            let (span, body) = (access::span(operation.path(), &headers), request.into_body());
            Box::pin(answer_call(&door, &holder, operation, headers, body).instrument(span)).await
        }
        None => refuse_path(request.method(), path, form),
    }
}

/// The model's name in a path of models, if there is one; `None` for another path.
fn model_in_path(path: &str) -> Option<Option<&str>> {
    match path.strip_prefix(MODELS)? {
        "" => Some(None),
        rest => Some(Some(rest.strip_prefix('/')?)),
    }
}

/// The path as log and metrics name it; all paths that the door does not have are one.
fn known_path(method: &Method, path: &str) -> &'static str {
    let of_batches = batches::Endpoint::from_request(method, path).map(|endpoint| endpoint.path());
    let of_models = || model_in_path(path).map(|_| MODELS);
    of_batches.or_else(|| Operation::at(path).map(Operation::path)).or_else(of_models).unwrap_or("")
}

/// The methods that a path takes.
fn methods_of(path: &str) -> Vec<&'static str> {
    let takes = |method: &Method| {
        batches::Endpoint::from_request(method, path).is_some()
            || (*method == Method::GET && model_in_path(path).is_some())
            || (*method == Method::POST && Operation::at(path).is_some())
    };
    let methods = [(Method::GET, "GET, HEAD"), (Method::POST, "POST"), (Method::DELETE, "DELETE")];
    methods.iter().filter(|(method, _)| takes(method)).map(|(_, name)| *name).collect()
}

/// The answer to a path or a method that the door does not have.
fn refuse_path(method: &Method, path: &str, form: Form) -> Response {
    let methods = methods_of(path).join(", ");
    if methods.is_empty() {
        let message = format!("there is no {path} here; a provider's own address may have it");
        return Problem::new(StatusCode::NOT_FOUND, message).response(form);
    }
    let message = format!("{path} does not take {method}; use {methods}");
    let mut response = Problem::new(StatusCode::METHOD_NOT_ALLOWED, message).response(form);
    if let Ok(methods) = HeaderValue::from_str(&methods) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

/// Whether the request comes to the door's own address, and not from another site's page through a
/// browser.
fn is_own(door: &Door, headers: &HeaderMap) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let own_origin = origin.is_none_or(|origin| {
        let host = origin.split_once("://").map_or("", |(_, host)| host);
        let host = host.parse().map(|host| HeaderMap::from_iter([(header::HOST, host)]));
        host.is_ok_and(|host| listener::is_own_host(door.bound, &host))
    });
    own_origin && listener::is_own_host(door.bound, headers)
}

fn ready(door: &Door) -> Response {
    if door.services.guard.stopping.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    "ready\n".into_response()
}

async fn answer_call(
    door: &Arc<Door>,
    holder: &Arc<Holder>,
    operation: Operation,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let form = Form::from_request(operation.path(), &headers);
    let line = AccessLine::new(operation.path(), &holder.name);
    let read = async {
        let most = usize::try_from(*door.config.serve.max_body).unwrap_or(usize::MAX);
        let body = read_whole_body(body, most, "shorten it, or raise serve.max-body").await?;
        ClientCall::read(door, Arc::clone(holder), operation, headers, body)
    };
    let result = match read.await {
        Ok(call) => call::answer(door, &call, &line).await,
        Err(problem) => Err(problem),
    };
    let retry_after = result.as_ref().err().and_then(Problem::retry_after);
    let response = result.unwrap_or_else(|problem| problem.response(form));
    line.record_answer(response.status(), retry_after);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_models_ends_at_its_boundary() {
        for (path, name) in [
            ("/v1/models", Some(None)),
            ("/v1/models/openai:m", Some(Some("openai:m"))),
            ("/v1/models/openai:a/b", Some(Some("openai:a/b"))),
            ("/v1/modelsx", None),
            ("/v1/models-old/m", None),
            ("/v1", None),
        ] {
            assert_eq!(model_in_path(path), name, "{path}");
        }
    }

    #[test]
    fn a_wrong_method_is_told_which_ones_the_path_takes() {
        for (method, path, status, allow) in [
            (Method::PUT, "/v1/models", 405, Some("GET, HEAD")),
            (Method::DELETE, "/v1/models/openai:m", 405, Some("GET, HEAD")),
            (Method::GET, "/v1/chat/completions", 405, Some("POST")),
            (Method::PUT, "/v1/files", 405, Some("GET, HEAD, POST")),
            (Method::PATCH, "/v1/files/file-1", 405, Some("GET, HEAD, DELETE")),
            (Method::GET, "/v1/modelsx", 404, None),
            (Method::POST, "/v1/images/generations", 404, None),
        ] {
            let response = refuse_path(&method, path, Form::OpenAi);
            let allowed = response.headers().get(header::ALLOW).map(|it| it.to_str().unwrap());
            assert_eq!((response.status().as_u16(), allowed), (status, allow), "{method} {path}");
        }
    }
}
