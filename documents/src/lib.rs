//! From a document's bytes to text, and from long text to chunks.
//!
//! ```
//! use tidegate_documents::{Format, Limits, extract};
//!
//! let page = b"<title>Tides</title><h1>Spring tide</h1><p>Twice a month.</p><script>no()</script>";
//! let read = extract(page, "tides.html", &Limits::default())?;
//! assert_eq!((read.format, read.text.as_str()), (Format::Html, "# Spring tide\n\nTwice a month."));
//! # Ok::<_, tidegate_documents::Unreadable>(())
//! ```
//!
//! A hostile file costs its own document and nothing else: sizes, pages, what an archive unpacks to
//! and the time are bounded, and parsers run in a process of their own, which may crash. [`Reader`]
//! does that; [`extract()`] is the same in the calling process.
//!
//! # Layout
//!
//! * [`mod@format`]: the formats that can be read; `detect`: which of them a file has, by its first
//!   bytes and its name
//! * [`mod@extract`]: bytes to text; one file or folder each for `html`, `pdf`, `docx`, `sheets`,
//!   `slides`, `open_document`, `epub` and `mail`; `encoding` for all that is text; `numerals` for numbered items,
//!   `math` for formulas; `package` and `xml` for what is an archive of parts, `compound` for
//!   what is older
//! * [`reader`]: the same in a process of its own, [`confined`] to bounded time and memory
//! * [`command`]: a program of the user's own for some formats
//! * [`blocks`]: a file that is not read as a whole
//! * [`mod@records`]: the lines of a CSV or JSONL file, each a document
//! * `tables`: the rows of a Parquet file, each a document (the feature `parquet`)
//! * [`pictures`]: pictures as models take them
//! * [`archive`]: the documents in an archive
//! * feature `pages`: pages of a PDF whose text is missing are drawn, by `hayro`
//! * [`quote`]: where words that are said to be of a text stand in it
//! * [`mod@split`]: long text to chunks that overlap; [`tokens`]: how many tokens a text will be
//! * [`left_out`]: what of a document is not in its text
//! * [`limits`], [`unreadable`]: how much is taken, and why something is not

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first fault")
)]

pub mod archive;
pub mod blocks;
mod code_page;
mod colors;
pub mod command;
mod compound;
pub mod confined;
mod context;
mod data_uris;
mod detect;
mod docx;
mod encoding;
mod epub;
pub mod extract;
mod flat;
mod foreign;
pub mod format;
mod html;
pub mod left_out;
pub mod limits;
mod links;
mod look;
mod mail;
mod math;
mod notebook;
mod numerals;
mod open_document;
mod package;
mod pdf;
pub mod pictures;
pub mod quote;
pub mod reader;
pub mod records;
mod sheets;
mod slides;
mod spaces;
pub mod split;
mod symbols;
#[cfg(feature = "parquet")]
pub mod tables;
pub mod tokens;
pub mod unreadable;
mod unseen;
mod xml;
mod zstd;

/// Counts the changes that let a parser make other text of the same bytes.
pub const READER_VERSION: u32 = 5;

/// Whether pages of PDFs are drawn where [`Limits::page_pictures`] asks for it.
pub const DRAWS_PAGES: bool = cfg!(feature = "pages");

pub use command::Commands;
pub use extract::{Extracted, extract};
pub use format::Format;
pub use left_out::LeftOut;
pub use limits::{Hidden, Limits};
pub use pictures::Picture;
pub use reader::{Reader, serve};
pub use records::{Position, Record, RecordFields, Records};
pub use split::{Chunk, Split, split};
pub use unreadable::Unreadable;
