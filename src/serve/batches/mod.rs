//! Files and batches: `/v1/files`, `/v1/batches`, `/v1/messages/batches`.
//!
//! A batch is a workflow as every other, on the engine of documents: a line of its file is a document, and
//! what its results are written as is the vendor's form. The door writes down what was asked for, starts
//! and stops it, and tells how it stands.
//!
//! * `route`: which paths there are
//! * `place`: where a key's files and batches lie; `id`: their names; `page`: lists by cursors
//! * `file`: what is known of files; `upload`: how they come; `seen`: what is seen of their lines

mod file;
mod id;
mod page;
mod place;
mod route;
mod seen;
mod upload;

use std::{collections::HashMap, sync::Arc, time::Instant};

use axum::{
    Json,
    extract::Request,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};

use self::place::Place;
pub(super) use self::route::Route;
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
    let began = Instant::now();
    let form = Form::of(route.path(), request.headers());
    let answered = Box::pin(answered(door, holder, &route, request)).await;
    let retry_after = answered.as_ref().err().and_then(Problem::retry_after);
    let response = answered.unwrap_or_else(|problem| problem.response(form));
    let (path, key, status) = (route.path(), holder.name.as_str(), response.status());
    Line { path, key, model: None, status, retry_after, began }.tell();
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
        Route::Upload => Ok(Json(upload::take(&place, request).await?.told()).into_response()),
        Route::Files => file::list(&place, &query).await,
        Route::File(id) => Ok(Json(file::find(&place, id).await?.0.told()).into_response()),
        Route::Content(id) => {
            let (_, location) = file::find(&place, id).await?;
            file::content(location, "application/octet-stream").await
        }
        Route::DeleteFile(id) => file::delete(&place, id).await,
    }
}
