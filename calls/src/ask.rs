//! The limiter's view of a call.

use tidegate_providers::Asked;
use tidegate_quota::Request;
use tidegate_types::{Lane, ModelId, Tenant};

/// Output tokens reserved for a request that states no bound: most answers keep within it. If the
/// provider charges by use, the real use is learned.
pub const UNBOUNDED_OUTPUT: u64 = 4_096;

/// What the limiter must know of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Estimated input tokens; the error of the estimate is learned.
    pub input_tokens: u64,
    /// The call's own bound on its output, in tokens.
    pub max_output_tokens: u64,
    /// The class of traffic. Default `batch`.
    pub lane: Lane,
    /// The tenant that makes the call.
    pub tenant: Tenant,
    /// Calls with the same template have their token use learned together.
    pub template: u64,
}

impl Ask {
    /// With estimated input tokens, and a bound on the output tokens.
    pub fn tokens(input: u64, max_output: u64) -> Self {
        Self { input_tokens: input, max_output_tokens: max_output, ..Self::default() }
    }

    /// Reads the needs of a request that another client sends.
    pub fn of(asked: &Asked) -> Self {
        let output = asked.max_output_tokens.unwrap_or(UNBOUNDED_OUTPUT);
        Self { template: asked.template, ..Self::tokens(asked.input_tokens, output) }
    }

    /// Sets the lane.
    pub fn lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// Sets the tenant.
    pub fn tenant(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    /// Sets the template.
    pub fn template(self, template: u64) -> Self {
        Self { template, ..self }
    }

    /// The limiter's request, under the name of one attempt.
    pub fn request(self, model: ModelId, reservation: impl Into<String>) -> Request {
        let Self { input_tokens, max_output_tokens, lane, tenant, template } = self;
        Request::new(model, reservation)
            .tokens(input_tokens, max_output_tokens)
            .lane(lane)
            .tenant(tenant)
            .template(template)
    }
}
