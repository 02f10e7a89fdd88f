//! An object that is written in pieces with flat memory, if necessary by several workers in
//! succession. It appears only when it is complete.
//!
//! A small object is written whole. A larger one is a multipart upload, or a file beside its location
//! on a file system; [`Assembled`] is the state with which another worker continues.

use std::{
    fs, io,
    io::{Seek, SeekFrom, Write},
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use serde::{Deserialize, Serialize};

use crate::storage::{Error, Location, root::Bucket};

/// Bytes of each part but the last: some stores require parts of one length and of 5 MiB or more, and most
/// take 10,000.
const PART: usize = 8 << 20;

/// An object with more bytes gets a buffer for a whole part at once: one that grows by doubling leaves as
/// many bytes again behind it, which the allocator keeps for a while.
const SMALL: usize = 1 << 20;

/// The parts that the store has received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembled {
    /// The store's id of the upload; a file system has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upload: Option<String>,
    /// The store's ids of its parts.
    parts: Vec<String>,
}

/// An object that is being written.
#[derive(Debug)]
pub struct Assembly {
    location: Location,
    /// The file in which a file system keeps it until it is complete.
    staged: Option<PathBuf>,
    assembled: Assembled,
    buffer: Vec<u8>,
}

impl Assembly {
    /// An object that appears at its location when it is complete. A file system keeps it at `staging`
    /// meanwhile.
    pub fn new(location: Location, staging: &Location) -> Self {
        Self::resume(location, staging, Assembled::default(), Bytes::new())
    }

    /// Continues an object with these parts, and these bytes after them, which are in no part yet.
    pub fn resume(
        location: Location,
        staging: &Location,
        assembled: Assembled,
        rest: Bytes,
    ) -> Self {
        let staged = staging.file_path();
        Self { location, staged, assembled, buffer: rest.into() }
    }

    /// The parts that the store has received.
    pub fn assembled(&self) -> &Assembled {
        &self.assembled
    }

    /// The bytes that are in no part yet.
    pub fn rest(&self) -> &[u8] {
        &self.buffer
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// An error of the store; [`Error::Missing`] when it has lost the earlier parts.
    pub async fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let length = self.buffer.len() + bytes.len();
        if length > SMALL && length > self.buffer.capacity() {
            self.buffer.reserve_exact(PART.max(length) - self.buffer.len());
        }
        self.buffer.extend_from_slice(bytes);
        while self.buffer.len() >= PART {
            let rest = self.buffer.split_off(PART);
            let part = std::mem::replace(&mut self.buffer, rest);
            self.put(part).await?;
        }
        Ok(())
    }

    /// Completes the object, over any that exists.
    ///
    /// # Errors
    /// The errors of [`Self::append`].
    pub async fn complete(mut self) -> Result<(), Error> {
        if self.assembled.parts.is_empty() {
            return self.location.write(Bytes::from(self.buffer)).await;
        }
        if !self.buffer.is_empty() {
            let last = std::mem::take(&mut self.buffer);
            self.put(last).await?;
        }
        let Some(upload) = &self.assembled.upload else {
            let (staged, place) = (self.staged.clone(), self.location.file_path());
            let (Some(staged), Some(place)) = (staged, place) else { return Err(self.cannot()) };
            return self.on_disk(move || fs::rename(staged, place)).await;
        };
        let store = self.uploads()?;
        let parts = self.assembled.parts.iter().map(|part| PartId { content_id: part.clone() });
        let completed = store.complete_multipart(&self.location.path, upload, parts.collect());
        completed.await.map(drop).map_err(|error| self.failed(&error))
    }

    fn uploads(&self) -> Result<Arc<dyn MultipartStore>, Error> {
        self.location.root().bucket.as_ref().map(Bucket::uploads).ok_or_else(|| self.cannot())
    }

    async fn put(&mut self, part: Vec<u8>) -> Result<(), Error> {
        let number = self.assembled.parts.len();
        if let Some(staged) = self.staged.clone() {
            let at = (number * PART) as u64;
            self.on_disk(move || write_at(&staged, at, &part)).await?;
            self.assembled.parts.push(String::new());
            return Ok(());
        }
        let store = self.uploads()?;
        let path = &self.location.path;
        let upload = match &self.assembled.upload {
            Some(upload) => upload.clone(),
            None => store.create_multipart(path).await.map_err(|error| self.failed(&error))?,
        };
        let put = store.put_part(path, &upload, number, part.into()).await;
        let part = put.map_err(|error| self.failed(&error))?;
        self.assembled.upload = Some(upload);
        self.assembled.parts.push(part.content_id);
        Ok(())
    }

    async fn on_disk(
        &self,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
        done.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Missing(self.location.uri()),
            _ => Error::of_writing(&error),
        })
    }

    fn failed(&self, error: &object_store::Error) -> Error {
        match error {
            object_store::Error::NotFound { .. } => Error::Missing(self.location.uri()),
            error => self.location.failed("write", error),
        }
    }

    fn cannot(&self) -> Error {
        Error::Invalid(format!("{} is too large to be written there", self.location))
    }
}

/// Writes at this offset and truncates the file after it, because a worker that died may have
/// written more. The bytes are on the disk before any record mentions them.
fn write_at(file: &FilePath, at: u64, bytes: &[u8]) -> io::Result<()> {
    if at == 0
        && let Some(folder) = file.parent()
    {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::File::options().write(true).create(at == 0).truncate(false).open(file)?;
    if file.metadata()?.len() < at {
        return Err(io::ErrorKind::NotFound.into());
    }
    file.set_len(at)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)?;
    file.sync_data()
}
