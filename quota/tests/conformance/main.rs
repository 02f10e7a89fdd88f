//! One list of promises for both stores: the mechanism in memory and the scripts in a real Redis.
//! Each promise starts with a settled quota unless it says otherwise: see `Rig::settled_down`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod amounts;
mod calls_at_once;
mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod gate;
mod lanes_shared;
mod learned;
mod limits_set;
mod reservations;
mod turns;

use std::time::Duration;

use common::{
    Freezes, PAUSE_TTL, Rig, SECOND, START, both_stores, lanes, limits, model, model_with_lanes,
};
use tidegate_quota::{
    Amounts, Change, DayLimit, Decision, Dimension, Hold, Limits, ModelQuota, PerDimension,
    PerLimit, Store, Ticket,
    plan::Why,
    store::{Ask, LimitChanges, Meter, Pause, ProviderSignal, Settled, Settlement, UsageSample},
};
use tidegate_types::Tenant;

use {
    amounts::*, calls_at_once::*, clocks::*, gate::*, lanes_shared::*, learned::*, limits_set::*,
    reservations::*, turns::*,
};

both_stores! {
    // Amounts.
    the_window_holds_exactly_the_limit(model(limits(1_000)));
    a_refusal_names_the_exact_wait_for_the_window(model(limits(1_000)));
    a_refusal_names_the_exact_wait_by_the_rate(model(paced(60_000)));
    a_bounded_number_of_entries_is_read_for_a_wait(model(limits(1_000)));
    the_pace_lets_no_minute_go_at_once(model(paced(6_000)));
    every_dimension_holds(model(limits(8_000).with(Dimension::Requests, 10).with(Dimension::Input, 5_000).with(Dimension::Output, 50)));
    a_call_that_never_fits_is_refused_at_once(model(limits(1_000)));
    a_call_larger_than_the_capacity_goes_when_nothing_is_drawn(model(paced(60_000)));
    a_bucket_keeps_a_margin_while_calls_are_under_way(model(Limits { token_bucket: true, ..limits(60_000) }));
    no_wait_is_longer_than_the_horizon(model(limits(60_000)));
    // Reservations.
    the_same_reservation_is_admitted_once(model(limits(1_000)));
    an_id_that_is_there_twice_is_admitted_once(model(limits(1_000)));
    a_reservation_is_settled_once(model(limits(1_000)));
    unused_amounts_are_given_back(model(limits(1_000)));
    an_overshoot_is_a_debt(model(limits(1_000)));
    a_debt_lasts_no_longer_than_a_window(model(paced(1_000)));
    a_lost_call_stays_charged_and_is_not_in_flight(model(Limits { concurrent: Some(1), ..limits(1_000) }));
    spending_elsewhere_is_charged_once(model(limits(1_000)));
    spending_elsewhere_moves_the_queue_on(model(paced(60_000)));
    a_settlement_returns_the_room(model(paced(60_000)));
    // Turns.
    turns_are_first_come_first_served(model(paced(60_000)));
    a_newcomer_does_not_overtake(model(limits(1_000)));
    of_a_batch_the_first_calls_go_and_the_others_get_turns(model(limits(1_000)));
    a_ticket_of_another_life_comes_first(model(paced(60_000)));
    a_caller_whose_turn_has_gone_by_comes_first(model(paced(60_000)));
    callers_that_never_come_back_hold_up_no_other(model(paced(60_000)));
    callers_that_never_come_back_hold_up_no_other_behind_a_closed_gate(model(paced(60_000)));
    a_tenant_that_leaves_delays_no_other(model(paced(60_000)));
    a_caller_that_gives_up_delays_no_other(model(paced(60_000)));
    tenants_of_a_lane_get_equal_parts(model(paced(60_000)));
    a_tenant_alone_is_served_as_it_comes(model(paced(60_000)));
    // Lanes.
    a_lane_has_its_share_while_another_takes_all_it_can(three_lanes(limits(1_000)));
    a_lane_in_use_finds_its_standby_and_no_more(three_lanes(limits(1_000)));
    the_first_call_of_an_idle_lane_goes_at_once(three_lanes(limits(1_000)));
    a_lane_borrows_unused_room(three_lanes(limits(1_000)));
    a_lane_has_one_call_of_the_smallest_limit(model_with_lanes(limits(1_000).with(Dimension::Requests, 3), lanes(&[("batch", 0.2, 0.2), ("other", 0.2, 1.0)])));
    a_lane_keeps_to_its_ceiling(model_with_lanes(limits(1_000), lanes(&[("batch", 0.5, 0.6)])));
    a_lane_without_a_share_is_not_starved(greedy());
    a_large_document_gets_its_turn_beside_other_lanes(three_lanes(paced(1_000)));
    // The gate.
    a_pause_closes_the_gate_and_never_gets_shorter(model(limits(1_000)));
    a_pause_ends_with_its_time_to_live(model(limits(1_000)));
    a_pause_changes_no_turn(model(paced(60_000)));
    a_wait_for_the_gate_is_exact(model(paced(60_000)));
    after_a_refusal_one_call_goes_first(model(limits(1_000)));
    a_refused_probe_closes_the_gate_again(model(limits(1_000)));
    a_probe_that_is_answered_opens_the_gate(model(limits(1_000)));
    an_exhausted_quota_stays_closed_until_an_operator_opens_it(model(limits(1_000)));
    // Calls at once.
    calls_at_once_are_bounded(at_once(3));
    a_call_that_outlives_the_window_is_still_in_flight(at_once(2));
    a_lane_has_its_part_of_the_calls_at_once(shared_at_once());
    calls_at_once_may_be_the_only_limit(calls_at_once_alone());
    a_free_place_is_for_the_first_in_turn(at_once(2));
    a_free_place_beside_other_limits_is_for_the_first_in_turn(model(Limits { concurrent: Some(2), ..limits(1_000_000) }));
    absent_callers_hold_no_place_before_the_first_answer(at_once(1));
    a_long_call_on_a_quiet_quota_is_still_in_flight(at_once(1));
    an_overload_cuts_the_calls_in_flight_and_closes_nothing(model(limits(1_000_000)));
    a_known_overload_changes_nothing(model(limits(1_000_000)));
    // Days.
    a_day_s_limit_ends_with_the_day(model(Limits { requests_per_day: Some(5), ..limits(1_000_000) }));
    tokens_of_a_day_are_settled(model(Limits { tokens_per_day: Some(1_000), ..limits(1_000_000) }));
    // Clocks.
    a_clock_that_steps_back_stands_still(model(limits(1_000)));
    a_clock_set_back_an_hour_freezes_nothing(model(Limits { concurrent: Some(3), ..limits(1_000) }));
    // Learned use.
    expectations_are_learned(model(limits(100_000)));
    cached_input_is_learned(model(limits(100_000)));
    models_of_a_group_share_one_quota(model(limits(1_000)).sharing("test:group"));
    // Limits, and the policy behind them.
    limits_set_act_at_once_and_keep_what_is_used(model(limits(1_000)));
    a_raised_limit_moves_the_queue(model(paced(600)));
    a_limit_set_where_there_was_none_counts_from_then(model(limits(1_000)));
    a_provider_that_states_less_is_believed_for_a_while(model(limits(1_000)));
    a_refusal_lowers_the_rate_and_time_restores_it(model(limits(1_000)));
    use_by_others_counts(model(limits(1_000)));
    one_caller_at_a_time_gets_the_task_and_an_outdated_plan_is_not_written(model(limits(6_000)));
    the_log_keeps_the_last_observations(model(limits(1_000)));
}

