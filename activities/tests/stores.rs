//! Stores beyond the file system: an S3 server in this process, and a web server that can be read.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

use axum::{Router, http::StatusCode, response::Redirect, routing::get};
use hyper_util::rt::{TokioExecutor, TokioIo};
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use tidegate_activities::storage::{Error, Storage};
use tokio::{io::AsyncWriteExt, net::TcpListener};

/// An S3 with one bucket, and a storage that reaches it.
async fn s3() -> (tempfile::TempDir, Storage) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bucket")).unwrap();
    let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).unwrap());
    service.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = service.build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let options = [
        ("AWS_ENDPOINT", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
    ];
    let options: Vec<_> =
        options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let storage = Storage::with_options(["s3://bucket/data"], &options).unwrap();
    (folder, storage)
}

#[tokio::test]
async fn an_s3_keeps_what_results_need() {
    let (_folder, storage) = s3().await;
    let base = storage.resolve("s3://bucket/data/").unwrap();
    let object = base.child("results/a b.md.json");
    assert_eq!(object.size().await.unwrap(), None);
    assert!(matches!(object.read().await, Err(Error::Missing(_))));
    object.create(b"first".to_vec()).await.unwrap();
    assert!(
        matches!(object.create(b"second".to_vec()).await, Err(Error::Exists(_))),
        "written once"
    );
    assert_eq!(object.read().await.unwrap(), "first");
    object.write(b"anew".to_vec()).await.unwrap();
    assert_eq!(object.read_range(1..3).await.unwrap(), "ne");
    assert_eq!(storage.resolve(&object.uri()).unwrap().read().await.unwrap(), "anew");

    // More than one part of an upload, and nothing is seen before it is complete.
    let large = base.child("results.jsonl");
    let mut writer = large.writer();
    for _ in 0..12 {
        writer.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
    }
    assert_eq!(large.size().await.unwrap(), None);
    writer.shutdown().await.unwrap();
    assert_eq!(large.size().await.unwrap(), Some(12 << 20));

    let mut found = Vec::new();
    base.list(|location| found.push(location.relative_to(&base))).await.unwrap();
    found.sort();
    assert_eq!(found, ["results.jsonl", "results/a b.md.json"]);
    object.delete().await.unwrap();
    object.delete().await.unwrap();
    assert_eq!(object.size().await.unwrap(), None);
    for outside in [
        "s3://bucket/database/x",
        "s3://bucket/data/../x",
        "s3://bucket/data/%2e%2e/x",
        "s3://other/data/x",
        "s3://bucket/data%2fx",
    ] {
        assert!(storage.resolve(outside).is_err(), "{outside}");
    }
}

#[tokio::test]
async fn a_web_server_can_be_read_and_leads_nowhere_else() {
    let elsewhere = Router::new().route("/secret.txt", get(|| async { "secret" }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = format!("http://{}/secret.txt", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, elsewhere).await });
    let app = Router::new()
        .route("/docs/a.md", get(|| async { "The tide." }))
        .route("/docs/away.md", get(move || async move { Redirect::temporary(&other) }))
        .route("/docs/gone.md", get(|| async { StatusCode::NOT_FOUND }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}/docs", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });

    let storage = Storage::new([root.as_str()]).unwrap();
    let object = |name: &str| storage.resolve(&format!("{root}/{name}")).unwrap();
    assert_eq!(
        (object("a.md").size().await.unwrap(), object("a.md").read().await.unwrap().as_ref()),
        (Some(9), &b"The tide."[..])
    );
    assert!(matches!(object("gone.md").read().await, Err(Error::Missing(_))));
    assert!(object("away.md").read().await.is_err(), "a redirect is not followed");
    let error = object("x.json").create(b"x".to_vec()).await.unwrap_err();
    assert!(matches!(&error, Error::Invalid(why) if why.contains("can only be read")), "{error}");
    assert!(storage.resolve(&root.replace("/docs", "/other/x")).is_err());
    assert!(
        storage.resolve("http://127.0.0.1:1/docs/a.md").is_err(),
        "another port is another host"
    );
}
