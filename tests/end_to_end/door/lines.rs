//! `tidegate ask`: one prompt on each line, one answer on each line.

use std::process::Stdio;

use serde_json::Value;
use tokio::{io::AsyncWriteExt, process::Command};

use super::{asked, door, prompt};
use crate::{
    fleet::{Fleet, MODEL},
    why::tidegate,
};

const LIMITS: &str = "rpm = 6_000";

struct AskOutput {
    code: Option<i32>,
    lines: Vec<String>,
    complaint: String,
}

fn ask(fleet: &Fleet, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["ask", "--model", MODEL]).args(more).arg("--config");
    command.arg(fleet.path("tidegate.toml")).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn run_ask(fleet: &Fleet, more: &[&str], prompts: &str) -> AskOutput {
    let mut process = ask(fleet, more).spawn().unwrap();
    process.stdin.take().unwrap().write_all(prompts.as_bytes()).await.unwrap();
    let output = process.wait_with_output().await.unwrap();
    AskOutput {
        code: output.status.code(),
        lines: String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect(),
        complaint: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Answers come in order, one for each line; equal lines are asked separately, and an empty line is not
/// asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_has_its_answer_in_its_place_and_the_same_command_buys_nothing() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    fleet.worker();
    let prompts = "Why is the sea salty?\n\nWhat is a tide?\nWhy is the sea salty?\n";
    let first = run_ask(&fleet, &["--max-output-tokens", "4000"], prompts).await;
    assert_eq!(first.code, Some(0), "{}", first.complaint);
    assert_eq!(first.lines.len(), 4);
    assert!(first.lines[1].is_empty() && !first.lines[0].is_empty());
    assert_eq!(asked(&fleet), 3);
    // The simulator's answers differ by prompt.
    assert_ne!(first.lines[0], first.lines[2]);

    let more = format!("{prompts}What is ebb?");
    let again = run_ask(&fleet, &["--max-output-tokens", "4000", "--json"], &more).await;
    assert_eq!(asked(&fleet), 4, "one line is new: {}", again.complaint);
    let lines: Vec<Value> =
        again.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<_> = lines.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    for (line, before) in lines.iter().zip(&first.lines) {
        assert_eq!(line["answer"].as_str().unwrap().replace('\n', "\\n"), *before);
    }
    fleet.stop().await;
}

/// After a kill, answered prompts are not asked again. When the output is closed (`| head`), the command
/// ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_goes_on_after_a_kill_and_a_line_that_fails_is_named() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    fleet.worker();
    let prompts: String = (0..40).map(|n| format!("Question number {n}?\n")).collect();
    let mut process = ask(&fleet, &["--max-output-tokens", "4000"]).spawn().unwrap();
    process.stdin.take().unwrap().write_all(prompts.as_bytes()).await.unwrap();
    while asked(&fleet) < 5 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    process.kill().await.unwrap();
    let whole = run_ask(&fleet, &["--max-output-tokens", "4000"], &prompts).await;
    assert_eq!((whole.code, whole.lines.len()), (Some(0), 40), "{}", whole.complaint);
    assert!(whole.lines.iter().all(|line| !line.is_empty()));
    assert_eq!(asked(&fleet), 40);

    let failed = run_ask(&fleet, &["--max-output-tokens", "4000", "--lane", "none"], "x\n").await;
    assert!(failed.code == Some(2) && failed.complaint.contains("no lane"), "{}", failed.complaint);
    let long = format!("{}\nIs this one answered?\n", "x".repeat(1_600_000));
    let failed = run_ask(&fleet, &["--max-output-tokens", "4000"], &long).await;
    assert_eq!(failed.code, Some(3), "{}", failed.complaint);
    assert!(
        failed.complaint.contains("line 1: the prompt has 1600000 bytes"),
        "{}",
        failed.complaint
    );
    assert!(failed.lines[0].is_empty() && !failed.lines[1].is_empty());
    fleet.stop().await;
}

/// An answer that is too large for Temporal is read from the store; all answers keep their order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_answer_stands_in_its_line_too() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    fleet.worker_with(&[("TIDEGATE_CALLS__INLINE", "100B")]);
    let prompts = "Why is the sea salty?\n\nWhat is a tide?\n";
    let flags = ["--max-output-tokens", "4000"];
    let first = run_ask(&fleet, &flags, prompts).await;
    assert_eq!(first.code, Some(0), "{}", first.complaint);
    assert_eq!(first.lines.len(), 3);
    for line in [0, 2] {
        assert!(first.lines[line].len() > 500, "{:?}", first.lines);
        assert!(!first.lines[line].contains("file://"), "{:?}", first.lines);
    }
    let again = run_ask(&fleet, &[&flags[..], &["--json"]].concat(), prompts).await;
    let lines: Vec<Value> =
        again.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (line, before) in lines.iter().zip(&first.lines) {
        assert_eq!(line["answer"].as_str().unwrap().replace('\n', "\\n"), *before);
    }
    assert_eq!(asked(&fleet), 2);
    std::fs::remove_dir_all(fleet.path("calls")).unwrap();
    let gone = run_ask(&fleet, &flags, prompts).await;
    assert_eq!((gone.code, gone.lines.len()), (Some(3), 3), "{}", gone.complaint);
    assert!(gone.complaint.contains("line 1: its answer is large"), "{}", gone.complaint);
    fleet.stop().await;
}

