//! The formats that can be read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Plain text, and whatever else is text: source code, JSON, XML, logs.
    Text,
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
    /// PDF.
    Pdf,
    /// Word's newer format.
    Docx,
    /// Cells of code and words, with what the code put out.
    Notebook,
    /// Rows of fields, with a header.
    Csv,
    /// One JSON value a line.
    Jsonl,
    /// Excel's newer formats, XLSX and XLSB.
    Xlsx,
    /// Excel's older format.
    Xls,
    /// Sheets of `OpenDocument`.
    Ods,
    /// PowerPoint's newer format.
    Pptx,
    /// Text of `OpenDocument`.
    Odt,
    /// Slides of `OpenDocument`.
    Odp,
    /// A book of HTML pages.
    Epub,
    /// A message with its attachments.
    Eml,
    /// Messages one after the other.
    Mbox,
    /// A picture.
    Png,
    /// A photograph.
    Jpeg,
    /// A picture or photograph.
    Webp,
    /// Pictures, often of pages.
    Tiff,
    /// An archive of files.
    Zip,
    /// An archive of files one after the other.
    Tar,
    /// One file, or a tar archive, that gzip has made smaller.
    Gzip,
    /// The same of Zstandard.
    Zstd,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Markdown => "Markdown",
            Self::Html => "HTML",
            Self::Pdf => "PDF",
            Self::Docx => "DOCX",
            Self::Notebook => "notebook",
            Self::Csv => "CSV",
            Self::Jsonl => "JSONL",
            Self::Xlsx => "XLSX",
            Self::Xls => "XLS",
            Self::Ods => "ODS",
            Self::Pptx => "PPTX",
            Self::Odt => "ODT",
            Self::Odp => "ODP",
            Self::Epub => "EPUB",
            Self::Eml => "e-mail",
            Self::Mbox => "mailbox",
            Self::Png => "PNG image",
            Self::Jpeg => "JPEG image",
            Self::Webp => "WebP image",
            Self::Tiff => "TIFF image",
            Self::Zip => "ZIP archive",
            Self::Tar => "tar archive",
            Self::Gzip => "gzip file",
            Self::Zstd => "Zstandard file",
        })
    }
}

impl Format {
    /// Whether it has no text, but what a model sees.
    pub fn is_picture(self) -> bool {
        matches!(self, Self::Png | Self::Jpeg | Self::Webp | Self::Tiff)
    }

    /// Whether other documents are in it, and nothing else.
    pub fn is_archive(self) -> bool {
        matches!(self, Self::Zip | Self::Tar | Self::Gzip | Self::Zstd | Self::Mbox)
    }

    /// The format of an `OpenDocument` by its media type.
    pub(crate) fn of_open_document(media_type: &str) -> Option<Self> {
        Some(match media_type.strip_prefix("application/vnd.oasis.opendocument.")? {
            "text" | "text-template" | "text-master" | "text-web" => Self::Odt,
            "spreadsheet" | "spreadsheet-template" => Self::Ods,
            // Pages of a drawing are built as slides are.
            "presentation" | "presentation-template" | "graphics" | "graphics-template" => {
                Self::Odp
            }
            _ => return None,
        })
    }

    /// Whether it is text as it stands, and needs no parser.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Text | Self::Markdown | Self::Csv | Self::Jsonl)
    }
}
