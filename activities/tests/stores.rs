//! Stores beyond the file system: an S3 server in this process, and a web server for reads.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, http::StatusCode, response::Redirect, routing::get};
use hyper_util::rt::{TokioExecutor, TokioIo};
use s3s::{
    S3Result,
    access::{S3Access, S3AccessContext},
    auth::SimpleAuth,
    service::S3ServiceBuilder,
};
use tidegate_activities::{
    Services,
    attempt::{Attempt, AttemptState},
    batch::{
        document_ids::DocumentIds,
        source::{self, Cursor, PageBudget},
    },
    document::process,
    failure::{
        Backoff, Failure, MAX_STORE_REFUSALS, PLAN_DEADLINE, STORE_DEADLINE, count_store_fault,
    },
    host_rates::HostRates,
    output::job::{Document, Shards, Stored, route_of},
    services,
    storage::{
        Entry, Error, Location, Storage,
        access::{Access, Tried},
        assembly::Assembly,
        credential::CredentialKind,
    },
};
use tidegate_calls::{
    budget::Budgets,
    route::{Queues, Routes},
};
use tidegate_documents::{Limits, Reader};
use tidegate_providers::{Prices, Providers};
use tidegate_quota::{BucketLimit, Options, Quota};
use tidegate_workflows::contract::{DocumentTask, FailureType, Job};
use tokio::{io::AsyncWriteExt, net::TcpListener};

/// An S3 server with one bucket, and a storage that uses it.
async fn s3() -> (tempfile::TempDir, Storage) {
    let (folder, endpoint) = s3_that(|_| {}).await;
    (folder, storage_at(&endpoint, &[]))
}

/// An S3 server with one bucket, configured by `is`, and its address.
async fn s3_that(is: impl FnOnce(&mut S3ServiceBuilder)) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bucket")).unwrap();
    let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).unwrap());
    service.set_auth(SimpleAuth::from_single("key", "secret"));
    is(&mut service);
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
    (folder, endpoint)
}

/// Allows reads and lists only.
struct ReadOnly;

#[async_trait::async_trait]
impl S3Access for ReadOnly {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        match context.s3_op().name() {
            "GetObject" | "HeadObject" | "ListObjectsV2" => Ok(()),
            _ => Err(s3s::s3_error!(AccessDenied)),
        }
    }
}

