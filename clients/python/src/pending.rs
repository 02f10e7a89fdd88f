//! Something that takes time, for threads and for event loops alike.

use std::{sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::runtime::{Own, Process};

/// Between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Makes a value in Python's hands, once it is there.
pub(crate) type Made = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Something that takes time. It goes on whether anybody waits or not, until it is cancelled.
#[pyclass(frozen, module = "tidegate._tidegate")]
pub(crate) struct Pending(Own<Begun>);

struct Begun {
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    has_ended: bool,
    made: Option<Made>,
    callback: Option<Py<PyAny>>,
}

impl Pending {
    pub(crate) fn start(work: impl Future<Output = Made> + Send + 'static) -> PyResult<Self> {
        let shared = Arc::<Shared>::default();
        let told = Arc::clone(&shared);
        let task = Process::this()?.runtime.spawn(async move {
            let made = work.await;
            let callback = {
                let mut state = told.state.lock();
                state.made = Some(made);
                state.has_ended = true;
                state.callback.take()
            };
            told.ended.notify_all();
            if let Some(callback) = callback {
                call(callback);
            }
        });
        Ok(Self(Own::new(Begun { shared, task: task.abort_handle() })))
    }
}

fn call(callback: Py<PyAny>) {
    let Ok(Process { calls_back, .. }) = Process::this() else { return };
    if !calls_back.enter() {
        return;
    }
    // The loop may be closed: then nobody waits any more.
    Python::attach(|py| drop(callback.call0(py)));
    calls_back.leave();
}

/// Calls back into Python that are under way. The interpreter must not end meanwhile: a thread that
/// it finds inside then is a fatal error.
#[derive(Default)]
pub(crate) struct CallsBack {
    /// How many, and whether there are to be no more.
    state: Mutex<(usize, bool)>,
    left: Condvar,
}

impl CallsBack {
    fn enter(&self) -> bool {
        let (calls, is_over) = &mut *self.state.lock();
        *calls += usize::from(!*is_over);
        !*is_over
    }

    fn leave(&self) {
        self.state.lock().0 -= 1;
        self.left.notify_all();
    }
}

/// No more calls back from here on: the interpreter ends.
#[pyfunction]
pub(crate) fn no_more_calls(py: Python<'_>) {
    let Some(Process { calls_back, .. }) = Process::started() else { return };
    py.detach(|| {
        let mut state = calls_back.state.lock();
        state.1 = true;
        calls_back.left.wait_while(&mut state, |(calls, _)| *calls > 0);
    });
}

#[pymethods]
impl Pending {
    /// Waits for it in this thread; Ctrl-C ends the wait, and cancels it.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Begun { shared, task } = self.0.get()?;
        loop {
            let ended = py.detach(|| {
                let mut state = shared.state.lock();
                if !state.has_ended {
                    shared.ended.wait_for(&mut state, LOOK);
                }
                state.has_ended
            });
            if ended {
                return self.take(py);
            }
            py.check_signals().inspect_err(|_| task.abort())?;
        }
    }

    /// Calls back, in another thread, when it has ended; at once if it has.
    fn then(&self, callback: Py<PyAny>) -> PyResult<()> {
        let mut state = self.0.get()?.shared.state.lock();
        if state.has_ended {
            drop(state);
            call(callback);
        } else {
            state.callback = Some(callback);
        }
        Ok(())
    }

    /// What came of it; once.
    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.0.get()?.shared.state.lock().made.take();
        made.map_or_else(|| Ok(py.None()), |made| made(py))
    }

    /// Breaks it off. What has been admitted and not been taken is given back.
    fn cancel(&self) -> PyResult<()> {
        let Begun { shared, task } = self.0.get()?;
        task.abort();
        let made = shared.state.lock().made.take();
        drop(made);
        Ok(())
    }
}
