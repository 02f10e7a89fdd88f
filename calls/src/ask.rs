//! What a call is admitted with.

use tidegate_providers::Asked;
use tidegate_quota::Request;
use tidegate_types::{Lane, ModelId, Tenant};

/// What is held for an answer whose request states no bound: what most answers keep within. What
/// they really use is learned, where the provider charges no more than that.
pub const UNBOUNDED_OUTPUT: u64 = 4_096;

/// What one call needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Estimated input tokens; the error of the estimate is learned.
    pub input_tokens: u64,
    /// The call's own bound on its output, in tokens.
    pub max_output_tokens: u64,
    /// The class of traffic. Default `batch`.
    pub lane: Lane,
    /// Whose call it is.
    pub tenant: Tenant,
    /// Calls with the same template are alike: what they use is learned together.
    pub template: u64,
}

impl Ask {
    /// So many tokens: input as estimated, output as bounded.
    pub fn tokens(input: u64, max_output: u64) -> Self {
        Self { input_tokens: input, max_output_tokens: max_output, ..Self::default() }
    }

    /// What a request asks for that another client sends.
    pub fn of(asked: &Asked) -> Self {
        let output = asked.max_output_tokens.unwrap_or(UNBOUNDED_OUTPUT);
        Self { template: asked.template, ..Self::tokens(asked.input_tokens, output) }
    }

    /// In this lane.
    pub fn lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// For this tenant.
    pub fn tenant(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    /// With this template.
    pub fn template(self, template: u64) -> Self {
        Self { template, ..self }
    }

    /// As the limiter takes it, under the name of one attempt at it.
    pub fn request(self, model: ModelId, reservation: impl Into<String>) -> Request {
        let Self { input_tokens, max_output_tokens, lane, tenant, template } = self;
        Request::new(model, reservation)
            .tokens(input_tokens, max_output_tokens)
            .lane(lane)
            .tenant(tenant)
            .template(template)
    }
}
