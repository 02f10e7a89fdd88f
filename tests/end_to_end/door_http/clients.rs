//! The vendors' own clients, unmodified and with their default settings.

use tidegate_simulator::Simulator;
use tidegate_testkit::{node_sdks, python_with_sdks};

use super::*;

/// 600 calls a minute of each vendor's model.
async fn stage() -> Option<(Simulator, Doors)> {
    let config = "mean-output-tokens = 20\n[models.m]\nrpm = 600";
    let config = tidegate_simulator::Config::from_toml(config).unwrap();
    let simulator = Simulator::start(config).await.unwrap();
    let limits = "rpm = 600\nburst = \"1s\"";
    let of = |kind| provider(kind, &simulator.base_url(), limits);
    let settings = of("openai") + &of("anthropic");
    let doors = Doors::start(&settings).await?;
    Some((simulator, doors))
}

/// The output of a program; no proxy is between a test and its own server.
pub(super) async fn printed(
    program: std::process::Command,
    script: &str,
    arguments: &[&str],
) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/door_http/");
    let mut program = tokio::process::Command::from(program);
    program.arg(format!("{folder}{script}")).args(arguments);
    let output = program.env("NO_PROXY", "*").env("no_proxy", "*").output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// More calls than the limit admits at once: an SDK's two retries suffice for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_vendors_python_sdks_are_all_answered() {
    let Some(python) = python_with_sdks() else { return };
    let Some((simulator, doors)) = stage().await else { return };
    let told = printed(python, "ask.py", &[doors.url(), KEY, "60"]).await;
    for vendor in ["openai", "anthropic", "responses"] {
        assert_eq!(told[vendor], json!({"answered": 60, "failed": []}), "{told}");
    }
    assert_eq!(told["wrong_key"], "AuthenticationError", "{told}");
    assert_eq!(told["wrong_model"], "NotFoundError", "{told}");
    assert_eq!(simulator.account().refused().requests, 0, "no 429 at the provider");
    doors.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_vendors_node_sdks_are_all_answered() {
    let Some(modules) = node_sdks() else { return };
    let Some((simulator, doors)) = stage().await else { return };
    let node = std::process::Command::new("node");
    let told = printed(node, "ask.mjs", &[modules.to_str().unwrap(), doors.url(), KEY, "60"]).await;
    for vendor in ["openai", "anthropic"] {
        assert_eq!(told[vendor], json!({"answered": 60, "failed": []}), "{told}");
    }
    assert_eq!(simulator.account().refused().requests, 0, "no 429 at the provider");
    doors.stop().await;
}
