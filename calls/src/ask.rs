//! The limiter's view of a call.

use tidegate_providers::RequestFacts;
use tidegate_quota::Request;
use tidegate_types::{Lane, ModelId, Tenant};

/// Output tokens reserved for a request that states no bound: most answers keep within it. If the
/// provider charges by use, the real use is learned.
pub const UNBOUNDED_OUTPUT: u64 = 4_096;

/// Properties of one call that the limiter needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Estimated input tokens; the error of the estimate is learned.
    pub input_tokens: u64,
    /// The call's own bound on its whole output, in tokens.
    pub max_output_tokens: u64,
    /// The class of traffic. Default `batch`.
    pub lane: Lane,
    /// The tenant that makes the call.
    pub tenant: Tenant,
    /// Template of the call. Token use is learned together for calls with the same template.
    pub template: u64,
}

impl Ask {
    /// Creates it with estimated input tokens, and a bound on the output tokens.
    pub fn tokens(input: u64, max_output: u64) -> Self {
        Self { input_tokens: input, max_output_tokens: max_output, ..Self::default() }
    }

    /// Reads the needs of a request in a vendor's form. `cap` is the model's own bound of one answer.
    pub fn from_facts(asked: &RequestFacts, cap: Option<u32>) -> Self {
        let each = asked.max_output_tokens.unwrap_or(UNBOUNDED_OUTPUT);
        let each = cap.map_or(each, |cap| each.min(cap.into()));
        let output = each.saturating_mul(asked.answers);
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

    /// Makes the limiter's request, under the name of one attempt.
    pub fn request(self, model: ModelId, reservation: impl Into<String>) -> Request {
        let Self { input_tokens, max_output_tokens, lane, tenant, template } = self;
        Request::new(model, reservation)
            .tokens(input_tokens, max_output_tokens)
            .lane(lane)
            .tenant(tenant)
            .template(template)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_answer_is_bounded_and_all_are_counted() {
        let output = |path: &str, mut body: Value, cap| {
            body["model"] = "m".into();
            let asked = RequestFacts::read(path, body.to_string().as_bytes()).unwrap();
            Ask::from_facts(&asked, cap).max_output_tokens
        };
        let chat = |body, cap| output("/v1/chat/completions", body, cap);
        assert_eq!(chat(json!({}), None), UNBOUNDED_OUTPUT);
        assert_eq!(chat(json!({"n": 100}), None), 100 * UNBOUNDED_OUTPUT);
        assert_eq!(chat(json!({"n": 100}), Some(1_000)), 100_000);
        assert_eq!(chat(json!({"n": 1_000_000, "max_tokens": 1_000}), Some(16_384)), 1_000_000_000);
        assert_eq!(chat(json!({"n": 2, "max_tokens": 50_000}), Some(16_384)), 32_768);
        assert_eq!(chat(json!({"n": u64::MAX, "max_tokens": 9}), None), u64::MAX);
        assert_eq!(output("/v1/embeddings", json!({"n": 9}), Some(1)), 0);
    }
}
