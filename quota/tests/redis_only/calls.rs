//! Round trips, bad calls, races.

use super::*;

/// One round trip to admit and one to settle, counted by the server.
#[tokio::test]
async fn one_round_trip_each() {
    let Some(server) = Redis::start() else { return };
    let model = simple(100_000);
    let quota = Quota::with_redis(
        &server.url,
        [model.clone()],
        tidegate_quota::Options { answer_within: PATIENCE, ..Default::default() },
    )
    .unwrap();
    let scripts_run = || {
        let info: String =
            redis::cmd("INFO").arg("commandstats").query(&mut server.connection()).unwrap();
        let calls = |command: &str| {
            let line = info.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
            line.map_or(0, |line| line.split(['=', ',']).nth(1).unwrap().parse::<u64>().unwrap())
        };
        calls("evalsha") + calls("eval")
    };
    let request = |number: u32| Request::new(model.id.clone(), format!("a{number}")).tokens(10, 10);
    quota.admit(&request(0)).await.unwrap().settle(&tidegate_types::Usage::default()).await;
    let before = scripts_run();
    let permit = quota.admit(&request(1)).await.unwrap();
    assert_eq!(scripts_run() - before, 1);
    permit.settle(&tidegate_types::Usage::default()).await;
    // A settlement that gets the policy's task also writes a plan.
    assert!((2..=3).contains(&(scripts_run() - before)));
}

#[test]
fn a_bad_call_answers_an_error_and_changes_nothing() {
    let Some(server) = Redis::shared() else { return };
    let mut connection = server.connection();
    let prefix = unique("test");
    let call = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];
    let model = [6e7, 9e7, 0.0, 0.0, 0.0, 7.0, 1.0, 1.0, 1.0];
    let text = common::joined("reserve-7");
    let pack = |numbers: &[f64]| {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()
    };
    let mut reserve = |id: &str, call: &[u8], model: &[u8]| {
        let keys = ["ledger", "entries", "state", "leases", "day", "learned", "tenants"]
            .map(|what| format!("{prefix}:v1:{{a:b}}:{what}"));
        redis::cmd("EVAL")
            .arg(&text)
            .arg(7)
            .arg(&keys)
            .arg(id)
            .arg(call)
            .arg(model)
            .arg("tenant")
            .query::<Vec<i64>>(&mut connection)
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        for index in 0..call.len() {
            let mut call = call;
            call[index] = bad;
            let error = reserve("id", &pack(&call), &pack(&model)).unwrap_err().to_string();
            assert!(
                error.contains("argument 2") && error.contains(&format!("number {}", index + 1)),
                "{bad}: {error}"
            );
        }
        for index in 0..model.len() {
            let mut model = model;
            model[index] = bad;
            let error = reserve("id", &pack(&call), &pack(&model)).unwrap_err().to_string();
            assert!(
                error.contains("argument 3") && error.contains(&format!("number {}", index + 1)),
                "{bad}: {error}"
            );
        }
    }
    let mut other_lane = call;
    other_lane[0] = 2.0;
    for (error, says) in [
        (reserve("", &pack(&call), &pack(&model)), "argument 1"),
        (reserve("id", &pack(&other_lane), &pack(&model)), "a call in a lane of the quota"),
        (reserve("id", b"text", &pack(&model)), "argument 2"),
        (reserve("id", &pack(&call[..8]), &pack(&model)), "at least 9"),
        (reserve("id", &pack(&call), &pack(&model[..8])), "at least 9"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("TIDEGATE") && error.contains(says), "{says}: {error}");
    }
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("{prefix}:*")).query(&mut server.connection()).unwrap();
    assert!(keys.is_empty(), "{keys:?}");
    assert_eq!(reserve("id", &pack(&call), &pack(&model)).unwrap()[0], 6, "there is no plan");
}

/// Many tasks race for a small limit on the server's own clock; no window exceeds the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_never_exceeds_the_limit() {
    let Some(server) = Redis::shared() else { return };
    let limits = Limits {
        margin: 1.0,
        window: Duration::from_secs(1),
        burst: Some(Duration::from_millis(50)),
        ..Limits::default().with(Dimension::Combined, 5_000)
    };
    let model = model_with_lanes(limits, tidegate_quota::Lanes::single());
    let store =
        redis_store::Store::open_within(&server.url, &unique("test"), PAUSE_TTL, PATIENCE).unwrap();
    let started = std::time::Instant::now();
    let admissions = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let (store, model, admissions) =
                (store.clone(), model.clone(), std::sync::Arc::clone(&admissions));
            tokio::spawn(async move {
                let mut turn = None;
                for number in 0..u32::MAX {
                    if started.elapsed() > Duration::from_secs(4) {
                        break;
                    }
                    let ask = Ask {
                        ticket: turn,
                        ..ask(format!("{task}-{number}"), Amounts::call(100, 0))
                    };
                    match store.reserve(&model, &ask).await.unwrap().0 {
                        Decision::Granted => {
                            turn = None;
                            admissions.lock().unwrap().push(100);
                        }
                        Decision::Wait { wait, ticket, .. } => {
                            turn = Some(ticket);
                            tokio::time::sleep(wait).await;
                        }
                        other => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let total: u64 = admissions.lock().unwrap().iter().sum();
    // At most T + 1 windows in T seconds; a generous lower bound shows that the race starves no
    // task.
    assert!(total <= 5 * 5_000, "{total}");
    assert!(total >= 2 * 5_000, "{total}");
}

/// The store in memory must itself be right about time: a worker falls back to it.
#[tokio::test]
async fn the_model_in_memory_runs_on_a_clock_of_its_own() {
    let store = memory::Store::new(Duration::from_secs(300));
    let model = model_with_lanes(
        Limits { window: Duration::from_millis(50), ..limits(100) },
        tidegate_quota::Lanes::single(),
    );
    let ask = |id: &str, ticket| Ask { ticket, ..ask(id, Amounts::call(100, 0)) };
    assert_eq!(store.reserve(&model, &ask("a", None)).await.unwrap().0, Decision::Granted);
    let Decision::Wait { wait, ticket, .. } =
        store.reserve(&model, &ask("b", None)).await.unwrap().0
    else {
        panic!("full")
    };
    assert!(wait <= Duration::from_millis(50));
    tokio::time::sleep(wait + Duration::from_millis(1)).await;
    assert_eq!(store.reserve(&model, &ask("b", Some(ticket))).await.unwrap().0, Decision::Granted);
    assert_eq!(START % SECOND, 0);
}
