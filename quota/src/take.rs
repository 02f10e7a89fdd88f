//! Takes documents from a worker's task queues, by [`crate::intake`].

use std::time::Duration;

use tidegate_types::{Lane, ModelId};

use crate::{intake::QueuedAttempt, quota::Quota};

impl Quota {
    /// Counts an attempt that waits for quota, until the result is dropped.
    pub fn join_queue(&self, lane: &Lane, model: &ModelId) -> QueuedAttempt {
        self.shared.intake.join_queue(lane, model)
    }

    /// Announces documents for the model in this lane.
    pub fn expect_documents(&self, lane: &Lane, model: &ModelId) {
        self.shared.intake.expect_documents(lane, model);
    }

    /// Records that for `wait` this worker cannot take the lane's documents for this model.
    pub fn set_elsewhere(&self, lane: &Lane, model: &ModelId, wait: Duration) {
        self.shared.intake.set_elsewhere(lane, model, wait);
    }

    /// Wakes [`Self::wait_to_take`], because a slot was returned.
    pub fn notify_free_slot(&self) {
        self.shared.intake.notify_free_slot();
    }

    /// Waits until this worker should take one more document of a lane. `held` gives the number of
    /// slots that the lane holds. See [`crate::intake`].
    pub async fn wait_to_take(&self, lane: &Lane, held: impl Fn() -> usize) {
        let intake = &self.shared.intake;
        loop {
            let changed = intake.changed();
            tokio::pin!(changed);
            // Register first: a change after the check must end the wait.
            changed.as_mut().enable();
            let wait = intake.until_next(lane, held(), self.live_workers());
            if wait.is_zero() {
                return;
            }
            let _ = tokio::time::timeout(wait, changed).await;
        }
    }
}
