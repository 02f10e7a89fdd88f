//! Arguments that our clients never send. Every script refuses wrong arguments with a sentence
//! before it writes anything; after accepted ones all stored numbers stay finite.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod common;

use std::collections::BTreeMap;

use common::{START, joined};
use redis::Connection;
use tidegate_testkit::{Redis, unique};

const HOSTILE: [f64; 9] = [
    -1.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e308,
    9_007_199_254_740_992.0,
    1e-300,
    0.5,
    0.0,
];

/// One script call: packed numbers, or text.
#[derive(Clone)]
enum Argument {
    Numbers(Vec<f64>),
    Text(&'static str),
}

use Argument::{Numbers, Text};

impl Argument {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Numbers(numbers) => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            Text(text) => text.as_bytes().to_vec(),
        }
    }
}

struct Script {
    name: &'static str,
    keys: &'static [&'static str],
    arguments: Vec<Argument>,
}

const COMMON: [&str; 5] = ["ledger", "entries", "state", "leases", "day"];

/// Two lanes, and limits of the day.
fn model() -> Argument {
    Numbers(vec![6e7, 9e7, 1e3, 1e6, 0.0, 7.0, 1.0, 0.5, 1.0, 0.5, 1.0])
}

/// Ten calls and twenty thousand tokens a minute; only strict windows of tokens.
fn plan() -> Argument {
    let limits = [10.0, 1e4, 1e4, 2e4];
    let each = |limit: f64| {
        let window = if limit > 1e4 { limit } else { f64::INFINITY };
        [limit / 6e7, limit, window, limit, 0.0]
    };
    let head = [0.0, 0.0, clock(1), 1e7, 4.0];
    Numbers(head.into_iter().chain(limits.into_iter().flat_map(each)).collect())
}

fn clock(seconds: u32) -> f64 {
    START as f64 + f64::from(seconds) * 1e6
}

/// Each script with valid arguments.
fn scripts() -> Vec<Script> {
    let ask = Numbers(vec![1.0, 0.0, 0.0, 1.0, 100.0, 100.0, 200.0, 1.0, clock(5)]);
    let more = [1.0, 0.0, 0.0, 1.0, 200.0, 50.0, 250.0, 2.0, clock(5)];
    let Numbers(one) = &ask else { unreachable!() };
    let two = Numbers(one.iter().copied().chain(more).collect());
    let mut end =
        vec![1.0, 1.0, 100.0, 50.0, 150.0, 1.0, 1.0, 100.0, 100.0, 50.0, 1.0, 1e6, 3e8, clock(6)];
    end.extend([5.0, 500.0, 500.0, 1e3, 9.0, 1e4, 1e4, 2e4, 0.0]);
    end.push(7.0);
    let Numbers(mut again) = plan() else { unreachable!() };
    (again[0], again[2]) = (1.0, clock(6));
    let again = Numbers(again);
    vec![
        Script {
            name: "reserve-7",
            keys: &["learned:0", "tenants:1"],
            arguments: vec![Text("another"), ask, model(), Text("tenant")],
        },
        Script {
            name: "reserve-7",
            keys: &["learned:0", "tenants:1"],
            arguments: vec![Text("another"), two, model(), Text("tenant"), Text("third")],
        },
        Script {
            name: "settle-9",
            keys: &["learned:0", "gate", "log", "known"],
            arguments: vec![Text("first"), Numbers(end), model(), Text("reason")],
        },
        Script {
            name: "pause-6",
            keys: &["gate"],
            arguments: vec![Text("reason"), Numbers(vec![1e6, 3e8, clock(6)]), model()],
        },
        Script {
            name: "plan-7",
            keys: &["log", "known"],
            arguments: vec![again, model(), Text("{}")],
        },
        Script {
            name: "inspect-8",
            keys: &["gate", "log", "known"],
            arguments: vec![Numbers(vec![clock(6)]), model()],
        },
        Script {
            name: "leave-7",
            keys: &["tenants:1"],
            arguments: vec![
                Text("tenant"),
                Numbers(vec![1.0, clock(6), 1.0, 1.0, 1.0, 0.0, 0.0, 1_000.0]),
                model(),
            ],
        },
        Script {
            name: "renew-1",
            keys: &[],
            arguments: vec![Text("first"), Numbers(vec![1e8, clock(6)])],
        },
    ]
}

fn call(
    connection: &mut Connection,
    stem: &str,
    script: &Script,
    arguments: &[Argument],
) -> Result<redis::Value, redis::RedisError> {
    let common = if script.name == "renew-1" { &COMMON[3..4] } else { &COMMON[..] };
    let keys: Vec<String> =
        common.iter().chain(script.keys).map(|what| format!("{stem}:{what}")).collect();
    let bytes: Vec<Vec<u8>> = arguments.iter().map(Argument::bytes).collect();
    let mut command = redis::cmd("EVAL");
    command.arg(joined(script.name)).arg(keys.len()).arg(&keys).arg(&bytes);
    command.query(connection)
}

