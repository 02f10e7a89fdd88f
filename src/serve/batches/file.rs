//! Files: uploads and the output of batches.

use std::collections::HashMap;

use axum::{
    Json,
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_activities::storage::{Error, Location};

use super::{
    batch_status::Course,
    expiry,
    id::{Kind, OutputFile, created_at},
    key_folder::{self, KeyFolder},
    line_summary::LineSummary,
    list_query::{self, ListQuery},
};
use crate::serve::problem::{Form, Problem};

/// A file is sent in pieces of this many bytes.
const PIECE: u64 = 4 << 20;

/// OpenAI's default and maximum length of a list.
const MAX_LISTED: usize = 10_000;

/// Files of a list that are looked up at once.
const AT_ONCE: usize = 8;

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

/// Finds a file of this key: an upload, or the output of a batch.
pub(super) async fn find(place: &KeyFolder, id: &str) -> Result<(File, Location), Problem> {
    let missing = || Problem::new(StatusCode::NOT_FOUND, format!("there is no file {id}"));
    if let Some((batch, put)) = OutputFile::parse(id) {
        let location = place.output_file(&batch, put);
        let stamp = location.stamp().await?;
        // The output is written before the batch has ended, and shown only afterwards.
        let ended = key_folder::read::<Course>(&place.ended(&batch)).await?;
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
    let (files, has_more) = select_files(place, &wanted, ids).await?;
    let data: Vec<Value> = files.iter().map(File::to_json).collect();
    Ok(list_query::page(Form::OpenAi, &data, has_more))
}

/// Selects the page from the files of these ids, newest first. An id without a file does not count.
/// Also returns whether more files follow.
async fn select_files(
    place: &KeyFolder,
    wanted: &ListQuery,
    ids: Vec<String>,
) -> Result<(Vec<File>, bool), Problem> {
    let find = |id: String| async move { find(place, &id).await };
    let mut found = stream::iter(wanted.ids_from_cursor(ids)).map(find).buffered(AT_ONCE);
    let mut files = Vec::new();
    while let Some(file) = found.next().await {
        match file {
            Ok(_) if files.len() == wanted.limit => return Ok((wanted.in_order(files), true)),
            Ok((file, _)) => files.push(file),
            // Not written, or removed in the meantime.
            Err(problem) if problem.status == StatusCode::NOT_FOUND => {}
            // One damaged description does not hide the other files.
            Err(problem) if key_folder::is_damage(&problem) => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok((wanted.in_order(files), false))
}

/// `GET /v1/files/{id}/content`, and the results of a batch.
pub(super) async fn content(location: Location, kind: &'static str) -> Result<Response, Problem> {
    let stamp = location.stamp().await?;
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
        location.delete().await?;
    }
    Ok(())
}

/// `DELETE /v1/files/{id}`.
pub(super) async fn delete(place: &KeyFolder, id: &str) -> Result<Response, Problem> {
    match (find(place, id).await, OutputFile::parse(id)) {
        (Ok((_, location)), Some(_)) => {
            location.delete().await?;
        }
        (Ok(_), None) => remove(place, id).await?,
        (Err(problem), None) if key_folder::is_damage(&problem) => remove(place, id).await?,
        (Err(problem), _) => return Err(problem),
    }
    Ok(Json(json!({"id": id, "object": "file", "deleted": true})).into_response())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tidegate_activities::Storage;

    use super::*;

    /// A key's folder in a new folder of this machine.
    fn place() -> (TempDir, KeyFolder) {
        let folder = tempfile::tempdir().unwrap();
        let root = url::Url::from_directory_path(folder.path()).unwrap();
        let files = Storage::new([root.as_str()]).unwrap().resolve(root.as_str()).unwrap();
        (folder, KeyFolder::below(&files, "web"))
    }

    async fn store_file(place: &KeyFolder) -> String {
        let id = Kind::File.new_id();
        place.content(&id).write(b"{}\n".to_vec()).await.unwrap();
        let file = File::new(id.clone(), 3, "in.jsonl".to_owned(), LineSummary::default());
        key_folder::write(&place.file(&id), &file).await.unwrap();
        id
    }

    /// Stores a batch that has ended, with an output file and, if nothing failed, no file of errors.
    async fn store_batch(place: &KeyFolder, has_errors: bool) -> String {
        let id = Kind::Batch.new_id();
        key_folder::write(&place.batch(&id), &json!({})).await.unwrap();
        key_folder::write(&place.ended(&id), &Course::default()).await.unwrap();
        place.output_file(&id, OutputFile::Output).write(b"{}\n".to_vec()).await.unwrap();
        let errors = if has_errors { b"{}\n".to_vec() } else { Vec::new() };
        place.output_file(&id, OutputFile::Errors).write(errors).await.unwrap();
        id
    }

    /// Reads a list page by page: the ids in `data` and in the cursors.
    async fn read_pages(place: &KeyFolder, order: &str) -> Vec<String> {
        let (mut ids, mut after) = (Vec::new(), None::<String>);
        for _ in 0..20 {
            let mut query = HashMap::from([
                ("limit".to_owned(), "2".to_owned()),
                ("order".to_owned(), order.to_owned()),
            ]);
            query.extend(after.take().map(|id| ("after".to_owned(), id)));
            let body = list(place, &query).await.unwrap().into_body();
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let page: Value = serde_json::from_slice(&body).unwrap();
            let data: Vec<&Value> =
                page["data"].as_array().unwrap().iter().map(|file| &file["id"]).collect();
            assert_eq!(data.first().copied().unwrap_or(&Value::Null), &page["first_id"], "{page}");
            assert_eq!(data.last().copied().unwrap_or(&Value::Null), &page["last_id"], "{page}");
            ids.extend(data.iter().map(|id| id.as_str().unwrap().to_owned()));
            if page["has_more"] == false {
                return ids;
            }
            assert_eq!(data.len(), 2, "a page before the last is full: {page}");
            after = page["last_id"].as_str().map(str::to_owned);
        }
        panic!("the list has no end: {ids:?}");
    }

    #[tokio::test]
    async fn pages_have_no_gaps_for_files_that_do_not_exist() {
        let (_folder, place) = place();
        assert!(read_pages(&place, "desc").await.is_empty());
        let mut expected = Vec::new();
        for has_errors in [false, true, false, false] {
            expected.push(store_file(&place).await);
            let batch = store_batch(&place, has_errors).await;
            expected.extend(has_errors.then(|| OutputFile::Errors.id(&batch)));
            expected.push(OutputFile::Output.id(&batch));
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        expected.sort_unstable();
        assert_eq!(read_pages(&place, "asc").await, expected);
        expected.reverse();
        assert_eq!(read_pages(&place, "desc").await, expected);
    }

    #[tokio::test]
    async fn a_damaged_description_hides_no_other_file_and_can_be_deleted() {
        let (_folder, place) = place();
        let (good, damaged) = (store_file(&place).await, store_file(&place).await);
        place.file(&damaged).write(b"{".to_vec()).await.unwrap();
        assert_eq!(read_pages(&place, "desc").await, [good]);
        let problem = find(&place, &damaged).await.unwrap_err();
        assert_eq!(problem.status, StatusCode::INTERNAL_SERVER_ERROR);
        delete(&place, &damaged).await.unwrap();
        let problem = find(&place, &damaged).await.unwrap_err();
        assert_eq!(problem.status, StatusCode::NOT_FOUND);
    }
}
