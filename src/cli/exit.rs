//! Exit codes.

use std::process::ExitCode;

use tidegate_providers::{SecretError, SetupError};

use crate::config::ConfigError;

use super::output::{self, BAD, styled};

/// The way a command ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// 0.
    Done,
    /// 1: a fault was found and printed.
    Faulty,
    /// 2: the configuration is wrong, and its faults were printed.
    WronglySetUp,
    /// 3: finished, but some documents failed.
    SomeFailed,
}

/// A request that cannot be fulfilled: exit code 2.
#[derive(Debug)]
pub(super) struct Usage(pub(super) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Makes an error with exit code 2.
pub(super) fn usage(what: impl Into<String>) -> anyhow::Error {
    Usage(what.into()).into()
}

impl Outcome {
    pub(super) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Faulty => 1,
            Self::WronglySetUp => 2,
            Self::SomeFailed => 3,
        })
    }
}

/// Prints an error with its causes.
pub(super) fn failed(error: &anyhow::Error) -> ExitCode {
    output::print_message(&format!("{} {}", styled(BAD, "error:"), sentence(error)));
    ExitCode::from(code(error))
}

/// Joins the error and its causes, one on each line. Omits a cause that the error's own text
/// contains.
fn sentence(error: &anyhow::Error) -> String {
    let mut lines: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !lines.iter().any(|line| line.contains(&cause)) {
            lines.push(cause);
        }
    }
    lines.join("\n  because: ")
}

fn code(error: &anyhow::Error) -> u8 {
    // A provider that cannot be set up and a key that cannot be read count as wrong configuration.
    let wrong_use = error.chain().any(|cause| {
        cause.is::<Usage>()
            || cause.is::<ConfigError>()
            || cause.is::<SetupError>()
            || cause.is::<SecretError>()
    });
    if wrong_use { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn wrong_use_is_2_under_any_context() {
        assert_eq!(code(&anyhow!("no")), 1);
        assert_eq!(code(&usage("no").context("doing")), 2);
        assert_eq!(code(&anyhow::Error::from(ConfigError { faults: Vec::new() })), 2);
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow!("port taken").context("cannot listen: port taken").context("no page");
        assert_eq!(sentence(&error), "no page\n  because: cannot listen: port taken");
    }
}
