//! Extraction of documents in child processes.
//!
//! The parser of a large format may crash or never end, so it runs [confined](crate::confined).

#[cfg(feature = "parquet")]
mod rows;
mod slots;

use std::{path::PathBuf, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    archive::{
        self, Member,
        open::{self, Archive},
    },
    command::{self, Commands},
    confined::{self, Bounds, Confined, Ended},
    extract::{Extracted, extract},
    format::Format,
    limits::Limits,
    unreadable::Unreadable,
};
#[cfg(feature = "parquet")]
use crate::{
    confined::Parts,
    tables::{self, RowRequest},
};

use slots::{Slot, SlotPool};

/// Reads documents. Cheap to clone; clones share the bound on child processes.
#[derive(Debug, Clone)]
pub struct Reader {
    limits: Limits,
    /// The program for child processes; it calls [`serve`]. Without one, only plain text and small
    /// archives are read, in this process.
    helper: Option<Confined>,
    /// The user's own programs.
    commands: Arc<Commands>,
    /// Slots for child processes. A child takes a whole core, so more children than cores would
    /// wait for each other.
    slots: Arc<SlotPool>,
    /// The party on whose behalf documents are read; slots are shared out among parties.
    party: Arc<str>,
}

/// Running time from which a child counts as slow. Most end within a second.
const SLOW: Duration = Duration::from_secs(5);

/// Most memory of a process that reads an archive: the archive and the open archives within it.
const ARCHIVE_MEMORY: u64 = 1 << 30;

/// One line of JSON that the child reads before the document's bytes.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    name: String,
    limits: Limits,
    work: Work,
}

/// The work of the child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Extract,
    /// Run this program in its place.
    Become(Vec<String>),
    /// List an archive.
    Members,
    /// Pack the members of a compressed tar archive anew.
    Repack,
    /// Read this member of an archive.
    Member(String),
    /// Decode rows of a table, whose parts the child asks for.
    #[cfg(feature = "parquet")]
    Rows(RowRequest),
}

impl Reader {
    /// Reads documents that need a parser in child processes. `program` with `arguments` must only
    /// call [`serve`].
    pub fn isolated(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = String>,
        limits: Limits,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let helper = Some(Confined::new(program, arguments));
        let slow = cores.div_ceil(2);
        let slots = SlotPool::new(slots::Bounds { quick: cores, slow, total: cores + slow });
        Self { limits, helper, commands: Arc::default(), slots, party: "".into() }
    }

    /// Starts no child process: reads only plain text and small archives. For tests.
    pub fn in_this_process(limits: Limits) -> Self {
        Self { helper: None, ..Self::isolated("", [], limits) }
    }

    /// Adds programs for some formats.
    pub fn with_commands(self, commands: Commands) -> Self {
        Self { commands: Arc::new(commands), ..self }
    }

    /// Bounds the number of child processes to `most`.
    pub fn with_max_processes(self, most: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let quick = most.clamp(1, cores);
        let slow = most.saturating_sub(quick).min(quick.div_ceil(2));
        let slots = SlotPool::new(slots::Bounds { quick, slow, total: most.max(1) });
        Self { slots, ..self }
    }

    /// Returns a reader for a party, such as a lane. Documents of other parties do not hold up its
    /// own.
    pub fn for_party(&self, party: &str) -> Self {
        Self { party: party.into(), ..self.clone() }
    }

    async fn acquire_slot(&self) -> std::io::Result<Slot> {
        let gone = || std::io::Error::other("the program ends");
        self.slots.acquire(&self.party).await.ok_or_else(gone)
    }

