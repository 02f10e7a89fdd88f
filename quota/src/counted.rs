//! What a provider counts of a call, where its documentation leaves that open.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::Serialize;
use tidegate_types::ModelId;

/// What a provider that holds `max_output_tokens` counts of a call in the end, by its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// What the call used; its `max_output_tokens` may be held while it is under way.
    Used,
    /// The larger of its input and its `max_output_tokens`.
    Larger,
    /// Input and `max_output_tokens`, used or not.
    Both,
    /// What the call used, and while it is under way nothing is held for it.
    Produced,
}

impl Counted {
    /// As the scripts say it.
    pub(crate) fn from_code(code: u64) -> Option<Self> {
        [Self::Used, Self::Larger, Self::Both, Self::Produced]
            .into_iter()
            .find(|it| it.code() == code)
    }

    pub(crate) const fn code(self) -> u64 {
        match self {
            Self::Used => 1,
            Self::Larger => 2,
            Self::Both => 3,
            Self::Produced => 4,
        }
    }
}

/// Turns that were given before it was known are all taken after so long: no wait for quota that
/// Temporal holds is longer by default.
const SETTLES: Duration = Duration::from_secs(300);

/// What is known of each model's provider, in this process, and since when.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<ModelId, (Counted, Instant)>>);

impl Known {
    pub(crate) fn seen(&self, model: &ModelId, counted: Option<Counted>) {
        let mut known = self.0.lock();
        match counted {
            Some(counted) if known.get(model).is_some_and(|(known, _)| *known == counted) => {}
            Some(counted) => {
                known.insert(model.clone(), (counted, Instant::now()));
            }
            None => {
                known.remove(model);
            }
        }
    }

    pub(crate) fn of(&self, model: &ModelId) -> Option<Counted> {
        self.0.lock().get(model).map(|(counted, _)| *counted)
    }

    /// Whether it is known, and the turns of before are taken.
    pub(crate) fn is_settled(&self, model: &ModelId) -> bool {
        self.0.lock().get(model).is_some_and(|(_, since)| since.elapsed() > SETTLES)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::sync::Arc;

    use tidegate_types::Usage;

    use super::*;
    use crate::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota};

    #[test]
    fn a_call_counts_as_what_it_used_where_bounds_do_not() {
        let id: ModelId = "test:model".parse().unwrap();
        let limits = Limits::default().with(Dimension::Combined, 400_000);
        let lanes = Arc::new(Lanes::single());
        let model = ModelQuota::new(id.clone(), limits, Charge::CAUTIOUS, lanes).unwrap();
        let quota = Quota::in_memory([model], Options::default());
        let usage = Usage { uncached_input: 300, output: 80, ..Usage::default() };
        let used = || quota.used(&id, &usage, 4_096).map(|used| used.combined);
        for (counted, expected) in [
            (None, 4_096),
            (Some(Counted::Larger), 4_096),
            (Some(Counted::Both), 4_396),
            (Some(Counted::Used), 380),
            (Some(Counted::Produced), 380),
        ] {
            quota.shared.counted.seen(&id, counted);
            assert_eq!(used(), Some(expected), "{counted:?}");
        }
    }
}
