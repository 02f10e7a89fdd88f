//! Documents before and after their call: read or not, too large, of which kind. With a scripted
//! provider, and quota in memory.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use std::sync::Arc;

use rig::{Rig, fails, whole};
use serde_json::{Value, json};
use tidegate_activities::{
    attempt::{Attempt, AttemptState},
    document::process::process,
    memory::Memory,
    output::{answers::Answers, finish, job::Stored},
    provider_batch,
};
use tidegate_documents::{Limits as DocumentLimits, Reader};
use tidegate_providers::{Charged, Completion, Error, Kind};
use tidegate_quota::{Dimension, Limits};
use tidegate_workflows::contract::{
    Deadline, DocumentTask, FailureType, Finish, Lines, Progress, Totals,
};

type Answer = Result<Completion, Error>;

fn limits() -> Limits {
    Limits { margin: 1.0, ..Limits::default() }.with(Dimension::Requests, 6_000)
}

async fn of_file(name: &str, bytes: &[u8], more: Value, answers: Vec<Answer>) -> Rig {
    Rig::of_files(limits(), &[(name, bytes)], more, answers).await
}

#[tokio::test]
async fn what_the_model_cannot_take_is_said_before_it_is_sent_and_how_to_go_on() {
    let long = json!({"long": {"how": "per_chunk", "chunk_tokens": 70_000}});
    let native = json!({"attach": "native"});
    for (more, way_out) in [
        (json!({}), "\"long\": \"map_reduce\""),
        (long, "chunk_tokens, which is 70000"),
        (native, "\"attach\": \"text\""),
    ] {
        let mut rig = Rig::reading(&"tide ".repeat(50_000), more, vec![]).await;
        rig.provider.context(40_000);
        let failure = rig.end().await.0.unwrap_err();
        assert_eq!(failure.kind, FailureType::TooLarge, "{failure}");
        assert!(failure.message.contains("takes 40000; "), "{failure}");
        assert!(failure.message.contains(way_out), "{failure}");
        assert!(rig.caps().is_empty(), "nothing was sent");
    }
}

#[tokio::test]
async fn the_provider_may_say_it_and_its_words_leave_room_for_the_way_out() {
    let mut said = fails(Kind::TooLarge, Charged::No);
    if let Err(error) = &mut said {
        error.message = "prompt is too long: 212,345 tokens > 200,000 maximum. ".repeat(20);
    }
    // The estimate is just above what the model takes: that alone does not refuse it.
    let mut rig = Rig::reading(&"tide ".repeat(40_000), json!({}), vec![said]).await;
    rig.provider.context(40_000);
    let failure = rig.end().await.0.unwrap_err();
    assert_eq!((failure.kind, rig.caps().len()), (FailureType::TooLarge, 1));
    assert!(failure.message.starts_with("prompt is too long"), "{failure}");
    assert!(failure.message.ends_with("in parts: \"long\": \"map_reduce\""), "{failure}");
    assert!(failure.message.chars().count() <= 500, "as much as a history shows");
}

#[tokio::test]
async fn what_is_answered_already_is_not_read_again() {
    const PAGE: &[u8] = b"<html><body>The tide is high.";
    let store = tempfile::tempdir().unwrap();
    let answers = format!("file://{}", store.path().join("answers").display());
    let mut first = of_file("a.txt", PAGE, json!({}), vec![whole("High.")]).await;
    first.services.answers = Some(Answers::open(&answers).unwrap());
    first.end().await.0.unwrap();
    // As if pages had been missing.
    let question = std::fs::read_dir(store.path().join("answers")).unwrap().next().unwrap();
    let object = std::fs::read_dir(question.unwrap().path()).unwrap().next().unwrap().unwrap();
    let mut kept: Value = serde_json::from_slice(&std::fs::read(object.path()).unwrap()).unwrap();
    let left_out = json!({"unread_pages": {"count": 2, "places": [{"page": 2}, {"page": 7}]}});
    kept["left_out"] = left_out.clone();
    std::fs::write(object.path(), kept.to_string()).unwrap();

    let mut again = of_file("a.html", PAGE, json!({}), vec![]).await;
    again.services.answers = Some(Answers::open(&answers).unwrap());
    let planned = again.readings();
    let outcome = again.end().await.0.unwrap();
    assert_eq!(again.readings(), planned, "no parser is run");
    let result = again.result_of("a.html").unwrap();
    assert_eq!((outcome.reused.reused, &result["answer"]), (1, &json!("High.")));
    assert_eq!(result["left_out"], left_out, "it says what it was made of");
}

