//! What each vendor counts towards its limits, and when.
//!
//! The limiter knows no vendor: it holds and settles as a row of this table says. Limits differ by
//! account, rules differ by vendor, so rules are data here and limits are configuration.

/// How one vendor counts a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burndown {
    /// What of the output is held at admission.
    pub hold: Hold,
    /// Whether input read from a prompt cache counts.
    pub cached_input_counts: bool,
    /// By how much output is multiplied when input and output are counted together.
    pub output_weight: f64,
    /// Whether what was held and not used comes back when the call ends.
    pub unused_returns: bool,
    /// Whether a call that was turned away counts as a request.
    pub failed_calls_count: bool,
}

/// What of a call's output is held at admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// What such calls usually put out; the vendor counts output as it is produced.
    Expected,
    /// `max_output_tokens`; the vendor counts it when the call begins.
    Maximum,
}

/// Anthropic. Source: platform.claude.com/docs/en/api/rate-limits, read 2026-08-27 to 2026-10-08.
///
/// Input is uncached input and cache writes, estimated at the start and corrected during the call;
/// cache reads do not count (Haiku 3.5 excepted). Output is what is really produced; `max_tokens`
/// plays no part (until 2025 it did). Whether a refused call counts as a request is not documented.
pub static ANTHROPIC: Burndown = Burndown {
    hold: Hold::Expected,
    cached_input_counts: false,
    output_weight: 1.0,
    unused_returns: true,
    failed_calls_count: false,
};

/// OpenAI. Source: developers.openai.com/api/docs/guides/rate-limits, read up to 2026-10-08, and
/// the prompt-caching guide.
///
/// Documented charge: the larger of `max_tokens` and the estimated input. Error texts suggest that
/// both are added, so both are held. Cached input counts (caching guide, FAQ). Failed requests
/// count towards the minute. What becomes of unused `max_tokens` is not documented, so nothing is
/// taken back.
pub static OPENAI: Burndown = Burndown {
    hold: Hold::Maximum,
    cached_input_counts: true,
    output_weight: 1.0,
    unused_returns: false,
    failed_calls_count: true,
};

/// Gemini. Source: ai.google.dev/gemini-api/docs/rate-limits, page of 2026-08-18.
///
/// Tokens a minute are input tokens; output and `maxOutputTokens` play no part, so that a limit
/// given as `tpm` counts input alone. Whether cached input counts is not documented: it is taken
/// to. Nor is it whether a refused call counts as a request.
pub static GEMINI: Burndown = Burndown {
    hold: Hold::Expected,
    cached_input_counts: true,
    output_weight: 0.0,
    unused_returns: true,
    failed_calls_count: true,
};

/// Bedrock, the endpoint `bedrock-runtime`. Source: docs.aws.amazon.com, Bedrock user guide: quotas
/// and token burndown, read 2026-08-27 and later.
///
/// At the start input and `maxTokens` are held, at the end input, cache writes and output times a
/// weight are charged: 15 for Claude 4.8, 10 for Sonnet 5 and Opus 5, 5 for Claude up to 4.7, 1 for
/// most others. 10 where nobody says more (`output-weight` in a model's section). Cache reads do
/// not count. A call with much output so costs more than was held.
pub static BEDROCK: Burndown = Burndown {
    hold: Hold::Maximum,
    cached_input_counts: false,
    output_weight: 10.0,
    unused_returns: true,
    failed_calls_count: false,
};

/// For a provider nobody has described: everything counts.
pub static CAUTIOUS: Burndown = Burndown {
    hold: Hold::Maximum,
    cached_input_counts: true,
    output_weight: 1.0,
    unused_returns: false,
    failed_calls_count: true,
};