fn options(endpoint: &str, key: &str, secret: &str) -> Vec<(String, String)> {
    let options = [
        ("AWS_ENDPOINT", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", key),
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AWS_REGION", "us-east-1"),
    ];
    options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

async fn tried(root: &str, options: &[(String, String)]) -> Access {
    let storage = Storage::for_access_test_with(root, options).unwrap();
    storage.resolve(root).unwrap().try_access(CredentialKind::AccessKey).await
}

#[tokio::test]
async fn what_a_place_can_be_used_for_is_tried() {
    let (folder, endpoint) = s3_that(|_| {}).await;
    let place = "s3://bucket/data/";
    let all = |access: &Access| {
        [&access.list, &access.read, &access.create, &access.write, &access.delete]
            .map(Tried::works)
    };
    let right = tried(place, &options(&endpoint, "key", "secret")).await;
    assert_eq!(all(&right), [Some(true); 5], "{right:?}");
    assert_eq!(right.left, None);
    let left: Vec<_> = walkdir::WalkDir::new(folder.path().join("bucket"))
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .collect();
    assert!(left.is_empty(), "{left:?}");

    // A wrong key and a missing bucket are found by the first step; the others are not tried.
    for (place, key, secret, code) in [
        (place, "other", "secret", "NotSignedUp"),
        (place, "key", "hush-hush", "SignatureDoesNotMatch"),
        ("s3://gone/data/", "key", "secret", "NoSuchBucket"),
    ] {
        let wrong = tried(place, &options(&endpoint, key, secret)).await;
        assert_eq!(all(&wrong), [Some(false), None, None, None, None], "{wrong:?}");
        let Tried::Fails(error) = &wrong.list else { panic!("{wrong:?}") };
        assert_eq!(error.code(), Some(code), "{error}");
        assert!(!format!("{wrong:?}").contains("hush-hush"), "{wrong:?}");
    }

    let away = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", away.local_addr().unwrap());
    drop(away);
    let away = tried(place, &options(&address, "key", "secret")).await;
    let Tried::Fails(Error::Failed(why)) = &away.list else { panic!("{away:?}") };
    assert!(why.contains("refused"), "the first cause: {why}");
}

#[tokio::test]
async fn a_place_that_can_only_be_read_is_known_as_such() {
    let (folder, endpoint) = s3_that(|service| service.set_access(ReadOnly)).await;
    let data = folder.path().join("bucket/data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("a.md"), "read me").unwrap();
    let access = tried("s3://bucket/data/", &options(&endpoint, "key", "secret")).await;
    assert_eq!((access.list.works(), access.read.works()), (Some(true), Some(true)), "{access:?}");
    assert!(access.create.is_forbidden(), "{access:?}");
    assert_eq!((access.write.works(), access.delete.works()), (None, None));
    assert_eq!(std::fs::read_dir(data).unwrap().count(), 1);
}

/// A storage with an S3 server at this address and other roots.
fn storage_at(endpoint: &str, others: &[&str]) -> Storage {
    let options = options(endpoint, "key", "secret");
    Storage::with_options(["s3://bucket/data"].iter().chain(others).copied(), &options).unwrap()
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

    // More than one part of an upload, and the object appears only when it is complete.
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
    let second = base.child("results/a.md~2.json");
    second.create(b"the second".to_vec()).await.unwrap();
    assert!(second.uri().ends_with("/results/a.md~2.json"), "{second}");
    let mut found = Vec::new();
    base.child("results").list(|location| found.push(location.uri())).await.unwrap();
    assert_eq!(found, [second.uri()]);
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
async fn an_object_is_put_together_by_one_worker_after_another() {
    let (_folder, s3) = s3().await;
    let disk = tempfile::tempdir().unwrap();
    let root = format!("file://{}/", disk.path().canonicalize().unwrap().display());
    let local = Storage::new([root.as_str()]).unwrap();
    for base in [s3.resolve("s3://bucket/data/").unwrap(), local.resolve(&root).unwrap()] {
        let (place, staging) = (base.child("whole.jsonl"), base.child("aside/whole.part"));
        let piece = |number: u8| vec![number; 7 << 20];
        let mut first = Assembly::new(place.clone(), &staging);
        for number in 0..5 {
            first.append(&piece(number)).await.unwrap();
        }
        assert_eq!(first.rest().len(), 3 << 20, "four parts of 8 MiB are in the store");
        let known = (first.assembled().clone(), first.rest().to_vec());
        // Work after the last saved state is repeated by the next worker.
        for number in 5..9 {
            first.append(&piece(99 - number)).await.unwrap();
        }
        drop(first);
        assert!(place.read_if_there().await.unwrap().is_none(), "{place}: not before it is whole");
        let mut second = Assembly::resume(place.clone(), &staging, known.0, known.1.into());
        for number in 5..9 {
            second.append(&piece(number)).await.unwrap();
        }
        second.complete().await.unwrap();
        let expected: Vec<u8> = (0..9).flat_map(piece).collect();
        assert!(place.read().await.unwrap() == expected, "{place}");
        let small = Assembly::new(base.child("small"), &staging);
        small.complete().await.unwrap();
        assert_eq!(base.child("small").size().await.unwrap(), Some(0));
    }
}

/// A storage whose S3 server answers everything with this status.
async fn answering(status: StatusCode) -> Storage {
    answering_beside(status, &[]).await
}

/// Like `answering`, with other roots.
async fn answering_beside(status: StatusCode, others: &[&str]) -> Storage {
    let app = Router::new().fallback(move || async move { status });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    storage_at(&endpoint, others)
}

#[tokio::test]
async fn an_s3s_answers_are_told_apart() {
    let (_folder, storage) = s3().await;
    let gone = storage.resolve("s3://bucket/data/gone.md").unwrap();
    assert!(matches!(gone.read().await, Err(Error::Missing(_))));
    let storage = answering(StatusCode::FORBIDDEN).await;
    let object = storage.resolve("s3://bucket/data/secret.md").unwrap();
    let base = storage.resolve("s3://bucket/data/").unwrap();
    let answers = [
        object.read().await.map(drop),
        object.size().await.map(drop),
        object.write(b"x".to_vec()).await,
        object.create(b"x".to_vec()).await,
        base.list(|_| {}).await,
    ];
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(
            matches!(&error, Error::Forbidden(why) if why.contains("s3://bucket/data")),
            "{error:?}"
        );
    }
    let mut writer = object.writer();
    writer.write_all(b"x").await.unwrap();
    let denied = writer.shutdown().await.unwrap_err();
    assert!(denied.to_string().contains("403"), "{denied}");
    let storage = answering(StatusCode::BAD_REQUEST).await;
    let object = storage.resolve("s3://bucket/data/a.md").unwrap();
    for answer in [object.read().await.map(drop), object.write(b"x".to_vec()).await] {
        assert!(matches!(answer, Err(Error::Misconfigured(_))), "{answer:?}");
    }
    let storage = answering(StatusCode::TOO_MANY_REQUESTS).await;
    let object = storage.resolve("s3://bucket/data/a.md").unwrap();
    assert!(matches!(object.read().await, Err(Error::Failed(_))));
}

#[tokio::test]
async fn a_forbidden_prefix_is_the_authors_to_mend_after_a_few_tries() {
    let storage = answering(StatusCode::FORBIDDEN).await;
    let output = storage.resolve("s3://bucket/data/out/").unwrap();
    let job = serde_json::json!({"source": {"prefix": "s3://bucket/data/in/"}, "output": "s3://bucket/data/out/",
        "instructions": "x", "model": "a:b", "lane": "batch", "tenant": "default", "max_output_tokens": 1});
    let job: Job = serde_json::from_value(job).unwrap();
    let planning = Attempt::new("r".to_owned(), "b".to_owned(), 0, AttemptState::default());
    let mut failure = listed(&storage, &job, &output, PageBudget::page()).await.unwrap_err();
    for attempt in 1..=MAX_STORE_REFUSALS {
        failure = listed(&storage, &job, &output, PageBudget::page()).await.unwrap_err();
        failure = count_store_fault(failure, &planning, PLAN_DEADLINE);
        assert_eq!(failure.is_retried(), attempt < MAX_STORE_REFUSALS, "{failure}");
    }
    assert_eq!(failure.kind, FailureType::InvalidInput);
    assert!(failure.message.contains("cannot list s3://bucket/data/in"), "{failure}");
}

#[tokio::test]
async fn a_document_that_is_gone_or_forbidden_is_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let root = format!("file://{}", folder.path().canonicalize().unwrap().display());
    let forbidding = answering_beside(StatusCode::FORBIDDEN, &[&root]).await;
    let job = serde_json::json!({"source": {"prefix": root}, "output": format!("{root}/out"),
        "instructions": "x", "model": "a:b", "lane": "batch", "tenant": "default", "max_output_tokens": 1});
    let job: Job = serde_json::from_value(job).unwrap();
    let route = route_of(&job.target, &Routes::default()).unwrap();
    let lines = format!(
        "{{\"id\":\"gone\",\"uri\":\"{root}/gone.md\"}}\n{{\"id\":\"secret\",\"uri\":\"s3://bucket/data/secret.md\"}}\n"
    );
    std::fs::create_dir(folder.path().join("job")).unwrap();
    let stored = serde_json::to_vec(&Stored {
        job,
        route,
        parts_add_retries: false,
        forecast: None,
        first_part: 0,
    })
    .unwrap();
    std::fs::write(folder.path().join("job/job.json"), stored).unwrap();
    std::fs::write(folder.path().join("job/shard-00000.jsonl"), lines).unwrap();
    let pending_writes = Arc::default();
    let services = Services {
        answers: None,
        calls: None,
        storage: forbidding,
        reader: Reader::isolated("/bin/false", [], Limits::default()),
        providers: Providers::default(),
        prices: Prices::default(),
        webhooks: Default::default(),
        routes: Routes::default(),
        heartbeats: Default::default(),
        queues: Queues::default(),
        warmth: Arc::default(),
        budgets: Budgets::default().into(),
        guard: services::guard(
            Quota::in_memory([], Options::default()),
            Backoff::default(),
            &pending_writes,
        ),
        pending_writes,
        truncation_stats: Arc::default(),
        archives: Default::default(),
        memory: Default::default(),
        shards: Shards::default(),
        slots: 200,
    };
    let ended = async |index: u32, tries: u32| {
        let document = Attempt::new("r".to_owned(), "b".to_owned(), 0, AttemptState::default());
        let task = DocumentTask {
            job: format!("{root}/job"),
            workflow: "w".into(),
            shard: 0,
            index,
            raised: false,
            asked: false,
            escalated: None,
        };
        for attempt in 1..=tries {
            let failure = process::process(&services, &document, &task).await.unwrap_err();
            let failure = count_store_fault(failure, &document, STORE_DEADLINE);
            assert_eq!(failure.is_retried(), attempt < tries, "{failure}");
            if !failure.is_retried() {
                assert_eq!(failure.kind, FailureType::UnreadableDocument, "{failure}");
                return failure.message;
            }
        }
        String::new()
    };
    assert!(ended(0, 1).await.contains("does not exist"));
    assert!(ended(1, MAX_STORE_REFUSALS).await.contains("the store forbids it"));
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

/// The head of an answer, and the megabyte that follows it without end, if there is one.
type EndlessAnswer = (String, Option<Vec<u8>>);

/// A web server whose answers never end. Counts the megabytes that it sends.
async fn endless(answer: fn(&[u8]) -> EndlessAnswer) -> (String, Arc<AtomicU32>) {
    use tokio::io::AsyncReadExt;

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}/docs", listener.local_addr().unwrap());
    let sent = Arc::<AtomicU32>::default();
    let count = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(client.read_u8().await.unwrap());
            }
            let (head, megabyte) = answer(&request);
            client.write_all(head.as_bytes()).await.unwrap();
            let Some(megabyte) = megabyte else { continue };
            while client.write_all(&megabyte).await.is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    (root, sent)
}

/// The server says five bytes, and sends six gigabytes.
#[tokio::test]
async fn no_more_is_read_than_allowed_whatever_a_server_has_said() {
    let (root, sent) = endless(|request| {
        let is_head = request.starts_with(b"HEAD");
        let says_less = request.starts_with(b"HEAD /docs/a.md");
        let size = if says_less { 5 } else { 6_u64 << 30 };
        let head =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {size}\r\n\r\n");
        (head, (!is_head).then(|| vec![b'x'; 1 << 20]))
    })
    .await;
    let storage = Storage::new([root.as_str()]).unwrap();
    let object = storage.resolve(&format!("{root}/a.md")).unwrap();
    assert_eq!(object.size().await.unwrap(), Some(5));
    let refused = object.read_at_most(1 << 20).await.unwrap_err().to_string();
    assert!(refused.ends_with("has 6442450944 bytes now; at most 1048576 are read"), "{refused}");
    let source = serde_json::json!({"manifest": format!("{root}/b.jsonl")});
    let job = job_of(&source);
    let output = storage.resolve(&format!("{root}/out/")).unwrap();
    let refused = listed(&storage, &job, &output, PageBudget::page()).await.unwrap_err();
    assert!(refused.message.ends_with("at most 67108864 are read"), "{refused}");
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent < 64, "{sent} MB were read");
}