/// A tar archive of these files.
fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, text) in files {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, name.as_bytes());
        put(100, b"0000644\0");
        put(124, format!("{:011o}\0", text.len()).as_bytes());
        put(148, b"        ");
        put(156, b"0");
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend_from_slice(&header);
        let mut content = text.as_bytes().to_vec();
        content.resize(text.len().div_ceil(512) * 512, 0);
        archive.extend_from_slice(&content);
    }
    archive.resize(archive.len() + 1_024, 0);
    archive
}

#[tokio::test]
async fn each_document_of_an_archive_is_one_of_the_batch() {
    let archive = tar(&[("sub/a#b.txt", "Ebb."), ("c.txt", "Flow."), ("c.txt~", "Slack.")]);
    let files: [(&str, &[u8]); 3] =
        [("all.tar", &archive), ("cut.zip", b"PK\x03\x04 and no more"), ("d.txt", b"High.")];
    let answers = vec![whole("1"), whole("2"), whole("3"), whole("4")];
    let mut rig = Rig::of_files(limits(), &files, json!({}), answers).await;
    assert_eq!(rig.plan.documents, 5);
    let mut ended = Vec::new();
    for _ in 0..5 {
        ended.push(rig.end().await.0.map_err(|failure| failure.to_string()));
        rig.next_document();
    }
    let mut results: Vec<String> = std::fs::read_dir(rig.folder.path().join("out/results"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .map(|json| {
            serde_json::from_str::<Value>(&json).unwrap()["uri"].as_str().unwrap().to_owned()
        })
        .map(|uri| uri.rsplit_once("/in/").unwrap().1.to_owned())
        .collect();
    results.sort();
    assert_eq!(results, ["all.tar#c.txt", "all.tar#c.txt~", "all.tar#sub/a%23b.txt", "d.txt"]);
    assert!(rig.result_of("all.tar__c.txt").is_some(), "named by archive and path");
    assert_eq!(rig.caps().len(), 4, "the damaged archive is one document, and asks nothing");
    let faults: Vec<&String> = ended.iter().filter_map(|ended| ended.as_ref().err()).collect();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].contains("the ZIP archive is damaged"), "{faults:?}");

    // A finished document is not asked again; one that was removed from the archive reports it.
    rig.task.index = 0;
    rig.end().await.0.unwrap();
    assert_eq!(rig.caps().len(), 4);
    std::fs::write(rig.folder.path().join("in/all.tar"), tar(&[("c.txt", "Flood.")])).unwrap();
    std::fs::remove_dir_all(rig.folder.path().join("out/results")).unwrap();
    rig.provider.answers.lock().unwrap().push_back(whole("5"));
    let mut gone = 0;
    for index in 0..3 {
        (rig.task.index, rig.state) = (index, json!({}));
        if let Err(failure) = rig.end().await.0 {
            assert!(failure.message.ends_with("in all.tar any more"), "{failure}");
            gone += 1;
        }
    }
    assert_eq!((gone, &rig.result_of("all.tar__c.txt").unwrap()["answer"]), (2, &json!("5")));
}

#[tokio::test]
async fn files_of_one_name_in_an_archive_are_documents_of_their_own() {
    let archive = tar(&[("c.txt", "Flow."), ("d.txt", "Slack."), ("c.txt", "Surge.")]);
    let answers = vec![whole("1"), whole("2"), whole("3")];
    let mut rig = Rig::of_files(limits(), &[("all.tar", &archive)], json!({}), answers).await;
    assert_eq!(rig.plan.documents, 3);
    for _ in 0..3 {
        rig.end().await.0.unwrap();
        rig.next_document();
    }
    let uri = |id: &str| rig.result_of(id).unwrap()["uri"].as_str().unwrap().to_owned();
    assert!(uri("all.tar__c.txt").ends_with("all.tar#c.txt"));
    assert!(uri("all.tar__c.txt~2").ends_with("all.tar#2%2Fc.txt"));
}

