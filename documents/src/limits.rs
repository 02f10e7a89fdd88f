//! Bounds for reading a document.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::unreadable::Unreadable;

/// Bounds for one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of the file. Default 16 MiB.
    pub bytes: u64,
    /// Pages of a PDF. Default 2,000.
    pub pages: u32,
    /// Bytes that an archive of parts unpacks to. Default 64 MiB.
    pub unpacked_bytes: u64,
    /// Bytes of an archive of documents. Default 128 MiB.
    pub archive_bytes: u64,
    /// Documents in an archive, including those in nested archives. Default 10,000.
    pub members: u32,
    /// Bytes of the text. Default 16 MiB; the largest contexts today take about 4 MB.
    pub text_bytes: usize,
    /// Pixels of a picture's longer edge. Larger pictures are scaled down. Default 1,568.
    pub picture_edge: u32,
    /// Bytes of a picture's file as it is sent. Default 3.75 MB.
    pub picture_bytes: u64,
    /// Pages of a PDF that are drawn because their text is missing; 0 without the feature `pages`.
    /// Default 0.
    pub page_pictures: u32,
    /// The treatment of hidden text. Default: it is dropped.
    #[serde(default)]
    pub hidden: Hidden,
    /// Memory of the process that reads the document, in bytes of its address space. Default 1 GiB.
    pub memory: u64,
    /// Time for reading the document. Default 60 s.
    pub time: Duration,
}

/// The treatment of text that a viewer does not show. It is counted in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hidden {
    /// Dropped from the text: it may be meant for a model alone.
    #[default]
    Drop,
    /// Put into the text as `[hidden: …]`.
    Mark,
}

impl Limits {
    pub(crate) fn take_text(&self, bytes: usize) -> Result<(), Unreadable> {
        let (size, most) = (bytes as u64, self.text_bytes as u64);
        if size > most {
            return Err(Unreadable::TooLarge { what: "text".into(), size, most });
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            pages: 2_000,
            unpacked_bytes: 64 << 20,
            archive_bytes: 128 << 20,
            members: 10_000,
            text_bytes: 16 << 20,
            picture_edge: 1_568,
            picture_bytes: 3_750_000,
            page_pictures: 0,
            hidden: Hidden::Drop,
            memory: 1 << 30,
            time: Duration::from_secs(60),
        }
    }
}

/// The end of a document's time, for readers in a process that cannot be killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn from_limits(limits: &Limits) -> Self {
        Self(Instant::now().checked_add(limits.time))
    }

    pub(crate) fn has_passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}
