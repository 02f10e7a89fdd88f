//! Why a document cannot be read.

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Serialize};

use crate::format::Format;

/// Why there is no text, and what to do about it. One sentence each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Unreadable {
    /// Nothing in it.
    #[error("the document is empty")]
    Empty,
    /// Not a text, and none of the formats that are known.
    #[error(
        "this is binary data; convert it to text, Markdown, HTML, PDF, DOCX, XLSX, PPTX, ODT or EPUB first"
    )]
    Binary,
    /// A format that is known by name only.
    #[error(
        "this is {what}; convert it to text, Markdown, HTML, PDF, DOCX, XLSX, PPTX, ODT or EPUB first"
    )]
    Unsupported {
        /// What it is.
        what: Cow<'static, str>,
    },
    /// The process that reads an archive has crashed.
    #[error("the archive could not be read: its reader crashed; pack it anew, or unpack it")]
    ArchiveCrashed,
    /// A picture within a document of text.
    #[error("this is a {format}, which is not read within another document; take it out of that")]
    Picture {
        /// The format.
        format: Format,
    },
    /// A password is needed.
    #[error("the {format} is encrypted; save it without a password")]
    Encrypted {
        /// The format.
        format: Format,
    },
    /// A PDF of pictures.
    #[error(
        "none of the PDF's {pages} pages holds text (a scan?); run it through text recognition, or attach it as it is"
    )]
    NoTextLayer {
        /// Its pages.
        pages: usize,
    },
    /// More than is taken.
    #[error("the {what} has {size} bytes; at most {most} are read{}", setting(what))]
    TooLarge {
        /// What is too large: the file, its text, or what an archive unpacks to.
        what: Cow<'static, str>,
        /// Its size in bytes, or as much of it as was looked at.
        size: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// More pages than are taken.
    #[error("the PDF has {pages} pages; at most {most} are read (documents.max-pages); split it")]
    TooManyPages {
        /// Its pages.
        pages: usize,
        /// The limit.
        most: u32,
    },
    /// More documents in an archive than are taken.
    #[error("the archive has more than {most} documents; divide it")]
    TooManyMembers {
        /// The limit.
        most: u32,
    },
    /// A member that an archive does not have, or that is no file.
    #[error("{what}")]
    NoMember {
        /// What is there instead.
        what: Cow<'static, str>,
    },
    /// Not what it claims to be.
    #[error("the {format} is damaged: {reason}")]
    Damaged {
        /// The format.
        format: Format,
        /// What is wrong; at most 200 characters, and nothing of the document's text.
        reason: String,
    },
    /// It takes too long.
    #[error("the document could not be read within {0:.0?} (documents.max-time)")]
    TooSlow(Duration),
    /// The user's own extractor brought no text.
    #[error("the extractor {program} (documents.command) {what}")]
    Command {
        /// The program.
        program: String,
        /// What became of it.
        what: String,
    },
    /// A file of records by its name alone.
    #[error(
        "the content is {format}, not records (CSV or JSONL); give the file the extension of its format, or save it as CSV"
    )]
    OtherFormat {
        /// What it is.
        format: Format,
    },
    /// A file of records that holds none.
    #[error("the file has no records: it is empty, or has only a header")]
    NoRecords,
    /// A line of a file of records.
    #[error("line {line} is not a record: {reason}")]
    BadRecord {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
}

/// The setting that bounds this size, in brackets.
fn setting(what: &str) -> &'static str {
    match what {
        "file" => " (documents.max-size)",
        "text" => " (documents.max-text)",
        "archive" => " (documents.max-archive)",
        _ if what.starts_with("unpacked ") => " (documents.max-unpacked)",
        _ => "",
    }
}

impl Unreadable {
    pub(crate) fn damaged(format: Format, reason: impl ToString) -> Self {
        let reason = reason
            .to_string()
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(200)
            .collect();
        Self::Damaged { format, reason }
    }
}
