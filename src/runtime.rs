//! The threads of the program.

use std::{io, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Time at the program's end for threads that read or write files.
const BLOCKING_END: Duration = Duration::from_secs(2);

/// The most files that macOS grants a process whose own limit is none.
const OPEN_MAX: u64 = 10_240;

/// Runs the program's work to its end. A thread that still reads a file or standard input then cannot be
/// cancelled; the program does not wait for it.
///
/// # Errors
/// If no threads can be started.
pub fn run<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let _ = open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(work);
    runtime.shutdown_timeout(BLOCKING_END);
    Ok(ended)
}

/// Raises the number of files and connections that this process may have open to what the system grants it,
/// and returns it; `None` if it has no limit.
pub(crate) fn open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let set = |files: &Option<u64>| {
        setrlimit(Resource::Nofile, Rlimit { current: *files, maximum }).is_ok()
    };
    [maximum, current.max(Some(OPEN_MAX))].into_iter().find(set).unwrap_or(current)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn a_thread_that_never_ends_does_not_hold_the_program() {
        let (never_sends, waits) = mpsc::channel::<()>();
        let (ends, ended) = mpsc::channel();
        thread::spawn(move || {
            let done = run(async move {
                drop(tokio::task::spawn_blocking(move || waits.recv()));
                7
            });
            ends.send(done.unwrap())
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(7));
        drop(never_sends);
    }
}
