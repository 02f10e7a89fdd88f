//! Files: complete or absent, visible only to their own key, and gone when they are deleted.

use std::time::Duration;

use futures::StreamExt as _;

use super::*;

const OTHER_KEY: &str = "another-key-of-the-tests";

const BOUNDARY: &str = "tests";

/// A form of these fields, followed by a file.
pub(super) fn form(fields: &[(&str, &str)], file: &str) -> String {
    let field = |(name, value): &(&str, &str)| {
        format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )
    };
    let fields: String = fields.iter().map(field).collect();
    format!(
        "{fields}--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"in.jsonl\"\r\n\
         content-type: application/octet-stream\r\n\r\n{file}\r\n--{BOUNDARY}--\r\n"
    )
}

async fn doors() -> Option<Doors> {
    let other = tempfile::NamedTempFile::new().unwrap().into_temp_path().keep().unwrap();
    std::fs::write(&other, OTHER_KEY).unwrap();
    let files = tempfile::tempdir().unwrap().keep();
    let (files, other) = (files.display(), other.display());
    Doors::start_with(
        &format!("files = \"file://{files}\""),
        &format!("[serve.keys.other]\nkey-file = \"{other}\"\n"),
    )
    .await
}

impl Doors {
    pub(super) async fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let got = request.send().await.unwrap();
        (got.status().as_u16(), got.json().await.unwrap_or_default())
    }

    pub(super) fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.http.get(format!("{}{path}", self.url())).bearer_auth(KEY)
    }

    pub(super) fn upload(&self, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let post = self.http.post(format!("{}/v1/files", self.url())).bearer_auth(KEY);
        post.header("content-type", kind).body(body)
    }
}

#[tokio::test]
async fn a_file_is_its_keys_own_until_it_is_deleted() {
    let Some(doors) = doors().await else { return };
    let content = "{\"custom_id\":\"a\"}\n{\"custom_id\":\"b\"}\n";
    let purpose = [("purpose", "batch")];
    let (status, file) = doors.send(doors.upload(form(&purpose, content))).await;
    assert_eq!(
        (status, &file["object"], &file["purpose"], &file["filename"], &file["status"]),
        (200, &json!("file"), &json!("batch"), &json!("in.jsonl"), &json!("processed")),
        "{file}"
    );
    assert_eq!(file["bytes"], content.len());
    let id = file["id"].as_str().unwrap();
    let (_, second) = doors.send(doors.upload(form(&purpose, content))).await;
    assert_eq!(doors.send(doors.get(&format!("/v1/files/{id}"))).await, (200, file.clone()));
    let got = doors.get(&format!("/v1/files/{id}/content")).send().await.unwrap();
    assert_eq!(got.text().await.unwrap(), content);

    let (_, first_page) = doors.send(doors.get("/v1/files?limit=1")).await;
    assert_eq!((&first_page["data"], &first_page["has_more"]), (&json!([second]), &json!(true)));
    let after = format!("/v1/files?limit=1&after={}", first_page["last_id"].as_str().unwrap());
    let (_, last_page) = doors.send(doors.get(&after)).await;
    assert_eq!((&last_page["data"], &last_page["has_more"]), (&json!([file]), &json!(false)));

    // With another key, a known id is of no use.
    for (method, path) in [("GET", ""), ("GET", "/content"), ("DELETE", "")] {
        let url = format!("{}/v1/files/{id}{path}", doors.url());
        let request = doors.http.request(method.parse().unwrap(), url).bearer_auth(OTHER_KEY);
        let (status, said) = doors.send(request).await;
        assert_eq!((status, &said["error"]["type"]), (404, &json!("invalid_request_error")));
    }
    let (_, others) = doors
        .send(doors.http.get(format!("{}/v1/files", doors.url())).bearer_auth(OTHER_KEY))
        .await;
    assert_eq!(others["data"], json!([]));

    let url = format!("{}/v1/files/{id}", doors.url());
    let (status, deleted) = doors.send(doors.http.delete(&url).bearer_auth(KEY)).await;
    assert_eq!((status, deleted), (200, json!({"id": id, "object": "file", "deleted": true})));
    assert_eq!(doors.send(doors.get(&format!("/v1/files/{id}"))).await.0, 404);
    let (_, left) = doors.send(doors.get("/v1/files")).await;
    assert_eq!(left["data"], json!([second]));
    doors.stop().await;
}

#[tokio::test]
async fn what_is_no_file_of_requests_is_refused_and_nothing_of_it_is_kept() {
    let Some(doors) = doors().await else { return };
    let many = "{}\n".repeat(50_001);
    #[rustfmt::skip]
    let cases = [
        (form(&[("purpose", "assistants")], "{}"),                     400, "purpose must be batch"),
        (form(&[], "{}"),                                              400, "purpose must be batch"),
        (form(&[("purpose", "batch"), ("size", "1")], "{}"),           400, "size is no field"),
        (form(&[("purpose", "batch"), ("expires_after[anchor]", "now"), ("expires_after[seconds]", "3600")], "{}"), 400, "expires_after[anchor] must be created_at"),
        (form(&[("purpose", "batch"), ("expires_after[seconds]", "3600")], "{}"), 400, "expires_after[anchor] must be created_at"),
        (form(&[("purpose", "batch"), ("expires_after[anchor]", "created_at"), ("expires_after[seconds]", "2592001")], "{}"), 400, "expires_after[seconds] must be a number"),
        (form(&[("purpose", "batch"), ("expires_after[anchor]", "created_at")], "{}"), 400, "expires_after[seconds] must be a number"),
        (form(&[("purpose", "batch")], &many),                         413, "more than 50000 lines"),
        (format!("--{BOUNDARY}--\r\n"),                                400, "file is missing"),
        ("purpose=batch".to_owned(),                                   400, "the form cannot be read"),
    ];
    for (body, expected, says) in cases {
        let (status, said) = doors.send(doors.upload(body)).await;
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(status == expected && message.contains(says), "{says}: {status} {said}");
    }
    for path in ["/v1/files/file-1", "/v1/files/..%2f..%2fkey", "/v1/files/x/content"] {
        assert_eq!(doors.send(doors.get(path)).await.0, 404, "{path}");
    }
    for (path, field) in [
        ("/v1/files?after=nobody", "after"),
        ("/v1/batches?after=file-1", "after"),
        ("/v1/messages/batches?after_id=nobody", "after_id"),
        ("/v1/messages/batches?before_id=", "before_id"),
    ] {
        let (status, said) = doors.send(doors.get(path)).await;
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(
            status == 400 && message.starts_with(&format!("{field} must be")),
            "{path}: {said}"
        );
    }
    assert_eq!(doors.send(doors.get("/v1/files")).await.1["data"], json!([]));
    doors.stop().await;
}

