//! Memory of a worker's process that reads many large documents at once, measured in a process of its
//! own.
#![cfg(target_os = "linux")]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first fault"
)]

mod rig;

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use rig::{Rig, whole};
use serde_json::json;
use tidegate_activities::{
    attempt::{Attempt, AttemptState},
    document::process::process,
    memory::Memory,
};
use tidegate_documents::{Limits as DocumentLimits, Reader};
use tidegate_quota::{Dimension, Limits};
use tidegate_workflows::contract::DocumentTask;

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Task of the child: the number of documents, their size in megabytes, and the room for all of them in
/// megabytes.
const TASK: &str = "TIDEGATE_TEST_RESIDENT";

/// The process's peak memory in megabytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() >> 10
}

/// The child, which the test below starts: prints its memory beyond that at rest.
#[test]
#[ignore = "another test starts it"]
fn many_documents_at_once() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [count, megabytes, room] =
        task.split(' ').map(|n| n.parse::<usize>().unwrap()).collect::<Vec<_>>()[..]
    else {
        panic!("{task}")
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let answers = (0..count).map(|_| whole("x")).collect();
        let limits = Limits { margin: 1.0, ..Limits::default() }.with(Dimension::Requests, 60_000);
        let names: Vec<String> = (0..count).map(|number| format!("{number:03}.pdf")).collect();
        let files: Vec<(&str, &[u8])> =
            names.iter().map(|name| (name.as_str(), &b"%PDF-1.7"[..])).collect();
        let mut rig = Rig::of_files(limits, &files, json!({"attach": "native"}), answers).await;
        // One file under all names.
        let folder = rig.folder.path().join("in");
        let whole = rig.folder.path().join("whole.pdf");
        let mut bytes = b"%PDF-1.7\n".to_vec();
        bytes.resize(megabytes << 20, b'x');
        std::fs::write(&whole, bytes).unwrap();
        for name in &names {
            std::fs::remove_file(folder.join(name)).unwrap();
            std::fs::hard_link(&whole, folder.join(name)).unwrap();
        }
        rig.services.memory = Memory::new((room as u64) << 20);
        // On a busy machine, allocating that much may take long.
        let found = r#"{"Ok":{"text":"Found.","format":"Pdf","pages":1}}"#;
        let script = format!("cat > /dev/null; echo '{found}'");
        let patient = DocumentLimits { time: Duration::from_secs(1_800), ..Default::default() };
        rig.services.reader = Reader::isolated("/bin/sh", ["-c".to_owned(), script], patient);
        let before = peak();
        let (services, task) = (Arc::new(rig.services), rig.task.clone());
        let all = (0..count as u32).map(|index| {
            let (services, task) = (Arc::clone(&services), DocumentTask { index, ..task.clone() });
            tokio::spawn(async move {
                let state = AttemptState::default();
                let attempt = Attempt::new(format!("run#0.{index}.1"), "w".to_owned(), 0, state);
                process(&services, &attempt, &task).await.map(drop)
            })
        });
        for ended in futures::future::join_all(all.collect::<Vec<_>>()).await {
            ended.unwrap().unwrap();
        }
        println!("took {}", peak() - before);
    });
}

/// Megabytes that a child used.
fn peak_memory(count: usize, megabytes: usize, room: usize) -> u64 {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "many_documents_at_once", "--ignored", "--nocapture"])
        .env(TASK, format!("{count} {megabytes} {room}"))
        // Freed memory is returned at once: otherwise the allocator keeps more or less of it, by
        // chance.
        .env("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let taken = said.lines().find_map(|line| line.split("took ").nth(1));
    taken.unwrap_or_else(|| panic!("{said}")).trim().parse().unwrap()
}

/// With `TIDEGATE_FULL_SCALE=1` there are 200 of 16 MB, and the room is that of a worker with 1 GiB.
#[test]
fn a_process_takes_no_more_than_its_room_however_many_documents_come() {
    let is_full = std::env::var_os("TIDEGATE_FULL_SCALE").is_some_and(|value| value == "1");
    let (count, megabytes, room) = if is_full { (200, 16, 512) } else { (16, 4, 24) };
    let bounded = peak_memory(count, megabytes, room);
    println!("{count} documents of {megabytes} MB within {room} MB took {bounded} MB");
    assert!(bounded <= room as u64, "{bounded} MB of {room}");
    if !is_full {
        // Proves the measurement: with room for all, all are in memory.
        let all = peak_memory(count, megabytes, 100_000);
        println!("without a bound: {all} MB");
        assert!(all > 2 * room as u64, "{all} MB");
    }
}
