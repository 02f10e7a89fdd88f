//! Learns a model's maximum output bound from its refusals: no API states it.

use std::collections::HashMap;

use parking_lot::Mutex;
use tidegate_types::ModelId;
use tracing::warn;

/// Some APIs take no smaller bound.
const LEAST: u32 = 16;

/// The learned output bounds, in tokens.
#[derive(Debug, Default)]
pub struct LearnedCaps(Mutex<HashMap<ModelId, u32>>);

impl LearnedCaps {
    /// The largest bound that the model takes, if it has refused one.
    pub fn get(&self, model: &ModelId) -> Option<u32> {
        self.0.lock().get(model).copied()
    }

    /// Records that the model refused the bound `asked` with this message. Returns the next smaller
    /// bound; `None` if there is none.
    pub(crate) fn lower(&self, model: &ModelId, asked: u32, words: &str) -> Option<u32> {
        let mut caps = self.0.lock();
        let known = caps.get(model).copied();
        if let Some(known) = known.filter(|known| *known < asked) {
            // Another call has learned it in the meantime.
            return Some(known);
        }
        // The first message states the bound. If that is refused too, the number has another
        // meaning.
        let stated = if known.is_none() { stated_bound(words, asked) } else { None };
        let cap = stated.unwrap_or(asked / 2);
        if cap < LEAST {
            return None;
        }
        warn!(%model, asked, cap, "the model does not accept this max_output_tokens; its calls use a lower one from now on");
        caps.insert(model.clone(), cap);
        Some(cap)
    }
}

/// The largest number in the message that is smaller than `asked`.
fn stated_bound(words: &str, asked: u32) -> Option<u32> {
    let digits = words.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|number| number.parse().ok()).filter(|it| (LEAST..asked).contains(it)).max()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_lowered_to_the_stated_one_and_then_by_halves() {
        let (caps, model): (_, ModelId) = (LearnedCaps::default(), "a:b".parse().unwrap());
        assert_eq!(caps.get(&model), None);
        let words = "status 400: max_tokens is too large: 16384. This model supports at most 4096 completion tokens";
        assert_eq!(caps.lower(&model, 16_384, words), Some(4_096));
        assert_eq!(caps.lower(&model, 16_384, words), Some(4_096), "asked before it was known");
        assert_eq!(caps.lower(&model, 4_096, "(4096 > 4000 - 90)"), Some(2_048));
        assert_eq!(caps.get(&model), Some(2_048));
        let other: ModelId = "a:c".parse().unwrap();
        assert_eq!((caps.lower(&other, 20, "no"), caps.get(&other)), (None, None));
    }
}
