//! Probes each configured base URL when the worker starts, so that an unreachable provider is reported
//! before a batch needs it. Probes cost nothing, and the worker does not wait for them.

use std::time::Duration;

use futures::{StreamExt, stream};
use tidegate_providers::{
    Kind,
    probe::{self, ProbeError},
};
use tracing::warn;

use crate::config::Config;

/// Probes that run at once.
const AT_ONCE: usize = 8;

/// Time limit of a probe; a slower server counts as reachable.
const PATIENCE: Duration = Duration::from_secs(15);

/// Warns of each provider that cannot be reached as configured.
pub(super) async fn warn_of_unreachable(config: &Config) {
    let Ok(providers) = config.provider_settings() else { return };
    let looks = providers.into_iter().map(|(name, settings)| async move {
        match probe::models(&name, &settings.request_timeout(PATIENCE)).await {
            Err(ProbeError::Refused(error)) if error.kind == Kind::Unreachable => warn!(
                provider = name,
                "no call to this provider can be made, and documents wait until one can: {}",
                error.message
            ),
            _ => {}
        }
    });
    stream::iter(looks).buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
}
