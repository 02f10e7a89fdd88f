//! The threads that all limiters of this process share.

use std::sync::OnceLock;

use pyo3::{PyResult, exceptions::PyRuntimeError};
use tokio::runtime::{Builder, Runtime};

/// Two carry thousands of waits: what they do is to speak with Redis.
const THREADS: usize = 2;

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
