//! The vendors' own SDKs take the simulator's answers, errors and batches for the real thing.
//!
//! `make test` fetches the SDKs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;

use serde::Deserialize;
use tidegate_simulator::{Config, Simulator};
use tidegate_testkit::python_with_sdks;

/// A script's report of an answer that its SDK read.
#[derive(Debug, Deserialize)]
struct Told {
    text: String,
    stop: String,
    input: u64,
    output: u64,
}

#[derive(Debug, Deserialize)]
struct Refused {
    kind: String,
    status: u16,
    message: String,
}

#[derive(Debug, Deserialize)]
struct Batch {
    listed: bool,
    results: BTreeMap<String, Told>,
}

#[derive(Debug, Deserialize)]
struct Vendor {
    plain: Told,
    schema: Option<Told>,
    refused: Refused,
    batch: Option<Batch>,
    /// The lengths of two of them.
    vectors: Option<Vec<usize>>,
}

#[tokio::test]
async fn the_vendors_own_sdks_take_its_answers() {
    let Some(python) = python_with_sdks() else { return };
    let limits: String = ["a", "o", "r", "g", "b"]
        .iter()
        .map(|name| format!("[models.limited-{name}]\nrpm = 1\n"))
        .collect();
    let config = Config::from_toml(&format!("[batches]\nduration = \"500ms\"\n{limits}")).unwrap();
    let simulator = Simulator::start(config).await.unwrap();
    let mut script = tokio::process::Command::from(python);
    for leaking in [
        "AWS_PROFILE",
        "AWS_BEARER_TOKEN_BEDROCK",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
    ] {
        script.env_remove(leaking);
    }
    let output = script
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdks/ask.py"))
        .arg(simulator.base_url())
        // No proxy stands between a test and its own server.
        .env("NO_PROXY", "*")
        .env("no_proxy", "*")
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let vendors: BTreeMap<String, Vendor> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        vendors.keys().collect::<Vec<_>>(),
        ["anthropic", "bedrock", "gemini", "openai", "responses"]
    );

    let errors = BTreeMap::from([
        ("anthropic", "RateLimitError"),
        ("bedrock", "ThrottlingException"),
        ("gemini", "ClientError"),
        ("openai", "RateLimitError"),
        ("responses", "RateLimitError"),
    ]);
    for (name, vendor) in &vendors {
        let answers = [Some(&vendor.plain), vendor.schema.as_ref()].into_iter().flatten();
        let answers = answers.chain(vendor.batch.iter().flat_map(|batch| batch.results.values()));
        for answer in answers {
            assert!(
                answer.text.contains("The tide is high at noon.") && !answer.stop.is_empty(),
                "{name}: {answer:?}"
            );
            assert!(answer.input > 0 && answer.output > 0, "{name}: {answer:?}");
        }
        assert!(
            vendor.schema.iter().all(|answer| answer.text.starts_with("{\"summary\":")),
            "{name}: {:?}",
            vendor.schema
        );
        let refused = &vendor.refused;
        assert_eq!(
            (refused.kind.as_str(), refused.status),
            (errors[name.as_str()], 429),
            "{name}: {}",
            refused.message
        );
        if let Some(batch) = &vendor.batch {
            assert!(batch.listed && batch.results.keys().eq(["d-0", "d-1"]), "{name}: {batch:?}");
        }
    }
    assert_eq!(vendors.values().filter(|vendor| vendor.batch.is_some()).count(), 3);
    for name in ["openai", "gemini"] {
        assert_eq!(vendors[name].vectors.as_deref(), Some(&[8, 8][..]), "{name}");
    }
    simulator.shutdown().await;
}
