//! Prompts, and the output of their answers.

use std::io;

use anyhow::Context;
use serde_json::Value;

/// A line or a row with its prompt, and the context that is printed with its answer.
#[derive(Debug)]
pub(super) struct Question<T> {
    /// Counted from 1.
    pub(super) number: u64,
    pub(super) context: T,
    /// The prompt, or the reason why there is none.
    pub(super) prompt: Result<String, String>,
}

/// Writes answers, in the order of the prompts.
pub(super) trait Output {
    /// The context that is printed with an answer.
    type Context;

    /// The name of the unit that has one answer.
    const UNIT: &'static str;

    /// Writes one answer. Returns false if the reader has closed the pipe (`| head`).
    fn write(
        &mut self,
        number: u64,
        context: Self::Context,
        outcome: Result<Value, String>,
    ) -> anyhow::Result<bool>;
}

/// The answer of an outcome.
pub(super) fn answer(outcome: &Value) -> &str {
    outcome["answer"].as_str().unwrap_or_default()
}

/// Returns false if the reader has closed the pipe (`| head`).
pub(super) fn unless_closed(written: io::Result<()>) -> anyhow::Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("writing to stdout"),
    }
}
