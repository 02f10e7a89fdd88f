//! What all limiters of this process share: the threads, and the error for a wrong argument.

use std::{cell::Cell, mem, process, sync::OnceLock};

use pyo3::{
    PyErr, PyResult,
    exceptions::{PyRuntimeError, PyValueError},
};
use tokio::runtime::{Builder, Runtime};

use crate::pending::CallsBack;

/// Two carry thousands of waits: what they do is to speak with Redis.
const THREADS: usize = 2;

/// The error for an argument that cannot be used.
pub(crate) fn bad(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The threads of one process: a fork copies none of them.
pub(crate) struct Process {
    id: u32,
    pub(crate) runtime: Runtime,
    pub(crate) calls_back: CallsBack,
    /// That of a process which was forked from this one.
    child: Link,
}

type Link = OnceLock<Option<Box<Process>>>;

static FIRST: Link = OnceLock::new();

impl Process {
    /// This process, with its threads.
    pub(crate) fn this() -> PyResult<&'static Self> {
        let id = process::id();
        draw_other_numbers(id);
        let mut link = &FIRST;
        loop {
            let found = link.get_or_init(|| Self::start(id)).as_deref();
            let found = found.ok_or_else(|| {
                PyRuntimeError::new_err("tidegate: the threads of the limiter cannot start")
            })?;
            if found.id == id {
                return Ok(found);
            }
            link = &found.child;
        }
    }

    /// None where nothing was begun yet.
    pub(crate) fn started() -> Option<&'static Self> {
        let mut link = &FIRST;
        loop {
            let found = link.get()?.as_deref()?;
            if found.id == process::id() {
                return Some(found);
            }
            link = &found.child;
        }
    }

    fn start(id: u32) -> Option<Box<Self>> {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(THREADS).thread_name("tidegate").enable_all();
        let (runtime, calls_back, child) =
            (builder.build().ok()?, CallsBack::default(), Link::new());
        Some(Box::new(Self { id, runtime, calls_back, child }))
    }
}

/// A forked thread would draw the numbers that its parent draws: calls of both would have one name.
fn draw_other_numbers(id: u32) {
    thread_local!(static DRAWS_FOR: Cell<u32> = const { Cell::new(0) });
    if DRAWS_FOR.replace(id) != id {
        // It fails where the system has no random numbers, as the first seed would have.
        let _ = rand::rng().reseed();
    }
}

/// Something that needs the threads of the process which made it. What a fork copies of it is
/// neither used nor dropped.
pub(crate) struct Own<T> {
    process: u32,
    thing: Option<T>,
}

impl<T> Own<T> {
    pub(crate) fn new(thing: T) -> Self {
        Self { process: process::id(), thing: Some(thing) }
    }

    pub(crate) fn get(&self) -> PyResult<&T> {
        self.thing.as_ref().filter(|_| self.process == process::id()).ok_or_else(|| {
            PyRuntimeError::new_err("tidegate: begun in another process, of which this is a fork")
        })
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            mem::forget(self.thing.take());
        }
    }
}
