//! Files: uploads and the output of batches.

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
    id::{self, Kind, OutputFile},
    key_folder::{self, KeyFolder, store_unavailable},
    line_summary::LineSummary,
    list_query::ListQuery,
};
use crate::serve::problem::Problem;

/// A file is sent in pieces of this many bytes.
const PIECE: u64 = 4 << 20;

/// OpenAI's default and maximum length of a list.
const MAX_LISTED: usize = 10_000;

/// The stored description of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct File {
    pub(super) id: String,
    pub(super) bytes: u64,
    /// Seconds since 1970.
    pub(super) created_at: u64,
    pub(super) filename: String,
    pub(super) purpose: String,
    /// The time of its removal, in seconds since 1970, if the client sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// The summary of a file of requests.
    #[serde(flatten)]
    pub(super) seen: LineSummary,
}

impl File {
    /// The purpose of uploaded files.
    pub(super) const PURPOSE: &str = "batch";

    pub(super) fn new(id: String, bytes: u64, filename: String, seen: LineSummary) -> Self {
        let (created_at, purpose) = (created_at(&id), Self::PURPOSE.to_owned());
        Self { id, bytes, created_at, filename, purpose, expires_at: None, seen }
    }

    /// Writes it in OpenAI's form.
    pub(super) fn to_json(&self) -> Value {
        let Self { id, bytes, created_at, filename, purpose, expires_at, .. } = self;
        json!({
            "id": id, "object": "file", "bytes": bytes, "created_at": created_at,
            "expires_at": expires_at, "filename": filename, "purpose": purpose,
            "status": "processed", "status_details": null,
        })
    }
}

/// The creation time that an id contains, in seconds since 1970.
pub(super) fn created_at(id: &str) -> u64 {
    let made = id::creation_time(id).and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    made.unwrap_or_default().as_secs()
}

/// The part of a batch's end that concerns its output files.
#[derive(Deserialize)]
pub(super) struct OutputExpiry {
    /// The time of their removal, in seconds since 1970, if the client sets one.
    #[serde(default)]
    pub(super) output_expires_at: Option<u64>,
}

/// Finds a file of this key: an upload, or the output of a batch.
pub(super) async fn find(place: &KeyFolder, id: &str) -> Result<(File, Location), Problem> {
    let missing = || Problem::new(StatusCode::NOT_FOUND, format!("there is no file {id}"));
    if let Some((batch, put)) = OutputFile::parse(id) {
        let location = place.output_file(&batch, put);
        let stamp = location.stamp().await.map_err(|error| store_unavailable(&error))?;
        // The output is written before the batch has ended, and shown only afterwards.
        let ended = key_folder::read::<OutputExpiry>(&place.ended(&batch)).await?;
        let ended = ended.filter(|ended| !expiry::has_passed(ended.output_expires_at));
        // If nothing failed, the file of errors is empty and not shown.
        return match stamp.filter(|stamp| stamp.size > 0).zip(ended) {
            None => Err(missing()),
            Some((stamp, ended)) => {
                let expires_at = ended.output_expires_at;
                Ok((File { expires_at, ..describe_output(&batch, put, stamp.size) }, location))
            }
        };
    }
    if !Kind::File.is_id(id) {
        return Err(missing());
    }
    let file = key_folder::read::<File>(&place.file(id)).await?;
    let file = file.filter(|file| !expiry::has_passed(file.expires_at)).ok_or_else(missing)?;
    Ok((file, place.content(id)))
}

fn describe_output(batch: &str, put: OutputFile, bytes: u64) -> File {
    let filename = format!("{batch}_{}.jsonl", put.word());
    let file = File::new(put.id(batch), bytes, filename, LineSummary::default());
    File { purpose: "batch_output".to_owned(), ..file }
}

/// `GET /v1/files`.
pub(super) async fn list(
    place: &KeyFolder,
    query: &HashMap<String, String>,
) -> Result<Response, Problem> {
    let wanted = ListQuery::read(query, (MAX_LISTED, MAX_LISTED), |id| {
        Kind::File.is_id(id) || OutputFile::parse(id).is_some()
    })?;
    let purpose = query.get("purpose").map(String::as_str);
    let mut ids = Vec::new();
    if purpose.is_none_or(|purpose| purpose == File::PURPOSE) {
        ids = KeyFolder::ids(&place.files(), Kind::File).await?;
    }
    if purpose.is_none_or(|purpose| purpose == "batch_output") {
        for batch in KeyFolder::ids(&place.batches(), Kind::Batch).await? {
            ids.extend([OutputFile::Output, OutputFile::Errors].map(|put| put.id(&batch)));
        }
        ids.sort_unstable_by(|one, other| other.cmp(one));
    }
    let (ids, has_more) = wanted.select(ids);
    let mut data = Vec::new();
    for id in &ids {
        match find(place, id).await {
            Ok((file, _)) => data.push(file.to_json()),
            // Not written, or removed in the meantime.
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
    let stamp = location.stamp().await.map_err(|error| store_unavailable(&error))?;
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

/// Removes an uploaded file. Its description goes last, so that an interrupted removal can be repeated.
pub(super) async fn remove(place: &KeyFolder, id: &str) -> Result<(), Problem> {
    for location in [place.content(id), place.file(id)] {
        location.delete().await.map_err(|error| store_unavailable(&error))?;
    }
    Ok(())
}

/// `DELETE /v1/files/{id}`.
pub(super) async fn delete(place: &KeyFolder, id: &str) -> Result<Response, Problem> {
    let (_, location) = find(place, id).await?;
    match OutputFile::parse(id) {
        Some(_) => location.delete().await.map_err(|error| store_unavailable(&error))?,
        None => remove(place, id).await?,
    }
    Ok(Json(json!({"id": id, "object": "file", "deleted": true})).into_response())
}
