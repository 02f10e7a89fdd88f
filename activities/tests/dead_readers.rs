//! Documents that kill the process that reads them.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use std::time::Duration;

use rig::{Rig, whole};
use serde_json::json;
use tidegate_activities::document::process;
use tidegate_documents::{Limits, Reader};
use tidegate_workflows::contract::FailureType;

#[tokio::test]
async fn what_kills_two_workers_is_not_read_a_third_time() {
    let mut rig =
        Rig::with_documents(&["", "The tide is high."], json!({}), vec![whole("High.")]).await;
    std::fs::write(rig.folder.path().join("in/a.txt"), "%PDF-1.7\n").unwrap();
    let begun = rig.folder.path().join("begun");
    let reads = || std::fs::read_to_string(&begun).map_or(0, |text| text.lines().count());
    let script = format!("echo begun >> {}; exec sleep 600", begun.display());
    rig.services.reader = Reader::isolated("/bin/sh", ["-c".to_owned(), script], Limits::default());
    for dead in 1..=2 {
        let attempt = rig.attempt();
        let reading = async {
            while reads() < dead {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ended = process::process(&rig.services, &attempt, &rig.task) => {
                panic!("reading never ends: {ended:?}")
            }
            () = reading => {}
        }
        // Only the state that was sent before survives the process.
        rig.state = serde_json::to_value(attempt.state()).unwrap();
    }
    let failure = rig.end().await.0.unwrap_err();
    assert_eq!((failure.kind, reads()), (FailureType::UnreadableDocument, 2), "{failure}");
    assert!(
        failure.message.starts_with("2 workers died while they read this document"),
        "{failure}"
    );
    rig.next_document();
    rig.end().await.0.unwrap();
}