fn paced(combined: u64) -> Limits {
    Limits { burst: Some(Duration::from_secs(1)), ..limits(combined) }
}

/// The lanes' indexes: batch 0, interactive 1, standard 2.
fn three_lanes(limits: Limits) -> ModelQuota {
    let all = [("batch", 0.1, 1.0), ("interactive", 0.6, 1.0), ("standard", 0.3, 1.0)];
    model_with_lanes(limits, lanes(&all))
}

fn greedy() -> ModelQuota {
    model_with_lanes(limits(1_000), lanes(&[("batch", 0.0, 1.0), ("interactive", 1.0, 1.0)]))
}

fn at_once(calls: u64) -> ModelQuota {
    model(Limits { concurrent: Some(calls), lease: Duration::from_secs(120), ..Limits::default() })
}

fn shared_at_once() -> ModelQuota {
    let limits = Limits { concurrent: Some(10), ..limits(1_000_000) };
    model_with_lanes(limits, lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0)]))
}

fn calls_at_once_alone() -> ModelQuota {
    let limits = Limits { concurrent: Some(10), ..Limits::default() };
    model_with_lanes(limits, lanes(&[("batch", 0.1, 1.0), ("interactive", 0.6, 1.0)]))
}

fn settled_as(ask: &Ask, tokens: u64) -> Settlement {
    Settlement::used(&ask.reservation, Amounts::call(tokens, 0))
}

fn pause(seconds: u64) -> Option<Pause> {
    Some(Pause { length: Duration::from_secs(seconds), reason: "says the provider".to_owned() })
}

async fn refused<S: Store>(rig: &Rig<S>, ask: &Ask, signal: ProviderSignal, pause: Option<Pause>) {
    let settlement = Settlement { signal, pause, ..settled_as(ask, 0) };
    rig.store.settle(&rig.model, &settlement).await.unwrap();
}

/// Asks for a ticket.
async fn waits<S: Store>(rig: &Rig<S>, ask: Ask) -> (Ask, Duration) {
    let (wait, _, ticket) = rig.refused(&ask).await;
    (Ask { ticket: Some(ticket), ..ask }, wait)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// Half of the limit went well, and an hour later a call is refused.
async fn is_refused<S: Store>(rig: &Rig<S>) {
    for _ in 0..2 {
        let ask = rig.ask(500);
        assert_eq!(rig.reserve(&ask).await, Decision::Granted);
        rig.advance(Duration::from_mins(1));
        rig.used(&ask, 500).await;
        rig.advance(Duration::from_secs(1));
    }
    let ask = rig.ask(10);
    rig.reserve(&ask).await;
    refused(rig, &ask, ProviderSignal::RateLimited, pause(20)).await;
}

fn combined_alone(change: Change) -> LimitChanges {
    let window = PerDimension { combined: change, ..PerDimension::default() };
    PerLimit { window, ..PerLimit::default() }
}

async fn limit<S: Store>(rig: &Rig<S>) -> u64 {
    rig.store.inspect(&rig.model).await.unwrap().get(Dimension::Combined).limit
}

/// A settlement that changes nothing, but may get the policy's task.
async fn room<S: Store>(rig: &Rig<S>) {
    rig.store.settle(&rig.model, &Settlement::released("nothing")).await.unwrap();
}