#[tokio::test]
async fn a_document_that_comes_back_is_not_read_again_unless_it_has_changed() {
    let busy = || fails(Kind::RateLimited, Charged::No);
    let page = b"<html><body>The tide is high.".as_slice();
    let answers = vec![busy(), busy(), busy(), whole("High.")];
    let mut rig = of_file("a.html", page, json!({}), answers).await;
    rig.services.guard.backoff.base = std::time::Duration::ZERO;
    let planned = rig.readings();
    for (change, readings) in [(false, 1), (false, 1), (true, 2)] {
        if change {
            let path = rig.folder.path().join("in/a.html");
            std::fs::write(&path, b"<html><body>The tide is low.").unwrap();
        }
        let attempt = rig.attempt();
        let failure = process(&rig.services, &attempt, &rig.task).await.unwrap_err();
        assert_eq!((failure.kind, rig.readings() - planned), (FailureType::RateLimited, readings));
        rig.state = serde_json::to_value(attempt.state()).unwrap();
    }
    let texts = || {
        let runs = std::fs::read_dir(rig.folder.path().join("out/_tidegate")).unwrap();
        let texts =
            runs.filter_map(|run| std::fs::read_dir(run.unwrap().path().join("texts")).ok());
        texts.flatten().count()
    };
    assert_eq!(texts(), 1);
    let attempt = Attempt::new(
        "run#0.0.9".to_owned(),
        "w".to_owned(),
        0,
        serde_json::from_value(rig.state.clone()).unwrap(),
    );
    process(&rig.services, &attempt, &rig.task).await.unwrap();
    assert_eq!(
        (rig.readings() - planned, texts()),
        (2, 0),
        "read for the last time, and cleared away"
    );
    assert_eq!(rig.result_of("a.html").unwrap()["answer"], json!("High."));
}

#[tokio::test]
async fn a_cancelled_batch_leaves_no_text_of_its_documents() {
    let page = b"<html><body>The tide is high.".as_slice();
    let busy = fails(Kind::RateLimited, Charged::No);
    let mut rig = of_file("a.html", page, json!({}), vec![busy]).await;
    let attempt = rig.attempt();
    process(&rig.services, &attempt, &rig.task).await.unwrap_err();
    let run = rig.services.storage.resolve(&rig.plan.job).unwrap();
    let texts = rig.folder.path().join("out/_tidegate").join(run.name()).join("texts");
    assert_eq!(std::fs::read_dir(&texts).unwrap().count(), 1);
    let totals = Totals { cancelled: 1, ..Totals::default() };
    let progress = Progress { documents: 1, totals, ..Progress::default() };
    let output = format!("file://{}/out/", rig.folder.path().display());
    let of = Finish { plan: rig.plan.clone(), output, progress };
    finish::finish(&rig.services.storage, &of).await.unwrap();
    assert!(!texts.exists());
}

/// A document waits for room before it is fetched, so no more are read at once than there is room for.
#[tokio::test(flavor = "multi_thread")]
async fn documents_in_memory_are_bounded_by_their_bytes() {
    const SIZE: usize = 1 << 20;
    let page = [&b"<html>"[..], &vec![b'x'; SIZE]].concat();
    let names: Vec<String> = (0..20).map(|number| format!("{number:03}.html")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &page[..])).collect();
    let answers = names.iter().map(|_| whole("x")).collect();
    let mut rig = Rig::of_files(limits(), &files, json!({}), answers).await;
    // Room for one of them, which counts three times.
    rig.services.memory = Memory::new(5 * SIZE as u64);
    let folder = rig.folder.path().join("reading");
    std::fs::create_dir(&folder).unwrap();
    // Prints how many are being read, itself included.
    let script = format!(
        "touch {0}/$$; ls {0} | wc -l >> {1}; cat > /dev/null; rm {0}/$$; echo '{{\"Ok\":{{\"text\":\"x\",\"format\":\"Html\",\"pages\":null}}}}'",
        folder.display(),
        rig.folder.path().join("at-once").display()
    );
    rig.services.reader =
        Reader::isolated("/bin/sh", ["-c".to_owned(), script], DocumentLimits::default());
    let (services, task) = (Arc::new(rig.services), rig.task.clone());
    let all = (0..20).map(|index| {
        let (services, task) = (Arc::clone(&services), DocumentTask { index, ..task.clone() });
        tokio::spawn(async move {
            let attempt = Attempt::new(
                format!("run#0.{index}.1"),
                "w".to_owned(),
                0,
                AttemptState::default(),
            );
            process(&services, &attempt, &task).await.map(drop)
        })
    });
    for ended in futures::future::join_all(all.collect::<Vec<_>>()).await {
        ended.unwrap().unwrap();
    }
    let peak = std::fs::read_to_string(rig.folder.path().join("at-once")).unwrap();
    let counts: Vec<usize> = peak.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), 20);
    assert!(counts.iter().all(|at_once| *at_once == 1), "{counts:?}");
}

