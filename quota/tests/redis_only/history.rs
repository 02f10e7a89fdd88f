//! Random histories: steps, and how a store carries them out.

use super::*;

/// One step of a random history.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Reserve {
        id: u8,
        lane: usize,
        input: u64,
        output: u64,
        with_ticket: bool,
    },
    ReserveAll {
        id: u8,
        count: u8,
        lane: usize,
        input: u64,
    },
    Settle {
        id: u8,
        input: u64,
        output: u64,
    },
    Release {
        id: u8,
    },
    Fail {
        id: u8,
        signal: ProviderSignal,
        seconds: u64,
    },
    Meter {
        id: u8,
        used: u64,
        limit: u64,
    },
    Charge {
        id: u8,
        tokens: u64,
    },
    Renew {
        id: u8,
    },
    Limit {
        combined: Option<u64>,
        concurrent: Option<u64>,
    },
    Pause {
        seconds: u64,
    },
    Resume,
    Leave {
        lane: usize,
        tenant: bool,
    },
    GiveUp {
        id: u8,
        lane: usize,
        input: u64,
    },
    Advance {
        millis: i64,
    },
    /// Freezes programs that run the policy, or ends this.
    Freeze {
        frozen: bool,
    },
    /// Frozen programs finish their runs, or are killed.
    Thaw {
        killed: bool,
    },
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_u8..40, 0_usize..3, 0_u64..400, 0_u64..200, any::<bool>())
            .prop_map(|(id, lane, input, output, with_ticket)| Step::Reserve { id, lane, input, output, with_ticket }),
        2 => (0_u8..40, 1_u8..8, 0_usize..3, 0_u64..400)
            .prop_map(|(id, count, lane, input)| Step::ReserveAll { id, count, lane, input }),
        4 => (0_u8..40, 0_u64..500, 0_u64..300).prop_map(|(id, input, output)| Step::Settle { id, input, output }),
        2 => (0_u8..40).prop_map(|id| Step::Release { id }),
        2 => (0_u8..40, 0_usize..7, 0_u64..20).prop_map(|(id, signal, seconds)| {
            use ProviderSignal::{Exhausted, Lost, Overloaded, RateLimited};
            let signal = [RateLimited, RateLimited, RateLimited, Overloaded, Overloaded, Exhausted, Lost][signal];
            Step::Fail { id, signal, seconds }
        }),
        3 => (0_u8..40, 0_u64..3_000, 1_000_u64..4_000).prop_map(|(id, used, limit)| Step::Meter { id, used, limit }),
        1 => (0_u8..40, 0_u64..300).prop_map(|(id, tokens)| Step::Charge { id, tokens }),
        1 => (0_u8..40).prop_map(|id| Step::Renew { id }),
        1 => (proptest::option::of(500_u64..5_000), proptest::option::of(1_u64..12))
            .prop_map(|(combined, concurrent)| Step::Limit { combined, concurrent }),
        1 => (1_u64..20).prop_map(|seconds| Step::Pause { seconds }),
        1 => Just(Step::Resume),
        1 => (0_usize..3, any::<bool>()).prop_map(|(lane, tenant)| Step::Leave { lane, tenant }),
        2 => (0_u8..40, 0_usize..3, 0_u64..400).prop_map(|(id, lane, input)| Step::GiveUp { id, lane, input }),
        2 => any::<bool>().prop_map(|frozen| Step::Freeze { frozen }),
        2 => any::<bool>().prop_map(|killed| Step::Thaw { killed }),
        6 => prop_oneof![8 => 0_i64..500, 8 => 0_i64..20_000, 8 => -2_000_i64..0, 1 => -200_000_i64..0].prop_map(|millis| Step::Advance { millis }),
    ]
}

pub(super) fn lanes_and_dimensions() -> ModelQuota {
    let limits = Limits {
        burst: Some(Duration::from_secs(2)),
        ..limits(2_500)
            .with(Dimension::Requests, 30)
            .with(Dimension::Input, 2_000)
            .with(Dimension::Output, 900)
    };
    model_with_lanes(
        limits,
        lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 0.9), ("standard", 0.3, 1.0)]),
    )
}

/// As above, with a learned burst.
pub(super) fn learning(token_bucket: bool) -> ModelQuota {
    let fixed = lanes_and_dimensions();
    let limits = Limits { burst: None, token_bucket, ..fixed.limits };
    // This provider's final counts are learned too.
    ModelQuota {
        limits,
        charge: if token_bucket { Charge::CAUTIOUS } else { fixed.charge },
        ..fixed
    }
}

