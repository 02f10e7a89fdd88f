//! A look at each configured base URL when the worker starts: what can never connect is named before
//! a batch meets it. Nothing is bought, and the worker works meanwhile.

use std::time::Duration;

use futures::{StreamExt, stream};
use tidegate_providers::{
    Kind,
    probe::{self, ProbeError},
};
use tracing::warn;

use crate::config::Config;

/// So many are looked at a time.
const AT_ONCE: usize = 8;

/// What takes longer is there, and is slow.
const PATIENCE: Duration = Duration::from_secs(15);

/// Warns of each provider to which no connection can come about as it is configured.
pub(super) async fn look(config: &Config) {
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