    /// Runs the child program with one argument more, for other work of its kind. It counts towards
    /// the same bound of processes.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub async fn run(
        &self,
        argument: &str,
        input: &[&[u8]],
        bounds: Bounds,
    ) -> std::io::Result<Ended> {
        let helper = self.helper_or_error()?.clone().with_argument(argument);
        self.run_in_slot(&helper, input, bounds).await
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn helper(&self) -> Option<Confined> {
        self.helper.clone()
    }

    fn helper_or_error(&self) -> std::io::Result<&Confined> {
        let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "it has no program");
        self.helper.as_ref().ok_or_else(none)
    }

    /// Runs a child when a slot is free. A slow child makes its core available to another one.
    async fn run_in_slot(
        &self,
        helper: &Confined,
        input: &[&[u8]],
        bounds: Bounds,
    ) -> std::io::Result<Ended> {
        let mut slot = self.acquire_slot().await?;
        let mut child = pin!(helper.run(input, bounds));
        if let Ok(ended) = tokio::time::timeout(SLOW, &mut child).await {
            return ended;
        }
        slot.mark_slow();
        child.await
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn row_task_line(request: RowRequest, bounds: Bounds) -> std::io::Result<Vec<u8>> {
        let Bounds { memory, time } = bounds;
        task_line("", Limits { memory, time, ..Limits::default() }, Work::Rows(request))
    }

    /// Runs a child that asks for parts of its input, when a slot is free.
    #[cfg(feature = "parquet")]
    pub(crate) async fn run_in_slot_with_parts(
        &self,
        helper: &Confined,
        input: &[u8],
        bounds: Bounds,
        parts: &Parts<'_>,
    ) -> std::io::Result<Ended> {
        let _slot = self.acquire_slot().await?;
        helper.run_on_parts(input, bounds, parts).await
    }

    /// Opens an archive that is read several times, so that reading a member takes no more than the
    /// member; in a child process if that may take much. One that cannot be opened so is searched for
    /// each member.
    pub async fn open_archive(&self, bytes: Bytes, name: &str, limits: &Limits) -> Archive {
        let unopened = || Archive::unopened(bytes.clone(), name);
        let arguments = (bytes.clone(), name.to_owned(), *limits);
        let open = move || Archive::open(arguments.0, &arguments.1, &arguments.2);
        match tokio::task::spawn_blocking(open).await {
            Ok(Some(opened)) => return opened,
            Ok(None) => {}
            Err(_) => return unopened(),
        }
        match self.run_on_archive(&bytes, name, *limits, Work::Repack).await {
            Ok(Ok(written)) => unopened().with_repacked(&written).unwrap_or_else(unopened),
            _ => unopened(),
        }
    }

    /// Lists an archive as [`archive::list_members`] does; in a child process if that may take
    /// much.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub async fn list_members(
        &self,
        archive: &Arc<Archive>,
        limits: &Limits,
    ) -> std::io::Result<Result<Option<Vec<Member>>, Unreadable>> {
        let arguments = (Arc::clone(archive), *limits);
        let in_process = move || archive::in_process::try_list_members(&arguments.0, &arguments.1);
        if let Some(listed) = run_blocking(in_process).await {
            return Ok(listed);
        }
        let Archive { bytes, name, .. } = &**archive;
        let output = self.run_on_archive(bytes, name, *limits, Work::Members).await?;
        Ok(output.and_then(|output| {
            serde_json::from_slice(&output).unwrap_or(Err(Unreadable::ArchiveCrashed))
        }))
    }

    /// Reads a member as [`archive::read_member`] does; in a child process if that may take much.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub async fn read_member(
        &self,
        archive: &Arc<Archive>,
        member: &str,
        limits: &Limits,
    ) -> std::io::Result<Result<(Bytes, String), Unreadable>> {
        let arguments = (Arc::clone(archive), member.to_owned(), *limits);
        let in_process =
            move || archive::in_process::try_read_member(&arguments.0, &arguments.1, &arguments.2);
        if let Some(read) = run_blocking(in_process).await {
            return Ok(read.map(|(bytes, name)| (bytes.into(), name)));
        }
        let work = Work::Member(member.to_owned());
        let Archive { bytes, name, .. } = &**archive;
        let output = self.run_on_archive(bytes, name, *limits, work).await?;
        Ok(output.and_then(|output| {
            let line =
                output.iter().position(|byte| *byte == b'\n').ok_or(Unreadable::ArchiveCrashed)?;
            let name: Result<String, Unreadable> =
                serde_json::from_slice(&output[..line]).map_err(|_| Unreadable::ArchiveCrashed)?;
            Ok((Bytes::from(output).slice(line + 1..), name?))
        }))
    }

    async fn run_on_archive(
        &self,
        bytes: &[u8],
        name: &str,
        limits: Limits,
        work: Work,
    ) -> std::io::Result<Result<Vec<u8>, Unreadable>> {
        let limits = Limits { memory: limits.memory.min(ARCHIVE_MEMORY), ..limits };
        let task = task_line(name, limits, work)?;
        Ok(
            match self
                .run_in_slot(self.helper_or_error()?, &[&task, bytes], bounds_of(&limits))
                .await?
            {
                Ended::Output(output) => Ok(output),
                Ended::Crashed | Ended::OutOfMemory => Err(Unreadable::ArchiveCrashed),
                Ended::TooSlow => Err(Unreadable::TooSlow(limits.time)),
            },
        )
    }

    /// Returns the bounds for a document.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads a document. `name` is its file name; its extension helps to detect the format.
    ///
    /// # Errors
    /// [`Unreadable`] with the reason why there is no text; [`std::io::Error`] if the child process
    /// cannot be started.
    pub async fn read(
        &self,
        bytes: Bytes,
        name: &str,
    ) -> std::io::Result<Result<Extracted, Unreadable>> {
        self.read_within(bytes, name, self.limits).await
    }

    /// Reads a document within other limits.
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
            return self.read_with(command, bytes, name, &limits).await;
        }
        let format = match Format::detect(&bytes, name) {
            Ok(format) if format.is_plain() => return Ok(extract(&bytes, name, &limits)),
            Ok(format) => format,
            Err(unreadable) => return Ok(Err(unreadable)),
        };
        let task = task_line(name, limits, Work::Extract)?;
        let crashed = || Err(Unreadable::damaged(format, "its parser crashed"));
        Ok(
            match self
                .run_in_slot(self.helper_or_error()?, &[&task, &bytes], bounds_of(&limits))
                .await?
            {
                Ended::Output(output) => {
                    serde_json::from_slice(&output).unwrap_or_else(|_| crashed())
                }
                Ended::Crashed => crashed(),
                Ended::OutOfMemory => {
                    let mebibytes = limits.memory >> 20;
                    Err(Unreadable::TooMuchMemory { format, mebibytes })
                }
                Ended::TooSlow => Err(Unreadable::TooSlow(limits.time)),
            },
        )
    }

    async fn read_with(
        &self,
        command: &[String],
        bytes: Bytes,
        name: &str,
        limits: &Limits,
    ) -> std::io::Result<Result<Extracted, Unreadable>> {
        if bytes.len() as u64 > limits.bytes {
            let (size, most) = (bytes.len() as u64, limits.bytes);
            return Ok(Err(Unreadable::TooLarge { what: "file".into(), size, most }));
        }
        let _slot = self.acquire_slot().await?;
        let program = command.first().cloned().unwrap_or_default();
        let task = task_line(name, *limits, Work::Become(command.to_vec()))?;
        command::run(self.helper_or_error()?.command(), &program, &task, &bytes, name, limits).await
    }
}

