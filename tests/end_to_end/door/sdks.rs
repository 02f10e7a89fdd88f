//! The programs of `examples/` on Temporal's own SDKs, which `make door` fetches.

use std::{
    path::{Path, PathBuf},
    process::Command as Blocking,
};

use serde_json::{Value, json};
use tokio::process::Command;

use super::door;
use crate::fleet::{Fleet, MODEL};

/// Answers take a second; a prompt that contains "slowly" takes a minute.
const PROVIDER: &str = "[latency]\nbase = \"1s\"\n[models.\"claude-sonnet-5\"]\nrpm = 600\n\
    [[faults]]\nkind = \"slow\"\ndelay = \"60s\"\nmatching = \"slowly\"\n";

/// A tool that a program needs. If it is missing, the test is skipped with a message; `make door`
/// requires it.
fn tool(path: PathBuf) -> Option<PathBuf> {
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("TIDEGATE_REQUIRE_DOOR").is_some_and(|value| value == "1");
    assert!(!required, "required by TIDEGATE_REQUIRE_DOOR: {}", path.display());
    eprintln!("SKIPPED: {} is not there; run `make door`", path.display());
    None
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a program beside a batch that uses all of the quota, and checks its output.
async fn answers(sdk: &str, program: impl FnOnce(&Fleet) -> Command) {
    let Some(mut fleet) = door(PROVIDER, "rpm = 600", "").await else { return };
    let long = "The tide comes in and goes out again. ".repeat(80_000);
    std::fs::write(fleet.path("inputs/long.txt"), long).unwrap();
    fleet.documents(900, 60);
    fleet.worker();
    fleet.start("saturates", &fleet.batch("out")).await;
    fleet.until("saturates", |progress| progress["succeeded"].as_u64() >= Some(50)).await;
    let output = program(&fleet)
        .args([fleet.temporal.address().as_str(), fleet.namespace(), MODEL])
        .arg(fleet.uri("inputs/long.txt"))
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    println!("{sdk}: {told}");
    let lines: Vec<Value> =
        told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [answers, failure, cancelled] = lines.as_slice() else { panic!("{told}") };
    assert_eq!(answers["prompt"], true);
    assert!(answers["schema"]["city"].is_string(), "{answers}");
    assert_eq!((&answers["tools"], &answers["once"]), (&json!("message"), &json!(1)));
    assert!(answers["large"].as_u64() > Some(500_000), "{answers}");
    assert_eq!(failure["failure"], "InvalidInput");
    assert!(failure["says"].as_str().unwrap().contains("did you mean"), "{failure}");
    let seconds = |value: &Value| value.as_f64().unwrap();
    // A heartbeat is sent after 1.4 s, and brings the cancellation back.
    assert!(seconds(&cancelled["cancelled_after"]) < 3.9, "{cancelled}");
    let fifty: Vec<f64> = answers["fifty"].as_array().unwrap().iter().map(seconds).collect();
    println!(
        "{sdk}: fifty calls beside a batch: median {:.1} s, slowest {:.1} s",
        fifty[25], fifty[49]
    );
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_in_python_calls_it_by_name() {
    let Some(python) = tool(root().join(".tools/python/bin/python")) else { return };
    // Threads of Temporal's SDK may abort an interpreter that ends (temporalio/sdk-python#300).
    let run = "import os, runpy, sys\ndel sys.argv[0]\n\
        runpy.run_path(sys.argv[0], run_name='__main__')\nsys.stdout.flush()\nos._exit(0)";
    answers("python", |_| {
        let mut command = Command::new(python);
        command.args(["-c", run]).arg(root().join("examples/temporal-python/ask.py"));
        command
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_in_typescript_calls_it_by_name() {
    let Some(main) = tool(root().join(".tools/typescript/lib/main.js")) else { return };
    answers("typescript", |_| {
        let mut command = Command::new("node");
        command.arg(main);
        command
    })
    .await;
}

/// The types for other languages equal those that the script generates from the contract.
#[test]
fn the_types_for_other_languages_are_as_the_script_writes_them() {
    let script = root().join("scripts/door_stubs.py");
    let Ok(output) = Blocking::new("python3").arg(script).arg("--check").output() else {
        return eprintln!("SKIPPED: no python3");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
