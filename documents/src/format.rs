//! The formats that can be read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Plain text and other text files: source code, JSON, XML, logs.
    Text,
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
    /// PDF.
    Pdf,
    /// Word's format since 2007.
    Docx,
    /// Cells of code and text, with the output of the code.
    Notebook,
    /// Rows of fields, with a header.
    Csv,
    /// One JSON value a line.
    Jsonl,
    /// Excel's formats since 2007, XLSX and XLSB.
    Xlsx,
    /// Excel's older format.
    Xls,
    /// A spreadsheet of `OpenDocument`.
    Ods,
    /// PowerPoint's format since 2007.
    Pptx,
    /// A text of `OpenDocument`.
    Odt,
    /// A presentation or drawing of `OpenDocument`.
    Odp,
    /// A book of HTML pages.
    Epub,
    /// A message with its attachments.
    Eml,
    /// A mailbox: messages one after the other.
    Mbox,
    /// A PNG picture.
    Png,
    /// A JPEG photograph.
    Jpeg,
    /// A WebP picture.
    Webp,
    /// Pictures, often of pages.
    Tiff,
    /// An archive of files.
    Zip,
    /// An archive of files one after the other, uncompressed.
    Tar,
    /// A file or tar archive compressed with gzip.
    Gzip,
    /// A file or tar archive compressed with Zstandard.
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
    /// Returns whether it is a picture: a model sees it, and it has no text.
    pub fn is_picture(self) -> bool {
        matches!(self, Self::Png | Self::Jpeg | Self::Webp | Self::Tiff)
    }

    /// Returns whether it only contains other documents.
    pub fn is_archive(self) -> bool {
        matches!(self, Self::Zip | Self::Tar | Self::Gzip | Self::Zstd | Self::Mbox)
    }

    /// Returns the format of an `OpenDocument` file by its media type.
    pub(crate) fn of_open_document(media_type: &str) -> Option<Self> {
        Some(match media_type.strip_prefix("application/vnd.oasis.opendocument.")? {
            "text" | "text-template" | "text-master" | "text-web" => Self::Odt,
            "spreadsheet" | "spreadsheet-template" => Self::Ods,
            // Pages of a drawing have the structure of slides.
            "presentation" | "presentation-template" | "graphics" | "graphics-template" => {
                Self::Odp
            }
            _ => return None,
        })
    }

    /// Returns whether it is text that needs no parser.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Text | Self::Markdown | Self::Csv | Self::Jsonl)
    }
}