/// Runs blocking work on a thread of its own. A panic counts as [`Unreadable::ArchiveCrashed`].
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Option<Result<T, Unreadable>> + Send + 'static,
) -> Option<Result<T, Unreadable>> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Some(Err(Unreadable::ArchiveCrashed)))
}

fn bounds_of(limits: &Limits) -> Bounds {
    Bounds { memory: limits.memory, time: limits.time }
}

/// Encodes the line for the child.
fn task_line(name: &str, limits: Limits, work: Work) -> std::io::Result<Vec<u8>> {
    let mut task = serde_json::to_vec(&Task { name: name.to_owned(), limits, work })?;
    task.push(b'\n');
    Ok(task)
}

/// Runs the child: reads a task and a document from standard input, and writes the result to
/// standard output.
///
/// # Errors
/// If the parent has ended, or its line is not that of a [`Reader`].
pub fn serve() -> std::io::Result<()> {
    use std::io::{Read, Write};
    let task: Task = serde_json::from_slice(&first_line()?)?;
    if let Work::Become(command) = &task.work {
        confined::enter_memory(task.limits.memory)?;
        return Err(command::become_program(command, &task.name));
    }
    confined::enter(bounds_of(&task.limits))?;
    #[cfg(feature = "parquet")]
    if let Work::Rows(request) = &task.work {
        return tables::row_process::serve(request);
    }
    let Task { name, limits, work } = &task;
    let most = if matches!(work, Work::Extract) { limits.bytes } else { limits.archive_bytes };
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes)?;
    let mut stdout = std::io::stdout().lock();
    match work {
        Work::Members => {
            serde_json::to_writer(&mut stdout, &archive::list_members(&bytes, name, limits))?;
        }
        Work::Repack => open::write_repacked(&bytes, name, limits, &mut stdout)?,
        Work::Member(member) => {
            let (bytes, name) = match archive::read_member(&bytes, name, member, limits) {
                Ok((bytes, name)) => (bytes, Ok(name)),
                Err(fault) => (Vec::new(), Err(fault)),
            };
            serde_json::to_writer(&mut stdout, &name)?;
            stdout.write_all(b"\n")?;
            stdout.write_all(&bytes)?;
        }
        _ => {
            serde_json::to_writer(&mut stdout, &extract(&bytes, name, limits))?;
        }
    }
    stdout.flush()
}

/// Reads the first line of standard input, and no byte more, because a program may read the rest.
fn first_line() -> std::io::Result<Vec<u8>> {
    use std::{io::Read, os::fd::AsFd};
    // A duplicate of the file descriptor, without the buffer that reads ahead.
    let mut input = std::fs::File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (mut line, mut byte) = (Vec::new(), [0]);
    while input.read(&mut byte)? > 0 && byte != *b"\n" {
        line.push(byte[0]);
    }
    Ok(line)
}
