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
    #[error("the {what} has {size} bytes; at most {most} are read")]
    TooLarge {
        /// What is too large: the file, its text, or what an archive unpacks to.
        what: Cow<'static, str>,
        /// Its size in bytes, or as much of it as was looked at.
        size: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// More pages than are taken.
    #[error("the PDF has {pages} pages; at most {most} are read; split it")]
    TooManyPages {
        /// Its pages.
        pages: usize,
        /// The limit.
        most: u32,
    },
    /// More documents in an archive than are taken.
    #[error("there are more than {most} documents in it; divide it")]
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
    #[error("the document could not be read within {0:.0?}")]
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
        "by its content this is a file of the format {format}, and not one of records (CSV or JSONL); give it the name of what it is, or save it as CSV"
    )]
    OtherFormat {
        /// What it is.
        format: Format,
    },
    /// A file of records that holds none.
    #[error("there are no records in it: it is empty, or has a header alone")]
    NoRecords,
    /// A line of a file of records.
    #[error("line {line} is no record: {reason}")]
    BadRecord {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
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
