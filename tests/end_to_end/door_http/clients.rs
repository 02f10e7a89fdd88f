//! The vendors' own clients, with their default settings and no line of ours.

use tidegate_simulator::Simulator;
use tidegate_testkit::python_with_sdks;

use super::*;

/// More calls than the limit has at once: an SDK's two retries suffice for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_vendors_python_sdks_are_all_answered() {
    let Some(python) = python_with_sdks() else { return };
    let config = "mean-output-tokens = 20\n[models.m]\nrpm = 600";
    let config = tidegate_simulator::Config::from_toml(config).unwrap();
    let simulator = Simulator::start(config).await.unwrap();
    let limits = "rpm = 600\nburst = \"1s\"";
    let of = |kind| provider(kind, &simulator.base_url(), limits);
    let settings = of("openai") + &of("anthropic");
    let Some(doors) = Doors::start(&settings).await else { return };
    let mut script = tokio::process::Command::from(python);
    let output = script
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/door_http/ask.py"))
        .args([doors.url(), KEY, "60"])
        .env("NO_PROXY", "*")
        .env("no_proxy", "*")
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    for vendor in ["openai", "anthropic", "responses"] {
        assert_eq!(told[vendor], json!({"answered": 60, "failed": []}), "{told}");
    }
    assert_eq!(told["wrong_key"], "AuthenticationError", "{told}");
    assert_eq!(told["wrong_model"], "NotFoundError", "{told}");
    assert_eq!(simulator.account().refused().requests, 0, "no 429 at the provider");
    doors.stop().await;
}
