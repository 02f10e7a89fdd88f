//! The calls and tokens that a provider counts towards its limits, and when.
//!
//! Rules belong to a vendor and are data; limits belong to an account and are configuration. The
//! rules of the built-in vendors are in the table of `tidegate-providers`; the limiter reserves and
//! settles by them.

use crate::Usage;

/// The rules by which a provider counts one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Charge {
    /// The part of the output that is held at admission.
    pub hold: OutputHold,
    /// Whether input read from a prompt cache counts.
    pub cached_input: bool,
    /// Factor for output if input and output are counted together: 0 if only input counts, 1 at
    /// most vendors, 5 to 15 at AWS.
    pub output_weight: f64,
    /// Whether output tokens that were held and not used return. If not, a call is charged the
    /// larger of its use and its `max_output_tokens`, as OpenAI documents it.
    pub unused_returns: bool,
    /// Whether a call that was refused, or failed before any work, counts as a request.
    pub failed_calls: bool,
}

/// The part of a call's output that is held until the output is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputHold {
    /// The average output of similar calls: for providers that count output as it is produced.
    #[default]
    Expected,
    /// The call's `max_output_tokens`: for providers that count it when the call begins.
    Maximum,
}

impl Charge {
    /// For a provider with unknown rules: everything counts, and nothing returns.
    pub const CAUTIOUS: Self = Self {
        hold: OutputHold::Maximum,
        cached_input: true,
        output_weight: 1.0,
        unused_returns: false,
        failed_calls: true,
    };

    /// The counted input tokens of a finished call.
    pub fn input(&self, usage: &Usage) -> u64 {
        let cached = if self.cached_input { usage.cache_read } else { 0 };
        usage.uncached_input.saturating_add(usage.cache_write).saturating_add(cached)
    }

    /// Whether the call's output bound counts, used or not.
    pub fn counts_bound(&self) -> bool {
        let plain = (self.output_weight - 1.0).abs() < f64::EPSILON;
        self.hold == OutputHold::Maximum && !self.unused_returns && plain
    }

    /// Input and output counted together, in tokens.
    pub fn combined(&self, input: u64, output: u64) -> u64 {
        // Tokens are far below 2^53.
        let weighted = (output as f64 * self.output_weight).ceil() as u64;
        input.saturating_add(weighted)
    }

    /// Output to hold if the provider holds the bound, in tokens before the weight: the bound
    /// counts once, but real output counts with the weight, so that the larger of the two is held.
    pub fn held_output(&self, bound: u64, expected: u64) -> u64 {
        if self.output_weight <= 1.0 {
            return bound;
        }
        // Tokens are far below 2^53.
        let unweighted = (bound as f64 / self.output_weight).ceil() as u64;
        unweighted.max(expected)
    }
}

/// All use counts, and held but unused tokens return.
impl Default for Charge {
    fn default() -> Self {
        Self {
            hold: OutputHold::Expected,
            cached_input: true,
            output_weight: 1.0,
            unused_returns: true,
            failed_calls: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: Usage = Usage { uncached_input: 10, cache_read: 20, cache_write: 40, output: 5 };

    #[test]
    fn cached_input_counts_where_the_rule_says_so() {
        assert_eq!(Charge::default().input(&USAGE), 70);
        assert_eq!(Charge { cached_input: false, ..Charge::default() }.input(&USAGE), 50);
    }

    #[test]
    fn output_counts_with_its_weight_and_the_bound_once() {
        let weighted = Charge { output_weight: 2.5, ..Charge::CAUTIOUS };
        assert_eq!(weighted.combined(100, 3), 108, "rounded up");
        assert_eq!(weighted.held_output(1_000, 0), 400, "400 × 2.5 is the bound");
        assert_eq!(weighted.held_output(1_000, 600), 600);
        assert_eq!(Charge::CAUTIOUS.held_output(1_000, 2_000), 1_000);
        assert_eq!(Charge { output_weight: 0.0, ..weighted }.combined(7, 1_000), 7);
    }
}
