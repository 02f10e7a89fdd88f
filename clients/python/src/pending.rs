//! Something that takes time, for threads and for event loops alike.

use std::{sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::runtime::runtime;

/// Between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Makes a value in Python's hands, once it is there.
pub(crate) type Made = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Something that takes time. It goes on whether anybody waits or not, until it is cancelled.
#[pyclass(frozen, module = "tidegate._tidegate")]
pub(crate) struct Pending {
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
        let task = runtime()?.spawn(async move {
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
        Ok(Self { shared, task: task.abort_handle() })
    }
}

fn call(callback: Py<PyAny>) {
    if !CALLING.enter() {
        return;
    }
    // The loop may be closed: then nobody waits any more.
    Python::attach(|py| drop(callback.call0(py)));
    CALLING.leave();
}

/// Calls back into Python that are under way. The interpreter must not end meanwhile: a thread that
/// it finds inside then is a fatal error.
static CALLING: Calling = Calling { state: Mutex::new((0, false)), left: Condvar::new() };

struct Calling {
    /// How many, and whether there are to be no more.
    state: Mutex<(usize, bool)>,
    left: Condvar,
}

impl Calling {
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
    py.detach(|| {
        let mut state = CALLING.state.lock();
        state.1 = true;
        CALLING.left.wait_while(&mut state, |(calls, _)| *calls > 0);
    });
}

#[pymethods]
impl Pending {
    /// Waits for it in this thread; Ctrl-C ends the wait, and cancels it.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            let ended = py.detach(|| {
                let mut state = self.shared.state.lock();
                if !state.has_ended {
                    self.shared.ended.wait_for(&mut state, LOOK);
                }
                state.has_ended
            });
            if ended {
                return self.take(py);
            }
            py.check_signals().inspect_err(|_| self.task.abort())?;
        }
    }

    /// Calls back, in another thread, when it has ended; at once if it has.
    fn then(&self, callback: Py<PyAny>) {
        let mut state = self.shared.state.lock();
        if state.has_ended {
            drop(state);
            call(callback);
        } else {
            state.callback = Some(callback);
        }
    }

    /// What came of it; once.
    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.shared.state.lock().made.take();
        made.map_or_else(|| Ok(py.None()), |made| made(py))
    }

    /// Breaks it off. What has been admitted and not been taken is given back.
    fn cancel(&self) {
        self.task.abort();
        let made = self.shared.state.lock().made.take();
        drop(made);
    }
}
