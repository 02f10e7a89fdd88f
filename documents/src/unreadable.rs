//! Reasons why a document cannot be read.

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Serialize};

use crate::format::Format;

/// The reason why there is no text, with a remedy. Each message is one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Unreadable {
    /// A document without content.
    #[error("the document is empty")]
    Empty,
    /// A file of zeros alone, as a broken copy leaves it.
    #[error("the file has no text: it is binary zeros alone; copy it anew from its origin")]
    Zeros,
    /// Neither a text nor a known format.
    #[error(
        "this is binary data; convert it to text, Markdown, HTML, PDF, DOCX, XLSX, PPTX, ODT or EPUB first"
    )]
    Binary,
    /// A known format that is not read.
    #[error(
        "this is {what}; convert it to text, Markdown, HTML, PDF, DOCX, XLSX, PPTX, ODT or EPUB first"
    )]
    Unsupported {
        /// Description of the format.
        what: Cow<'static, str>,
    },
    /// The process that reads an archive has crashed.
    #[error("the archive could not be read: its reader crashed; pack it anew, or unpack it")]
    ArchiveCrashed,
    /// A picture within another document.
    #[error("this is a {format}, which is not read within another document; take it out of that")]
    Picture {
        /// The format.
        format: Format,
    },
    /// A document that needs a password.
    #[error("the {format} is encrypted; save it without a password")]
    Encrypted {
        /// The format.
        format: Format,
    },
    /// A PDF without text, such as a scan.
    #[error(
        "none of the PDF's {pages} pages holds text (a scan?); run it through text recognition, or attach it as it is"
    )]
    NoTextLayer {
        /// Number of its pages.
        pages: usize,
    },
    /// A size beyond its limit.
    #[error("the {what} has {size} bytes; at most {most} are read{}", setting(what))]
    TooLarge {
        /// What is too large: the file, its text, or the unpacked bytes of an archive.
        what: Cow<'static, str>,
        /// Its size in bytes, as far as it was read.
        size: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// A picture with too many pixels.
    #[error(
        "the {format} has {width} × {height} pixels; at most {most} on an edge and {megabytes} MB unpacked are read; scale it down"
    )]
    PictureTooLarge {
        /// The format.
        format: Format,
        /// Its width in pixels.
        width: u32,
        /// Its height in pixels.
        height: u32,
        /// The limit of an edge in pixels.
        most: u32,
        /// The limit of the unpacked picture in megabytes.
        megabytes: u64,
    },
    /// A document whose reader needs more memory than it may take.
    #[error("the {format} needs more than {mebibytes} MiB of memory to read; {}", make_smaller(*format))]
    TooMuchMemory {
        /// The format.
        format: Format,
        /// The limit in mebibytes.
        mebibytes: u64,
    },
    /// A PDF with too many pages.
    #[error("the PDF has {pages} pages; at most {most} are read (documents.max-pages); split it")]
    TooManyPages {
        /// Number of its pages.
        pages: usize,
        /// The limit.
        most: u32,
    },
    /// An archive with too many documents.
    #[error("the archive has more than {most} documents; divide it")]
    TooManyMembers {
        /// The limit.
        most: u32,
    },
    /// A member that is missing in the archive, that is no file, or that is not unpacked.
    #[error("{what}")]
    NoMember {
        /// Description of the fault.
        what: Cow<'static, str>,
    },
    /// A file that is invalid in its format.
    #[error("the {format} is damaged: {reason}")]
    Damaged {
        /// The format.
        format: Format,
        /// Description of the damage: at most 200 characters, without text of the document.
        reason: String,
    },
    /// A document that takes too long.
    #[error("the document could not be read within {0:.0?} (documents.max-time)")]
    TooSlow(Duration),
    /// A failure of the user's own extractor.
    #[error("the extractor {program} (documents.command) {what}")]
    Command {
        /// The program.
        program: String,
        /// Description of the failure.
        what: String,
    },
    /// A file with the name of a file of records, but in another format.
    #[error(
        "the content is {format}, not records (CSV or JSONL); give the file the extension of its format, or save it as CSV"
    )]
    OtherFormat {
        /// Its format.
        format: Format,
    },
    /// A file of records without any.
    #[error("the file has no records: it is empty, or has only a header")]
    NoRecords,
    /// A bad line in a file of records.
    #[error("line {line} is not a record: {reason}")]
    BadRecord {
        /// Number of the line, from 1.
        line: u64,
        /// Description of the fault.
        reason: String,
    },
}

/// Returns what makes a document of this format smaller.
fn make_smaller(format: Format) -> &'static str {
    if format.is_picture() { "scale it down" } else { "split it" }
}

/// Returns the setting for this limit, in parentheses.
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
