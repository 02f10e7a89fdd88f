//! Where the answers of calls are kept, and from where large inputs are read: `[calls]`.

use crate::storage::{Error, Location, Storage};

/// What one worker knows of it.
#[derive(Debug, Clone)]
pub struct Calls {
    pub(crate) answers: Location,
    pub(crate) inputs: Storage,
    /// Bytes of JSON that are returned at most; a larger outcome is named by its URI.
    pub(crate) inline: u64,
}

impl Calls {
    /// Answers under one prefix, and inputs under some, none of which need lie under the roots for
    /// documents. What is larger than `inline` bytes is not returned.
    ///
    /// # Errors
    /// [`Error::Invalid`] says what to write.
    pub fn open(answers: &str, inputs: &[String], inline: u64) -> Result<Self, Error> {
        let answers = Storage::new([answers])?.resolve(answers)?;
        let inputs = Storage::new(inputs.iter().map(String::as_str))?;
        Ok(Self { answers, inputs, inline })
    }

    /// The place of a kept answer.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it lies elsewhere.
    pub fn place(&self, uri: &str) -> Result<Location, Error> {
        self.answers.elsewhere(uri)
    }
}
