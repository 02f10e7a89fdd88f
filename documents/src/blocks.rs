//! A file that is fetched block by block, for readers on a thread that may block.

use std::{
    collections::VecDeque,
    fmt, io,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;

/// Bytes of a block.
const BLOCK: u64 = 4 << 20;

type Fetch = dyn Fn(Range<u64>) -> io::Result<Bytes> + Send + Sync;

/// A reader of a file from a position on. Clones share the blocks in memory.
#[derive(Clone)]
pub struct Blocks {
    fetch: Arc<Fetch>,
    size: u64,
    /// The blocks fetched last, each with the position of its first byte; the latest is last.
    blocks: Arc<Mutex<VecDeque<(u64, Bytes)>>>,
    /// Number of blocks kept.
    most: usize,
    at: u64,
}

impl Blocks {
    /// Makes a reader of a file of `size` bytes. `fetch` returns a range of its bytes. `most`
    /// blocks of 4 MiB are kept.
    #[must_use]
    pub fn new(
        size: u64,
        most: usize,
        fetch: impl Fn(Range<u64>) -> io::Result<Bytes> + Send + Sync + 'static,
    ) -> Self {
        Self { fetch: Arc::new(fetch), size, blocks: Arc::default(), most, at: 0 }
    }

    /// Returns a reader of the same file from another position on.
    pub fn from(&self, at: u64) -> Self {
        Self { at, ..self.clone() }
    }

    /// Returns the block that begins at `begin`; fetches it if it is not in memory.
    fn block(&self, begin: u64) -> io::Result<Bytes> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = blocks.iter().find(|(there, _)| *there == begin) {
            return Ok(block.clone());
        }
        let block = (self.fetch)(begin..(begin + BLOCK).min(self.size))?;
        if blocks.len() >= self.most {
            blocks.pop_front();
        }
        blocks.push_back((begin, block.clone()));
        Ok(block)
    }
}

impl io::Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.size {
            return Ok(0);
        }
        let begin = self.at - self.at % BLOCK;
        let block = self.block(begin)?;
        let inside = usize::try_from(self.at - begin).unwrap_or(usize::MAX);
        let rest = block.get(inside..).unwrap_or_default();
        if rest.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.at += length as u64;
        Ok(length)
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, at, .. } = self;
        f.debug_struct("Blocks").field("size", size).field("at", at).finish_non_exhaustive()
    }
}
