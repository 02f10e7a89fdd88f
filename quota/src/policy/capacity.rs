//! The amount that may be drawn at once.

use super::{Configured, KnownDimension};
use crate::{
    dimension::Dimension,
    numbers::Numbers,
    plan::{Reasoned, Why},
};

impl KnownDimension {
    pub(super) fn capacity(
        &self,
        it: Dimension,
        proven: bool,
        configured: &Configured,
        numbers: &Numbers,
    ) -> Reasoned {
        let most = self.configured * (1.0 - self.hidden_part);
        let is_bucket = configured.bucket || self.is_even(numbers);
        // A request is no estimate. A provider that has refused may have others' calls to count.
        let has_margin = it != Dimension::Requests && self.last_refusal > 0.0;
        let margin = if has_margin { numbers.never_drawn } else { 0.0 };
        let deepest = if is_bucket { 1.0 - margin } else { numbers.blind_burst };
        let full = Reasoned::new(most * deepest, Why::Full);
        let mut capacity = if let Some(burst) = configured.burst {
            Reasoned::new(burst * most / configured.window, Why::Configured)
        } else if is_bucket || self.has_meter {
            full
        } else {
            let first = numbers.first_burst * most / configured.window;
            let explored = numbers.grow * self.safe_depth;
            let step = if explored > first {
                Reasoned::new(explored, Why::Explored)
            } else {
                Reasoned::new(first, Why::First)
            };
            step.min(full)
        };
        if let Some(too_deep) = self.refused_depth {
            let safe = self.safe_depth.max(too_deep / numbers.grow).min(too_deep);
            capacity = capacity.min(Reasoned::new(safe, Why::TooDeep));
        }
        if !proven {
            let trusted = (most * numbers.unproven).max(numbers.grow * self.safe_depth);
            capacity = capacity.min(Reasoned::new(trusted, Why::Unproven));
        }
        capacity
    }
}
