//! What a request asks for, and what its answer says on its way.

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use pyo3::{exceptions::PyValueError, prelude::*};
use tidegate_calls::caller::UNBOUNDED_OUTPUT;
use tidegate_providers::Vendor;

pub(crate) fn vendor(name: &str) -> PyResult<Vendor> {
    name.parse().map_err(|error| PyValueError::new_err(format!("{error}")))
}

/// Names and values that HTTP has not are left out: nothing of ours is read from them.
pub(crate) fn headers(pairs: Vec<(String, String)>) -> HeaderMap {
    let known = pairs.into_iter().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    known.collect()
}

/// What a call asks for, as far as its request tells.
#[pyclass(frozen, get_all, module = "tidegate._tidegate")]
pub(crate) struct Asked {
    model: String,
    input_tokens: u64,
    max_output_tokens: u64,
    template: u64,
}

#[pymethods]
impl Asked {
    /// None where the request asks no model.
    #[staticmethod]
    fn read(path: &str, body: &[u8]) -> Option<Self> {
        let asked = tidegate_providers::RequestFacts::read(path, body)?;
        Some(Self {
            model: asked.model,
            input_tokens: asked.input_tokens,
            max_output_tokens: asked.max_output_tokens.unwrap_or(UNBOUNDED_OUTPUT),
            template: asked.template,
        })
    }
}

/// Listens to an answer on its way to whoever asked.
#[pyclass(frozen, module = "tidegate._tidegate")]
pub(crate) struct Listener(Mutex<Option<tidegate_calls::Listener>>);

impl Listener {
    pub(crate) fn take(&self) -> Option<tidegate_calls::Listener> {
        self.0.lock().take()
    }
}

#[pymethods]
impl Listener {
    #[new]
    #[pyo3(signature = (vendor, status, headers))]
    fn new(vendor: &str, status: u16, headers: Vec<(String, String)>) -> PyResult<Self> {
        let listener =
            tidegate_calls::Listener::new(self::vendor(vendor)?, status, self::headers(headers));
        Ok(Self(Mutex::new(Some(listener))))
    }

    /// Whether its last event has come: SDKs stop reading there.
    fn is_over(&self) -> bool {
        self.0.lock().as_ref().is_some_and(tidegate_calls::Listener::is_over)
    }

    /// The next bytes of it.
    fn hear(&self, piece: &[u8]) {
        if let Some(listener) = &mut *self.0.lock() {
            listener.hear(piece);
        }
    }
}
