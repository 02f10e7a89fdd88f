//! An admitted call.

use std::time::Duration;

use parking_lot::Mutex;
use pyo3::{IntoPyObjectExt as _, exceptions::PyValueError, prelude::*};
use tidegate_calls::{
    Backoff,
    admission::{Admitted, Sent},
    failure::Retry,
};
use tidegate_providers::{Charged, Error, Observed};
use tidegate_types::Usage;

use crate::{
    listener::{Listener, headers, vendor},
    pending::{Made, Pending},
    runtime::{Own, Process},
};

/// Leave for one call. Dropped before it was sent, it is given back; dropped after that, what was
/// reserved stays charged.
#[pyclass(frozen, module = "tidegate._tidegate")]
pub(crate) struct Permit {
    call: Own<Mutex<Option<Call>>>,
    backoff: Backoff,
}

enum Call {
    Admitted(Admitted),
    Sent(Sent),
}

impl Call {
    fn sent(self) -> Sent {
        match self {
            Self::Admitted(admitted) => admitted.sent(),
            Self::Sent(sent) => sent,
        }
    }
}

impl Permit {
    pub(crate) fn new(admitted: Admitted, backoff: Backoff) -> Self {
        Self { call: Own::new(Mutex::new(Some(Call::Admitted(admitted)))), backoff }
    }

    fn end<F: Future<Output = Option<Failure>> + Send + 'static>(
        &self,
        end: impl FnOnce(Call) -> F,
    ) -> PyResult<Pending> {
        let call = self.call.get()?.lock().take();
        let call = call.ok_or_else(|| PyValueError::new_err("the call was settled before"))?;
        let ended = end(call);
        Pending::start(async move {
            let failure = ended.await;
            Box::new(move |py: Python<'_>| failure.into_py_any(py)) as Made
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // It is settled by a task of the runtime, which this thread is not in.
        if let (Ok(call), Ok(process)) = (self.call.get(), Process::this()) {
            let _inside = process.runtime.enter();
            drop(call.lock().take());
        }
    }
}

/// The limiter has heard what an answered call used.
async fn settled(sent: Sent, usage: Option<&Usage>, observed: &Observed) {
    // It is never cancelled.
    let _ = sent.settled(usage, observed).await;
}

#[pymethods]
impl Permit {
    /// The request is about to leave.
    fn sent(&self) -> PyResult<()> {
        let mut call = self.call.get()?.lock();
        *call = call.take().map(|call| Call::Sent(call.sent()));
        Ok(())
    }

    /// The call is over and used this much.
    fn used(
        &self,
        uncached_input: u64,
        cache_read: u64,
        cache_write: u64,
        output: u64,
    ) -> PyResult<Pending> {
        let usage = Usage { uncached_input, cache_read, cache_write, output };
        self.end(async move |call| {
            settled(call.sent(), Some(&usage), &Observed::default()).await;
            None
        })
    }

    /// It was never sent.
    fn release(&self) -> PyResult<Pending> {
        self.end(async |call| {
            match call {
                Call::Admitted(admitted) => admitted.release().await,
                Call::Sent(sent) => sent.never_left().await,
            }
            None
        })
    }

    /// What it used cannot be known.
    fn keep_charged(&self) -> PyResult<Pending> {
        self.end(async |call| {
            call.sent().keep_charged().await;
            None
        })
    }

    /// The provider did no work for it.
    fn unused(&self) -> PyResult<Pending> {
        self.end(async |call| {
            call.sent().unused().await;
            None
        })
    }

    /// Settles it by an answer that was listened to; what it failed with, if it did.
    fn listened(&self, listener: &Listener, before: u32) -> PyResult<Pending> {
        let (listener, backoff) = (listener.take(), self.backoff);
        self.end(async move |call| {
            let sent = call.sent();
            let Some(listener) = listener else {
                sent.keep_charged().await;
                return None;
            };
            match listener.finish() {
                Ok(facts) => {
                    settled(sent, facts.usage.as_ref(), &facts.observed).await;
                    None
                }
                Err(error) => {
                    let failure = Failure::from_error(&error, backoff, before);
                    let _ = sent.failed(&error).await;
                    Some(failure)
                }
            }
        })
    }
}

/// What a provider's error means, and when to come back.
#[pyclass(frozen, get_all, module = "tidegate._tidegate")]
pub(crate) struct Failure {
    /// As in tidegate's workflows: `RateLimited`, `Overloaded`, …
    kind: &'static str,
    message: String,
    /// Whether the same call may succeed later.
    may_pass: bool,
    /// Seconds that the provider wants to be left alone.
    retry_after: Option<f64>,
    /// Seconds until the next attempt.
    delay: f64,
}

impl Failure {
    fn from_error(error: &Error, backoff: Backoff, before: u32) -> Self {
        let floor = error.retry_after.unwrap_or(Duration::ZERO);
        Self {
            kind: error.kind.failure(),
            message: error.message.clone(),
            may_pass: error.kind.is_retryable(),
            retry_after: error.retry_after.map(|wait| wait.as_secs_f64()),
            delay: backoff.jittered(before, floor).as_secs_f64(),
        }
    }

    /// Of a call that is not made again.
    pub(crate) fn last(failure: tidegate_calls::Failure) -> Self {
        Self {
            kind: failure.kind.as_str(),
            message: failure.message,
            may_pass: failure.retry != Retry::Never,
            retry_after: None,
            delay: 0.0,
        }
    }
}

#[pymethods]
impl Failure {
    /// What a reply means; None for a success. For replies whose calls are settled already.
    #[staticmethod]
    #[pyo3(signature = (vendor, status, headers, body, before = 0))]
    fn read(
        vendor: &str,
        status: u16,
        headers: Vec<(String, String)>,
        body: &[u8],
        before: u32,
    ) -> PyResult<Option<Self>> {
        let facts = self::vendor(vendor)?.read_reply(status, &self::headers(headers), body);
        Ok(facts.err().map(|error| Self::from_error(&error, Backoff::default(), before)))
    }

    /// What it means that no reply came. `was_sent` says whether anything can have been asked.
    #[staticmethod]
    #[pyo3(signature = (message, was_sent, before = 0))]
    fn no_reply(message: String, was_sent: bool, before: u32) -> Self {
        let charged = if was_sent { Charged::Unknown } else { Charged::No };
        Self::from_error(&Error::no_reply(message, charged), Backoff::default(), before)
    }
}
