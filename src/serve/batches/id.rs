//! Ids of files and batches: they cannot be guessed, and sort by creation time.

use std::time::{Duration, SystemTime};

use tidegate_types::seconds_since_1970;

/// Milliseconds since 1970 and eighty random bits, as hexadecimal digits.
const DIGITS: usize = 12 + 20;

/// The kind of thing that an id names; it decides the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::serve) enum Kind {
    File,
    Batch,
    MessageBatch,
}

impl Kind {
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::File => "file-",
            Self::Batch => "batch_",
            Self::MessageBatch => "msgbatch_",
        }
    }

    /// A new name.
    pub(super) fn new_id(self) -> String {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let chance = rand::random::<u128>() >> 48;
        format!("{}{:012x}{chance:020x}", self.prefix(), since.as_millis())
    }

    /// Whether a text is an id of this kind.
    pub(super) fn is_id(self, text: &str) -> bool {
        digits(self, text).is_some_and(|digits| digits.len() == DIGITS)
    }
}

/// The creation time in the id that a text begins with; `None` if it begins with no id.
pub(super) fn creation_time(text: &str) -> Option<SystemTime> {
    let kinds = [Kind::File, Kind::Batch, Kind::MessageBatch];
    let digits = kinds.into_iter().find_map(|kind| digits(kind, text))?;
    let millis = u64::from_str_radix(digits.get(..12)?, 16).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

/// The creation time that an id contains, in seconds since 1970.
pub(super) fn created_at(id: &str) -> u64 {
    creation_time(id).map_or(0, seconds_since_1970)
}

/// The digits of the id that a text begins with.
fn digits(kind: Kind, text: &str) -> Option<&str> {
    let digits = text.strip_prefix(kind.prefix())?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.get(..DIGITS)?.bytes().all(is_digit).then_some(digits)
}

/// An output file of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFile {
    Output,
    Errors,
}

impl OutputFile {
    /// The file's id, derived from the batch's.
    pub(super) fn id(self, batch: &str) -> String {
        let digits = batch.strip_prefix(Kind::Batch.prefix()).unwrap_or_default();
        format!("{}{digits}-{}", Kind::File.prefix(), self.word())
    }

    /// The batch and the output file that an id names.
    pub(super) fn parse(id: &str) -> Option<(String, Self)> {
        let (file, word) = id.rsplit_once('-')?;
        let put = [Self::Output, Self::Errors].into_iter().find(|put| put.word() == word)?;
        let digits = digits(Kind::File, file).filter(|digits| digits.len() == DIGITS)?;
        Some((format!("{}{digits}", Kind::Batch.prefix()), put))
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Errors => "errors",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_their_time_and_tell_it() {
        let (first, later) = (Kind::Batch.new_id(), {
            std::thread::sleep(Duration::from_millis(2));
            Kind::Batch.new_id()
        });
        assert!(first < later && Kind::Batch.is_id(&first) && !Kind::File.is_id(&first));
        assert!(creation_time(&format!("{first}.json")).unwrap().elapsed().unwrap().as_secs() < 5);
        for wrong in ["batch_", "batch_../x", "file-zz", &first[..20], &format!("{first}0")] {
            assert!(!Kind::Batch.is_id(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_a_batch_puts_out_is_named_after_it() {
        let batch = Kind::Batch.new_id();
        for put in [OutputFile::Output, OutputFile::Errors] {
            assert_eq!(OutputFile::parse(&put.id(&batch)), Some((batch.clone(), put)));
        }
        assert_eq!(OutputFile::parse(&Kind::File.new_id()), None);
    }
}
