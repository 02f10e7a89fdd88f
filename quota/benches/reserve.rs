//! Server time of `reserve`, a refusal, `settle` and a run of the policy, compared with a script
//! that only returns 1 and one that only keeps totals.
//!
//! `cargo bench -p tidegate-quota`. The figures are the server's own CPU time per call
//! (`INFO commandstats`), so a slow client or a busy machine hardly disturbs them. Three
//! dimensions, three lanes, a tenant; the clock is moved by hand so that every admission drives one
//! reservation out of the window and the population stays at N.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a benchmark may stop at the first fault and talks to people"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Duration;

use common::{START, lanes, limits, model_with_lanes};
use tidegate_quota::{
    Amounts, Decision, Dimension, ModelQuota, Store, redis_store,
    store::{Ask, LimitChanges, Settlement},
};
use tidegate_testkit::{Redis, unique};

const CALLS: u64 = 1_000;
const ROUNDS: usize = 20;

fn model() -> ModelQuota {
    let limits = limits(1_000_000_000_000)
        .with(Dimension::Requests, 1_000_000_000)
        .with(Dimension::Input, 1_000_000_000_000);
    model_with_lanes(
        limits,
        lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0), ("standard", 0.3, 1.0)]),
    )
}

/// Microseconds of server CPU per `EVALSHA` since the last reset.
fn server_micros(connection: &mut redis::Connection) -> f64 {
    server_figure(connection, "usec_per_call=")
}

fn server_figure(connection: &mut redis::Connection, name: &str) -> f64 {
    let info: String = redis::cmd("INFO").arg("commandstats").query(connection).unwrap();
    let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap();
    line.split([',', ':']).find_map(|field| field.strip_prefix(name)).unwrap().parse().unwrap()
}

fn reset(connection: &mut redis::Connection) {
    redis::cmd("CONFIG").arg("RESETSTAT").exec(connection).unwrap();
}

fn floor(connection: &mut redis::Connection) -> f64 {
    let sha: String = redis::cmd("SCRIPT").arg("LOAD").arg("return 1").query(connection).unwrap();
    reset(connection);
    for _ in 0..CALLS {
        redis::cmd("EVALSHA").arg(&sha).arg(1).arg("{a:b}:x").exec(connection).unwrap();
    }
    server_micros(connection)
}

/// Microseconds of a script that only keeps totals, with `n` admissions in its window.
fn totals_only(server: &Redis, n: u64) -> f64 {
    let mut connection = server.connection();
    let sha: String = redis::cmd("SCRIPT")
        .arg("LOAD")
        .arg(include_str!("totals_only.lua"))
        .query(&mut connection)
        .unwrap();
    let prefix = unique("test");
    let (step, mut number, mut caller) = (60_000_000 / n, 0, server.connection());
    let mut admit = || {
        let admitted: u64 = redis::cmd("EVALSHA")
            .arg(&sha)
            .arg(2)
            .arg(
                [format!("{prefix}:{{a:b}}:ledger"), format!("{prefix}:{{a:b}}:totals")].as_slice(),
            )
            .arg(format!("0190f5fe-8f0c-7cc3-98c5-bench#{number}"))
            .arg(&[
                60_000_000,
                1_000_000_000,
                1_000_000_000_000,
                1_000_000_000_000,
                2_000,
                2_300,
                START + number * step,
            ])
            .query(&mut caller)
            .unwrap();
        assert_eq!(admitted, 1);
        number += 1;
    };
    for _ in 0..n {
        admit();
    }
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        reset(&mut connection);
        for _ in 0..CALLS {
            admit();
        }
        best = best.min(server_micros(&mut connection));
    }
    best
}

/// Microseconds of each.
struct Costs {
    reserve: f64,
    refusal: f64,
    settle: f64,
    /// Reading and writing, of a run of the policy.
    policy: f64,
}

