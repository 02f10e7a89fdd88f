//! Documents that are too long for one call, and a folder with files of every kind.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use crate::fleet::{Fleet, MODEL, fleet};

fn settings() -> String {
    format!(
        "[models.\"{MODEL}\"]\nrpm = 60_000\n[gate]\nbase-backoff = \"20ms\"\nmax-backoff = \"100ms\"\n"
    )
}

fn long_text(bytes: usize) -> String {
    let mut text = String::new();
    for line in 0.. {
        if text.len() >= bytes {
            break;
        }
        write!(
            text,
            "On day {line} the harbour master notes the height of the tide at the north pier. "
        )
        .unwrap();
        if line % 9 == 0 {
            text.push_str("\n\n");
        }
    }
    text
}

/// The maximum memory that a process ever had, in MB.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

fn batch(fleet: &Fleet, output: &str, how: &str, chunk_tokens: u32) -> Value {
    let mut batch = fleet.batch(output);
    batch["long"] = json!(how);
    batch["chunk_tokens"] = json!(chunk_tokens);
    batch
}

/// A document of 2 MB in some sixty parts. The worker is killed in the middle, and no answered part is
/// asked twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_document_is_read_in_parts_and_survives_a_kill() {
    let Some(mut fleet) = fleet("latency = { base = \"300ms\" }", &settings()).await else {
        return;
    };
    std::fs::write(fleet.path("in/long.md"), long_text(2_000_000)).unwrap();
    std::fs::write(fleet.path("in/short.md"), "The tide is in.").unwrap();
    fleet.worker();
    fleet.start("long", &batch(&fleet, "out", "map_reduce", 10_000)).await;
    let parts = || {
        let folder = fleet.path("out/_tidegate/parts");
        let files = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        files
            .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with("0-"))
            .count()
    };
    for _ in 0..600 {
        if parts() >= 15 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(parts() >= 15, "parts are answered one by one");
    fleet.kill_worker(0).await;
    // The leftover of a write that a kill interrupted.
    let steps = std::fs::read_dir(fleet.path("out/_tidegate/parts")).unwrap().next().unwrap();
    std::fs::write(steps.unwrap().path().join("0-17.json#1"), "{").unwrap();
    fleet.worker();
    let result = fleet.result("long").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(2), &json!(0)), "{result}");
    let memory = peak_memory(fleet.workers[1].id().unwrap());
    println!("the worker's peak memory: {memory} MB");
    assert!(memory <= 300, "{memory} MB");

    let account = fleet.simulator.account();
    // At the kill, four parts of the long document and the short document may have been under way.
    assert!(account.answered_twice <= 5, "paid for twice: {}", account.answered_twice);
    let results = fleet.results("out");
    assert!(results["short.md"]["provider_calls"] == json!(1));
    let long = &results["long.md"];
    let calls = long["provider_calls"].as_u64().unwrap();
    println!("the long document took {calls} calls; answered twice: {}", account.answered_twice);
    assert!((50..80).contains(&calls), "{long}");
    assert!(
        !long["answer"].as_str().unwrap().is_empty()
            && long["input_tokens"].as_u64().unwrap() > 450_000,
        "{long}"
    );
    assert_eq!(
        long["input_tokens"].as_u64().unwrap()
            + results["short.md"]["input_tokens"].as_u64().unwrap(),
        result["input_tokens"]
    );
    let left = std::fs::read_dir(fleet.path("out/_tidegate/parts")).unwrap().count();
    assert_eq!(left, 0, "the folder of the steps is removed when the result is there");
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_may_stand_side_by_side_and_a_failed_one_is_all_that_is_done_again() {
    // The fifth part is refused after the others are answered: an answer between two refusals would show
    // that the account is fine.
    let faults =
        "[[faults]]\nkind = \"spend-limit\"\nmatching = \"Part 5 of\"\ntimes = 3\ndelay = \"3s\"\n";
    let Some(mut fleet) = fleet(faults, &settings()).await else { return };
    std::fs::write(fleet.path("in/long.txt"), long_text(40_000)).unwrap();
    fleet.worker();
    fleet.start("first", &batch(&fleet, "out", "per_chunk", 2_000)).await;
    let result = fleet.result("first").await.unwrap();
    assert_eq!(result["failed"], json!(1), "{result}");
    let resumed = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["resume", MODEL, "--config"])
        .arg(fleet.path("tidegate.toml"))
        .output()
        .unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let asked = fleet.account().requests;
    fleet.start("again", &batch(&fleet, "out", "per_chunk", 2_000)).await;
    let result = fleet.result("again").await.unwrap();
    assert_eq!(result["succeeded"], json!(1), "{result}");
    let long = &fleet.results("out")["long.txt"];
    let parts = long["parts"].as_array().unwrap();
    assert!((5..9).contains(&parts.len()), "{}", parts.len());
    assert_eq!(fleet.simulator.account().answered_twice, 0);
    assert!(
        fleet.account().requests - asked < parts.len() as u64,
        "only what failed is asked again"
    );
    fleet.stop().await;
}

