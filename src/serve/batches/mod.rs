//! Files and batches: `/v1/files`, `/v1/batches`, `/v1/messages/batches`.
//!
//! A batch is a workflow on the engine of documents: each line of its file is a document, and its results
//! have the vendor's form. The door stores the request, starts and stops the workflow, and shows its
//! status.
//!
//! * `route`: the paths
//! * `key_folder`: where a key's files and batches are stored; `id`: their ids; `list_query`: lists by cursors
//! * `file`: descriptions of files; `upload`: receives them; `line_summary`: counts their lines;
//!   `expiry`: the time for which they are kept
//! * `batch`: the request for a batch, and its start; `batch_status`: its status and its end
//! * `openai`, `messages`: batches in the form of each dialect; `requests`: requests that come in one body
//! * `sweep`: removes files and batches whose time has passed

mod batch;
mod batch_status;
mod expiry;
mod file;
mod id;
mod key_folder;
mod line_summary;
mod list_query;
mod messages;
mod openai;
mod requests;
mod route;
mod sweep;
mod upload;

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::Value;

use self::{batch_status::Batch, id::Kind, key_folder::KeyFolder, list_query::ListQuery};
pub(super) use self::{route::Endpoint, sweep::sweep};
use super::{
    access::AccessLine,
    door::Door,
    keys::Holder,
    problem::{Form, Problem},
};

/// The number of batches in a list if the client states none, and the maximum of each dialect.
const DEFAULT_LIMIT: usize = 20;
const OPENAI_LIMIT: usize = 100;
const ANTHROPIC_LIMIT: usize = 1_000;

/// Answers a request for one of these paths.
pub(super) async fn answer(
    door: &Arc<Door>,
    holder: &Arc<Holder>,
    route: Endpoint,
    request: Request,
) -> Response {
    let line = AccessLine::new(route.path(), &holder.name);
    let form = Form::from_request(route.path(), request.headers());
    let answered = Box::pin(answer_endpoint(door, holder, &route, request)).await;
    let retry_after = answered.as_ref().err().and_then(Problem::retry_after);
    let response = answered.unwrap_or_else(|problem| problem.response(form));
    line.record_answer(response.status(), retry_after);
    response
}

async fn answer_endpoint(
    door: &Arc<Door>,
    holder: &Arc<Holder>,
    route: &Endpoint,
    request: Request,
) -> Result<Response, Problem> {
    let files = door.files.as_ref().ok_or_else(|| {
        let what = "this door keeps no files and no batches: serve.files is not set";
        Problem::new(StatusCode::NOT_FOUND, what)
    })?;
    let place = KeyFolder::new(files, holder);
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let query: HashMap<String, String> = url::form_urlencoded::parse(query).into_owned().collect();
    let base = base(door, request.headers());
    match route {
        Endpoint::Upload => {
            let keep = *door.config.serve.keep_files;
            Ok(Json(upload::store_upload(keep, &place, request).await?.to_json()).into_response())
        }
        Endpoint::Files => file::list(&place, &query).await,
        Endpoint::File(id) => Ok(Json(file::find(&place, id).await?.0.to_json()).into_response()),
        Endpoint::Content(id) => {
            let (_, location) = file::find(&place, id).await?;
            file::content(location, "application/octet-stream").await
        }
        Endpoint::DeleteFile(id) => {
            batch_status::check_unused(door, &place, id).await?;
            file::delete(&place, id).await
        }
        Endpoint::Create => {
            let (parts, body) = request.into_parts();
            openai::create(door, holder, &place, (&parts.headers, body)).await
        }
        Endpoint::CreateMessages => {
            let (parts, body) = request.into_parts();
            messages::create(door, holder, &place, (&parts.headers, body), &base).await
        }
        Endpoint::Batches(kind) => list(door, &place, &query, *kind, &base).await,
        Endpoint::Batch(kind, id) => {
            let batch = batch_status::find(door, &place, check_id(*kind, id)?).await?;
            Ok(Json(to_json(*kind, &batch, &base)).into_response())
        }
        Endpoint::Cancel(kind, id) => {
            let batch = batch_status::find(door, &place, check_id(*kind, id)?).await?;
            Ok(Json(to_json(*kind, &batch.stop(door, &place).await?, &base)).into_response())
        }
        Endpoint::Results(id) => {
            messages::results(door, &place, check_id(Kind::MessageBatch, id)?).await
        }
        Endpoint::DeleteMessages(id) => {
            messages::delete(door, &place, check_id(Kind::MessageBatch, id)?).await
        }
    }
}

/// A page of a key's batches.
async fn list(
    door: &Door,
    place: &KeyFolder,
    query: &HashMap<String, String>,
    kind: Kind,
    base: &str,
) -> Result<Response, Problem> {
    let (form, most) = match kind {
        Kind::MessageBatch => (Form::Anthropic, ANTHROPIC_LIMIT),
        Kind::Batch | Kind::File => (Form::OpenAi, OPENAI_LIMIT),
    };
    let wanted = ListQuery::read(query, (DEFAULT_LIMIT, most), |id| kind.is_id(id))?;
    let (batches, has_more) = batch_status::list(door, place, kind, &wanted).await?;
    let data: Vec<Value> = batches.iter().map(|batch| to_json(kind, batch, base)).collect();
    Ok(list_query::page(form, &data, has_more))
}

/// A batch in the form of its dialect.
fn to_json(kind: Kind, batch: &Batch, base: &str) -> Value {
    match kind {
        Kind::MessageBatch => messages::to_json(batch, base),
        Kind::Batch | Kind::File => openai::to_json(batch),
    }
}

/// Checks an id: no other text becomes part of a storage path.
fn check_id(kind: Kind, id: &str) -> Result<&str, Problem> {
    if kind.is_id(id) { Ok(id) } else { Err(batch_status::no_batch(id)) }
}

/// The address under which the client reached the door, or the first proxy before it.
fn base(door: &Door, headers: &HeaderMap) -> String {
    let has_tls = door.config.serve.tls_certificate_file.is_some();
    base_of(headers, if has_tls { "https" } else { "http" }, &door.bound.to_string())
}

fn base_of(headers: &HeaderMap, scheme: &str, bound: &str) -> String {
    // Several proxies append to the list: the first value is the client's.
    let first = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?;
        value.split(',').next().map(str::trim).filter(|it| !it.is_empty())
    };
    let scheme = first("x-forwarded-proto").filter(|it| *it == "https").unwrap_or(scheme);
    let host = first("x-forwarded-host").or_else(|| first(header::HOST.as_str()));
    let prefix = first("x-forwarded-prefix").unwrap_or_default().trim_matches('/');
    let address = format!("{scheme}://{}", host.unwrap_or(bound));
    if prefix.is_empty() { address } else { format!("{address}/{prefix}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_one_that_the_client_knows() {
        let base = |given: &[(&'static str, &'static str)]| {
            let headers = given.iter().map(|(name, value)| {
                (name.parse().unwrap(), header::HeaderValue::from_static(value))
            });
            base_of(&headers.collect(), "http", "127.0.0.1:9")
        };
        assert_eq!(base(&[]), "http://127.0.0.1:9");
        assert_eq!(base(&[("host", "door:80")]), "http://door:80");
        let proxied = [
            ("host", "10.0.0.7:9"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "llm.example.com, inner.example.com"),
        ];
        assert_eq!(base(&proxied), "https://llm.example.com");
        let under = [("x-forwarded-host", "example.com"), ("x-forwarded-prefix", "/llm/")];
        assert_eq!(base(&under), "http://example.com/llm");
    }
}
