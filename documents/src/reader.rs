//! Reading documents in a process of their own.
//!
//! A parser of a large format may crash or never end: it runs [confined](crate::confined).

use std::{path::PathBuf, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::{
    command::{self, Commands},
    confined::{self, Bounds, Confined, Ended},
    extract::{Extracted, extract},
    format::Format,
    limits::Limits,
    unreadable::Unreadable,
};

/// How documents are read. Cheap to clone; clones share the bound on children at once.
#[derive(Debug, Clone)]
pub struct Reader {
    limits: Limits,
    /// The program that reads, in its own process: it calls [`serve`].
    helper: Confined,
    /// Programs of the user's own.
    commands: Arc<Commands>,
    /// Reading takes a whole core: more children than cores would only wait for each other.
    children: Arc<Semaphore>,
    /// Those that take long make room for others here, as far as there is memory for more.
    slow: Arc<Semaphore>,
}

/// A child takes long from then on: most are done within a second.
const SLOW: Duration = Duration::from_secs(5);

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
        let helper = Confined::new(program, arguments);
        let (children, slow) = (Semaphore::new(cores), Semaphore::new(cores.div_ceil(2)));
        let (children, slow) = (Arc::new(children), Arc::new(slow));
        Self { limits, helper, commands: Arc::default(), children, slow }
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
        let children = most.clamp(1, cores);
        let slow = most.saturating_sub(children).min(children.div_ceil(2));
        let (children, slow) = (Semaphore::new(children), Semaphore::new(slow));
        Self { children: Arc::new(children), slow: Arc::new(slow), ..self }
    }

    /// Runs the program that reads with one argument more, for other work of its kind: processes
    /// for both are bounded together.
    ///
    /// # Errors
    /// When there could be no process.
    pub async fn run(
        &self,
        argument: &str,
        input: &[&[u8]],
        bounds: Bounds,
    ) -> std::io::Result<Ended> {
        let helper = self.helper.clone().with_argument(argument);
        self.placed(&helper, input, bounds).await
    }

    /// Runs a child when there is a place for it. A few that take long hold up nobody else.
    async fn placed(
        &self,
        helper: &Confined,
        input: &[&[u8]],
        bounds: Bounds,
    ) -> std::io::Result<Ended> {
        // The semaphores are never closed.
        let place = self.children.acquire().await.map_err(std::io::Error::other)?;
        let mut child = pin!(helper.run(input, bounds));
        if let Ok(ended) = tokio::time::timeout(SLOW, &mut child).await {
            return ended;
        }
        match self.slow.try_acquire() {
            Ok(_slow) => {
                drop(place);
                child.await
            }
            Err(_) => child.await,
        }
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
        let task = task(name, limits, None)?;
        let crashed = || Err(Unreadable::damaged(format, "its parser crashed"));
        Ok(match self.placed(&self.helper, &[&task, &bytes], bounds(&limits)).await? {
            Ended::Said(said) => serde_json::from_slice(&said).unwrap_or_else(|_| crashed()),
            Ended::Crashed => crashed(),
            Ended::TooSlow => Err(Unreadable::TooSlow(limits.time)),
        })
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
        let program = command.first().cloned().unwrap_or_default();
        let task = task(name, *limits, Some(command.to_vec()))?;
        command::run(self.helper.command(), &program, &task, &bytes, name, limits).await
    }
}

fn bounds(limits: &Limits) -> Bounds {
    Bounds { memory: limits.memory, time: limits.time }
}

/// The line for the child.
fn task(name: &str, limits: Limits, command: Option<Vec<String>>) -> std::io::Result<Vec<u8>> {
    let mut task = serde_json::to_vec(&Task { name: name.to_owned(), limits, command })?;
    task.push(b'\n');
    Ok(task)
}

/// The child's side: reads one document from standard input, writes the result to standard output.
///
/// # Errors
/// When the parent is gone or did not speak as [`Reader`] does.
pub fn serve() -> std::io::Result<()> {
    use std::io::{Read, Write};
    let mut stdin = std::io::stdin().lock();
    let task: Task = serde_json::from_slice(&first_line()?)?;
    if let Some(command) = &task.command {
        confined::enter_memory(task.limits.memory)?;
        return Err(command::become_program(command, &task.name));
    }
    confined::enter(bounds(&task.limits))?;
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
