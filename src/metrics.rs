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
        "1, with this worker's version and the fingerprint of what a fleet's workers must have in common (limits, lanes, routes, budgets, pauses)"
    );
    describe_gauge!(
        BATCHES,
        "Batches of the namespace by state, as far back as Temporal keeps them; the same from each worker"
    );
    describe_gauge!(TEMPORAL_AWAY, "1 while this worker cannot reach Temporal");
}

/// Records the program's version and the configuration's fingerprint, by which a fleet's workers can be
/// compared.
pub(crate) fn build_info(config: &Config) {
    let labels =
        [("version", version::short().to_owned()), ("configuration", config.fingerprint())];
    gauge!(BUILD_INFO, &labels).set(1.0);
}

/// Records whether Temporal is unreachable.
pub(crate) fn temporal_away(away: bool) {
    gauge!(TEMPORAL_AWAY).set(f64::from(u8::from(away)));
}

/// Records the number of batches in this state.
pub(crate) fn batches(state: &'static str, batches: f64) {
    gauge!(BATCHES, "state" => state).set(batches);
}
