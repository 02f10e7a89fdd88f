//! Amounts by dimension.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Amounts that a provider limits by the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Calls: `rpm`.
    Requests,
    /// Input and output tokens together: `tpm`.
    Tokens,
    /// Input tokens: `itpm`.
    Input,
    /// Output tokens: `otpm`.
    Output,
}

impl Dimension {
    /// All of them, in the order in which they are checked.
    pub const ALL: [Self; 4] = [Self::Requests, Self::Tokens, Self::Input, Self::Output];
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Input => "input tokens",
            Self::Output => "output tokens",
        })
    }
}

/// One number for each dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Amounts {
    /// Calls.
    pub requests: u64,
    /// Input and output tokens together.
    pub tokens: u64,
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
}

impl Amounts {
    /// One call of so many tokens.
    pub const fn call(input: u64, output: u64) -> Self {
        Self { requests: 1, tokens: input + output, input, output }
    }

    /// Output alone, of a call that has been counted before.
    pub const fn late_output(output: u64) -> Self {
        Self { requests: 0, tokens: output, input: 0, output }
    }

    /// The amount of one dimension.
    pub const fn get(&self, dimension: Dimension) -> u64 {
        match dimension {
            Dimension::Requests => self.requests,
            Dimension::Tokens => self.tokens,
            Dimension::Input => self.input,
            Dimension::Output => self.output,
        }
    }

    /// Counts one more in a dimension.
    pub const fn count(&mut self, dimension: Dimension) {
        match dimension {
            Dimension::Requests => self.requests += 1,
            Dimension::Tokens => self.tokens += 1,
            Dimension::Input => self.input += 1,
            Dimension::Output => self.output += 1,
        }
    }

    /// Adds each dimension.
    pub const fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.tokens += other.tokens;
        self.input += other.input;
        self.output += other.output;
    }

    /// Takes each dimension away, down to nothing.
    pub const fn subtract(&mut self, other: &Self) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.input = self.input.saturating_sub(other.input);
        self.output = self.output.saturating_sub(other.output);
    }

    /// Raises each dimension to at least the other's.
    pub fn raise(&mut self, other: &Self) {
        self.requests = self.requests.max(other.requests);
        self.tokens = self.tokens.max(other.tokens);
        self.input = self.input.max(other.input);
        self.output = self.output.max(other.output);
    }

    /// The sum over the dimensions: of refusals, each of which counts in one dimension, it is their
    /// number.
    pub const fn total(&self) -> u64 {
        self.requests + self.tokens + self.input + self.output
    }
}
