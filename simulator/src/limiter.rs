//! One model's limits: what a call asks for, whether it is let in, and what the vendors' headers
//! say of it.

use std::time::Duration;

use crate::{
    amounts::{Amounts, Dimension},
    call::Call,
    limits::{Charge, Limits},
    meter::Meter,
};

#[derive(Debug)]
pub(crate) struct Limiter {
    meters: [Option<Meter>; 4],
    charge: Charge,
    output_weight: f64,
}

/// Why a call was not let in.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) dimension: Dimension,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    pub(crate) requested: u64,
    pub(crate) wait: Duration,
}

impl Refusal {
    /// No waiting would help.
    pub(crate) const fn is_too_large(&self) -> bool {
        self.requested > self.limit
    }
}

/// One dimension as the headers state it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LimitStatus {
    pub(crate) dimension: Dimension,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset: Duration,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        let meter = |dimension| limits.get(dimension).map(|limit| Meter::new(limit, limits));
        Self {
            meters: Dimension::ALL.map(meter),
            charge: limits.charge,
            output_weight: limits.output_weight,
        }
    }

    fn meters(&mut self) -> impl Iterator<Item = (Dimension, &mut Meter)> {
        Dimension::ALL
            .into_iter()
            .zip(&mut self.meters)
            .filter_map(|(dimension, meter)| Some((dimension, meter.as_mut()?)))
    }

    /// The amount counted at admission, for a call whose answer will have so many tokens.
    fn asks(&self, call: &Call, output: u64) -> Amounts {
        let input = call.counted_input();
        match self.charge {
            Charge::Admission => {
                Amounts { tokens: input + self.weighted(output), ..Amounts::call(input, output) }
            }
            Charge::MaxTokens | Charge::MaxTokensKept => Amounts::call(input, call.max_tokens),
            Charge::Completion => Amounts::call(input, 0),
        }
    }

    // Tokens lie far below 2^53.
    fn weighted(&self, output: u64) -> u64 {
        (output as f64 * self.output_weight).ceil() as u64
    }

    /// Lets a call in, in every dimension or in none.
    pub(crate) fn admit(&mut self, now: Duration, call: &Call, output: u64) -> Result<(), Refusal> {
        let asks = self.asks(call, output);
        for (dimension, meter) in self.meters() {
            // Without a debt there is room for one token, even where the output is counted later.
            let requested = asks.get(dimension).max(1);
            if let Some(wait) = meter.wait(now, requested) {
                let used = meter.limit.saturating_sub(meter.measure.remaining(now));
                return Err(Refusal { dimension, limit: meter.limit, used, requested, wait });
            }
        }
        for (dimension, meter) in self.meters() {
            meter.measure.take(now, asks.get(dimension));
        }
        Ok(())
    }

    /// Corrects what was counted at `admitted`, when the call is complete.
    pub(crate) fn complete(&mut self, now: Duration, admitted: Duration, call: &Call, output: u64) {
        let charge = self.charge;
        let real = Amounts { tokens: self.weighted(output), ..Amounts::late_output(output) };
        for (dimension, meter) in self.meters() {
            let late = real.get(dimension);
            let held = Amounts::late_output(call.max_tokens).get(dimension);
            match charge {
                Charge::Completion => meter.measure.take(now, late),
                // With a weight, an answer may cost more than was held.
                Charge::MaxTokens if late > held => meter.measure.take(now, late - held),
                Charge::MaxTokens => meter.measure.give_back(now, admitted, held - late),
                Charge::Admission | Charge::MaxTokensKept => {}
            }
        }
    }

    /// Whether output is counted when the call is complete.
    pub(crate) const fn counts_late(&self) -> bool {
        matches!(self.charge, Charge::Completion)
    }

    pub(crate) fn statuses(&mut self, now: Duration) -> Vec<LimitStatus> {
        let status = |(dimension, meter): (Dimension, &mut Meter)| LimitStatus {
            dimension,
            limit: meter.limit,
            remaining: meter.measure.remaining(now),
            reset: meter.measure.reset(now),
        };
        self.meters().map(status).collect()
    }
}
