//! The cost of an idle worker.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use crate::{
    fleet::{Fleet, MODEL, fleet_with_its_own_redis, free_address, private_folder},
    page::http,
};

/// The commands that these clients send to Redis during this time; commands inside scripts are not
/// counted.
pub(super) fn count_commands(
    url: &str,
    length: Duration,
    counts: impl Fn(&str) -> bool,
) -> BTreeMap<String, u64> {
    let mut stream = TcpStream::connect(url.trim_start_matches("redis://")).unwrap();
    stream.write_all(b"MONITOR\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let (mut lines, mut line, mut sent) = (BufReader::new(stream), Vec::new(), BTreeMap::new());
    let started = Instant::now();
    while started.elapsed() < length {
        // A partial line stays in the buffer when the time runs out.
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => panic!("Redis is gone"),
            Ok(_) => {}
            Err(_) => continue,
        }
        // `+1763856000.123456 [0 127.0.0.1:40000] "EVALSHA" …`
        let text = String::from_utf8_lossy(&line);
        let client = text.split([' ', ']']).nth(2).unwrap_or_default();
        let name = text.split('"').nth(1).filter(|_| client != "lua" && counts(client));
        if let Some(name) = name {
            *sent.entry(name.to_ascii_lowercase()).or_default() += 1;
        }
        line.clear();
    }
    sent
}

/// The addresses of all Redis clients except this one.
pub(super) fn clients(fleet: &Fleet) -> BTreeSet<String> {
    let mut connection = fleet.own_redis.as_ref().unwrap().connection();
    let own: u64 = redis::cmd("CLIENT").arg("ID").query(&mut connection).unwrap();
    let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut connection).unwrap();
    let others = list.lines().filter(|line| !line.starts_with(&format!("id={own} ")));
    let address = |line: &str| Some(line.split("addr=").nth(1)?.split(' ').next()?.to_owned());
    others.filter_map(address).collect()
}

/// Waits until the starting worker has asked for each of these models once.
pub(super) async fn has_begun(fleet: &Fleet, models: u64) {
    let redis = fleet.own_redis.as_ref().unwrap();
    for _ in 0..400 {
        let mut connection = redis.connection();
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut connection).unwrap();
        let scripts = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let calls = scripts.and_then(|line| line.split(',').next()?.parse::<u64>().ok());
        if calls.is_some_and(|calls| calls >= models) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the worker does not begin");
}

const MANY: u64 = 200;

/// The resources and requests of an idle worker.
#[derive(Debug)]
struct Idle {
    /// Time until it waits for work.
    begins: Duration,
    /// Open polls, as Temporal counts them.
    polls: u64,
    /// Lines of its metrics page.
    lines: usize,
    memory: u64,
    sent: BTreeMap<String, u64>,
}

impl Idle {
    fn commands(&self) -> u64 {
        self.sent.values().sum()
    }
}

/// Runs with `[storage] state`, too.
async fn run_idle(models: u64) -> Option<Idle> {
    let mut settings = format!("[models.\"{MODEL}\"]\nrpm = 60\n");
    for number in 1..models {
        settings += &format!("[models.\"anthropic:other-{number:02}\"]\nrpm = 60\n");
    }
    let mut fleet = fleet_with_its_own_redis("", &settings).await?;
    let (folder, state) = private_folder();
    let (metrics, started) = (free_address(), Instant::now());
    fleet.worker_with(&[
        ("TIDEGATE_STORAGE__STATE", &state),
        ("TIDEGATE_WORKER__METRICS_LISTEN", &metrics),
    ]);
    fleet.working().await;
    let begins = started.elapsed();
    has_begun(&fleet, models).await;
    // By then the worker has done all requests of its start, including those for the copied limits. Some
    // recur once a minute, and once at the end.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let url = fleet.redis_url.clone();
    let sent = tokio::task::spawn_blocking(move || {
        count_commands(&url, Duration::from_secs(30), |_| true)
    });
    let sent = sent.await.unwrap();
    // In the fleet's folder.
    let kept = std::fs::read_dir(folder.path()).into_iter().flatten();
    let mut kept = kept.map(|folder| folder.unwrap().path().join("limits.json"));
    assert!(kept.any(|kept| kept.exists()), "what is set is kept");
    let text = http().get(format!("http://{metrics}/metrics")).send().await.unwrap();
    let text = text.text().await.unwrap();
    let polls = text.lines().filter(|line| line.starts_with("temporal_num_pollers{"));
    let polls = polls.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    let memory = fleet.peak_memory();
    fleet.stop().await;
    Some(Idle { begins, polls, lines: text.lines().count(), memory, sent })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_with_200_models_asks_redis_less_than_once_a_second() {
    let (one, many) = tokio::join!(run_idle(1), run_idle(MANY));
    let (Some(one), Some(many)) = (one, many) else { return };
    for (models, idle) in [(1, &one), (MANY, &many)] {
        println!("{models} models: {} commands in 30 s: {idle:?}", idle.commands());
    }
    let commands = many.commands();
    assert!((3..=30).contains(&commands), "{commands} commands in 30 s: {many:?}");
    // Task queues belong to lanes; between two polls of a queue there may be none for a moment.
    assert!(many.polls.abs_diff(one.polls) <= 3, "{} and {} polls", many.polls, one.polls);
    // A few lines for each model.
    let models = usize::try_from(MANY).unwrap();
    assert!(many.lines < one.lines + 10 * models, "{} and {} lines", many.lines, one.lines);
    assert!(many.memory < 2 * one.memory, "{} and {} MB", many.memory, one.memory);
    assert!(many.begins < 3 * one.begins + Duration::from_secs(3), "{many:?} beside {one:?}");
}
