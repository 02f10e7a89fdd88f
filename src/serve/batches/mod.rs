//! Files and batches: `/v1/files`, `/v1/batches`, `/v1/messages/batches`.
//!
//! A batch is a workflow as every other, on the engine of documents: a line of its file is a document, and
//! what its results are written as is the vendor's form. The door writes down what was asked for, starts
//! and stops it, and tells how it stands.
//!
//! * `route`: which paths there are
//! * `place`: where a key's files and batches lie; `id`: their names; `page`: lists by cursors
//! * `file`: what is known of files; `upload`: how they come; `seen`: what is seen of their lines;
//!   `expiry`: how long they are kept
//! * `batch`: what was asked for, and its start; `standing`: how it stands, and its end
//! * `openai`, `messages`: both in the form of their dialect; `requests`: those that come in one body
//! * `sweep`: what has been kept for long enough

mod batch;
mod expiry;
mod file;
mod id;
mod messages;
mod openai;
mod page;
mod place;
mod requests;
mod route;
mod seen;
mod standing;
mod sweep;
mod upload;

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};

use self::{id::Kind, place::Place};
pub(super) use self::{route::Route, sweep::sweep};
use super::{
    access::Line,
    door::Door,
    keys::Holder,
    problem::{Form, Problem},
};

/// Answers a request for one of these paths.
pub(super) async fn answer(
    door: &Arc<Door>,
    holder: &Arc<Holder>,
    route: Route,
    request: Request,
) -> Response {
    let line = Line::new(route.path(), &holder.name);
    let form = Form::of(route.path(), request.headers());
    let answered = Box::pin(answered(door, holder, &route, request)).await;
    let retry_after = answered.as_ref().err().and_then(Problem::retry_after);
    let response = answered.unwrap_or_else(|problem| problem.response(form));
    line.tell(response.status(), retry_after);
    response
}

async fn answered(
    door: &Arc<Door>,
    holder: &Arc<Holder>,
    route: &Route,
    request: Request,
) -> Result<Response, Problem> {
    let files = door.files.as_ref().ok_or_else(|| {
        let what = "this door keeps no files and no batches: serve.files is not set";
        Problem::new(StatusCode::NOT_FOUND, what)
    })?;
    let place = Place::of(files, holder);
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let query: HashMap<String, String> = url::form_urlencoded::parse(query).into_owned().collect();
    match route {
        Route::Upload => {
            Ok(Json(upload::take(door, &place, request).await?.told()).into_response())
        }
        Route::Files => file::list(&place, &query).await,
        Route::File(id) => Ok(Json(file::find(&place, id).await?.0.told()).into_response()),
        Route::Content(id) => {
            let (_, location) = file::find(&place, id).await?;
            file::content(location, "application/octet-stream").await
        }
        Route::DeleteFile(id) => {
            check_unused(door, &place, id).await?;
            file::delete(&place, id).await
        }
        Route::Create => {
            let (parts, body) = request.into_parts();
            openai::create(door, holder, &place, (&parts.headers, body)).await
        }
        Route::Batches => openai::list(door, &place, &query).await,
        Route::Batch(id) => {
            let batch = standing::find(door, &place, known(Kind::Batch, id)?).await?;
            Ok(Json(openai::told(&batch)).into_response())
        }
        Route::Cancel(id) => {
            let batch = standing::find(door, &place, known(Kind::Batch, id)?).await?;
            Ok(Json(openai::told(&batch.stop(door, &place).await?)).into_response())
        }
        Route::CreateMessages => {
            let (parts, body) = request.into_parts();
            let base = base(door, &parts.headers);
            messages::create(door, holder, &place, (&parts.headers, body), &base).await
        }
        Route::MessageBatches => {
            messages::list(door, &place, &query, &base(door, request.headers())).await
        }
        Route::MessageBatch(id) => {
            let batch = standing::find(door, &place, known(Kind::MessageBatch, id)?).await?;
            Ok(Json(messages::told(&batch, &base(door, request.headers()))).into_response())
        }
        Route::CancelMessages(id) => {
            let batch = standing::find(door, &place, known(Kind::MessageBatch, id)?).await?;
            let batch = batch.stop(door, &place).await?;
            Ok(Json(messages::told(&batch, &base(door, request.headers()))).into_response())
        }
        Route::Results(id) => messages::results(door, &place, known(Kind::MessageBatch, id)?).await,
        Route::DeleteMessages(id) => {
            messages::delete(door, &place, known(Kind::MessageBatch, id)?).await
        }
    }
}

/// A name, if it is one: no other text becomes part of a place.
fn known(kind: Kind, id: &str) -> Result<&str, Problem> {
    if kind.is_id(id) { Ok(id) } else { Err(standing::missing(id)) }
}

/// Requests are read from their file until they are answered.
async fn check_unused(door: &Door, place: &Place, file: &str) -> Result<(), Problem> {
    for id in Place::ids(&place.batches(), Kind::Batch).await? {
        let asked = place::read::<batch::Asked>(&place.batch(&id)).await?;
        if asked.is_some_and(|asked| asked.file.as_deref() == Some(file))
            && !standing::find(door, place, &id).await?.state.has_ended()
        {
            let message = format!("the batch {id} reads this file; cancel it first");
            return Err(Problem::new(StatusCode::CONFLICT, message));
        }
    }
    Ok(())
}

/// Where the client has reached the door.
fn base(door: &Door, headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = if door.speaks_tls { "https" } else { "http" };
    let scheme = text("x-forwarded-proto").filter(|it| *it == "https").unwrap_or(scheme);
    let host = text(header::HOST.as_str()).map_or_else(|| door.bound.to_string(), str::to_owned);
    format!("{scheme}://{host}")
}
