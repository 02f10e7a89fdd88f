//! Common complaints about programs that read documents. Each kind of fault has a row: a document
//! made here, and the words that must and must not be in its text. `--nocapture` prints the table.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test, which prints a table"
)]

#[path = "../common/mod.rs"]
mod common;

mod archives;
mod binary_book;
mod open_sheets;
mod other_parts;
mod pages;
mod pdf;
mod pdf_fields;
mod pdf_sizes;
mod sheets;
mod slides;
mod texts;
mod word;

use tidegate_documents::{Hidden, Limits, extract, left_out::Kind};

/// One kind of fault.
struct Row {
    kind: &'static str,
    /// The document's name.
    name: &'static str,
    document: Vec<u8>,
    right: Right,
}

/// The expected result.
enum Right {
    /// The text has some words and lacks others.
    Text { has: Vec<&'static str>, lacks: Vec<&'static str> },
    /// As `Text`, and the missing words are counted as hidden; on demand they are in marks.
    Hidden { has: Vec<&'static str>, lacks: Vec<&'static str> },
    /// The text has these words, and a part is counted as unread.
    Unread { has: Vec<&'static str> },
    /// The document is refused; the reason has these words.
    Refused(&'static str),
}

/// Makes a row whose text has some words and lacks others.
fn row(
    kind: &'static str,
    name: &'static str,
    document: impl Into<Vec<u8>>,
    has: &[&'static str],
    lacks: &[&'static str],
) -> Row {
    let right = Right::Text { has: has.to_vec(), lacks: lacks.to_vec() };
    Row { kind, name, document: document.into(), right }
}

/// Makes a row whose text lacks hidden words.
fn hidden(
    kind: &'static str,
    name: &'static str,
    document: impl Into<Vec<u8>>,
    has: &[&'static str],
    lacks: &[&'static str],
) -> Row {
    let right = Right::Hidden { has: has.to_vec(), lacks: lacks.to_vec() };
    Row { kind, name, document: document.into(), right }
}

/// Makes a row with a part that is counted as unread.
fn unread(
    kind: &'static str,
    name: &'static str,
    document: impl Into<Vec<u8>>,
    has: &[&'static str],
) -> Row {
    Row { kind, name, document: document.into(), right: Right::Unread { has: has.to_vec() } }
}

impl Row {
    /// Returns the differences from the expected result.
    fn faults(&self) -> Vec<String> {
        let read = extract(&self.document, self.name, &Limits::default());
        let (has, lacks) = match &self.right {
            Right::Refused(words) => {
                let said = read.map_or_else(|error| error.to_string(), |read| read.text);
                return if said.contains(words) { Vec::new() } else { vec![said] };
            }
            Right::Text { has, lacks } | Right::Hidden { has, lacks } => (&has[..], &lacks[..]),
            Right::Unread { has } => (&has[..], &[][..]),
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => return vec![error.to_string()],
        };
        let mut faults = Vec::new();
        faults.extend(
            has.iter().filter(|it| !read.text.contains(**it)).map(|it| format!("lacks {it:?}")),
        );
        faults.extend(
            lacks.iter().filter(|it| read.text.contains(**it)).map(|it| format!("has {it:?}")),
        );
        let kind = match self.right {
            Right::Hidden { .. } => Some(Kind::HiddenText),
            Right::Unread { .. } => Some(Kind::UnreadParts),
            _ => None,
        };
        if kind.is_some_and(|kind| read.left_out.count(kind) == 0) {
            faults.push("counts nothing".to_owned());
        }
        if matches!(self.right, Right::Hidden { .. }) {
            faults.extend(self.faults_of_marks(lacks, read.left_out.count(Kind::HiddenText)));
        }
        if !faults.is_empty() {
            faults.push(format!("reads {:?}", read.text));
        }
        faults
    }

    /// Returns the differences if hidden text is put in marks.
    fn faults_of_marks(&self, words: &[&str], count: u64) -> Vec<String> {
        let limits = Limits { hidden: Hidden::Mark, ..Limits::default() };
        let read = extract(&self.document, self.name, &limits).unwrap();
        let marked: String =
            read.text.split("[hidden: ").skip(1).filter_map(|it| it.split(']').next()).collect();
        let mut faults: Vec<String> = words
            .iter()
            .filter(|word| !marked.contains(**word))
            .map(|word| format!("does not mark {word:?}: {:?}", read.text))
            .collect();
        if read.left_out.count(Kind::HiddenText) != count {
            faults.push(format!("counts {:?} when it marks", read.left_out));
        }
        faults
    }
}

#[test]
fn each_kind_of_fault_is_read_right() {
    let rows = [
        word::rows(),
        slides::rows(),
        sheets::rows(),
        open_sheets::rows(),
        pages::rows(),
        texts::rows(),
        pdf::rows(),
        pdf_fields::rows(),
        pdf_sizes::rows(),
        archives::rows(),
        other_parts::rows(),
    ];
    let mut wrong = 0;
    println!("| fault | document | read |\n|---|---|---|");
    for row in rows.iter().flatten() {
        let faults = row.faults();
        let read = if faults.is_empty() { "right".to_owned() } else { faults.join("; ") };
        println!("| {} | {} | {read} |", row.kind, row.name);
        wrong += usize::from(!faults.is_empty());
    }
    assert_eq!(wrong, 0, "of {} rows; the table above says which", rows.iter().flatten().count());
}
