//! Reading documents in a process of their own.
//!
//! A parser of a large format can be made to overflow its stack, to take all memory, or never to
//! end, and none of these can be caught where it runs. So it runs in a child process that may
//! crash, has bounded memory, and is killed when its time is over.

use std::{path::PathBuf, process::Stdio, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    sync::Semaphore,
};

use crate::{
    command::{self, Commands},
    extract::{Extracted, extract},
    format::Format,
    limits::Limits,
    unreadable::Unreadable,
};

/// A reader ends itself so long after its time.
const SPARE_SECONDS: u64 = 2;

/// How documents are read. Cheap to clone; clones share the bound on children at once.
#[derive(Debug, Clone)]
pub struct Reader {
    limits: Limits,
    helper: Helper,
    /// Programs of the user's own.
    commands: Arc<Commands>,
    /// Reading takes a whole core: more children than cores would only wait for each other.
    children: Arc<Semaphore>,
}

/// The program that reads, in its own process: it calls [`serve`].
#[derive(Debug, Clone)]
struct Helper {
    program: PathBuf,
    arguments: Vec<String>,
}

/// What the child reads before the document's bytes: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    name: String,
    limits: Limits,
    /// The program to become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
}

impl Reader {
    /// Reads whatever needs a parser in a process of its own. `program` with `arguments` must do
    /// nothing but call [`serve`].
    #[must_use]
    pub fn isolated(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = String>,
        limits: Limits,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let helper = Helper { program: program.into(), arguments: arguments.into_iter().collect() };
        let (commands, children) = (Arc::default(), Arc::new(Semaphore::new(cores)));
        Self { limits, helper, commands, children }
    }

    /// The same, with programs for some formats.
    #[must_use]
    pub fn with_commands(self, commands: Commands) -> Self {
        Self { commands: Arc::new(commands), ..self }
    }

    /// The same, with no more processes at once.
    #[must_use]
    pub fn at_once(self, most: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { children: Arc::new(Semaphore::new(most.clamp(1, cores))), ..self }
    }

    /// How much is read of a document.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads a document; `name` is its file name, for its extension.
    ///
    /// # Errors
    /// [`Unreadable`] says why there is no text; [`std::io::Error`] when there could be no child to
    /// find out.
    pub async fn read(
        &self,
        bytes: Bytes,
        name: &str,
    ) -> std::io::Result<Result<Extracted, Unreadable>> {
        self.read_within(bytes, name, self.limits).await
    }

    /// The same within bounds of this document's own.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_within(
        &self,
        bytes: Bytes,
        name: &str,
        limits: Limits,
    ) -> std::io::Result<Result<Extracted, Unreadable>> {
        if let Some(command) = self.commands.for_document(&bytes, name) {
            return self.read_with(command, bytes, name).await;
        }
        let format = match Format::of(&bytes, name) {
            Ok(format) if format.is_plain() => return Ok(extract(&bytes, name, &limits)),
            Ok(format) => format,
            Err(unreadable) => return Ok(Err(unreadable)),
        };
        // The semaphore is never closed.
        let _place = self.children.acquire().await.map_err(std::io::Error::other)?;
        match tokio::time::timeout(limits.time, self.helper.read(bytes, name, limits)).await {
            Ok(Ok(Some(result))) => Ok(result),
            Ok(Ok(None)) => Ok(Err(Unreadable::damaged(format, "its parser crashed"))),
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(Err(Unreadable::TooSlow(limits.time))),
        }
    }

    async fn read_with(
        &self,
        command: &[String],
        bytes: Bytes,
        name: &str,
    ) -> std::io::Result<Result<Extracted, Unreadable>> {
        let limits = &self.limits;
        if bytes.len() as u64 > limits.bytes {
            let (size, most) = (bytes.len() as u64, limits.bytes);
            return Ok(Err(Unreadable::TooLarge { what: "file".into(), size, most }));
        }
        let _place = self.children.acquire().await.map_err(std::io::Error::other)?;
        let mut helper = Command::new(&self.helper.program);
        helper.args(&self.helper.arguments);
        let (name, command) = (name.to_owned(), command.to_vec());
        let program = command.first().cloned().unwrap_or_default();
        let task = Task { name: name.clone(), limits: *limits, command: Some(command) };
        let mut task = serde_json::to_vec(&task)?;
        task.push(b'\n');
        command::run(helper, &program, &task, &bytes, &name, limits).await
    }
}

impl Helper {
    /// What the child says; nothing if it crashed.
    async fn read(
        &self,
        bytes: Bytes,
        name: &str,
        limits: Limits,
    ) -> std::io::Result<Option<Result<Extracted, Unreadable>>> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            // It reads what strangers have written: credentials are not its business.
            .env_clear()
            .envs(command::environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Time that runs out drops this future.
            .kill_on_drop(true)
            .spawn()?;
        let mut task = serde_json::to_vec(&Task { name: name.to_owned(), limits, command: None })?;
        task.push(b'\n');
        let (mut stdin, mut stdout) = (child.stdin.take(), child.stdout.take());
        let write = async {
            if let Some(stdin) = &mut stdin {
                // A child that is gone reads no more; what it said, or did not say, tells.
                let _ = stdin.write_all(&task).await;
                let _ = stdin.write_all(&bytes).await;
            }
            drop(stdin.take());
        };
        let read = async {
            let mut said = Vec::new();
            if let Some(stdout) = &mut stdout {
                stdout.read_to_end(&mut said).await?;
            }
            std::io::Result::Ok(said)
        };
        let ((), said) = tokio::join!(write, read);
        let (said, status) = (said?, child.wait().await?);
        Ok(if status.success() { serde_json::from_slice(&said).ok() } else { None })
    }
}

/// The child's side: reads one document from standard input, writes the result to standard output.
///
/// # Errors
/// When the parent is gone or did not speak as [`Reader`] does.
pub fn serve() -> std::io::Result<()> {
    use std::io::{Read, Write};
    let mut stdin = std::io::stdin().lock();
    let task: Task = serde_json::from_slice(&first_line()?)?;
    // Whatever a parser is made to ask for.
    rlimit::Resource::AS.set(task.limits.memory, task.limits.memory)?;
    rlimit::Resource::CORE.set(0, 0)?;
    if let Some(command) = &task.command {
        return Err(command::become_program(command, &task.name));
    }
    // Where the parent is killed, nobody looks at the clock.
    let seconds = task.limits.time.as_secs() + SPARE_SECONDS;
    rlimit::Resource::CPU.set(seconds, seconds)?;
    let mut bytes = Vec::new();
    stdin.by_ref().take(task.limits.bytes + 1).read_to_end(&mut bytes)?;
    let result = extract(&bytes, &task.name, &task.limits);
    let mut stdout = std::io::stdout().lock();
    serde_json::to_writer(&mut stdout, &result)?;
    stdout.flush()
}

/// The first line of standard input, and not a byte more: the rest is for whoever reads on.
fn first_line() -> std::io::Result<Vec<u8>> {
    use std::{io::Read, os::fd::AsFd};
    // The same file at the same place, without a buffer that would read ahead.
    let mut input = std::fs::File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (mut line, mut byte) = (Vec::new(), [0]);
    while input.read(&mut byte)? > 0 && byte != *b"\n" {
        line.push(byte[0]);
    }
    Ok(line)
}
