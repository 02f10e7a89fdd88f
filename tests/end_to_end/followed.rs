//! Following a batch, and starting it a second time.

use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
    process::Command,
    task::{AbortHandle, JoinSet},
};

use crate::{
    fleet::{Fleet, MODEL, fleet, free_address},
    why::tidegate,
};

/// A connection to a server that the test can cut.
struct Way {
    address: String,
    to: String,
    open: Option<AbortHandle>,
}

impl Way {
    async fn to(server: String) -> Self {
        let mut way = Self { address: free_address(), to: server, open: None };
        way.open().await;
        way
    }

    async fn open(&mut self) {
        let (listener, to) = (TcpListener::bind(&self.address).await.unwrap(), self.to.clone());
        let task = tokio::spawn(async move {
            // The connections end with this task.
            let mut connections = JoinSet::new();
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let to = to.clone();
                connections.spawn(async move {
                    let mut server = TcpStream::connect(to).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        self.open = Some(task.abort_handle());
    }

    fn cut(&mut self) {
        self.open.take().unwrap().abort();
    }
}

async fn slow_fleet() -> Option<Fleet> {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 60\n");
    fleet("[latency]\nbase = \"500ms\"\n", &settings).await
}

/// The command reports that the server is away, and goes on when it is back; the batch did not wait for
/// that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_for_a_while_does_not_end_the_following() {
    let Some(mut fleet) = slow_fleet().await else { return };
    let mut way = Way::to(fleet.temporal.address()).await;
    fleet.documents(3, 60);
    fleet.start("kept", &fleet.batch("out")).await;
    let mut follow = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["--config", fleet.path("tidegate.toml").to_str().unwrap()])
        .args(["follow", "kept", "--json"])
        .env("TIDEGATE_TEMPORAL__ADDRESS", &way.address)
        .env("SIMULATED_KEY", "k")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(follow.stderr.take().unwrap()).lines();
    let mut until = async |words: &str| {
        let heard = async {
            while let Some(line) = said.next_line().await.unwrap() {
                println!("{line}");
                if line.contains(words) {
                    return;
                }
            }
            panic!("it ended and has not said \"{words}\"");
        };
        tokio::time::timeout(Duration::from_secs(90), heard).await.unwrap();
    };
    // The server is there, but no worker.
    until("no worker answers").await;
    way.cut();
    until("no Temporal server answers").await;
    way.open().await;
    fleet.worker();
    let ended = tokio::time::timeout(Duration::from_secs(120), follow.wait_with_output());
    let ended = ended.await.unwrap().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let result: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&result["workflow_id"], &result["succeeded"]), (&json!("kept"), &json!(3)));
    fleet.stop().await;
}

/// Repeating the command follows the batch that it has started; another question is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_runs_is_not_started_again_with_another_question() {
    let Some(fleet) = slow_fleet().await else { return };
    fleet.documents(3, 60);
    let run = async |words: &str| {
        let (from, to) = (fleet.path("in"), fleet.path("out"));
        let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
        let line = ["run", from, "--output", to, "-i", words, "--model", MODEL];
        let line = [&line[..], &["--workflow-id", "one", "--detach"]].concat();
        let run = tidegate(&fleet, &line).await;
        (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    let (code, said) = run("Sum up.").await;
    assert!(code == Some(0) && said.contains("started."), "{said}");
    let (code, said) = run("Sum up.").await;
    assert!(code == Some(0) && said.contains("runs already, and goes on"), "{said}");
    assert!(!said.contains("started."), "{said}");
    let (code, said) = run("Translate.").await;
    assert!(code == Some(2) && said.contains("runs already with another input"), "{said}");
    fleet.stop().await;
}
