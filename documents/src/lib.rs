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
//! A hostile file harms only its own document: sizes, pages, unpacked bytes and time are bounded,
//! and parsers run in a child process, which may crash. [`Reader`] starts that process;
//! [`extract()`] runs in the calling process.
//!
//! # Layout
//!
//! * [`mod@format`]: the readable formats; `detect`: the format of a file, by its first bytes and
//!   its name
//! * [`mod@extract`]: bytes to text; one file or folder each for `html`, `pdf`, `docx`, `sheets`,
//!   `slides`, `open_document`, `epub` and `mail`; `encoding` for text files; `numerals` for
//!   numbered items, `math` for formulas; `package` and `xml` for archives of XML parts, `compound`
//!   for the older Office formats
//! * [`reader`]: extraction in a child process, [`confined`] to bounded time and memory
//! * [`command`]: the user's own program for some formats
//! * [`blocks`]: a file that is fetched block by block
//! * [`mod@records`]: the lines of a CSV or JSONL file, each a document
//! * `tables`: the rows of a Parquet file, each a document (the feature `parquet`)
//! * [`pictures`]: pictures as models take them
//! * [`archive`]: the documents in an archive
//! * feature `pages`: pages of a PDF without text are drawn, by `hayro`
//! * [`quote`]: the place of a quotation in a text
//! * [`mod@split`]: long text to chunks that overlap; [`tokens`]: an estimate of a text's tokens
//! * [`left_out`]: the parts of a document that are not in its text
//! * [`limits`]: bounds for a document; [`unreadable`]: the reasons why a document has no text

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
mod drawing;
mod embedded;
mod encoding;
mod epub;
pub mod extract;
mod flat;
mod foreign;
pub mod format;
mod html;
mod invisible;
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
mod rows;
mod sheets;
mod signed;
mod slides;
mod spaces;
pub mod split;
mod symbols;
#[cfg(feature = "parquet")]
pub mod tables;
pub mod tokens;
pub mod unreadable;
mod xml;
mod zstd;

/// Version of the parsers. It rises with each change that lets a parser make other text of the same
/// bytes.
pub const READER_VERSION: u32 = 12;

/// Whether pages of PDFs are drawn as [`Limits::page_pictures`] asks.
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
