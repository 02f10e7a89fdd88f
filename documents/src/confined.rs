//! A process that may crash: its memory and time are bounded, and it is told no credentials.
//!
//! What strangers have written can make its reader overflow the stack, take all memory, or never
//! end, and none of these can be caught where it runs.

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
};

use crate::command;

/// A process ends itself so long after its time.
const SPARE_SECONDS: u64 = 2;

/// What a process may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Bytes of its address space; it says no more than that either.
    pub memory: u64,
    /// Until it is killed.
    pub time: Duration,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// What it said.
    Said(Vec<u8>),
    /// Without success: its work was too much for it.
    Crashed,
    /// It was killed when its time was over.
    TooSlow,
}

/// A program that works in a process of its own on what it finds on standard input, calls
/// [`enter`] first, and says on standard output what came of it.
#[derive(Debug, Clone)]
pub struct Confined {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Confined {
    /// `program` with its arguments.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = String>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().collect() }
    }

    /// The same, with one argument more.
    #[must_use]
    pub fn with_argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// Runs it on `input`, one piece after the other. It is killed when this future is dropped.
    ///
    /// # Errors
    /// When there could be no process.
    pub async fn run(&self, input: &[&[u8]], bounds: Bounds) -> io::Result<Ended> {
        match tokio::time::timeout(bounds.time, self.run_on(input, bounds.memory)).await {
            Ok(ended) => ended,
            Err(_) => Ok(Ended::TooSlow),
        }
    }

    async fn run_on(&self, input: &[&[u8]], most: u64) -> io::Result<Ended> {
        let mut child = self
            .command()
            .env_clear()
            .envs(command::environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let write = async {
            if let Some(stdin) = &mut stdin {
                for piece in input {
                    // A child that is gone reads no more; what it said, or did not say, tells.
                    let _ = stdin.write_all(piece).await;
                }
            }
            drop(stdin.take());
        };
        let read = async {
            let mut said = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(most).read_to_end(&mut said).await?;
            }
            io::Result::Ok(said)
        };
        let ((), said) = tokio::join!(write, read);
        let (said, status) = (said?, child.wait().await?);
        Ok(if status.success() { Ended::Said(said) } else { Ended::Crashed })
    }
}

/// The process's side: bounds what it can take from here on.
///
/// # Errors
/// When the system does not allow it.
pub fn enter(bounds: Bounds) -> io::Result<()> {
    enter_memory(bounds.memory)?;
    // Where the parent is killed, nobody looks at the clock.
    let seconds = bounds.time.as_secs() + SPARE_SECONDS;
    rlimit::Resource::CPU.set(seconds, seconds)
}

/// The same without a bound of time.
pub(crate) fn enter_memory(memory: u64) -> io::Result<()> {
    rlimit::Resource::AS.set(memory, memory)?;
    rlimit::Resource::CORE.set(0, 0)
}