/// Carries out one step and returns the store's answer.
pub(super) async fn carry_out<S: Store + Freezes>(
    rig: &Rig<S>,
    tickets: &mut [Option<Ticket>],
    step: &Step,
) -> String {
    let settle = |id: u8, used, sample| Settlement {
        used,
        sample,
        template: u64::from(id % 3),
        cached: (!id.is_multiple_of(4)).then(|| u64::from(id % 5) * 30),
        ..Settlement::released(format!("r{id}"))
    };
    match step {
        Step::Reserve { id, lane, input, output, with_ticket } => {
            let slot = usize::from(*id) * 3 + lane;
            let ask = Ask {
                lane: *lane,
                ticket: tickets[slot].filter(|_| *with_ticket),
                template: u64::from(id % 3),
                curious: *with_ticket,
                tenant: Tenant::new(if id % 2 == 0 { "even" } else { "odd" }).unwrap(),
                ..ask(format!("r{id}"), Amounts::call(*input, *output))
            };
            let (decision, expectation) = rig.store.reserve(&rig.model, &ask).await.unwrap();
            if let Decision::Wait { ticket, .. } = decision {
                tickets[slot] = Some(ticket);
            }
            format!("{decision:?} {expectation:?}")
        }
        Step::ReserveAll { id, count, lane, input } => {
            // Calls of one tenant and template; the last repeats the first.
            let ids: Vec<u8> = (0..*count).map(|more| (id + more % 6 * 6) % 36).collect();
            let slot = |id: u8| usize::from(id) * 3 + lane;
            let each = ids.iter().map(|id| Ask {
                lane: *lane,
                ticket: tickets[slot(*id)],
                template: u64::from(id % 3),
                curious: id % 4 == 0,
                tenant: Tenant::new(if id % 2 == 0 { "even" } else { "odd" }).unwrap(),
                ..ask(format!("r{id}"), Amounts::call(input / u64::from(id % 7 + 1), 20))
            });
            let asks: Vec<Ask> = each.collect();
            let answers = rig.store.reserve_all(&rig.model, &asks).await.unwrap();
            for (id, (decision, _)) in ids.iter().zip(&answers) {
                if let Decision::Wait { ticket, .. } = decision {
                    tickets[slot(*id)] = Some(*ticket);
                }
            }
            format!("{answers:?}")
        }
        Step::Settle { id, input, output } => {
            let sample = UsageSample { estimated_input: 100, input: *input, output: *output };
            let used = Some(Amounts::call(*input, *output));
            format!(
                "{:?}",
                rig.store.settle(&rig.model, &settle(*id, used, Some(sample))).await.unwrap()
            )
        }
        Step::Release { id } => {
            format!("{:?}", rig.store.settle(&rig.model, &settle(*id, None, None)).await.unwrap())
        }
        Step::Fail { id, signal, seconds } => {
            let pause =
                Pause { length: Duration::from_secs(*seconds), reason: "refused".to_owned() };
            let settlement = Settlement {
                signal: *signal,
                pause: Some(pause),
                ..settle(*id, Some(Amounts::call(0, 0)), None)
            };
            format!("{:?}", rig.store.settle(&rig.model, &settlement).await.unwrap())
        }
        Step::Meter { id, used, limit } => {
            let meter = Meter {
                // The burst is learned only if the meter states every limit.
                used: if id % 2 == 0 {
                    PerDimension::from_fn(|it| Some(used / [100, 1, 2, 1][it as usize - 1]))
                } else {
                    PerDimension { combined: Some(*used), ..PerDimension::default() }
                },
                limits: PerDimension { combined: Some(*limit), ..PerDimension::default() },
                // Mostly as a token bucket.
                resets: PerDimension {
                    combined: (id % 3 > 0).then(|| {
                        Duration::from_millis(if id % 11 == 0 { 1 } else { used * 60_000 / limit })
                    }),
                    ..PerDimension::default()
                },
            };
            let sample = UsageSample { estimated_input: 100, input: 10, output: 5 };
            let used = Some(Amounts::call(10, 5));
            let settlement = Settlement { meter, ..settle(*id, used, Some(sample)) };
            format!("{:?}", rig.store.settle(&rig.model, &settlement).await.unwrap())
        }
        Step::Charge { id, tokens } => {
            let (used, drawn) = (Amounts::call(*tokens, 0), Amounts::call(tokens / 2, 0));
            format!(
                "{:?}",
                rig.store
                    .charge(&rig.model, &format!("away{id}"), usize::from(id % 3), used, drawn)
                    .await
                    .unwrap()
            )
        }
        Step::Renew { id } => {
            format!("{:?}", rig.store.renew(&rig.model, &format!("r{id}")).await.unwrap())
        }
        Step::Limit { combined, concurrent } => {
            let change = |limit: Option<u64>| limit.map_or(Change::Clear, Change::Set);
            let changes = PerLimit {
                window: PerDimension { combined: change(*combined), ..PerDimension::default() },
                in_flight: change(*concurrent),
            };
            format!("{:?}", rig.store.set_limits(&rig.model, &changes).await.unwrap())
        }
        Step::Pause { seconds } => {
            let pause = Pause { length: Duration::from_secs(*seconds), reason: "test".to_owned() };
            format!("{:?}", rig.store.pause(&rig.model, &pause).await.unwrap())
        }
        Step::Leave { lane, tenant } => {
            let tenant = Tenant::new(if *tenant { "even" } else { "odd" }).unwrap();
            format!("{:?}", rig.store.leave(&rig.model, *lane, &tenant).await.unwrap())
        }
        Step::GiveUp { id, lane, input } => {
            let ask = Ask {
                lane: *lane,
                amounts: Amounts::call(*input, 10),
                ticket: tickets[usize::from(*id) * 3 + lane],
                tenant: Tenant::new(if id % 2 == 0 { "even" } else { "odd" }).unwrap(),
                ..ask(format!("r{id}"), Amounts::default())
            };
            format!("{:?}", rig.store.give_up(&rig.model, &ask).await.unwrap())
        }
        Step::Resume => format!("{:?}", rig.store.resume(&rig.model).await.unwrap()),
        Step::Freeze { frozen } => {
            rig.store.freeze(*frozen);
            String::new()
        }
        Step::Thaw { killed } => format!("{:?}", rig.store.thaw(&rig.model, *killed).await),
        Step::Advance { millis } => {
            rig.at(rig.now().saturating_add_signed(millis * 1_000).max(START));
            String::new()
        }
    }
}
