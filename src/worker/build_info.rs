//! Which program and which configuration a worker runs, as a metric: workers of one fleet can be
//! compared by it.

use metrics::{describe_gauge, gauge};

use crate::{config::Config, version};

const BUILD_INFO: &str = "tidegate_build_info";

/// Gives the metric its help text.
pub fn describe() {
    describe_gauge!(
        BUILD_INFO,
        "1, with this worker's version and the fingerprint of what a fleet's workers must have in common (limits, lanes, routes, budgets, pauses)"
    );
}

/// Tells this worker's.
pub(super) fn tell(config: &Config) {
    let labels =
        [("version", version::short().to_owned()), ("configuration", config.fingerprint())];
    gauge!(BUILD_INFO, &labels).set(1.0);
}
