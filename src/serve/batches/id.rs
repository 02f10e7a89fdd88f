//! Names of what is kept: nobody guesses one, and they sort by when they were made.

use std::time::{Duration, SystemTime};

/// Milliseconds since 1970 as hexadecimal digits, and eighty bits by chance.
const DIGITS: usize = 12 + 20;

/// What a name begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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

    /// Whether a text is such a name.
    pub(super) fn is_id(self, text: &str) -> bool {
        digits(self, text).is_some_and(|digits| digits.len() == DIGITS)
    }
}

/// When that was made whose name a text begins with; `None` where it begins with none.
pub(super) fn made_at(text: &str) -> Option<SystemTime> {
    let kinds = [Kind::File, Kind::Batch, Kind::MessageBatch];
    let digits = kinds.into_iter().find_map(|kind| digits(kind, text))?;
    let millis = u64::from_str_radix(digits.get(..12)?, 16).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

/// The digits of a name that a text begins with.
fn digits(kind: Kind, text: &str) -> Option<&str> {
    let digits = text.strip_prefix(kind.prefix())?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.get(..DIGITS)?.bytes().all(is_digit).then_some(digits)
}

/// The file of what a batch has put out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Output,
    Errors,
}

impl Put {
    /// Its name: the batch's, told as a file's.
    pub(super) fn id(self, batch: &str) -> String {
        let digits = batch.strip_prefix(Kind::Batch.prefix()).unwrap_or_default();
        format!("{}{digits}-{}", Kind::File.prefix(), self.word())
    }

    /// The batch whose file has this name, and which of its files it is.
    pub(super) fn of(id: &str) -> Option<(String, Self)> {
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
        assert!(made_at(&format!("{first}.json")).unwrap().elapsed().unwrap().as_secs() < 5);
        for wrong in ["batch_", "batch_../x", "file-zz", &first[..20], &format!("{first}0")] {
            assert!(!Kind::Batch.is_id(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_a_batch_puts_out_is_named_after_it() {
        let batch = Kind::Batch.new_id();
        for put in [Put::Output, Put::Errors] {
            assert_eq!(Put::of(&put.id(&batch)), Some((batch.clone(), put)));
        }
        assert_eq!(Put::of(&Kind::File.new_id()), None);
    }
}
