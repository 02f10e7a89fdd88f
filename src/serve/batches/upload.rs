//! `POST /v1/files`: a form whose file is streamed to the store.

use std::time::Duration;

use axum::{
    extract::{FromRequest as _, Multipart, Request, multipart::Field},
    http::StatusCode,
};
use object_store::buffered::BufWriter;

use super::{
    expiry,
    file::File,
    id::Kind,
    key_folder::{self, KeyFolder, store_failed},
    line_summary::{LineScanner, LineSummary, MAX_LINES},
};
use crate::serve::problem::Problem;

/// OpenAI's limit of a file, in bytes.
const MAX_BYTES: u64 = 200 << 20;

/// Time limit for the next piece of a file.
const PIECE: Duration = Duration::from_secs(60);

/// Concurrent uploads of a file's parts to the store.
const PARTS: usize = 2;

/// Maximum length of a field other than the file, in bytes.
const MAX_FIELD: usize = 1024;

/// The form's fields of a file's expiry.
const ANCHOR: &str = "expires_after[anchor]";
const SECONDS: &str = "expires_after[seconds]";

/// Stores an uploaded file. It becomes visible when it is complete. `keep` is the longest time until it
/// expires.
///
/// # Errors
/// The form is not OpenAI's, the file is too large, or the store does not take it.
pub(super) async fn store_upload(
    keep: Duration,
    place: &KeyFolder,
    request: Request,
) -> Result<File, Problem> {
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|why| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body is no form: {}", why.body_text()))
    })?;
    let mut file = None;
    let read = read_form(&mut form, place, &mut file, keep).await;
    match (read, file) {
        (Ok(expires_at), Some(file)) => {
            let file = File { expires_at, ..file };
            key_folder::write(&place.file(&file.id), &file).await?;
            Ok(file)
        }
        (Ok(_), None) => {
            Err(Problem::invalid("file", "is missing: a file of requests, one a line"))
        }
        (Err(problem), file) => {
            if let Some(file) = file
                && let Err(error) = place.content(&file.id).delete().await
            {
                tracing::warn!(%error, "a refused file stays behind");
            }
            Err(problem)
        }
    }
}

/// Reads the form. Stores its file, which is then in `file` even after an error. Returns the time at
/// which the file expires, if the form states it.
async fn read_form(
    form: &mut Multipart,
    place: &KeyFolder,
    file: &mut Option<File>,
    keep: Duration,
) -> Result<Option<u64>, Problem> {
    let (mut purpose, mut anchor, mut seconds) = (None, None, None);
    while let Some(field) = next_within_limit(form.next_field()).await? {
        match field.name() {
            Some("purpose") => purpose = Some(read_text(field).await?),
            Some("file") if file.is_none() => *file = Some(stream_to_store(place, field).await?),
            Some(ANCHOR) => anchor = Some(read_text(field).await?),
            Some(SECONDS) => seconds = Some(read_text(field).await?),
            Some(name) => return Err(Problem::invalid(name, "is no field of a file")),
            None => {}
        }
    }
    let Some(file) = file else { return Ok(None) };
    if purpose.as_deref() != Some(File::PURPOSE) {
        return Err(Problem::invalid("purpose", "must be batch: other files are not kept here"));
    }
    if anchor.is_none() && seconds.is_none() {
        return Ok(None);
    }
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let (anchor, seconds) = ((ANCHOR, anchor.as_deref()), (SECONDS, seconds));
    let seconds = expiry::read_seconds(anchor, seconds, keep)?;
    Ok(Some(file.created_at + seconds))
}

/// Streams the file's bytes to the store.
async fn stream_to_store(place: &KeyFolder, mut field: Field<'_>) -> Result<File, Problem> {
    let id = Kind::File.new_id();
    let filename = field.file_name().unwrap_or("file").to_owned();
    let mut writer = place.content(&id).writer().with_max_concurrency(PARTS);
    let written = copy(&mut field, &mut writer).await;
    let (bytes, seen) = key_folder::complete(writer, written).await?;
    Ok(File::new(id, bytes, filename, seen))
}

async fn copy(
    field: &mut Field<'_>,
    writer: &mut BufWriter,
) -> Result<(u64, LineSummary), Problem> {
    let (mut bytes, mut scanner) = (0, LineScanner::default());
    while let Some(piece) = next_within_limit(field.chunk()).await? {
        bytes += piece.len() as u64;
        if bytes > MAX_BYTES {
            return Err(too_large(format!("the file has more than {} MB", MAX_BYTES >> 20)));
        }
        scanner.scan(&piece);
        if scanner.lines() > MAX_LINES {
            return Err(too_large(format!("the file has more than {MAX_LINES} lines")));
        }
        writer.put(piece).await.map_err(store_failed)?;
    }
    Ok((bytes, scanner.end()))
}

fn too_large(what: String) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("{what}; divide it"))
}

async fn read_text(mut field: Field<'_>) -> Result<String, Problem> {
    let mut text = Vec::new();
    while let Some(piece) = next_within_limit(field.chunk()).await? {
        text.extend_from_slice(&piece);
        if text.len() > MAX_FIELD {
            return Err(Problem::invalid(field.name().unwrap_or("a field"), "is too long"));
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The next item of a form, within the time limit.
async fn next_within_limit<T>(
    next: impl Future<Output = Result<T, axum::extract::multipart::MultipartError>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(PIECE, next).await {
        Ok(Ok(next)) => Ok(next),
        Ok(Err(why)) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("the form cannot be read: {}", why.body_text()),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("nothing more of the file came within {PIECE:?}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::header};
    use tidegate_activities::Storage;

    use super::*;

    /// The names of all files below a folder.
    fn left(folder: &std::path::Path) -> Vec<String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => names.extend(left(&path)),
                false => names.push(path.display().to_string()),
            }
        }
        names
    }

    #[tokio::test]
    async fn nothing_is_left_of_an_upload_that_fails_after_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = url::Url::from_directory_path(folder.path().canonicalize().unwrap()).unwrap();
        let storage = Storage::new([root.as_str()]).unwrap();
        let place = KeyFolder::below(&storage.resolve(root.as_str()).unwrap(), "web");
        let part = |name: &str, content: &str| {
            format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n")
        };
        let store = async |rest: &str| {
            let body = format!("{}{rest}", part("file", "{}\n"));
            let kind = "multipart/form-data; boundary=b";
            let request = Request::post("/v1/files").header(header::CONTENT_TYPE, kind);
            let request = request.body(Body::from(body)).unwrap();
            let stored = store_upload(Duration::from_hours(24), &place, request).await;
            stored.map_err(|problem| problem.message)
        };
        let long = format!("{}--b--\r\n", part("purpose", &"x".repeat(MAX_FIELD + 1)));
        let broken = "--b\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nba";
        for (rest, says) in [
            (long.as_str(), "purpose is too long"),
            (broken, "the form cannot be read"),
            ("--b--\r\n", "purpose must be batch"),
        ] {
            let refused = store(rest).await.unwrap_err();
            assert!(refused.contains(says), "{refused}");
            assert_eq!(left(folder.path()), Vec::<String>::new(), "{says}");
        }
        store(&format!("{}--b--\r\n", part("purpose", "batch"))).await.unwrap();
        assert_eq!(left(folder.path()).len(), 2, "its content and its description");
    }
}
