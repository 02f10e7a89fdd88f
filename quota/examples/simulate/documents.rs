//! The documents of the simulation, and the seeded random numbers that make them.

use crate::event::{Micros, SECOND};

/// The bound on the output of each call.
pub(crate) const MAX_OUTPUT: u64 = 4_096;

/// Mean tokens of a document, input and output together, as [`Document::draw`] makes them.
pub(crate) const MEAN_INPUT: f64 = 4_900.0;
pub(crate) const MEAN_OUTPUT: f64 = 676.0;

/// One document and what a call for it really uses.
#[derive(Clone, Copy)]
pub(crate) struct Document {
    /// The client's estimate of the input: 10 % low and 5 % noisy.
    pub(crate) estimated_input: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) latency: Micros,
    /// The part of the input that begins all documents.
    pub(crate) prefix: u64,
}

impl Document {
    /// Input lognormal, median 3,000, sigma 1, at most 60,000. Output lognormal with a mean near
    /// 678, longer for longer inputs. Latency 2 s and 14.75 ms a token of output, so 12 s in the
    /// mean; what is in flight is 1.7 times as long as what completes.
    pub(crate) fn draw(chance: &mut Chance) -> Self {
        let size = chance.normal();
        let input = (3_000.0 * size.exp()).clamp(20.0, 60_000.0);
        let output =
            (496.0 * (0.25 * size + 0.75 * chance.normal()).exp()).clamp(1.0, MAX_OUTPUT as f64);
        let seconds = 2.0 + 0.01475 * output * (0.2 * chance.normal() - 0.02).exp();
        Self {
            estimated_input: (input * 0.9 * (0.05 * chance.normal()).exp()) as u64,
            input: input as u64,
            output: output as u64,
            latency: (seconds * SECOND as f64) as Micros,
            prefix: 0,
        }
    }

    /// As in `benches/fleet.rs`: 1,950 tokens in, 580 out, ten seconds; each by a third more or less.
    pub(crate) fn alike(chance: &mut Chance) -> Self {
        let near = |chance: &mut Chance, mean: f64| (mean * (0.7 + 0.6 * chance.part())) as u64;
        let (input, output) = (1_950, near(chance, 580.0));
        let latency = SECOND + near(chance, output as f64 * 0.015 * SECOND as f64);
        Self { estimated_input: near(chance, 1_900.0), input, output, latency, prefix: 0 }
    }

    /// As [`Self::alike`], but the client estimates a third.
    pub(crate) fn thrice(chance: &mut Chance) -> Self {
        let alike = Self::alike(chance);
        Self { estimated_input: alike.input / 3, ..alike }
    }

    /// As [`Self::alike`], but the client estimates three times as much.
    pub(crate) fn third(chance: &mut Chance) -> Self {
        let alike = Self::alike(chance);
        Self { estimated_input: alike.input * 3, ..alike }
    }

    /// Instructions of 3,175 tokens before documents of 1,500, each by a third more or less.
    pub(crate) fn prefixed(chance: &mut Chance) -> Self {
        let body = (1_500.0 * (0.7 + 0.6 * chance.part())) as u64;
        let (prefix, alike) = (3_175, Self::alike(chance));
        let estimated_input = ((prefix + body) as f64 * 0.9) as u64;
        Self { estimated_input, input: prefix + body, prefix, ..alike }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.input + self.output
    }
}

/// SplitMix64: the same seed gives the same simulation on every machine.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in 0..1.
    pub(crate) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in 0..`length`.
    pub(crate) fn within(&mut self, length: Micros) -> Micros {
        (self.part() * length as f64) as Micros
    }

    /// Time to the next event of a Poisson process.
    pub(crate) fn gap(&mut self, per_second: f64) -> Micros {
        (-(1.0 - self.part()).ln() / per_second * SECOND as f64) as Micros
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.part()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.part()).cos()
    }
}
