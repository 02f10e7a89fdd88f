//! A process that may crash: its memory and time are bounded, and it is told no credentials.
//!
//! What strangers have written can make its reader overflow the stack, take all memory, or never
//! end, and none of these can be caught where it runs.

use std::{
    io::{self, Read, Write},
    ops::Range,
    path::PathBuf,
    pin::Pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use bytes::Bytes;

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdout, Command},
    time::timeout,
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

/// Parts of what a process works on, by their range of bytes.
pub type Parts<'a> = dyn Fn(Range<u64>) -> Part + Sync + 'a;

/// One of them, when it has come.
pub type Part = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

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
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = String>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().collect() }
    }

    /// The same, with one argument more.
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
        match timeout(bounds.time, self.run_on(input, bounds.memory)).await {
            Ok(ended) => ended,
            Err(_) => Ok(Ended::TooSlow),
        }
    }

    /// The same of a process that [asks](ask) for parts of what it works on: `parts` has them. The
    /// time that these take is not the process's own.
    ///
    /// # Errors
    /// As [`Self::run`], and those of `parts`.
    pub async fn run_on_parts(
        &self,
        input: &[u8],
        bounds: Bounds,
        parts: &Parts<'_>,
    ) -> io::Result<Ended> {
        let mut child = self.start()?;
        let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Ok(Ended::Crashed);
        };
        // A process that is gone takes nothing more; what it said, or did not say, tells.
        let _ = stdin.write_all(input).await;
        loop {
            let range = match timeout(bounds.time, asked(&mut stdout)).await {
                Ok(Ok(Some(range))) => range,
                Ok(Ok(None)) => break,
                Ok(Err(_)) => return Ok(Ended::Crashed),
                Err(_) => return Ok(Ended::TooSlow),
            };
            let part = parts(range).await?;
            let length = (part.len() as u64).to_le_bytes();
            let told = async {
                stdin.write_all(&length).await?;
                stdin.write_all(&part).await
            };
            match timeout(bounds.time, told).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok(Ended::Crashed),
                Err(_) => return Ok(Ended::TooSlow),
            }
        }
        let rest = async {
            let mut said = Vec::new();
            stdout.take(bounds.memory).read_to_end(&mut said).await?;
            io::Result::Ok((said, child.wait().await?))
        };
        match timeout(bounds.time, rest).await {
            Ok(ended) => Ok(ended_with(ended?)),
            Err(_) => Ok(Ended::TooSlow),
        }
    }

    fn start(&self) -> io::Result<Child> {
        self.command()
            .env_clear()
            .envs(command::environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
    }

    async fn run_on(&self, input: &[&[u8]], most: u64) -> io::Result<Ended> {
        let mut child = self.start()?;
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
        Ok(ended_with((said?, child.wait().await?)))
    }
}

fn ended_with((said, status): (Vec<u8>, ExitStatus)) -> Ended {
    if status.success() { Ended::Said(said) } else { Ended::Crashed }
}

/// Before each part that a process asks for, and before what it says in the end.
const ASKS: u8 = b'?';
const SAYS: u8 = b'=';

/// What a process asks for; `None` before what it says.
async fn asked(stdout: &mut ChildStdout) -> io::Result<Option<Range<u64>>> {
    if stdout.read_u8().await? != ASKS {
        return Ok(None);
    }
    Ok(Some(stdout.read_u64_le().await?..stdout.read_u64_le().await?))
}

/// The process's side of [`Confined::run_on_parts`]: a part of what it works on.
///
/// # Errors
/// When the parent is gone.
pub fn ask(range: Range<u64>) -> io::Result<Bytes> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[ASKS])?;
    stdout.write_all(&range.start.to_le_bytes())?;
    stdout.write_all(&range.end.to_le_bytes())?;
    stdout.flush()?;
    let (mut stdin, mut length) = (io::stdin().lock(), [0; 8]);
    stdin.read_exact(&mut length)?;
    let (mut part, length) = (Vec::new(), u64::from_le_bytes(length));
    stdin.take(length).read_to_end(&mut part)?;
    match part.len() as u64 == length {
        true => Ok(part.into()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The process's side of [`Confined::run_on_parts`]: what came of it.
///
/// # Errors
/// When the parent is gone.
pub fn say(said: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[SAYS])?;
    stdout.write_all(said)?;
    stdout.flush()
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
