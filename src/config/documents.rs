//! `[documents]`: limits for reading a document, and own reader programs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_documents::{Commands, Hidden, Limits};

use super::{duration::HumanDuration, size::Size};

/// Limits for one document, and own programs that read some formats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Documents {
    /// A program that takes a document on standard input and writes its text to standard output. One
    /// program with its arguments for all of `formats`, or a table of programs by format.
    pub command: Option<Command>,
    /// The formats that a single `command` reads, by their extensions: `["png", "doc"]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    /// Maximum size of a document.
    pub max_size: Size,
    /// Maximum size of an archive of documents.
    pub max_archive: Size,
    /// Maximum unpacked size of an office document or a book.
    pub max_unpacked: Size,
    /// Maximum size of the text.
    pub max_text: Size,
    /// How to treat text that is hidden from a human reader; it is always counted. `"drop"` removes it,
    /// because it may be meant for a model alone; `"mark"` keeps it as `[hidden: …]`.
    pub hidden: Hidden,
    /// Maximum number of pages of a PDF.
    pub max_pages: u32,
    /// Time limit for reading one document.
    pub max_time: HumanDuration,
    /// Memory limit of the process that reads one document.
    pub memory: Size,
}

/// One program, or a program for each format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a program with its arguments, such as [\"pdftotext\", \"-\", \"-\"], or a table of such by format"
)]
pub enum Command {
    /// One program for all of `formats`.
    One(Vec<String>),
    /// A program for each format.
    Each(BTreeMap<String, Vec<String>>),
}

impl Default for Documents {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            command: None,
            formats: Vec::new(),
            max_size: Size(limits.bytes),
            max_archive: Size(limits.archive_bytes),
            max_unpacked: Size(limits.unpacked_bytes),
            max_text: Size(limits.text_bytes as u64),
            hidden: limits.hidden,
            max_pages: limits.pages,
            max_time: HumanDuration(limits.time),
            memory: Size(limits.memory),
        }
    }
}

impl Documents {
    /// The limits for reading a document.
    pub fn limits(&self) -> Limits {
        Limits {
            bytes: *self.max_size,
            pages: self.max_pages,
            unpacked_bytes: *self.max_unpacked,
            archive_bytes: *self.max_archive,
            text_bytes: usize::try_from(*self.max_text).unwrap_or(usize::MAX),
            hidden: self.hidden,
            memory: *self.memory,
            time: *self.max_time,
            ..Limits::default()
        }
    }

    /// The programs, by format.
    pub fn commands(&self) -> Commands {
        match &self.command {
            None => Commands::default(),
            Some(Command::One(command)) => {
                Commands::new(self.formats.iter().map(|format| (format.clone(), command.clone())))
            }
            Some(Command::Each(commands)) => Commands::new(commands.clone()),
        }
    }

    /// Faults: the key, and what to write.
    pub(super) fn faults(&self) -> Vec<(&'static str, &'static str)> {
        let empty = match &self.command {
            None => false,
            Some(Command::One(command)) => command.is_empty(),
            Some(Command::Each(commands)) => commands.values().any(Vec::is_empty),
        };
        let needs_formats = matches!(self.command, Some(Command::One(_)));
        let sizes = [
            ("max-size", self.max_size),
            ("max-archive", self.max_archive),
            ("max-unpacked", self.max_unpacked),
            ("max-text", self.max_text),
        ];
        let zero = sizes.into_iter().filter(|(_, size)| size.0 == 0);
        zero.map(|(key, _)| (key, "is 0; write how much is read of a document"))
            .chain(empty.then_some(("command", "names no program; write [\"program\", \"argument\"]")))
            .chain((needs_formats == self.formats.is_empty()).then_some((
                "formats",
                "and command belong together; name the formats that one command reads, or write a table of commands: [documents.command]",
            )))
            .chain((self.max_time.is_zero()).then_some(("max-time", "is 0; write how long reading one may take")))
            .chain((self.max_pages == 0).then_some(("max-pages", "is 0; write at least 1")))
            .chain((self.memory.0 < 64 << 20).then_some(("memory", "is less than a parser needs; write at least 64MiB")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<&'static str> {
        let documents: Documents = toml::from_str(text).unwrap();
        documents.faults().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn one_command_names_its_formats_and_several_stand_in_a_table() {
        for text in [
            "",
            "command = ['ocr', '-']\nformats = ['png', 'TIF']",
            "[command]\npng = ['ocr', '-']\ndoc = ['antiword', '-']",
        ] {
            assert_eq!(faults(text), Vec::<&str>::new(), "{text}");
        }
        assert_eq!(faults("command = ['ocr']"), ["formats"]);
        assert_eq!(faults("formats = ['png']"), ["formats"]);
        assert_eq!(faults("command = []\nformats = ['png']"), ["command"]);
        assert_eq!(faults("[command]\npng = []"), ["command"]);
        assert_eq!(
            faults("max-size = '0B'\nmemory = '1MB'\nmax-time = '0s'"),
            ["max-size", "max-time", "memory"]
        );
        let marked: Documents = toml::from_str("hidden = 'mark'").unwrap();
        assert_eq!(marked.limits().hidden, Hidden::Mark);
        let table: Documents = toml::from_str("command = ['ocr']\nformats = ['.JPEG']").unwrap();
        let each: Documents = toml::from_str("[command]\njpg = ['ocr']").unwrap();
        assert_eq!(table.commands(), each.commands());
    }
}
