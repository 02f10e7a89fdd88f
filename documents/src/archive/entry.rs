//! Entries of an archive, and the budget for unpacking them.

use std::{cell::Cell, io::Read, ops::ControlFlow, rc::Rc};

use super::place::Place;
use crate::{format::Format, limits::Limits, unreadable::Unreadable};

/// Largest ratio of unpacked to packed bytes. Real documents hardly exceed a hundred.
const MAX_RATIO: u64 = 1_000;

/// Unpacked bytes that are allowed at any ratio.
const ALWAYS_ALLOWED_BYTES: u64 = 16 << 20;

/// Most entries of an archive for each document that it may hold.
const ENTRIES_OF_A_MEMBER: u32 = 20;

/// Longest path in messages, in characters.
const MAX_SHOWN: usize = 200;

/// A member that can be read.
pub(super) struct Entry<'a> {
    pub(super) format: Format,
    /// Unpacked size as the archive states it; its reader gives no more.
    pub(super) size: Option<u64>,
    /// Its place in the archive's bytes, if the archive is in memory as a whole.
    pub(super) place: Option<Place>,
    pub(super) reader: &'a mut dyn Read,
    pub(super) budget: Budget,
}

impl Entry<'_> {
    pub(super) fn read(&mut self, most: u64) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = Vec::new();
        let read = self.reader.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.budget.fault(self.format, &error))?;
        let size = bytes.len() as u64;
        if size > most {
            return Err(Unreadable::TooLarge { what: "file".into(), size, most });
        }
        Ok(bytes)
    }

    /// Counts a document against the budget. Its size is measured if the archive does not state it.
    ///
    /// # Errors
    /// [`Unreadable::TooLarge`] if the document has more than `most` bytes, or if the budget is
    /// spent.
    pub(super) fn count_document(&mut self, most: u64) -> Result<(), Unreadable> {
        let size = match self.size {
            Some(size) => size,
            None => std::io::copy(&mut self.reader.take(most + 1), &mut std::io::sink())
                .map_err(|error| self.budget.fault(self.format, &error))?,
        };
        if size > most {
            return Err(Unreadable::TooLarge { what: "file".into(), size, most });
        }
        self.budget.take_document(size)
    }
}

/// Callback that gets a file's path, and the file or the reason why it cannot be read.
pub(super) type Visit<'v> =
    dyn FnMut(&str, Result<Entry<'_>, Unreadable>) -> Result<ControlFlow<()>, Unreadable> + 'v;

pub(super) fn not_a_file(path: &str) -> Unreadable {
    let path = shorten_path(path);
    Unreadable::NoMember { what: format!("{path} is a link or a device, and no file").into() }
}

/// Formats a path for messages: control characters are escaped, long paths are cut.
pub(super) fn shorten_path(path: &str) -> String {
    let mut shown = String::new();
    for (place, c) in path.chars().enumerate() {
        if place == MAX_SHOWN {
            shown.push('…');
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_debug());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Unpacked bytes and entries that are left for an archive and those nested in it. Clones share
/// them.
#[derive(Clone)]
pub(super) struct Budget {
    most: u64,
    left: Rc<Cell<u64>>,
    most_of_documents: u64,
    /// Bytes left for the documents, which are unpacked later, one at a time.
    left_for_documents: Rc<Cell<u64>>,
    most_entries: u32,
    entries: Rc<Cell<u32>>,
}

impl Budget {
    /// Returns the budget of an archive with these bytes.
    pub(super) fn new(bytes: &[u8], limits: &Limits) -> Self {
        let by_ratio = (bytes.len() as u64).saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED_BYTES);
        let by_count = limits.bytes.saturating_mul(limits.members.into());
        let most = by_ratio.min(by_count).min(limits.archive_bytes.saturating_mul(16));
        // Folders and hidden files are no documents, but take time.
        let most_entries = limits.members.saturating_mul(ENTRIES_OF_A_MEMBER);
        let (left, entries) = (Rc::new(Cell::new(most)), Rc::default());
        let left_for_documents = Rc::new(Cell::new(by_ratio));
        let most_of_documents = by_ratio;
        Self { most, left, most_of_documents, left_for_documents, most_entries, entries }
    }

    /// Returns a budget of at most `most` bytes.
    pub(super) fn at_most(self, most: u64) -> Self {
        let most = self.most.min(most);
        Self { most, left: Rc::new(Cell::new(most)), ..self }
    }

    /// Counts one entry more.
    ///
    /// # Errors
    /// [`Unreadable::TooManyMembers`] if there are too many.
    pub(super) fn count_entry(&self) -> Result<(), Unreadable> {
        self.count_entries(1);
        match self.entries() > self.most_entries {
            true => Err(Unreadable::TooManyMembers { most: self.most_entries }),
            false => Ok(()),
        }
    }

    /// Counts entries that were visited before, and were not too many.
    pub(super) fn count_entries(&self, entries: u32) {
        self.entries.set(self.entries().saturating_add(entries));
    }

    /// Returns the number of entries that were counted.
    pub(super) fn entries(&self) -> u32 {
        self.entries.get()
    }

    /// Takes the bytes of a document. If too few are left, the whole budget is spent.
    fn take_document(&self, size: u64) -> Result<(), Unreadable> {
        if let Some(left) = self.left_for_documents.get().checked_sub(size) {
            self.left_for_documents.set(left);
            return Ok(());
        }
        self.left.set(0);
        let most = self.most_of_documents;
        Err(Unreadable::TooLarge { what: "unpacked archive".into(), size: most + 1, most })
    }

    /// Returns whether the bytes are used up.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    pub(super) fn bound<R: Read>(&self, reader: R) -> Bounded<R> {
        Bounded { reader, left: Rc::clone(&self.left) }
    }

    /// Converts an error of reading: [`Unreadable::TooLarge`] if the budget is spent, else damage.
    pub(super) fn fault(&self, format: Format, error: &std::io::Error) -> Unreadable {
        if self.is_spent() {
            let what = format!("unpacked {format}").into();
            return Unreadable::TooLarge { what, size: self.most + 1, most: self.most };
        }
        Unreadable::damaged(format, error)
    }
}

/// A reader that counts unpacked bytes against the budget. Sizes stated by the archive are not
/// trusted.
pub(super) struct Bounded<R> {
    reader: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let left = self.left.get().saturating_sub(read as u64);
        self.left.set(left);
        if left == 0 {
            return Err(std::io::Error::other("it unpacks to more than is read"));
        }
        Ok(read)
    }
}
