//! A worker's metrics of itself and of batches.

use metrics::{describe_gauge, gauge};

use crate::{config::Config, version};

const BUILD_INFO: &str = "tidegate_build_info";
const BATCHES: &str = "tidegate_batches";
const TEMPORAL_AWAY: &str = "tidegate_temporal_away";

/// Gives every metric its help text.
pub fn describe() {
    describe_gauge!(
        BUILD_INFO,
        "1 for each worker, with its version and the fingerprint of the limits, lanes, routes, budgets and pauses that a fleet shares"
    );
    describe_gauge!(
        BATCHES,
        "Batches that Temporal still knows, by state; every worker reports the same number"
    );
    describe_gauge!(TEMPORAL_AWAY, "1 while this worker cannot reach Temporal");
}

/// Records the program's version and the configuration's fingerprint, by which a fleet's workers can be
/// compared.
pub(crate) fn build_info(config: &Config) {
    gauge!(BUILD_INFO, "version" => version::short(), "configuration" => config.fingerprint())
        .set(1.0);
}

/// Records whether Temporal is unreachable.
pub(crate) fn temporal_away(away: bool) {
    gauge!(TEMPORAL_AWAY).set(f64::from(u8::from(away)));
}

/// Records the number of batches in this state.
pub(crate) fn batches(state: &'static str, batches: f64) {
    gauge!(BATCHES, "state" => state).set(batches);
}
