//! A server as a child process that cannot outlive this process.
//!
//! It runs under a small shell that holds a pipe from this process. When the pipe closes, because it is
//! dropped or this process dies in any way, the shell kills the server. The server has its own process
//! group, so that Ctrl-C reaches only this process and the servers end last.

use std::{
    collections::VecDeque,
    env,
    ffi::OsString,
    iter,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child as Process, ChildStdin, Command},
    task::JoinHandle,
};

/// Starts `"$@"`, and kills it when descriptor 3, the pipe, closes: its data are temporary. A process
/// group with kill on drop would not suffice: nothing is dropped when a signal kills this process.
const LEASH: &str = r#"exec 3<&0 </dev/null
"$@" 3<&- & server=$!
{ read -r line <&3; kill -KILL "$server"; } >/dev/null 2>&1 &
exec 3<&-
wait "$server""#;

/// The number of the server's last lines that error messages show.
const LAST_LINES: usize = 12;

/// Time limit for the shell to kill the server.
const END_WITHIN: Duration = Duration::from_secs(5);

/// How often a server is checked for readiness.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A running server.
#[derive(Debug)]
pub struct Child {
    name: &'static str,
    process: Process,
    leash: Option<ChildStdin>,
    lines: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Child {
    /// Starts `program`; `name` is for messages.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(
        name: &'static str,
        program: &Path,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", LEASH, "sh"]).arg(program).args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        // Servers get neither providers' keys nor the variables of our connection to Temporal.
        command.env_clear().envs(environment(env::vars_os()));
        let mut process = command.spawn().with_context(|| {
            format!("starting sh, which runs {name} ({}): is it on the PATH?", program.display())
        })?;
        let leash = process.stdin.take();
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let readers = [
            process.stdout.take().map(|out| keep_last_lines(out, &lines)),
            process.stderr.take().map(|err| keep_last_lines(err, &lines)),
        ];
        Ok(Self { name, process, leash, lines, readers: readers.into_iter().flatten().collect() })
    }

    /// Waits until `ready` succeeds.
    ///
    /// # Errors
    /// The server ends before that, or takes longer than `within`; its last lines are in the error.
    pub async fn wait_until_ready(
        &mut self,
        within: Duration,
        ready: impl AsyncFn() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let asked = async {
            while ready().await.is_err() {
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        let outcome = tokio::select! {
            () = asked => return Ok(()),
            status = self.process.wait() => Err(status),
            () = tokio::time::sleep(within) => Ok(()),
        };
        let ended = outcome.is_err();
        let fault = match outcome {
            Err(status) => {
                format!("{} ended right after its start{}", self.name, in_brackets(status.ok()))
            }
            Ok(()) => format!("{} was not ready within {within:?}", self.name),
        };
        // The last lines may still be in the pipes. A dead server writes no more.
        if ended {
            for reader in &mut self.readers {
                let _ = tokio::time::timeout(Duration::from_millis(500), reader).await;
            }
        }
        Err(anyhow!("{fault}{}", self.last_lines()))
    }

    /// Resolves when the server ends by itself, with its last lines.
    pub async fn ended(&mut self) -> anyhow::Error {
        let status = self.process.wait().await.ok();
        anyhow!("{} ended{}{}", self.name, in_brackets(status), self.last_lines())
    }

    /// Kills the server and waits until it is gone.
    pub async fn stop(mut self) {
        drop(self.leash.take());
        if tokio::time::timeout(END_WITHIN, self.process.wait()).await.is_err() {
            tracing::warn!("{} did not end within {END_WITHIN:?}", self.name);
        }
    }

    fn last_lines(&self) -> String {
        let lines = self.lines.lock();
        if lines.is_empty() {
            "; it said nothing".to_owned()
        } else {
            lines.iter().fold("; it said:".to_owned(), |text, line| text + "\n    " + line)
        }
    }
}

/// The environment variables that a server gets; of two with the same name, the last counts.
fn environment(
    own: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let needed = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"];
    // Temporal ends at once without a user's name, as in a container whose user has only a number.
    iter::once(("USER".into(), "tidegate".into()))
        .chain(own.filter(move |(name, _)| needed.iter().any(|needed| *name == **needed)))
}

fn in_brackets(status: Option<ExitStatus>) -> String {
    status.map_or_else(String::new, |status| format!(" ({status})"))
}

/// Keeps the last lines that the server prints.
fn keep_last_lines(
    stream: impl AsyncRead + Unpin + Send + 'static,
    last: &Arc<Mutex<VecDeque<String>>>,
) -> JoinHandle<()> {
    let last = Arc::clone(last);
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let mut last = last.lock();
            last.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
            if last.len() > LAST_LINES {
                last.pop_front();
            }
        }
    })
}

