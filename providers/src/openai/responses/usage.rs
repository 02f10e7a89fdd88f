//! Token counts: cached tokens are **inside** `input_tokens`.

use serde_json::Value;
use tidegate_types::Usage;

use crate::openai::usage::{Fields, normalised};

/// `None` when input or output is missing: unknown is not nothing.
pub(super) fn read(body: &Value) -> Option<Usage> {
    normalised(
        body,
        &Fields { input: "input_tokens", details: "input_tokens_details", output: "output_tokens" },
    )
}
