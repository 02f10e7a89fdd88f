//! Processes that die in the middle of a batch.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::fleet::{Fleet, MODEL, fleet, fleet_with_its_own_redis};

fn settings() -> String {
    format!("[models.\"{MODEL}\"]\ntpm = 120_000\n")
}

/// Redis is away when a worker starts: its log names the address and the consequence before a document
/// arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_its_redis_says_so_at_once() {
    let Some(mut fleet) = fleet("", &settings()).await else { return };
    fleet.worker_with(&[("TIDEGATE_REDIS__URL", "redis://127.0.0.1:1")]);
    let log = async {
        loop {
            let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
            if log.contains("working") {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let log = tokio::time::timeout(Duration::from_secs(120), log).await.unwrap();
    assert!(log.contains("Redis at redis://127.0.0.1:1 does not answer; documents wait"), "{log}");
    assert!(log.contains("redis://127.0.0.1:1: "), "{log}");
    fleet.stop().await;
}

/// Two workers are killed one after the other; each time a new one takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_loses_no_document() {
    let Some(mut fleet) =
        fleet("[default]\ntpm = 120_000\n[latency]\nbase = \"1s\"\n", &settings()).await
    else {
        return;
    };
    fleet.documents(150, 400);
    fleet.worker();
    fleet.start("crash", &fleet.batch("out")).await;
    for (number, done) in [(0, 30), (1, 70)] {
        fleet.until("crash", |progress| progress["succeeded"].as_u64() >= Some(done)).await;
        fleet.kill_worker(number).await;
        let (killed, results) = (Instant::now(), fleet.results("out").len());
        fleet.worker();
        while fleet.results("out").len() <= results {
            // A worker without heartbeats is given up after 40 s, and it may have had all documents.
            assert!(killed.elapsed() < Duration::from_secs(90), "nothing goes on after a crash");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!("new results {:.1} s after kill -9", killed.elapsed().as_secs_f64());
    }
    let result = fleet.result("crash").await.unwrap();
    assert_eq!(
        result["succeeded"].as_u64().unwrap() + result["skipped"].as_u64().unwrap(),
        150,
        "{result}"
    );
    assert_eq!(result["failed"], json!(0));
    assert_eq!((fleet.results("out").len(), fleet.lines("out/results.jsonl").len()), (150, 150));
    let account = fleet.account();
    // Only documents in flight at a kill may have been asked twice, whatever the burst: the connection
    // was cut, or the answer had arrived and was not yet written. Of calls that take a second, a quarter
    // end within the same quarter of one.
    println!("{} calls, {} of them cut off", account.requests, account.abandoned);
    let unwritten = 2 * account.max_in_flight / 4;
    assert!(account.requests <= 150 + account.abandoned + unwritten, "{account:?}");
    fleet.stop().await;
}

/// Redis is away for ten seconds and comes back empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_goes_on_while_redis_is_away() {
    let Some(mut fleet) = fleet_with_its_own_redis(
        "[default]\ntpm = 120_000\nalgorithm = \"sliding-window\"\n",
        &settings(),
    )
    .await
    else {
        return;
    };
    fleet.documents(200, 450);
    fleet.worker();
    fleet.worker();
    fleet.start("outage", &fleet.batch("out")).await;
    fleet.until("outage", |progress| progress["succeeded"].as_u64() >= Some(40)).await;
    fleet.own_redis.as_mut().unwrap().kill();
    let before = fleet.results("out").len();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let during = fleet.results("out").len() - before;
    assert!(during >= 10, "only {during} documents in ten seconds without Redis");
    fleet.own_redis.as_mut().unwrap().restart();
    let result = fleet.result("outage").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(200), &json!(0)), "{result}");
    let account = fleet.account();
    let refused = account.refused.requests + account.refused.tokens;
    println!(
        "{during} documents in 10 s without Redis; {refused} of {} calls refused",
        account.requests
    );
    assert!(refused * 100 <= account.requests * 5, "{account:?}");
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    assert!(log.contains("Redis is away") && log.contains("Redis is back"), "{log}");
    fleet.stop().await;
}

