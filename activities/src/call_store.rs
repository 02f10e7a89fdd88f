//! Where answers of calls are stored, and where large inputs may be read: `[calls]`.

use crate::storage::{Error, Location, Storage};

/// The storage of calls.
#[derive(Debug, Clone)]
pub struct Calls {
    pub(crate) answers: Location,
    pub(crate) inputs: Storage,
    /// Largest outcome that is returned inline, in bytes of JSON; a larger one is returned by its URI.
    pub(crate) inline: u64,
}

impl Calls {
    /// Stores answers under one prefix and reads inputs under others; none of them need lie under the
    /// roots for documents. Outcomes larger than `inline` bytes are not returned inline.
    ///
    /// # Errors
    /// [`Error::Invalid`] states the remedy.
    pub fn open(answers: &str, inputs: &[String], inline: u64) -> Result<Self, Error> {
        let answers = Storage::new([answers])?.resolve(answers)?;
        let inputs = Storage::new(inputs.iter().map(String::as_str))?;
        let inputs = inputs.with_setting("inputs in the [calls] section");
        Ok(Self { answers, inputs, inline })
    }

    /// The location of a stored answer.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the URI is not under the prefix for answers.
    pub fn place(&self, uri: &str) -> Result<Location, Error> {
        self.answers.elsewhere(uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_outside_is_refused_with_the_setting_to_change() {
        let folder = tempfile::tempdir().unwrap();
        let root = url::Url::from_directory_path(folder.path()).unwrap().to_string();
        let calls = Calls::open(&root, std::slice::from_ref(&root), 1).unwrap();
        let refused = calls.inputs.resolve("file:///elsewhere/a.json").unwrap_err().to_string();
        assert!(refused.contains("or add it to inputs in the [calls] section"), "{refused}");
        assert!(!refused.contains("[storage]"), "{refused}");
    }
}