#[tokio::test]
async fn a_picture_goes_as_it_is_seen_and_counts_as_its_model_counts() {
    let found = r#"{"Ok":{"text":"","pictures":[{"media_type":"image/png","width":2016,"height":1512,"bytes":"AQI="}],"format":"Png","pages":null}}"#;
    let script = format!("cat > /dev/null; echo '{found}'");
    let reader = || {
        Reader::isolated("/bin/sh", ["-c".to_owned(), script.clone()], DocumentLimits::default())
    };
    let mut rig =
        of_file("a.png", b"\x89PNG and so on", json!({}), vec![whole("A tide gauge.")]).await;
    rig.services.reader = reader();
    rig.end().await.0.unwrap();
    assert_eq!(*rig.provider.sent.lock().unwrap(), ["Pictures(2 bytes)"]);
    assert_eq!(rig.result_of("a.png").unwrap()["answer"], json!("A tide gauge."));

    // 72 × 54 patches and a few words; half of the pixels are as good.
    let mut large = of_file("a.png", b"\x89PNG and so on", json!({}), vec![]).await;
    large.services.reader = reader();
    large.provider.context(2_000);
    let failure = large.end().await.0.unwrap_err();
    assert_eq!(failure.kind, FailureType::TooLarge);
    assert!(failure.message.contains("some 39"), "{failure}");
}

#[tokio::test]
async fn pages_without_text_are_drawn_for_those_who_ask() {
    const PDF: &[u8] = b"%PDF-1.7\n";
    let found = r#"{"Ok":{"text":"[Page 1: picture 1]","pictures":[{"media_type":"image/png","width":600,"height":800,"bytes":"AQID"}],"format":"Pdf","pages":3,"left_out":{"pages_without_text":{"count":1,"places":[{"page":3}]}}}}"#;
    // The child's task comes first, in a line of its own.
    let script = format!(
        "grep -q '\"page_pictures\":20' && echo '{found}' || echo '{{\"Err\":{{\"NoTextLayer\":{{\"pages\":3}}}}}}'"
    );
    let reader = || {
        Reader::isolated("/bin/sh", ["-c".to_owned(), script.clone()], DocumentLimits::default())
    };
    let asked = json!({"attach": "auto"});
    let mut rig = of_file("a.pdf", PDF, asked, vec![whole("A tide gauge.")]).await;
    rig.services.reader = reader();
    rig.end().await.0.unwrap();
    let result = rig.result_of("a.pdf").unwrap();
    assert_eq!(
        result["left_out"]["pages_without_text"]["places"],
        json!([{"page": 3}]),
        "the one that is not drawn is named"
    );
    assert_eq!(
        *rig.provider.sent.lock().unwrap(),
        ["Pictures(22 bytes)"],
        "a note of where it belongs, and a picture"
    );

    let mut text = of_file("a.pdf", PDF, json!({}), vec![]).await;
    text.services.reader = reader();
    let failure = text.end().await.0.unwrap_err();
    assert_eq!(failure.kind, FailureType::UnreadableDocument);
}

/// A batch past its time is refused as a whole; each line of a file of requests reports it by itself.
#[tokio::test]
async fn lines_of_a_batch_that_is_over_are_planned() {
    let rig = Rig::new(json!({}), vec![]).await;
    let job = rig.plan.job.strip_prefix("file://").unwrap();
    let stored = std::fs::read(format!("{job}/job.json")).unwrap();
    let Stored { mut job, route, forecast, .. } = serde_json::from_slice(&stored).unwrap();
    let (forecast, now) = (forecast.unwrap(), std::time::SystemTime::now());
    job.deadline = Some(Deadline::At(1));
    let refused = provider_batch::choose(&rig.services, &job, &route, &forecast, now).unwrap_err();
    assert!(refused.message.starts_with("deadline is over already"), "{refused}");
    job.lines = Some(Lines { endpoint: "/v1/messages".to_owned(), ..Lines::default() });
    let chosen = provider_batch::choose(&rig.services, &job, &route, &forecast, now).unwrap();
    assert_eq!(chosen, None);
}
