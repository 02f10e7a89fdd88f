//! What is asked, and where its answers go.

use std::io;

use anyhow::Context;
use serde_json::Value;

/// A line or a row as it is asked, with what stands beside its answer.
#[derive(Debug)]
pub(super) struct Asked<T> {
    /// From 1.
    pub(super) number: u64,
    pub(super) beside: T,
    /// Or why it cannot be asked.
    pub(super) prompt: Result<String, String>,
}

/// Where answers are written, in the order of what was asked.
pub(super) trait Output {
    /// What stands beside an answer.
    type Beside;

    /// What has one answer.
    const UNIT: &'static str;

    /// Writes one; false where nobody reads any more (`| head`).
    fn write(
        &mut self,
        number: u64,
        beside: Self::Beside,
        outcome: Result<Value, String>,
    ) -> anyhow::Result<bool>;
}

/// The answer of an outcome.
pub(super) fn answer(outcome: &Value) -> &str {
    outcome["answer"].as_str().unwrap_or_default()
}

/// False where nobody reads any more (`| head`).
pub(super) fn read_on(written: io::Result<()>) -> anyhow::Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("writing to stdout"),
    }
}
