//! A fleet that has moved to another namespace of its Temporal server.

use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};
use tidegate_activities::batch::run_status::has_ended;
use tidegate_testkit::Temporal;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_batch_is_seen_from_another_namespace() {
    let Some(temporal) = Temporal::start(&[]) else { return };
    let (before, now) = (temporal.namespace(), temporal.namespace());
    let url: url::Url = format!("http://{}", temporal.address()).parse().unwrap();
    let connection = Connection::connect(ConnectionOptions::new(url).build()).await.unwrap();
    let client = Client::new(connection, ClientOptions::new(now).build()).unwrap();
    let workflow = |arguments: &[&str]| {
        let of = ["--workflow-id", "first", "--namespace", &before, "-o", "json"];
        let output = temporal.cli().arg("workflow").args(arguments).args(of).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let started = workflow(&["start", "--type", "ProcessDocuments", "--task-queue", "none"]);
    let started: Value = serde_json::from_slice(&started).unwrap();
    let batch = |namespace: &str| Holder {
        namespace: namespace.to_owned(),
        workflow: "first".to_owned(),
        run: started["runId"].as_str().unwrap().to_owned(),
    };
    let ended = async |namespace: &str| has_ended(client.clone(), batch(namespace)).await.unwrap();
    assert!(!ended(&before).await, "it runs");
    workflow(&["terminate", "--reason", "test"]);
    assert!(ended(&before).await);
    assert!(!ended("of-another-server").await, "nothing is known of it");
}