/// SIGTERM in the middle of a batch: the worker waits for calls under way, makes no further calls, and
/// hands the rest to another worker. A second signal ends a worker at once; two that come together are
/// one, as `timeout` sends them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_asked_to_stop_waits_for_its_calls_and_makes_no_more() {
    let limit = format!("[models.\"{MODEL}\"]\ntpm = 120_000\nconcurrent = 10\n");
    let Some(mut fleet) = fleet("[latency]\nbase = \"6s\"\n", &limit).await else { return };
    fleet.documents(30, 60);
    fleet.worker();
    fleet.start("stop", &fleet.batch("out")).await;
    wait_for_calls(&fleet, 1).await;
    let pid = fleet.workers[0].id().unwrap();
    let twice = format!("kill -TERM {pid}; kill -TERM {pid}");
    assert!(std::process::Command::new("sh").args(["-c", &twice]).status().unwrap().success());
    let status = wait_for_exit(&mut fleet, 0, 30).await;
    assert!(status.success(), "{status}");
    let answered = fleet.results("out").len();
    assert!((1..=10).contains(&answered), "{answered} calls were under way");
    assert_eq!(fleet.account().requests, answered as u64, "each was waited for, and no more sent");
    fleet.worker();
    let result = fleet.result("stop").await.unwrap();
    assert_eq!(result["succeeded"], json!(30), "{result}");
    assert_eq!(fleet.account().requests, 30, "nothing was paid for twice");

    fleet.start("again", &fleet.batch("other")).await;
    wait_for_calls(&fleet, 31).await;
    terminate(&fleet, 1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(fleet.workers[1].try_wait().unwrap().is_none(), "it waits for its calls");
    terminate(&fleet, 1);
    assert!(!wait_for_exit(&mut fleet, 1, 3).await.success());
    fleet.stop().await;
}

fn terminate(fleet: &Fleet, number: usize) {
    let pid = fleet.workers[number].id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
}

async fn wait_for_exit(fleet: &mut Fleet, number: usize, seconds: u64) -> std::process::ExitStatus {
    tokio::time::timeout(Duration::from_secs(seconds), fleet.workers[number].wait())
        .await
        .expect("the worker does not stop")
        .unwrap()
}

/// Waits until this many calls have reached the provider.
async fn wait_for_calls(fleet: &Fleet, calls: u64) {
    for _ in 0..600 {
        if fleet.account().requests >= calls {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{calls} calls are never made");
}

/// The results' folder cannot be written for some seconds: answers are kept, no further calls are made in
/// the meantime, and nothing is paid twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_cannot_be_written_are_kept_and_none_is_bought_meanwhile() {
    let limit = format!("[models.\"{MODEL}\"]\ntpm = 120_000\nconcurrent = 5\n");
    let Some(mut fleet) = fleet("[latency]\nbase = \"1s\"\n", &limit).await else { return };
    fleet.documents(30, 60);
    fleet.worker();
    fleet.start("full", &fleet.batch("out")).await;
    fleet.until("full", |progress| progress["succeeded"].as_u64() >= Some(5)).await;
    let (results, kept) = (fleet.path("out/results"), fleet.path("out/kept"));
    std::fs::rename(&results, &kept).unwrap();
    // A link to nowhere: nothing can be read or written there.
    std::os::unix::fs::symlink(fleet.path("nowhere"), &results).unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = fleet.account().requests;
    assert!(asked < 30, "{asked} calls before the disturbance");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(fleet.account().requests, asked, "nothing is bought that could not be kept");
    std::fs::remove_file(&results).unwrap();
    std::fs::rename(&kept, &results).unwrap();
    let result = fleet.result("full").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(30), &json!(0)), "{result}");
    assert_eq!(fleet.results("out").len(), 30);
    assert_eq!(fleet.account().requests, 30, "nothing was paid for twice");
    let log = std::fs::read_to_string(fleet.path("worker.log")).unwrap();
    for (said, times) in [("results cannot be written", 1), ("results are written again", 1)] {
        assert_eq!(log.matches(said).count(), times, "{log}");
    }
    fleet.stop().await;
}

