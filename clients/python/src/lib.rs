//! The extension module of the Python package `tidegate`: the limiter and what is known of vendors,
//! as Python's own files (`python/tidegate`) want them. Nothing here knows of asyncio: what takes
//! time is a [`pending::Pending`], which can be waited for or calls back.

mod caller;
mod configured;
mod listener;
mod pending;
mod permit;
mod quota;
mod runtime;

use pyo3::prelude::*;

#[pymodule]
mod _tidegate {
    use pyo3::{prelude::*, wrap_pyfunction};
    use tidegate_providers::Vendor;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let vendors: Vec<&str> = Vendor::known().map(Vendor::as_str).collect();
        module.add("VENDORS", vendors)?;
        let ends = wrap_pyfunction!(super::pending::no_more_calls, module)?;
        module.py().import("atexit")?.call_method1("register", (ends,)).map(drop)
    }

    #[pymodule_export]
    use super::{
        caller::Caller,
        listener::{Asked, Listener},
        pending::Pending,
        permit::{Failure, Permit},
        quota::{Quota, Refusal},
    };
}
