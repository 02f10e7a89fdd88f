//! The simulated provider: its limits, and the configuration for using it.

use std::{collections::BTreeMap, path::Path, time::Duration};

use tidegate_providers::Vendor;
use tidegate_simulator::{Algorithm, Latency, Limits, Simulator};

use crate::config::{Config, model::Model, provider::Provider};

/// A simulated model and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulated {
    /// Its section in `[providers]`.
    pub provider: &'static str,
    /// Its name at the provider.
    pub model: &'static str,
    /// Input and output tokens a minute, counted together.
    pub tpm: u64,
}

/// The model of the demo. The sample documents are some 80,000 tokens: three quarters of them fit into
/// the provider's full bucket, and the others wait for its refill.
pub const DEMO: Simulated =
    Simulated { provider: "anthropic", model: "claude-sonnet-5", tpm: 60_000 };

/// The models of `tidegate dev`.
pub const MODELS: [Simulated; 2] =
    [DEMO, Simulated { provider: "openai", model: "gpt-6-mini", tpm: 200_000 }];

impl Simulated {
    /// `provider:model`.
    pub fn id(&self) -> String {
        format!("{}:{}", self.provider, self.model)
    }
}

/// A provider with these models: token buckets of one minute, like Anthropic's and OpenAI's, and answers
/// of 150 tokens after some two seconds.
pub fn provider(models: &[Simulated]) -> tidegate_simulator::Config {
    let limits = |model: &Simulated| {
        let limits =
            Limits { tpm: Some(model.tpm), algorithm: Algorithm::TokenBucket, ..Limits::default() };
        (model.model.to_owned(), limits)
    };
    tidegate_simulator::Config {
        latency: Latency {
            base: Duration::from_millis(800),
            per_output_token: Duration::from_millis(8),
            jitter: 0.2,
        },
        models: models.iter().map(limits).collect(),
        ..tidegate_simulator::Config::default()
    }
}

/// Points every provider at the simulator and configures the same limits.
pub fn configure(
    config: &mut Config,
    simulator: &Simulator,
    models: &[Simulated],
    key_file: &Path,
) {
    let providers = Vendor::OWN.into_iter().map(|vendor| {
        // OpenAI's base URL ends in /v1, as in the vendors' own SDKs.
        let base_url =
            format!("{}{}", simulator.base_url().trim_end_matches('/'), vendor.base_path());
        // A separate key, so that the user's key never goes to a simulator.
        let provider = Provider {
            base_url: Some(base_url),
            api_key_file: Some(key_file.to_owned()),
            ..Provider::default()
        };
        (vendor.to_string(), provider)
    });
    config.providers = providers.collect();
    let limits =
        |model: &Simulated| (model.id(), Model { tpm: Some(model.tpm), ..Model::default() });
    config.models = models.iter().map(limits).collect::<BTreeMap<_, _>>();
    // Routes may name models that the simulator does not have.
    config.routes.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_providers_limits_are_sound_and_the_same_as_ours() {
        let provider = provider(&MODELS);
        provider.check().unwrap();
        assert_eq!(provider.limits(DEMO.model).tpm, Some(DEMO.tpm));
        assert!(MODELS.iter().all(|model| model.id().parse::<tidegate_types::ModelId>().is_ok()));
    }
}
