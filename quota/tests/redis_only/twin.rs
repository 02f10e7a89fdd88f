//! The scripts and the mechanism in memory agree; totals equal the ledger.

use super::*;
use crate::history::Step;

/// Totals must equal the ledger, and each lane's totals its entries.
pub(super) fn totals_equal_the_ledger(
    connection: &mut redis::Connection,
    prefix: &str,
    used: Amounts,
) -> Result<(), TestCaseError> {
    let key = |what: &str| format!("{prefix}:v1:{{test:model}}:{what}");
    let ids: Vec<String> =
        redis::cmd("ZRANGE").arg(key("ledger")).arg(0).arg(-1).query(connection).unwrap();
    let mut sum = PerDimension::<f64>::default();
    for id in &ids {
        let entry: Vec<u8> =
            redis::cmd("HGET").arg(key("entries")).arg(id).query(connection).unwrap();
        for (dimension, bytes) in Dimension::ALL.into_iter().zip(entry[19..].chunks(8)) {
            sum[dimension] += f64::from_le_bytes(bytes.try_into().unwrap());
        }
    }
    let entries: usize = redis::cmd("HLEN").arg(key("entries")).query(connection).unwrap();
    let leases: usize = redis::cmd("ZCARD").arg(key("leases")).query(connection).unwrap();
    prop_assert_eq!(
        entries,
        ids.len() + leases,
        "an entry without a place in the ledger or a lease"
    );
    for (dimension, sum) in sum.iter() {
        prop_assert!(
            (sum - used[dimension] as f64).abs() < 0.5,
            "ledger {} total {}",
            sum,
            used[dimension]
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// The mechanism in memory and the scripts give equal answers to any history, to the
    /// microsecond; totals equal the ledger; every window is within its limit at each admission.
    #[test]
    fn scripts_and_twin_agree(kind in 0_u8..3, settled in any::<bool>(), steps in proptest::collection::vec(step(), 1..120)) {
        let model = || match kind {
            0 => lanes_and_dimensions(),
            kind => learning(kind == 2),
        };
        let prefix = unique("test");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let Some(shared) = in_redis(model(), &prefix) else { return Ok(()) };
        let local = in_memory(model());
        let mut connection = Redis::shared().unwrap().connection();
        runtime.block_on(async {
            if settled {
                shared.settled_down().await;
                local.settled_down().await;
            } else {
                assert_eq!(shared.reserve(&shared.ask(1)).await, local.reserve(&local.ask(1)).await);
            }
        });
        let (mut shared_tickets, mut local_tickets) = (vec![None; 120], vec![None; 120]);
        runtime.block_on(async {
            for (number, step) in steps.iter().enumerate() {
                let before = local.store.inspect(&local.model).await.unwrap();
                shared.store.inspect(&shared.model).await.unwrap();
                let said = carry_out(&shared, &mut shared_tickets, step).await;
                let twin_said = carry_out(&local, &mut local_tickets, step).await;
                prop_assert!(nearly_equal(&said, &twin_said), "step {number} {step:?}: {said}, and the twin {twin_said}");
                let (left, right) = (shared.store.inspect(&shared.model).await.unwrap(), local.store.inspect(&local.model).await.unwrap());
                let (scripts, twin) = (format!("{left:?}"), format!("{right:?}"));
                prop_assert!(nearly_equal(&scripts, &twin), "after step {number} {step:?}: {scripts}, and the twin {twin}");
                if said.starts_with("Granted") && left.reservations > before.reservations {
                    for dimension in Dimension::ALL {
                        let (now, before) = (left.get(dimension), before.get(dimension));
                        let window = now.plan.map_or(f64::INFINITY, |plan| plan.window.value);
                        let within = now.used <= before.used || now.used as f64 <= window + 1.0;
                        prop_assert!(within, "{} over its window", dimension);
                    }
                    prop_assert!(left.in_flight.limit == 0 || left.in_flight.used <= left.in_flight.limit, "too many at once");
                    let lanes: u64 = left.lanes.iter().map(|lane| lane.used.combined).sum();
                    prop_assert_eq!(lanes, left.get(Dimension::Combined).used, "lanes add up");
                }
            }
            let used = shared.store.inspect(&shared.model).await.unwrap().used();
            totals_equal_the_ledger(&mut connection, &prefix, used)
        })?;
    }
}

async fn both_say_the_same<A: Store + Freezes, B: Store + Freezes>(
    shared: &Rig<A>,
    local: &Rig<B>,
    steps: &[Step],
) {
    let (mut tickets, mut twin_tickets) = (vec![None; 120], vec![None; 120]);
    for step in steps {
        let said = carry_out(shared, &mut tickets, step).await;
        assert_eq!(said, carry_out(local, &mut twin_tickets, step).await, "{step:?}");
    }
}

/// Else the next call of its template would reserve nothing.
#[tokio::test]
async fn a_call_that_used_nothing_teaches_nothing() {
    let Some(shared) = in_redis(lanes_and_dimensions(), &unique("test")) else { return };
    let local = in_memory(lanes_and_dimensions());
    let steps = [
        Step::Reserve { id: 0, lane: 0, input: 0, output: 0, with_ticket: false },
        Step::Settle { id: 0, input: 0, output: 0 },
    ];
    both_say_the_same(&shared, &local, &steps).await;
}

/// The meter of a limit that is spent at its own reset, by others' use, leaves a plan that both write.
#[tokio::test]
async fn a_limit_that_is_spent_at_its_reset_leaves_a_plan() {
    let Some(shared) = in_redis(lanes_and_dimensions(), &unique("test")) else { return };
    let local = in_memory(lanes_and_dimensions());
    let steps = [
        Step::Reserve { id: 22, lane: 0, input: 0, output: 0, with_ticket: false },
        Step::Meter { id: 22, used: 1_909, limit: 1_000 },
        Step::Advance { millis: 250 },
        Step::Settle { id: 0, input: 0, output: 0 },
    ];
    shared.settled_down().await;
    local.settled_down().await;
    both_say_the_same(&shared, &local, &steps).await;
    let capacity = shared.store.inspect(&shared.model).await.unwrap();
    let capacity = capacity.get(Dimension::Combined).plan.unwrap().capacity.value;
    assert!(capacity > 0.0, "{capacity}");
}