/// The client breaks off the upload. If the door dies, nothing more arrives either.
#[tokio::test]
async fn a_file_that_breaks_off_is_not_there() {
    let Some(doors) = doors().await else { return };
    let whole = form(&[("purpose", "batch")], &"{}\n".repeat(2_000));
    let begun = whole[..whole.len() / 2].to_owned();
    let begun = futures::stream::iter([Ok::<_, std::io::Error>(begun)]);
    let broken = begun.chain(futures::stream::once(async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Err(std::io::Error::other("gone"))
    }));
    assert!(doors.upload(reqwest::Body::wrap_stream(broken)).send().await.is_err());
    assert_eq!(doors.send(doors.get("/v1/files")).await.1["data"], json!([]));
    doors.stop().await;
}

/// Whether a batch still runs is not known here, without a Temporal server.
#[tokio::test]
async fn an_old_file_goes_unless_a_batch_may_read_it() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().canonicalize().unwrap();
    let write = |name: &str, content: &Value| {
        let file = path.join("web").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content.to_string()).unwrap();
        file
    };
    let now = chrono::Utc::now().timestamp_millis();
    let id = |millis: i64, number: u8| format!("{millis:012x}{number:020x}");
    let upload = |number: u8| {
        let id = format!("file-{}", id(1, number));
        let told = json!({"id": id, "bytes": 3, "created_at": 1, "filename": "in.jsonl", "purpose": "batch", "lines": 1, "objects": 1, "models": {}});
        [write(&format!("files/{id}.jsonl"), &json!({})), write(&format!("files/{id}.json"), &told)]
    };
    let (read, unused) = (upload(1), upload(2));
    let batch = format!("batch_{}", id(now, 3));
    let asked = json!({"id": batch, "endpoint": "/v1/chat/completions", "file": format!("file-{}", id(1, 1)), "window": "24h", "created_at": now / 1000, "expires_at": now / 1000 + 86_400, "total": 1});
    write(&format!("batches/{batch}.json"), &asked);
    let broken_off = write(&format!("files/file-{}.jsonl#1", id(1, 4)), &json!({}));
    let under_way = write(&format!("files/file-{}.jsonl#1", id(now, 5)), &json!({}));
    let serve = format!("files = \"file://{}\"", path.display());
    let Some(doors) = Doors::start_with(&serve, "").await else { return };
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while unused.iter().chain([&broken_off]).any(|file| file.exists()) {
        assert!(std::time::Instant::now() < deadline, "they are removed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(read.iter().chain([&under_way]).all(|file| file.exists()), "they stay");
    doors.stop().await;
}

#[tokio::test]
async fn a_file_goes_when_its_author_wants() {
    let files = tempfile::tempdir().unwrap();
    let serve = format!("files = \"file://{}\"", files.path().canonicalize().unwrap().display());
    let Some(mut doors) = Doors::start_with(&serve, "").await else { return };
    let expiry = [
        ("purpose", "batch"),
        ("expires_after[anchor]", "created_at"),
        ("expires_after[seconds]", "3600"),
    ];
    let (status, file) = doors.send(doors.upload(form(&expiry, "{}"))).await;
    assert_eq!(status, 200, "{file}");
    let lasts = file["expires_at"].as_u64().unwrap() - file["created_at"].as_u64().unwrap();
    assert_eq!(lasts, 3_600, "{file}");
    let (_, other) = doors.send(doors.upload(form(&expiry, "{}"))).await;
    let id = file["id"].as_str().unwrap();
    assert_eq!(doors.send(doors.get(&format!("/v1/files/{id}"))).await, (200, file.clone()));

    let known = files.path().join(format!("web/files/{id}.json"));
    let mut told: Value = serde_json::from_slice(&std::fs::read(&known).unwrap()).unwrap();
    told["expires_at"] = 1.into();
    std::fs::write(&known, told.to_string()).unwrap();
    for path in ["", "/content"] {
        assert_eq!(doors.send(doors.get(&format!("/v1/files/{id}{path}"))).await.0, 404, "{path}");
    }
    assert_eq!(doors.send(doors.get("/v1/files")).await.1["data"], json!([other]));
    // A door sweeps at its start.
    doors.one_more().await;
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while known.exists() {
        assert!(std::time::Instant::now() < deadline, "it is removed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!known.with_extension("jsonl").exists());
    assert_eq!(doors.send(doors.get("/v1/files")).await.1["data"], json!([other]));
    doors.stop().await;
}