/// The answer has the length that was asked for in its head, and no end.
#[tokio::test]
async fn an_answer_longer_than_asked_is_read_no_further() {
    let (root, sent) = endless(|request| {
        let is_range = request.to_ascii_lowercase().windows(7).any(|word| word == b"\r\nrange");
        let status = match is_range {
            true => "206 Partial Content\r\ncontent-range: bytes 0-4/100",
            false => "200 OK",
        };
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n");
        (head, Some([&b"100000\r\n"[..], &[b'x'; 1 << 20], b"\r\n"].concat()))
    })
    .await;
    let storage = Storage::new([root.as_str()]).unwrap();
    let object = storage.resolve(&format!("{root}/a.md")).unwrap();
    let longer = "is sent with more than the 5 bytes that its server had said";
    let part = object.read_range(0..5).await.unwrap_err().to_string();
    assert!(part.ends_with(longer), "{part}");
    let whole = object.read_at_most(1 << 20).await.unwrap_err().to_string();
    assert!(whole.ends_with(longer), "{whole}");
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent < 64, "{sent} MB were read");
}

/// A web server that counts its requests.
async fn counting() -> (String, Arc<AtomicU32>) {
    let asked = Arc::<AtomicU32>::default();
    let count = Arc::clone(&asked);
    let app = Router::new().route(
        "/docs/a.md",
        get(move || async move {
            count.fetch_add(1, Ordering::SeqCst);
            "The tide."
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}/docs", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (root, asked)
}

/// A worker's storage in which `127.0.0.1` may be read twice at once and twice an hour.
fn limited(root: &str, quota: &Quota) -> Storage {
    let limit = BucketLimit::new(2, 2, Duration::from_secs(3_600)).unwrap();
    let rates = HostRates::new(quota, [("127.0.0.1".to_owned(), limit)]);
    Storage::new([root]).unwrap().with_rates(rates)
}

async fn read(storage: &Storage, root: &str) -> Result<(), Error> {
    storage.resolve(&format!("{root}/a.md")).unwrap().read().await.map(drop)
}

fn is_busy(answer: &Result<(), Error>) -> bool {
    matches!(answer, Err(Error::Failed(why)) if why.contains("the next turn is in"))
}

#[tokio::test]
async fn a_host_is_read_from_at_its_rate_and_other_stores_are_not_held_up() {
    let (root, asked) = counting().await;
    let quota = Quota::in_memory([], Options::default());
    let storage = limited(&root, &quota);
    assert_eq!(storage.resolve(&format!("{root}/a.md")).unwrap().size().await.unwrap(), Some(9));
    read(&storage, &root).await.unwrap();
    let third = read(&storage, &root).await;
    assert!(is_busy(&third), "a turn in half an hour is not waited for: {third:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "the size and one read");
    let without = Storage::new([root.as_str()]).unwrap().with_rates(HostRates::default());
    read(&without, &root).await.unwrap();

    let limit = BucketLimit::new(1, 20, Duration::from_secs(1)).unwrap();
    let rates = HostRates::new(&quota, [("127.0.0.1".to_owned(), limit)]);
    let storage = Storage::new([root.as_str()]).unwrap().with_rates(rates);
    let started = Instant::now();
    for _ in 0..5 {
        read(&storage, &root).await.unwrap();
    }
    assert!(started.elapsed() >= Duration::from_millis(199), "four turns of 50 ms were waited for");
}

#[tokio::test]
async fn workers_share_a_hosts_rate_and_go_on_by_themselves_without_redis() {
    let Some(mut redis) = tidegate_testkit::Redis::start() else { return };
    let (root, asked) = counting().await;
    let worker = || {
        let quota = Quota::with_redis(&redis.url, [], Options::default()).unwrap();
        limited(&root, &quota)
    };
    let [one, other] = [worker(), worker()];
    read(&one, &root).await.unwrap();
    read(&other, &root).await.unwrap();
    for storage in [&one, &other] {
        let third = read(storage, &root).await;
        assert!(is_busy(&third), "the fleet's two are taken: {third:?}");
    }
    redis.kill();
    for storage in [&one, &other] {
        read(storage, &root).await.unwrap();
        read(storage, &root).await.unwrap();
        assert!(is_busy(&read(storage, &root).await), "each has its own two");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 6);
}

/// A bucket with these keys, and the number of its listings. Keys that end in a slash are empty.
async fn bucket_of(keys: Vec<String>) -> (Storage, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let answer = move |method: axum::http::Method, uri: axum::http::Uri| {
        if method == axum::http::Method::HEAD {
            let key = uri.path().strip_prefix("/bucket/").unwrap_or_default();
            let status = match keys.iter().any(|known| known == key) {
                true => StatusCode::OK,
                false => StatusCode::NOT_FOUND,
            };
            let headers = [("last-modified", "Sun, 22 Nov 2026 00:00:00 GMT")];
            return std::future::ready((status, headers, String::new()));
        }
        counted.fetch_add(1, Ordering::SeqCst);
        let query: std::collections::HashMap<String, String> =
            url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect();
        let text = |name: &str| query.get(name).cloned();
        let prefix = text("prefix").unwrap_or_default();
        let after = text("continuation-token").or_else(|| text("start-after")).unwrap_or_default();
        let most = text("max-keys").map_or(1_000, |most| most.parse().unwrap());
        let mut left = keys.iter().filter(|key| key.starts_with(&prefix) && **key > after);
        let page: Vec<&String> = left.by_ref().take(most).collect();
        let mut xml = String::from("<ListBucketResult>");
        for key in &page {
            let size = u8::from(!key.ends_with('/'));
            xml += &format!(
                "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>2026-11-22T00:00:00.000Z</LastModified></Contents>"
            );
        }
        if let (Some(last), Some(_)) = (page.last(), left.next()) {
            xml += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
        }
        let headers = [("last-modified", "")];
        std::future::ready((StatusCode::OK, headers, xml + "</ListBucketResult>"))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().fallback(get(answer));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (storage_at(&endpoint, &[]), asked)
}

/// Keys that `object_store` refuses cost only themselves, wherever they are.
#[tokio::test]
async fn a_key_that_cannot_be_a_path_is_a_failure_of_its_own() {
    let mut keys: Vec<String> =
        (0..2_500).map(|number| format!("data/in/{number:05}.md")).collect();
    let odd =
        ["data/in//first.md", "data/in/00700/./x.md", "data/in/01999//", "data/in/zz/../z.md"];
    keys.extend(odd.map(str::to_owned));
    keys.sort();
    let (storage, asked) = bucket_of(keys).await;
    let job = job_of(&serde_json::json!({"prefix": "s3://bucket/data/in/"}));
    let output = storage.resolve("s3://bucket/data/out/").unwrap();
    let found = listed(&storage, &job, &output, PageBudget::page()).await.unwrap();
    let asked = asked.load(Ordering::SeqCst);
    assert!(asked <= 8 + 12 * 4, "{asked} requests");
    assert_eq!(found.len(), 2_500 + odd.len());
    let pages = listed(&storage, &job, &output, PageBudget::of_documents(700)).await.unwrap();
    assert!(pages == found, "the same in pages");
    let (bad, good): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|document| document.unreadable.is_some());
    let whys: Vec<String> = bad.into_iter().filter_map(|document| document.unreadable).collect();
    for key in odd {
        assert!(
            whys.iter().any(|why| why.contains(key) && why.contains("rename")),
            "{key}: {whys:?}"
        );
    }
    let expected = (0..2_500).map(|number| format!("s3://bucket/data/in/{number:05}.md"));
    let mut uris: Vec<String> = good.into_iter().map(|document| document.uri).collect();
    uris.sort();
    assert!(uris.into_iter().eq(expected), "each of the others once");
}

/// Consoles show a folder by an empty object whose key ends in a slash.
#[tokio::test]
async fn a_folder_of_a_console_is_no_document() {
    let keys = ["data/in/", "data/in/a/", "data/in/a/b/", "data/in/a/b/c.md", "data/in/z.md"];
    let (storage, _) = bucket_of(keys.map(str::to_owned).to_vec()).await;
    let job = job_of(&serde_json::json!({"prefix": "s3://bucket/data/in/"}));
    let output = storage.resolve("s3://bucket/data/out/").unwrap();
    for room in [PageBudget::page(), PageBudget::of_documents(1)] {
        let found = listed(&storage, &job, &output, room).await.unwrap();
        let ids: Vec<&str> = found.iter().map(|document| document.id.as_str()).collect();
        assert_eq!(ids, ["a__b__c.md", "z.md"]);
    }
    let (storage, _) = bucket_of(vec!["data/in/".to_owned(), "data/in/a/".to_owned()]).await;
    let output = storage.resolve("s3://bucket/data/out/").unwrap();
    let refused = listed(&storage, &job, &output, PageBudget::page()).await.unwrap_err();
    assert!(refused.message.contains("no documents were found"), "{refused}");
}

/// `doctor` reads an object where it may not write.
#[tokio::test]
async fn an_odd_key_does_not_condemn_its_bucket() {
    let keys = ["data/in//odd.md", "data/in/z.md"].map(str::to_owned);
    let (storage, _) = bucket_of(keys.to_vec()).await;
    let place = storage.resolve("s3://bucket/data/in/").unwrap();
    let access = place.try_access(CredentialKind::AccessKey).await;
    assert_eq!((access.list.works(), access.read.works()), (Some(true), Some(true)), "{access:?}");
}

/// A batch of the documents of a source.
fn job_of(source: &serde_json::Value) -> Job {
    let job = serde_json::json!({"source": source, "output": "s3://bucket/data/out/",
        "instructions": "x", "model": "a:b", "lane": "batch", "tenant": "default", "max_output_tokens": 1});
    serde_json::from_value(job).unwrap()
}

/// All documents of a source, in its order.
async fn listed(
    storage: &Storage,
    job: &Job,
    output: &Location,
    room: PageBudget,
) -> Result<Vec<Document>, Failure> {
    let (mut all, mut next) = (Vec::new(), Some(Cursor::default()));
    while let Some(cursor) = next {
        let page =
            source::page(storage, job, output, cursor, &DocumentIds::default(), room.clone())
                .await?;
        all.extend(page.documents);
        next = page.next;
    }
    Ok(all)
}

#[tokio::test]
async fn an_object_has_one_stamp_whether_it_was_listed_or_read() {
    let (_bucket, storage) = s3().await;
    let folder = tempfile::tempdir().unwrap();
    let root = format!("file://{}/", folder.path().display());
    let local = Storage::new([root.as_str()]).unwrap();
    for base in [storage.resolve("s3://bucket/data/").unwrap(), local.resolve(&root).unwrap()] {
        let object = base.child("a.md");
        object.write(b"one".to_vec()).await.unwrap();
        let mut listed = None;
        base.entries(|entry| {
            if let Entry::Object(_, stamp) = entry {
                listed = Some(stamp);
            }
        })
        .await
        .unwrap();
        let (listed, (_, read)) = (listed.unwrap(), object.read_stamped().await.unwrap());
        assert!(listed.is_same(&read), "{listed:?} {read:?}");
        assert!(object.stamp().await.unwrap().unwrap().is_same(&read));
        object.write(b"another".to_vec()).await.unwrap();
        assert!(!object.stamp().await.unwrap().unwrap().is_same(&read));
        assert_eq!(base.names().await.unwrap(), ["a.md"]);
        assert_eq!(base.first().await.unwrap().unwrap().uri(), object.uri());
        assert!(base.child("nowhere").first().await.unwrap().is_none());
        assert!(base.child("nowhere").names().await.unwrap().is_empty());
    }
}
