//! Files: those that were uploaded, and those that batches have put out.

use std::{collections::HashMap, time::SystemTime};

use axum::{
    Json,
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_activities::storage::{Error, Location};

use super::{
    expiry,
    id::{self, Kind, Put},
    page::Wanted,
    place::{self, Place, away},
    seen::Seen,
};
use crate::serve::problem::Problem;

/// A file is told in pieces of so many bytes.
const PIECE: u64 = 4 << 20;

/// OpenAI lists so many where the client says nothing, and no more.
const MAX_LISTED: usize = 10_000;

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct File {
    pub(super) id: String,
    pub(super) bytes: u64,
    /// Seconds since 1970.
    pub(super) created_at: u64,
    pub(super) filename: String,
    pub(super) purpose: String,
    /// When it goes, in seconds since 1970, where its author wants it kept for a shorter time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// Of a file of requests.
    #[serde(flatten)]
    pub(super) seen: Seen,
}

impl File {
    /// What files are uploaded for.
    pub(super) const PURPOSE: &str = "batch";

    pub(super) fn new(id: String, bytes: u64, filename: String, seen: Seen) -> Self {
        let (created_at, purpose) = (made(&id), Self::PURPOSE.to_owned());
        Self { id, bytes, created_at, filename, purpose, expires_at: None, seen }
    }

    /// As OpenAI tells it.
    pub(super) fn told(&self) -> Value {
        let Self { id, bytes, created_at, filename, purpose, expires_at, .. } = self;
        json!({
            "id": id, "object": "file", "bytes": bytes, "created_at": created_at,
            "expires_at": expires_at, "filename": filename, "purpose": purpose,
            "status": "processed", "status_details": null,
        })
    }
}

/// When that was made whose name this is, in seconds since 1970.
pub(super) fn made(id: &str) -> u64 {
    let made = id::made_at(id).and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    made.unwrap_or_default().as_secs()
}

/// Of how a batch has ended, what concerns the files that it has put out.
#[derive(Deserialize)]
pub(super) struct Ended {
    /// When they go, in seconds since 1970, where its author wants them kept for a shorter time.
    #[serde(default)]
    pub(super) output_expires_at: Option<u64>,
}

/// A file of this key, uploaded or put out.
pub(super) async fn find(place: &Place, id: &str) -> Result<(File, Location), Problem> {
    let missing = || Problem::new(StatusCode::NOT_FOUND, format!("there is no file {id}"));
    if let Some((batch, put)) = Put::of(id) {
        let location = place.put(&batch, put);
        let stamp = location.stamp().await.map_err(|error| away(&error))?;
        // It is written before the batch has ended, and told then.
        let ended = place::read::<Ended>(&place.ended(&batch)).await?;
        let ended = ended.filter(|ended| !expiry::has_passed(ended.output_expires_at));
        // Where nothing failed, there is no file of errors.
        return match stamp.filter(|stamp| stamp.size > 0).zip(ended) {
            None => Err(missing()),
            Some((stamp, ended)) => {
                let expires_at = ended.output_expires_at;
                Ok((File { expires_at, ..put_out(&batch, put, stamp.size) }, location))
            }
        };
    }
    if !Kind::File.is_id(id) {
        return Err(missing());
    }
    let file = place::read::<File>(&place.file(id)).await?;
    let file = file.filter(|file| !expiry::has_passed(file.expires_at)).ok_or_else(missing)?;
    Ok((file, place.content(id)))
}

fn put_out(batch: &str, put: Put, bytes: u64) -> File {
    let filename = format!("{batch}_{}.jsonl", put.word());
    let file = File::new(put.id(batch), bytes, filename, Seen::default());
    File { purpose: "batch_output".to_owned(), ..file }
}

/// `GET /v1/files`.
pub(super) async fn list(
    place: &Place,
    query: &HashMap<String, String>,
) -> Result<Response, Problem> {
    let wanted = Wanted::read(query, (MAX_LISTED, MAX_LISTED), |id| {
        Kind::File.is_id(id) || Put::of(id).is_some()
    })?;
    let purpose = query.get("purpose").map(String::as_str);
    let mut ids = Vec::new();
    if purpose.is_none_or(|purpose| purpose == File::PURPOSE) {
        ids = Place::ids(&place.files(), Kind::File).await?;
    }
    if purpose.is_none_or(|purpose| purpose == "batch_output") {
        for batch in Place::ids(&place.batches(), Kind::Batch).await? {
            ids.extend([Put::Output, Put::Errors].map(|put| put.id(&batch)));
        }
        ids.sort_unstable_by(|one, other| other.cmp(one));
    }
    let (ids, has_more) = wanted.of(ids);
    let mut data = Vec::new();
    for id in &ids {
        match find(place, id).await {
            Ok((file, _)) => data.push(file.told()),
            // Not put out, or removed meanwhile.
            Err(problem) if problem.status == StatusCode::NOT_FOUND => {}
            Err(problem) => return Err(problem),
        }
    }
    let (first, last) = (ids.first(), ids.last());
    Ok(Json(json!({
        "object": "list", "data": data, "has_more": has_more, "first_id": first, "last_id": last,
    }))
    .into_response())
}

/// `GET /v1/files/{id}/content`, and the results of a batch.
pub(super) async fn content(location: Location, kind: &'static str) -> Result<Response, Problem> {
    let stamp = location.stamp().await.map_err(|error| away(&error))?;
    let size = stamp.map(|stamp| stamp.size);
    let size = size.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "it was removed"))?;
    let pieces = stream::try_unfold(0, move |from| {
        let location = location.clone();
        async move {
            if from >= size {
                return Ok::<_, Error>(None);
            }
            let to = (from + PIECE).min(size);
            let piece: Bytes = location.read_range(from..to).await?;
            Ok(Some((piece, to)))
        }
    });
    let pieces = pieces.map_err(|error| std::io::Error::other(error.to_string()));
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_LENGTH, size.into());
    Ok(response)
}

/// Removes a file that was uploaded: what is known of it goes last, so that a removal that breaks off can
/// be repeated.
pub(super) async fn remove(place: &Place, id: &str) -> Result<(), Problem> {
    for location in [place.content(id), place.file(id)] {
        location.delete().await.map_err(|error| away(&error))?;
    }
    Ok(())
}

/// `DELETE /v1/files/{id}`.
pub(super) async fn delete(place: &Place, id: &str) -> Result<Response, Problem> {
    let (_, location) = find(place, id).await?;
    match Put::of(id) {
        Some(_) => location.delete().await.map_err(|error| away(&error))?,
        None => remove(place, id).await?,
    }
    Ok(Json(json!({"id": id, "object": "file", "deleted": true})).into_response())
}
