//! What each vendor counts towards its limits, and when.
//!
//! The limiter knows no vendor: it holds and settles as a row of this table says. Limits differ by
//! account, rules differ by vendor, so rules are data here and limits are configuration.

use tidegate_types::{Charge, OutputHold};

/// Anthropic. Source: platform.claude.com/docs/en/api/rate-limits, read 2026-08-27 to 2026-10-08.
///
/// Input is uncached input and cache writes, estimated at the start and corrected during the call;
/// cache reads do not count (Haiku 3.5 excepted). Output is what is really produced; `max_tokens`
/// plays no part (until 2025 it did). Whether a refused call counts as a request is not documented: it is taken
/// to.
pub const ANTHROPIC: Charge = Charge {
    hold: OutputHold::Expected,
    cached_input: false,
    output_weight: 1.0,
    unused_returns: true,
    failed_calls: true,
};

/// OpenAI. Source: developers.openai.com/api/docs/guides/rate-limits, read up to 2026-10-08, and
/// the prompt-caching guide.
///
/// Documented charge: the larger of `max_tokens` and the estimated input. Error texts suggest that
/// both are added, so both are held. Cached input counts (caching guide, FAQ). Failed requests
/// count towards the minute. What becomes of unused `max_tokens` is not documented, so nothing is
/// taken back.
pub const OPENAI: Charge = Charge {
    hold: OutputHold::Maximum,
    cached_input: true,
    output_weight: 1.0,
    unused_returns: false,
    failed_calls: true,
};

/// Gemini. Source: ai.google.dev/gemini-api/docs/rate-limits, page of 2026-08-18.
///
/// Tokens a minute are input tokens; output and `maxOutputTokens` play no part, so that a limit
/// given as `tpm` counts input alone. Whether cached input counts is not documented: it is taken
/// to. Nor is it whether a refused call counts as a request: it is taken to,
/// too.
pub const GEMINI: Charge = Charge {
    hold: OutputHold::Expected,
    cached_input: true,
    output_weight: 0.0,
    unused_returns: true,
    failed_calls: true,
};

/// Bedrock, the endpoint `bedrock-runtime`. Source: docs.aws.amazon.com, Bedrock user guide: quotas
/// and token burndown, read 2026-08-27 and later.
///
/// At the start input and `maxTokens` are held, at the end input, cache writes and output times a
/// weight are charged: 15 for Claude 4.8, 10 for Sonnet 5 and Opus 5, 5 for Claude up to 4.7, 1 for
/// most others. 10 where nobody says more (`output-weight` in a model's section). Cache reads do
/// not count. A call with much output so costs more than was held. Whether a refused call counts
/// as a request is not documented: it is taken to.
pub const BEDROCK: Charge = Charge {
    hold: OutputHold::Maximum,
    cached_input: false,
    output_weight: 10.0,
    unused_returns: true,
    failed_calls: true,
};