/// The results' folder cannot be written until the worker has stopped. Its spool keeps the answers: no
/// other worker pays for them again, and the next worker with that folder writes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_worker_could_not_write_the_next_one_writes() {
    const DOCUMENTS: usize = 12;
    let settings = format!(
        "[models.\"{MODEL}\"]\ntpm = 120_000\nconcurrent = 4\n[worker]\nshutdown-grace = \"10s\"\n"
    );
    let Some(mut fleet) = fleet("[latency]\nbase = \"1s\"\n", &settings).await else { return };
    fleet.documents(DOCUMENTS, 60);
    let (results, spool) = (fleet.path("out/results"), fleet.path("spool"));
    std::fs::create_dir(fleet.path("out")).unwrap();
    // A link to nowhere: nothing can be written there.
    std::os::unix::fs::symlink(fleet.path("nowhere"), &results).unwrap();
    let with_spool = [("TIDEGATE_WORKER__SPOOL", spool.to_str().unwrap())];
    fleet.worker_with(&with_spool);
    fleet.start("spool", &fleet.batch("out")).await;
    let files = || std::fs::read_dir(&spool).map_or(0, Iterator::count);
    for _ in 0..600 {
        if files() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    terminate(&fleet, 0);
    wait_for_exit(&mut fleet, 0, 60).await;
    let (spooled, asked) = (files(), fleet.account().requests);
    assert!((1..DOCUMENTS).contains(&spooled) && asked == spooled as u64, "{spooled} of {asked}");
    let mode = |path: &std::path::Path| {
        std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777
    };
    let one = std::fs::read_dir(&spool).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&spool), mode(&one)), (0o700, 0o600));

    std::fs::remove_file(&results).unwrap();
    fleet.worker();
    for _ in 0..600 {
        if fleet.results("out").len() >= DOCUMENTS - spooled {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Documents with an answer come back to this worker, which does not have the spool.
    let mut why = String::new();
    for _ in 0..120 {
        let output = crate::why::tidegate(&fleet, &["why", "spool"]).await;
        why = String::from_utf8(output.stdout).unwrap();
        if why.contains("results cannot be written") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(why.contains("answers in their spool"), "{why}");
    assert_eq!(fleet.account().requests, DOCUMENTS as u64, "what was bought is not bought again");
    fleet.worker_with(&with_spool);
    let result = fleet.result("spool").await.unwrap();
    assert_eq!(result["succeeded"], json!(DOCUMENTS), "{result}");
    assert_eq!(result["provider_calls"], json!(DOCUMENTS), "{result}");
    assert_eq!((fleet.account().requests, files()), (DOCUMENTS as u64, 0));
    fleet.stop().await;
}

/// A worker that can be made to die whenever it reads a document of a format that needs a parser.
fn fragile(fleet: &mut Fleet, name: &str) -> std::path::PathBuf {
    let program = fleet.path(name);
    std::fs::copy(env!("CARGO_BIN_EXE_tidegate"), &program).unwrap();
    fleet.worker_of(&program, &[]);
    program
}

/// From now on the parser kills its worker, after a second in which a busy machine sends a heartbeat.
fn break_parser(program: &std::path::Path) {
    std::fs::remove_file(program).unwrap();
    std::fs::write(program, "#!/bin/sh\nsleep 1\nkill -9 $PPID\n").unwrap();
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// One document kills two workers. The third does not read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_kills_its_readers_is_given_up_after_two() {
    let Some(mut fleet) = fleet("", &settings()).await else { return };
    fleet.documents(3, 60);
    std::fs::write(fleet.path("in/killer.pdf"), "%PDF-1.7\n").unwrap();
    fleet.start_paused("killer", &fleet.batch("out")).await;
    for number in 0..2 {
        let program = fragile(&mut fleet, &format!("fragile-{number}"));
        // The plan has read the document, and the worker has what it needs.
        fleet.until("killer", |progress| progress["documents"] == 4).await;
        break_parser(&program);
        fleet.signal("killer", "resume").await;
        assert!(!wait_for_exit(&mut fleet, number, 90).await.success(), "it was killed");
    }
    fleet.worker();
    let result = fleet.result("killer").await.unwrap();
    assert_eq!((&result["succeeded"], &result["failed"]), (&json!(3), &json!(1)), "{result}");
    let failure = &fleet.lines("out/failures.jsonl")[0];
    assert_eq!(
        (&failure["id"], &failure["error_type"]),
        (&json!("killer.pdf"), &json!("UnreadableDocument"))
    );
    assert!(
        failure["message"].as_str().unwrap().contains("2 workers died while they read"),
        "{failure}"
    );
    fleet.stop().await;
}