/// The output is the table with one more column. After a kill nothing is paid twice, and a failed row
/// states the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_of_a_table_has_its_answer_beside_it() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    fleet.worker();
    let mut table = "nr,\"Company name\"\n".to_owned();
    for nr in 0..40 {
        table += &format!("{nr},\"Sons, \"\"{nr}\"\"\nand daughters\"\n");
    }
    let flags = [
        "--max-output-tokens",
        "4000",
        "--csv",
        "--prompt",
        "What does {{ row['Company name'] }} ({{ nr }}) make?",
        "--column",
        "product",
        "--error-column",
        "why",
    ];
    let mut process = ask(&fleet, &flags).spawn().unwrap();
    process.stdin.take().unwrap().write_all(table.as_bytes()).await.unwrap();
    while asked(&fleet) < 5 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    process.kill().await.unwrap();
    let whole = run_ask(&fleet, &flags, &table).await;
    assert_eq!(whole.code, Some(0), "{}", whole.complaint);
    assert_eq!(asked(&fleet), 40);
    let rows = |text: &str| {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let head: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        (head, reader.records().map(Result::unwrap).collect::<Vec<_>>())
    };
    let (head, answered) = rows(&whole.lines.join("\n"));
    assert_eq!(head, ["nr", "Company name", "product", "why"]);
    for (nr, row) in answered.iter().enumerate() {
        assert_eq!(
            (&row[0], &row[1]),
            (&*nr.to_string(), &*format!("Sons, \"{nr}\"\nand daughters"))
        );
        assert!(!row[2].is_empty() && row[3].is_empty(), "{row:?}");
    }
    assert_eq!(answered.len(), 40);

    let long = format!("nr,Company name\n0,{}\n1,b\n", "x".repeat(1_600_000));
    let failed = run_ask(&fleet, &flags, &long).await;
    assert_eq!(failed.code, Some(3), "{}", failed.complaint);
    let (_, failed) = rows(&failed.lines.join("\n"));
    assert!(failed[0][2].is_empty() && failed[0][3].contains("bytes"), "{:?}", &failed[0][3]);
    assert!(!failed[1][2].is_empty() && failed[1][3].is_empty(), "{:?}", failed[1]);
    let before = asked(&fleet);
    let unknown = run_ask(&fleet, &flags, "nr,town\n1,x\n").await;
    assert_eq!((unknown.code, asked(&fleet)), (Some(3), before), "{}", unknown.complaint);
    let unknown = run_ask(&fleet, &flags, "number,Company name\n1,x\n").await;
    assert!(unknown.code == Some(2) && unknown.complaint.contains("no column \"nr\""));
    fleet.stop().await;
}

/// An older server, or one where standalone activities are switched off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_activity_stands_alone_a_workflow_makes_the_call() {
    let Some(mut fleet) = door("", LIMITS, "").await else { return };
    let older = tidegate_testkit::Temporal::start(&["activity.enableStandalone=false"]).unwrap();
    let create = ["operator", "namespace", "create", "--namespace", fleet.namespace()];
    assert!(older.cli().args(create).output().unwrap().status.success());
    let file = fleet.path("tidegate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace(&fleet.temporal.address(), &older.address())).unwrap();
    fleet.worker();
    let submit = async |id: &str, input: &Value| {
        let input = input.to_string();
        let told =
            tidegate(&fleet, &["submit", "tidegate.call", "--id", id, "--input", &input]).await;
        (told.status.code(), told.stdout, String::from_utf8(told.stderr).unwrap())
    };
    let input = prompt("Why is the sea salty?");
    let (first, second) = tokio::join!(submit("why", &input), submit("why", &input));
    assert_eq!((first.0, &first.1), (Some(0), &second.1), "{} {}", first.2, second.2);
    assert_eq!(submit("why", &input).await, first);
    assert_eq!(asked(&fleet), 1);
    let list = older.cli().args(["workflow", "list", "--namespace", fleet.namespace()]).output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    assert!(list.contains("ProcessCall"), "{list}");
    let (code, _, complaint) = submit("why", &prompt("Something else?")).await;
    assert!(code == Some(2) && complaint.contains("another call"), "{complaint}");
    let (code, _, complaint) = submit("typo", &serde_json::json!({"promt": "x"})).await;
    assert!(code == Some(1) && complaint.contains("did you mean"), "{complaint}");
    let unknown = serde_json::json!({"model": "nosuch:m", "prompt": "x"});
    let (code, _, complaint) = submit("unknown", &unknown).await;
    assert!(code == Some(1) && complaint.contains("correct the name of the model nosuch:m"));
    let lines = run_ask(&fleet, &["--max-output-tokens", "4000"], "One?\nTwo?\n").await;
    assert_eq!((lines.code, lines.lines.len()), (Some(0), 2), "{}", lines.complaint);
    assert_eq!(asked(&fleet), 3);
    let flags = ["--max-output-tokens", "4000", "--lane", "batch"];
    let again = run_ask(&fleet, &flags, "One?\nTwo?\n").await;
    assert_eq!((again.code, again.lines), (Some(0), lines.lines), "{}", again.complaint);
    assert_eq!(asked(&fleet), 3, "the lane is no part of the question");
    fleet.stop().await;
}
