//! Models that nobody should ask for a while: no credit, or a key that is not accepted. One call
//! finds out, the rest of this worker's documents fail with the same sentence and cost nothing.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tidegate_types::ModelId;
use tidegate_workflows::contract::FailureType;

use crate::failure::Failure;

/// The stopped models of this worker.
#[derive(Debug, Default)]
pub struct Stopped(Mutex<HashMap<ModelId, Stop>>);

#[derive(Debug)]
struct Stop {
    until: Instant,
    kind: FailureType,
    message: String,
}

impl Stopped {
    /// Stops asking `model` for `length`; after that one call may find out anew.
    pub fn stop(&self, model: &ModelId, kind: FailureType, message: &str, length: Duration) {
        let stop = Stop { until: Instant::now() + length, kind, message: message.to_owned() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(model.clone(), stop);
    }

    /// # Errors
    /// The failure that stopped the model, while it is stopped.
    pub fn check(&self, model: &ModelId) -> Result<(), Failure> {
        let mut stopped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match stopped.get(model) {
            Some(stop) if Instant::now() < stop.until => Err(Failure::never(
                stop.kind,
                format!("{model} is not asked for now: {}", stop.message),
            )),
            Some(_) => {
                stopped.remove(model);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
