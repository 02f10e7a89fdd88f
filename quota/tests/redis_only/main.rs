//! What only a real Redis can show: that the scripts are the mechanism in memory, the ledger behind the
//! totals, plans that many programs write, lost state, lost scripts, bad calls, keys.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod history;
mod keys;
mod losses;
mod nearly_equal;
mod plans;
mod twin;

use std::time::Duration;

use common::{
    Freezes, PATIENCE, PAUSE_TTL, Rig, SECOND, START, ask, in_memory, in_redis, lanes, limits,
    model_with_lanes,
};
use proptest::{prelude::*, test_runner::TestCaseError};
use tidegate_quota::{
    Amounts, Change, Charge, Decision, Dimension, Limits, ModelQuota, PerDimension, PerLimit,
    Quota, Request, Store, Ticket, memory, redis_store,
    store::{Ask, Meter, Pause, ProviderSignal, Settlement, UsageSample},
};
use tidegate_testkit::{Redis, unique};
use tidegate_types::Tenant;

use {
    history::{carry_out, lanes_and_dimensions, learning, step},
    nearly_equal::nearly_equal,
    twin::totals_equal_the_ledger,
};

fn simple(limit: u64) -> ModelQuota {
    model_with_lanes(limits(limit), tidegate_quota::Lanes::single())
}
