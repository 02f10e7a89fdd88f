//! What all limiters of this process share: the threads, and the error for a wrong argument.

use std::sync::OnceLock;

use pyo3::{
    PyErr, PyResult,
    exceptions::{PyRuntimeError, PyValueError},
};
use tokio::runtime::{Builder, Runtime};

/// Two carry thousands of waits: what they do is to speak with Redis.
const THREADS: usize = 2;

/// The error for an argument that cannot be used.
pub(crate) fn bad(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    static SHARED: OnceLock<Option<Runtime>> = OnceLock::new();
    let made = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("tidegate").enable_all().build().ok()
    };
    SHARED
        .get_or_init(made)
        .as_ref()
        .ok_or_else(|| PyRuntimeError::new_err("tidegate: the threads of the limiter cannot start"))
}
