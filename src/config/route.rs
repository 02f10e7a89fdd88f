//! `[routes.<name>]`.

use serde::{Deserialize, Serialize};

/// Models that are tried in order under sustained limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Route {
    /// `provider:model`, each with a `[models]` section.
    pub models: Vec<String>,
    /// Those of them that answer as well as the first: whichever can take a document soonest does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub equivalent: Vec<String>,
    /// Refusals in a row, the provider's or the quota's, after which a document goes on to the next
    /// model.
    pub after_refusals: u32,
    /// Whether a document may go on to models that are not equivalent to the first.
    pub downgrade: bool,
}

impl Default for Route {
    fn default() -> Self {
        // Waiting for quota is the rule in a full batch: a document asks four times as a median of
        // the simulations.
        Self { models: Vec::new(), equivalent: Vec::new(), after_refusals: 5, downgrade: true }
    }
}
