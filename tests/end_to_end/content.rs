//! The payloads in Temporal: structure, but no text of a document, an answer or a key.

use std::{io::Read as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::fleet::{Fleet, MODEL, assert_is_private, fleet};

/// This word is in every document, and so in every text that quotes one.
const WORD: &str = "Zwischenahn";

/// A workflow's whole history, with readable payloads.
pub(crate) async fn history(fleet: &Fleet, id: &str) -> String {
    let shown = fleet.cli(&["workflow", "show", "--workflow-id", id, "-o", "json"]).await;
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let mut value: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let mut text = String::new();
    read(&mut value, &mut text);
    text
}

/// Collects every string, also decoded from base64, because payloads are encoded so.
fn read(value: &mut Value, text: &mut String) {
    match value {
        Value::String(string) => {
            text.push_str(string);
            if let Ok(bytes) = STANDARD.decode(&*string) {
                let _ = bytes.as_slice().read_to_string(text);
            }
            text.push('\n');
        }
        Value::Array(values) => values.iter_mut().for_each(|value| read(value, text)),
        Value::Object(values) => values.values_mut().for_each(|value| read(value, text)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_word_of_a_document_reaches_temporal() {
    let settings = format!(
        "[models.\"{MODEL}\"]\nrpm = 3_000\n[gate]\nbase-backoff = \"1s\"\nmax-backoff = \"2s\"\njitter = \"0s\"\n"
    );
    // Each fault writes a failure into the history, and the calls' state into heartbeats.
    let fault = |kind: &str, how: &str| format!("[[faults]]\nkind = \"{kind}\"\n{how}\n");
    let faults = [
        fault("server-error", "rate = 0.1"),
        fault("overloaded", "rate = 0.35"),
        fault("malformed", "rate = 0.1"),
        fault("rate-limited", "times = 3"),
    ];
    let faults = faults.concat();
    let Some(mut fleet) = fleet(&faults, &settings).await else { return };
    for number in 0..24 {
        let text =
            format!("# {WORD} {number}\n\nThe harbour of {WORD} lies at kilometre {number}.\n");
        std::fs::write(fleet.path(&format!("in/report-{number:02}.md")), text).unwrap();
    }
    std::fs::write(fleet.path("in/broken.pdf"), format!("%PDF-1.7 {WORD}")).unwrap();
    fleet.worker();
    // The simulator's answers do not satisfy this schema: the fault is described and not quoted.
    let schema = json!({"type": "object", "required": ["kilometre"], "additionalProperties": false, "properties": {"kilometre": {"type": "integer", "minimum": 1_000_000_000}}});
    for (id, schema) in [("plain", None), ("shaped", Some(schema))] {
        let mut batch = fleet.batch(id);
        if let Some(schema) = schema {
            batch["schema"] = schema;
        }
        fleet.start(id, &batch).await;
        let result = fleet.result(id).await.unwrap();
        println!("{id}: {result}");
        assert!(
            result["failed"].as_u64() > Some(0),
            "some fail, so that there are failures to look at: {result}"
        );
        // A batch of one shard has no child workflow for it.
        let seen = history(&fleet, id).await;
        // The history is readable, and it contains failures.
        for present in ["Summarise in three points.", "UnreadableDocument", "Overloaded"] {
            assert!(seen.contains(present), "{present} is not in the history: {seen}");
        }
        assert!(!seen.contains(WORD), "{}", around(&seen, WORD));
        assert!(!seen.contains("sk-simulated-secret"));
        assert_is_private(&fleet.path(id));
        for (document, result) in fleet.results(id) {
            let answer = result["answer"]
                .as_str()
                .map_or_else(|| result["answer"].to_string(), str::to_owned);
            assert!(
                !seen.contains(&answer),
                "the answer to {document}: {}",
                around(&seen, &answer)
            );
        }
    }
    is_private(&fleet.path("plain"));
    fleet.stop().await;
}

/// Everything in this folder is readable for its own user alone.
fn is_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| is_private(&entry.unwrap().path()));
    }
}

fn around<'a>(text: &'a str, word: &str) -> &'a str {
    text.lines().find(|line| line.contains(word)).unwrap_or_default()
}