async fn population(server: &Redis, n: u64) -> Costs {
    let mut connection = server.connection();
    let store =
        redis_store::Store::open(&server.url, &unique("test"), Duration::from_secs(300)).unwrap();
    let model = model();
    let step = 60_000_000 / n;
    let ask = |number: u64| Ask {
        lane: usize::try_from(number % 3).unwrap(),
        tenant: tidegate_types::Tenant::new("acme").unwrap(),
        ..common::ask(format!("0190f5fe-8f0c-7cc3-98c5-bench#{number}"), Amounts::call(2_000, 300))
    };
    let mut number = 0;
    let mut reserve = async || {
        store.set_test_clock(START + number * step);
        assert_eq!(store.reserve(&model, &ask(number)).await.unwrap().0, Decision::Granted);
        number += 1;
        number - 1
    };
    for _ in 0..n {
        reserve().await;
    }
    let mut best =
        Costs { reserve: f64::MAX, refusal: f64::MAX, settle: f64::MAX, policy: f64::MAX };
    // A settlement that gets the policy's task does not run it.
    store.keep_tasks(true);
    for _ in 0..ROUNDS {
        reset(&mut connection);
        let mut admitted = Vec::new();
        for _ in 0..CALLS.min(n) {
            admitted.push(reserve().await);
        }
        best.reserve = best.reserve.min(server_micros(&mut connection));
        reset(&mut connection);
        for number in admitted {
            let settlement = Settlement::used(ask(number).reservation, Amounts::call(1_900, 250));
            store.settle(&model, &settlement).await.unwrap();
        }
        best.settle = best.settle.min(server_micros(&mut connection));
        reset(&mut connection);
        for _ in 0..CALLS / 10 {
            let large = Ask { amounts: Amounts::call(1_000_000_000_000, 0), ..ask(0) };
            let large = Ask { reservation: "large".to_owned(), ..large };
            let decision = store.reserve(&model, &large).await.unwrap().0;
            assert!(matches!(decision, Decision::Wait { .. }), "{decision:?}");
        }
        best.refusal = best.refusal.min(server_micros(&mut connection));
        store.leave(&model, 0, &ask(0).tenant).await.unwrap();
        reset(&mut connection);
        for _ in 0..CALLS / 10 {
            // Changes no limit, but reads and writes as a run does.
            store.set_limits(&model, &LimitChanges::default()).await.unwrap();
        }
        let both = server_figure(&mut connection, "usec=") / (CALLS / 10) as f64;
        best.policy = best.policy.min(both);
    }
    best
}

/// Microseconds of a `reserve` for each call in its batch, with a thousand in the window.
async fn together(server: &Redis, calls: u64) -> f64 {
    const POPULATION: u64 = 1_000;
    let mut connection = server.connection();
    let store =
        redis_store::Store::open(&server.url, &unique("test"), Duration::from_secs(300)).unwrap();
    let (model, step, mut number) = (model(), 60_000_000 / POPULATION, 0);
    let mut reserve = async || {
        let ask = |number| {
            let id = format!("0190f5fe-8f0c-7cc3-98c5-bench#{number}");
            common::ask(id, Amounts::call(2_000, 300))
        };
        let asks: Vec<Ask> = (number..number + calls).map(ask).collect();
        number += calls;
        store.set_test_clock(START + number * step);
        let answers = store.reserve_all(&model, &asks).await.unwrap();
        assert!(answers.iter().all(|(decision, _)| *decision == Decision::Granted));
    };
    for _ in 0..POPULATION / calls {
        reserve().await;
    }
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        reset(&mut connection);
        for _ in 0..CALLS / calls {
            reserve().await;
        }
        best = best.min(server_micros(&mut connection));
    }
    best / calls as f64
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let Some(server) = Redis::start() else { return };
    let floor = (0..ROUNDS).map(|_| floor(&mut server.connection())).fold(f64::MAX, f64::min);
    println!(
        "server CPU per call, least of {ROUNDS} rounds of {CALLS} calls; EVALSHA \"return 1\": {floor:.2} us"
    );
    for calls in [1, 8, 32] {
        let each = together(&server, calls).await;
        println!("reserve about {calls:>2} calls, 1,000 in the window: {each:.1} us for each");
    }
    println!(
        "{:>10} {:>12} {:>12} {:>12} {:>12} {:>14} {:>17} {:>16}",
        "in window",
        "reserve (us)",
        "refusal (us)",
        "settle (us)",
        "policy (us)",
        "totals only (us)",
        "reserve / totals",
        "settle / totals"
    );
    for n in [100, 1_000, 10_000, 100_000] {
        let totals = totals_only(&server, n);
        let Costs { reserve, refusal, settle, policy } = population(&server, n).await;
        println!(
            "{n:>10} {reserve:>12.1} {refusal:>12.1} {settle:>12.1} {policy:>12.1} {totals:>16.1} {:>17.2} {:>16.2}",
            reserve / totals,
            settle / totals
        );
    }
}