/// A quota with one call under way and one that waits.
fn begin(connection: &mut Connection, stem: &str) {
    let first_plan = Script { name: "plan-7", keys: &["log", "known"], arguments: Vec::new() };
    call(connection, stem, &first_plan, &[plan(), model(), Text("{}")]).unwrap();
    let reserve = &scripts()[0];
    for (id, tokens) in [("first", 9e3), ("second", 9e3)] {
        let ask = Numbers(vec![1.0, 0.0, 0.0, 1.0, tokens, 100.0, tokens + 100.0, 0.0, clock(1)]);
        let arguments = [Text(id), ask, model(), Text("tenant")];
        call(connection, stem, reserve, &arguments).unwrap();
    }
}

fn everything(connection: &mut Connection, stem: &str) -> BTreeMap<String, Vec<u8>> {
    let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{stem}:*")).query(connection).unwrap();
    let dump = |key: String| {
        let value: Vec<u8> = redis::cmd("DUMP").arg(&key).query(connection).unwrap();
        (key, value)
    };
    keys.into_iter().map(dump).collect()
}

/// The packed doubles and the scores of sorted sets.
fn numbers(connection: &mut Connection, stem: &str) -> Vec<f64> {
    let mut all = Vec::new();
    for what in ["state", "day", "learned:0"] {
        let packed: Option<Vec<u8>> =
            redis::cmd("GET").arg(format!("{stem}:{what}")).query(connection).unwrap();
        let mut packed = packed.unwrap_or_default();
        // Without a window it is infinite.
        for dimension in 0..if what == "state" { 4 } else { 0 } {
            let strict = 8 * (27 + 10 * dimension + 2);
            packed[strict..strict + 8].fill(0);
        }
        all.extend(
            packed.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())),
        );
    }
    for what in ["ledger", "leases"] {
        let mut range = redis::cmd("ZRANGE");
        range.arg(format!("{stem}:{what}")).arg(0).arg(-1).arg("WITHSCORES");
        let scored: Vec<(String, f64)> = range.query(connection).unwrap();
        all.extend(scored.into_iter().map(|(_, score)| score));
    }
    all
}

#[test]
fn a_hostile_argument_is_refused_whole_or_leaves_finite_numbers() {
    let Some(server) = Redis::start() else { return };
    let connection = &mut server.connection();
    let (mut refused, mut taken) = (0, 0);
    for script in scripts() {
        let places = script.arguments.iter().enumerate().flat_map(|(at, argument)| {
            let count = if let Numbers(numbers) = argument { numbers.len() } else { 0 };
            (0..count).map(move |place| (at, place))
        });
        for (at, place) in places {
            for hostile in HOSTILE {
                let stem = format!("{}:v1:{{a:b}}", unique("hostile"));
                begin(connection, &stem);
                let mut arguments = script.arguments.clone();
                if let Numbers(numbers) = &mut arguments[at] {
                    numbers[place] = hostile;
                }
                let before = everything(connection, &stem);
                let told = format!(
                    "{}: number {} of argument {} is {hostile}",
                    script.name,
                    place + 1,
                    at + 1
                );
                match call(connection, &stem, &script, &arguments) {
                    Err(error) => {
                        assert!(error.to_string().contains("TIDEGATE"), "{told}: {error}");
                        assert!(everything(connection, &stem) == before, "{told}: and it wrote");
                        refused += 1;
                    }
                    Ok(_) => {
                        let numbers = numbers(connection, &stem);
                        assert!(
                            numbers.iter().all(|number| number.is_finite()),
                            "{told}: {numbers:?}"
                        );
                        taken += 1;
                    }
                }
                let _: () = redis::cmd("FLUSHALL").query(connection).unwrap();
            }
        }
    }
    assert!(refused > 300 && taken > 100, "{refused} refused, {taken} taken");
}

/// Too few numbers, too many, and a length that is no multiple of eight bytes.
#[test]
fn arguments_of_another_shape_change_nothing() {
    let Some(server) = Redis::start() else { return };
    let connection = &mut server.connection();
    for script in scripts() {
        let stem = format!("{}:v1:{{a:b}}", unique("hostile"));
        begin(connection, &stem);
        let before = everything(connection, &stem);
        let short = &script.arguments[1..];
        let long: Vec<Argument> = script.arguments.iter().cloned().chain([Text("more")]).collect();
        let mut shapes = vec![short.to_vec(), long];
        for (at, argument) in script.arguments.iter().enumerate() {
            if matches!(argument, Numbers(_)) {
                let mut text = script.arguments.clone();
                text[at] = Text("twelve bytes");
                shapes.push(text);
                let mut nothing = script.arguments.clone();
                nothing[at] = Numbers(Vec::new());
                shapes.push(nothing);
            }
        }
        for shape in shapes {
            let error = call(connection, &stem, &script, &shape).unwrap_err().to_string();
            assert!(error.contains("TIDEGATE"), "{}: {error}", script.name);
            assert!(everything(connection, &stem) == before, "{}: and it wrote", script.name);
        }
    }
}