/// Attempts at free ports, because another program may take one first.
const ATTEMPTS: u32 = 3;

/// Starts a server that gets its ports as arguments; if it fails, tries others.
pub(super) async fn with_free_ports<Server>(
    start: impl AsyncFn() -> anyhow::Result<Server>,
) -> anyhow::Result<Server> {
    for _ in 1..ATTEMPTS {
        if let Ok(server) = start().await {
            return Ok(server);
        }
    }
    start().await
}

/// `N` different ports of 127.0.0.1 that were free a moment ago, for a server that needs them as
/// arguments. Another program may take one before the server does: see [`with_free_ports`].
///
/// # Errors
/// The system has no free port.
pub(super) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    // All listeners stay open until the end, so that the ports differ.
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
        *port = listener.local_addr().context("no free port on 127.0.0.1")?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Finds a program on the `PATH`.
pub(super) fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[expect(clippy::unwrap_used, reason = "a test may stop at the first fault")]
    fn shell(script: &str) -> Child {
        Child::start("the server", Path::new("sh"), ["-c".into(), script.into()]).unwrap()
    }

    #[tokio::test]
    async fn the_last_lines_of_a_server_that_does_not_start_are_told() {
        let mut child = shell("echo one; echo two >&2; exit 7");
        let error = child
            .wait_until_ready(Duration::from_secs(20), async || Err(anyhow!("not yet")))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("the server ended right after its start (exit status: 7); it said:"),
            "{error}"
        );
        assert!(error.contains("\n    one") && error.contains("\n    two"), "{error}");
    }

    /// Cargo sets many variables for its tests.
    #[tokio::test]
    async fn a_server_gets_nothing_of_the_environment_but_what_programs_need() {
        let mut child = shell("env; exit 7");
        let ready =
            child.wait_until_ready(Duration::from_secs(20), async || Err(anyhow!("not yet")));
        let said = ready.await.unwrap_err().to_string();
        assert!(env::vars_os().any(|(name, _)| name == "CARGO_MANIFEST_DIR"));
        assert!(said.contains("PATH=") && !said.contains("CARGO"), "{said}");
    }

    #[test]
    fn a_server_always_gets_a_name_of_the_user() {
        let user = |own: &[(&str, &str)]| {
            let own = own.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            environment(own).filter(|(name, _)| name == "USER").last().unwrap().1
        };
        assert_eq!(user(&[("HOME", "/")]), "tidegate");
        assert_eq!(user(&[("HOME", "/"), ("USER", "ada")]), "ada");
    }

    #[tokio::test]
    async fn the_leash_needs_no_program_but_the_shell() {
        let folder = tempfile::tempdir().unwrap();
        let (go, shell) = (folder.path().join("go"), find_on_path("sh").unwrap());
        let mut leashed = Command::new(&shell)
            .args(["-c", LEASH, "sh"])
            .arg(&shell)
            .args(["-c", r#"echo ready; until [ -e "$0" ]; do :; done; exit 7"#])
            .arg(&go)
            .env("PATH", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let _leash = leashed.stdin.take();
        let mut lines = BufReader::new(leashed.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "ready");
        std::fs::write(&go, "").unwrap();
        assert_eq!(leashed.wait().await.unwrap().code(), Some(7));
    }

    #[tokio::test]
    async fn a_server_that_is_never_ready_is_given_up() {
        let mut child = shell("exec sleep 60");
        let error = child
            .wait_until_ready(Duration::from_millis(10), async || Err(anyhow!("not yet")))
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(error, "the server was not ready within 10ms; it said nothing");
        child.stop().await;
    }

    #[tokio::test]
    async fn letting_go_of_the_leash_kills_the_server() {
        // The server's pipe closes when it dies.
        let mut child = shell("trap '' TERM INT; echo ready; while :; do sleep 0.05; done");
        child.wait_until_ready(Duration::from_secs(20), async || Ok(())).await.unwrap();
        let reader = child.readers.remove(0);
        drop(child.leash.take());
        tokio::time::timeout(Duration::from_secs(20), child.process.wait()).await.unwrap().unwrap();
        tokio::time::timeout(Duration::from_secs(20), reader).await.unwrap().unwrap();
    }

    #[test]
    fn ports_differ_and_are_free() {
        let [a, b, c] = free_ports().unwrap();
        assert!(a != b && b != c && a != c);
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, a)).is_ok());
    }

    #[test]
    fn programs_of_the_path_are_found() {
        assert!(find_on_path("sh").is_some());
        assert!(find_on_path("no-such-program-of-ours").is_none());
    }
}