/// One document of many parts meets six refusals: each part has its own budget of retries. A batch that
/// has spent its budget gets a new one when it runs again under its workflow id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_are_counted_by_parts_and_belong_to_the_run() {
    let faults = "[[faults]]\nkind = \"rate-limited\"\nmatching = \"Part \"\ntimes = 6\n\
        [[faults]]\nkind = \"rate-limited\"\nmatching = \"Once more.\"\ntimes = 8\n";
    let Some(mut fleet) = fleet(faults, &settings()).await else { return };
    std::fs::write(fleet.path("in/long.txt"), long_text(40_000)).unwrap();
    fleet.worker();
    fleet.start("long", &batch(&fleet, "out", "map_reduce", 2_000)).await;
    let result = fleet.result("long").await.unwrap();
    assert_eq!((&result["succeeded"], &result["rate_limited"]), (&json!(1), &json!(6)), "{result}");

    // Eight refusals: the first run can pay for five of them after its first call.
    std::fs::write(fleet.path("in/long.txt"), "The tide is in.").unwrap();
    for (output, succeeded, rate_limited) in [("first", 0, 6), ("second", 1, 2)] {
        let mut batch = fleet.batch(output);
        batch["instructions"] = json!("Once more.");
        batch["retry_budget"] = json!(5);
        fleet.start("same", &batch).await;
        let result = fleet.result("same").await.unwrap();
        assert_eq!(
            (&result["succeeded"], &result["rate_limited"]),
            (&json!(succeeded), &json!(rate_limited)),
            "{output}: {result}"
        );
    }
    fleet.stop().await;
}

/// Three hundred files of every kind, a third of them damaged: each damaged file fails with its reason,
/// and the others succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_everything() {
    let Some(mut fleet) = fleet("", &settings()).await else { return };
    let pdf = "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n\
        3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>\nendobj\n\
        4 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>\nendobj\n\
        5 0 obj\n<</Length 37>>\nstream\nBT /F 9 Tf 9 9 Td (High tide.) Tj ET \nendstream\nendobj\ntrailer\n<</Root 1 0 R/Size 6>>\n%%EOF";
    // A second page that is only a picture.
    let scanned = pdf.replace("Kids[3 0 R]/Count 1", "Kids[3 0 R 6 0 R]/Count 2").replace(
        "trailer",
        "6 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</XObject<</I 7 0 R>>>>/Contents 8 0 R>>\nendobj\n\
         7 0 obj\n<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>\nstream\nx\nendstream\nendobj\n\
         8 0 obj\n<</Length 22>>\nstream\n50 0 0 50 9 9 cm /I Do\nendstream\nendobj\ntrailer",
    );
    let good: [(&str, Vec<u8>); 7] = [
        ("txt", b"High tide.".to_vec()),
        ("pdf", scanned.into_bytes()),
        ("md", "# Hochwasser\n\nGrüße".into()),
        ("html", b"<html><body><p>High <b>tide</b>.</body></html>".to_vec()),
        ("csv", b"port,metres\nBrest,7\n".to_vec()),
        ("latin.txt", b"H\xf6he: f\xfcnf Meter \xfcber Null, zweimal t\xe4glich.".to_vec()),
        ("utf16.txt", "High tide at noon.".encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ];
    let bad: [(&str, Vec<u8>, &str); 5] = [
        ("empty", Vec::new(), "empty"),
        ("broken.pdf", pdf.as_bytes()[..200].to_vec(), "PDF is damaged"),
        ("fake.docx", b"PK\x03\x04 nothing of the kind".to_vec(), "DOCX is damaged"),
        (
            "noise.txt",
            (0..999_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect(),
            "binary data",
        ),
        ("deep.html", "<div>".repeat(9_999).into_bytes(), "nested"),
    ];
    for number in 0..200 {
        let (name, bytes) = &good[number % good.len()];
        let numbered = [format!("{number} ").as_bytes(), bytes].concat();
        // In UTF-16, a number cannot be put before the text.
        let bytes =
            if name.starts_with("utf16") || name.starts_with("html") { bytes } else { &numbered };
        std::fs::write(fleet.path(&format!("in/good-{number:03}.{name}")), bytes).unwrap();
    }
    for number in 0..100 {
        let (name, bytes, _) = &bad[number % bad.len()];
        std::fs::write(fleet.path(&format!("in/bad-{number:03}-{name}")), bytes).unwrap();
    }
    fleet.worker();
    fleet.start("all", &fleet.batch("out")).await;
    let result = fleet.result("all").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(200), &json!(100)), "{result}");
    for failure in fleet.lines("out/failures.jsonl") {
        let (id, message) = (failure["id"].as_str().unwrap(), failure["message"].as_str().unwrap());
        let (_, _, reason) = bad.iter().find(|(name, _, _)| id.ends_with(name)).unwrap();
        assert_eq!(
            (&failure["error_type"], &failure["provider_calls"]),
            (&json!("UnreadableDocument"), &json!(0)),
            "{failure}"
        );
        assert!(message.contains(reason), "{id}: {message}");
    }
    let missing =
        |name: &str| fleet.lines(&format!("out/results/{name}.json"))[0]["left_out"].clone();
    let picture = json!({"pages_without_text": {"count": 1, "places": [{"page": 2}]}});
    assert_eq!(missing("good-001.pdf"), picture);
    assert_eq!(missing("good-000.txt"), Value::Null);
    fleet.stop().await;
}
