//! A server as a child process that cannot outlive this one.

use std::{
    env,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::processor;

/// Runs `"$@"` until it ends or descriptor 3, our pipe, is closed. A `static` is never dropped and
/// a killed process drops nothing at all, but the system closes their pipes.
const LEASH: &str = r#"exec 3<&0 </dev/null
"$@" 3<&- & server=$!
{ cat <&3; kill -KILL "$server"; } & exec 3<&-
wait "$server""#;

/// Longest time to the first answer, on a machine that is busy with other things.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Another program may take a free port first.
const ATTEMPTS: u32 = 3;

/// A running server, killed when this is dropped and when this process ends.
#[derive(Debug)]
pub(crate) struct Server {
    shell: Child,
}

impl Server {
    /// Starts what `command` makes of `N` free ports, and waits until it is `ready`.
    pub(crate) fn on_free_ports<const N: usize>(
        command: impl Fn(&[u16; N]) -> Command,
        ready: impl Fn(&[u16; N]) -> bool,
    ) -> (Self, [u16; N]) {
        let attempt = || {
            let ports = free_ports();
            Some((Self::start(command(&ports), || ready(&ports))?, ports))
        };
        (0..ATTEMPTS).find_map(|_| attempt()).expect("the server does not start")
    }

    /// Starts a [`leashed`] program and waits until it is `ready`. `None` if it ends before.
    pub(crate) fn start(mut command: Command, ready: impl Fn() -> bool) -> Option<Self> {
        let mut shell = command.spawn().expect("there is a shell");
        let started = Instant::now();
        while !ready() {
            if shell.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(started.elapsed() < READY_WITHIN, "not ready in {READY_WITHIN:?}: {command:?}");
            thread::sleep(Duration::from_millis(10));
        }
        Some(Self { shell })
    }

    /// Processor time that it has taken so far; `None` where the system does not say.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        processor::of_children(self.shell.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It closes the pipe first.
        let _ = self.shell.wait();
    }
}

/// The program on its leash; arguments can be added.
pub(crate) fn leashed(program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", LEASH, "sh"]).arg(program);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The first of these programs that is on the `PATH`.
pub(crate) fn on_path(programs: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).collect();
    let files =
        programs.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}

fn free_ports<const N: usize>() -> [u16; N] {
    // All are held until each is known, so that they differ.
    let held = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
