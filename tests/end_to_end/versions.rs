//! Two versions of the workers side by side.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fleet::{Fleet, MODEL, fleet};

const DEPLOYMENT: &str = "tide";

fn version(build_id: &str) -> [(&str, &str); 2] {
    [("TEMPORAL_DEPLOYMENT_NAME", DEPLOYMENT), ("TEMPORAL_WORKER_BUILD_ID", build_id)]
}

/// The output of `doctor` or `why`, as JSON.
async fn json_output(fleet: &Fleet, arguments: &[&str], variables: &[(&str, &str)]) -> Value {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .args(["--json", "--config"])
        .arg(fleet.path("tidegate.toml"))
        .env("SIMULATED_KEY", "sk-simulated-secret")
        .envs(variables.iter().copied())
        .output()
        .await
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Makes a version current with the suggested command, as soon as the server accepts it.
async fn make_current(fleet: &Fleet, command: &str) {
    let arguments: Vec<&str> = command.split(' ').skip(1).chain(["--yes"]).collect();
    for _ in 0..300 {
        let output = fleet.cli(&arguments).await;
        if output.status.success() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("never current: {command}");
}

/// The version that a batch ran on last.
async fn ran_on(fleet: &Fleet, id: &str) -> Value {
    let output =
        fleet.cli(&["workflow", "describe", "--workflow-id", id, "--output", "json"]).await;
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    seen["workflowExecutionInfo"]["versioningInfo"]["deploymentVersion"]["buildId"].clone()
}

/// The first version gets no work before it is current; `doctor` and `why` report that. A batch that
/// began on it ends on the second version, which gets the new batches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_began_on_one_version_ends_on_the_next() {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 6_000\nconcurrent = 1\n");
    let Some(mut fleet) = fleet("latency = { base = \"400ms\" }", &settings).await else { return };
    fleet.documents(30, 100);
    fleet.worker_with(&version("v1"));
    fleet.start("old", &fleet.batch("old")).await;
    let command =
        "temporal worker deployment set-current-version --deployment-name tide --build-id v1";
    let mut why = Value::Null;
    for _ in 0..100 {
        // The worker polls after a moment.
        why = json_output(&fleet, &["why", "old"], &[]).await["why"].clone();
        if why.as_str().unwrap().contains("this version is not current") {
            break;
        }
    }
    assert!(why.as_str().unwrap().contains(command), "{why}");
    // On the workers' machine, and on one without a version.
    for variables in [&version("v1")[..], &[]] {
        let checks = json_output(&fleet, &["doctor"], variables).await["checks"].clone();
        let check =
            checks.as_array().unwrap().iter().find(|check| check["name"] == "worker version");
        let check = check.unwrap_or_else(|| panic!("{checks}"));
        assert_eq!(
            (&check["state"], &check["remedy"]),
            (&json!("fail"), &json!(command)),
            "{check}"
        );
    }
    make_current(&fleet, command).await;
    for _ in 0..600 {
        if fleet.account().requests >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(ran_on(&fleet, "old").await, json!("v1"));

    // The pause keeps the batch from ending before the change.
    fleet.signal("old", "pause").await;
    fleet.worker_with(&version("v2"));
    make_current(&fleet, &command.replace("v1", "v2")).await;
    fleet.signal("old", "resume").await;
    let mut new = fleet.batch("new");
    // Separate instructions keep the prompts of each batch apart.
    new["instructions"] = json!("Summarise in two points.");
    fleet.start("new", &new).await;
    let (new, old) = (fleet.result("new").await.unwrap(), fleet.result("old").await.unwrap());
    for (id, result) in [("new", new), ("old", old)] {
        assert_eq!((&result["succeeded"], &result["failed"]), (&json!(30), &json!(0)), "{result}");
        assert_eq!(ran_on(&fleet, id).await, json!("v2"), "{id}");
    }
    assert_eq!(fleet.simulator.account().answered_twice, 0, "nothing is asked twice");
    let checks = json_output(&fleet, &["doctor"], &version("v2")).await["checks"].clone();
    let check = checks.as_array().unwrap().iter().find(|check| check["name"] == "worker version");
    assert_eq!(check.unwrap()["state"], json!("ok"), "{checks}");
    fleet.stop().await;
}
