//! A child process that may crash: its memory and time are bounded, and its environment has no
//! credentials.
//!
//! A hostile document can make its parser overflow the stack, take all memory, or never end. The
//! process where that happens cannot recover from it.

use std::{
    io::{self, BufWriter, Read, Write},
    ops::Range,
    path::PathBuf,
    pin::Pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use bytes::Bytes;
use memchr::memmem;

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdout, Command},
    time::timeout,
};

use crate::command;

/// Seconds of CPU time that a process has beyond its time limit.
const SPARE_SECONDS: u64 = 2;

/// Bounds of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Bytes of its address space. Its output is cut at as many bytes.
    pub memory: u64,
    /// Time until it is killed.
    pub time: Duration,
}

/// Function that fetches a range of bytes of the input.
pub type Parts<'a> = dyn Fn(Range<u64>) -> Part + Sync + 'a;

/// A part of the input, as a future.
pub type Part = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Success, with its output.
    Output(Vec<u8>),
    /// An exit without success: the work was too much for the process.
    Crashed,
    /// An allocation failed: the work needs more memory than the bounds allow.
    OutOfMemory,
    /// Killed at the end of its time.
    TooSlow,
}

/// A program for a child process. It calls [`enter`] first, reads its input from standard input,
/// and writes its result to standard output.
#[derive(Debug, Clone)]
pub struct Confined {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Confined {
    /// Takes `program` with its arguments.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = String>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().collect() }
    }

    /// Adds an argument.
    pub fn with_argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// Runs the program on the concatenated pieces of `input`. The process is killed when this
    /// future is dropped.
    ///
    /// # Errors
    /// If the process cannot be started or its output cannot be read.
    pub async fn run(&self, input: &[&[u8]], bounds: Bounds) -> io::Result<Ended> {
        match timeout(bounds.time, self.run_on(input, bounds.memory)).await {
            Ok(ended) => ended,
            Err(_) => Ok(Ended::TooSlow),
        }
    }

    /// Runs a program that [asks](request_part) for parts of its input, which `parts` fetches.
    /// Fetching does not count as the process's time; each step between fetches may take the whole
    /// time.
    ///
    /// # Errors
    /// As [`Self::run`], and those of `parts`.
    pub async fn run_on_parts(
        &self,
        input: &[u8],
        bounds: Bounds,
        parts: &Parts<'_>,
    ) -> io::Result<Ended> {
        let mut child = self.start(Stdio::null())?;
        let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Ok(Ended::Crashed);
        };
        // An error of writing is ignored: if the process has ended, its output tells the result.
        let _ = stdin.write_all(input).await;
        loop {
            let range = match timeout(bounds.time, read_request(&mut stdout)).await {
                Ok(Ok(Some(range))) => range,
                Ok(Ok(None)) => break,
                Ok(Err(_)) => return Ok(Ended::Crashed),
                Err(_) => return Ok(Ended::TooSlow),
            };
            let part = parts(range).await?;
            let length = (part.len() as u64).to_le_bytes();
            let write_part = async {
                stdin.write_all(&length).await?;
                stdin.write_all(&part).await
            };
            match timeout(bounds.time, write_part).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok(Ended::Crashed),
                Err(_) => return Ok(Ended::TooSlow),
            }
        }
        let read_result = async {
            let mut output = Vec::new();
            stdout.take(bounds.memory).read_to_end(&mut output).await?;
            io::Result::Ok((output, child.wait().await?))
        };
        match timeout(bounds.time, read_result).await {
            Ok(ended) => Ok(ended_with(ended?, b"")),
            Err(_) => Ok(Ended::TooSlow),
        }
    }

    fn start(&self, stderr: Stdio) -> io::Result<Child> {
        self.command()
            .env_clear()
            .envs(command::allowed_environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
    }

    async fn run_on(&self, input: &[&[u8]], most: u64) -> io::Result<Ended> {
        let mut child = self.start(Stdio::piped())?;
        let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = child.stderr.take();
        let write = async {
            if let Some(stdin) = &mut stdin {
                for piece in input {
                    // An error of writing is ignored: if the child has ended, its output tells the
                    // result.
                    let _ = stdin.write_all(piece).await;
                }
            }
            drop(stdin.take());
        };
        let read = async {
            let mut output = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(most).read_to_end(&mut output).await?;
            }
            io::Result::Ok(output)
        };
        let ((), output, told) = tokio::join!(write, read, read_end(stderr));
        Ok(ended_with((output?, child.wait().await?), &told?))
    }
}

fn ended_with((output, status): (Vec<u8>, ExitStatus), stderr: &[u8]) -> Ended {
    // The standard library writes this before it aborts.
    let is_out_of_memory = || memmem::find(stderr, b"memory allocation of ").is_some();
    match status.success() {
        true => Ended::Output(output),
        false if is_out_of_memory() => Ended::OutOfMemory,
        false => Ended::Crashed,
    }
}

/// Reads a process's standard error to its end, and returns the last 4 KiB.
async fn read_end(stderr: Option<ChildStderr>) -> io::Result<Vec<u8>> {
    let (mut last, mut read) = (Vec::new(), [0; 4 << 10]);
    let Some(mut stderr) = stderr else { return Ok(last) };
    loop {
        let count = stderr.read(&mut read).await?;
        if count == 0 {
            return Ok(last);
        }
        last.extend_from_slice(&read[..count]);
        last.drain(..last.len().saturating_sub(read.len()));
    }
}

/// Written before each request for a part; [`RESULT_TAG`] before the result.
const REQUEST_TAG: u8 = b'?';
const RESULT_TAG: u8 = b'=';

/// Reads the range that a process asks for. Returns `None` before its result.
async fn read_request(stdout: &mut ChildStdout) -> io::Result<Option<Range<u64>>> {
    if stdout.read_u8().await? != REQUEST_TAG {
        return Ok(None);
    }
    Ok(Some(stdout.read_u64_le().await?..stdout.read_u64_le().await?))
}

/// Fetches a part of the input, from within the process of [`Confined::run_on_parts`].
///
/// # Errors
/// If the parent process has ended.
pub fn request_part(range: Range<u64>) -> io::Result<Bytes> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[REQUEST_TAG])?;
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

/// Writes the result as JSON, piece by piece, from within the process of [`Confined::run_on_parts`].
///
/// # Errors
/// If the parent process has ended.
pub fn write_result(result: &impl Serialize) -> io::Result<()> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    stdout.write_all(&[RESULT_TAG])?;
    serde_json::to_writer(&mut stdout, result)?;
    stdout.flush()
}

/// Bounds memory and CPU time of the calling process from here on.
///
/// # Errors
/// If the system refuses.
pub fn enter(bounds: Bounds) -> io::Result<()> {
    enter_memory(bounds.memory)?;
    // A bound of CPU time too: a parent that was killed cannot end this process.
    let seconds = bounds.time.as_secs() + SPARE_SECONDS;
    rlimit::Resource::CPU.set(seconds, seconds)
}

/// Bounds only the memory, and disables core dumps.
pub(crate) fn enter_memory(memory: u64) -> io::Result<()> {
    rlimit::Resource::AS.set(memory, memory)?;
    rlimit::Resource::CORE.set(0, 0)
}
