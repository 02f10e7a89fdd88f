//! Bounds of a call: the model's input and output tokens, and the time.
//!
//! Contexts by name: LiteLLM's table `model_prices_and_context_window` (1.109.1 of November 2026,
//! `max_input_tokens`), compared with the vendors' model pages where both state a figure. Output
//! caps are in the vendors' rows.

use std::{iter, time::Duration};

/// Bounds of the calls to one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Output tokens, as the vendor states them; `None` if unknown.
    pub output_tokens: Option<u32>,
    /// Time for one whole call; `None` if unbounded.
    pub time: Option<Duration>,
    /// Input tokens of one call; `None` if unknown.
    pub context_tokens: Option<u64>,
}

/// Prefixes of models' names, with their caps in tokens. The longest match counts.
pub(crate) type Caps = &'static [(&'static str, u32)];

/// Maximum input tokens by prefix of the name: the largest of any model with that prefix.
pub(crate) const CONTEXTS: &[(&str, u64)] = &[
    ("claude", 1_000_000),
    ("claude-3", 200_000),
    ("claude-opus-4", 200_000),
    ("claude-opus-4-6", 1_000_000),
    ("claude-opus-4-7", 1_000_000),
    ("claude-opus-4-8", 1_000_000),
    // A million with a header that is not sent here.
    ("claude-sonnet-4", 200_000),
    ("claude-sonnet-4-6", 1_000_000),
    ("claude-haiku-4-5", 200_000),
    ("gpt-3.5", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-1106", 128_000),
    ("gpt-4-0125", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gpt-5", 400_000),
    ("gpt-5.4", 1_050_000),
    ("gpt-5.5", 1_050_000),
    ("gpt-5.6", 1_050_000),
    ("gemini", 1_048_576),
    ("gemini-exp", 2_097_152),
    ("gemini-1.5-pro", 2_097_152),
    ("nova-micro", 128_000),
    ("nova-lite", 300_000),
    ("nova-pro", 300_000),
    ("nova-premier", 1_000_000),
    ("nova-2", 1_000_000),
    ("gpt-oss", 128_000),
];

/// The cap of a model by its name, which may have a prefix: `global.anthropic.claude-…`,
/// `meta-llama/llama-…`.
pub(crate) fn cap<T: Copy>(caps: &[(&str, T)], model: &str) -> Option<T> {
    let starts = model.match_indices(['.', '/', ':']).map(|(at, _)| at + 1);
    let names: Vec<&str> =
        iter::once(0).chain(starts).filter_map(|start| model.get(start..)).collect();
    let fits = |beginning: &str| names.iter().any(|name| name.starts_with(beginning));
    let known = caps.iter().filter(|(beginning, _)| fits(beginning));
    known.max_by_key(|(beginning, _)| beginning.len()).map(|(_, cap)| *cap)
}
