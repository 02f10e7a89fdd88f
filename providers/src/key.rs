//! The key of one provider. It may be replaced while the program runs: keys rotate.

use std::{fmt, path::PathBuf, sync::Arc};

use parking_lot::RwLock;

use crate::secret::{Secret, SecretError};

/// Where a key can be read again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeySource {
    /// Nowhere: it came from the environment of this process, which nobody changes any more.
    #[default]
    Fixed,
    /// A file with the key and nothing else.
    File(PathBuf),
    /// The line of this variable in an environment file.
    EnvFile {
        /// The file.
        path: PathBuf,
        /// The variable.
        variable: String,
    },
}

impl KeySource {
    /// Reads the key; `None` where it cannot be read again.
    ///
    /// # Errors
    /// [`SecretError`] names the file, and holds nothing of the key.
    pub fn read(&self) -> Result<Option<Secret>, SecretError> {
        match self {
            Self::Fixed => Ok(None),
            Self::File(path) => Secret::from_file(path).map(Some),
            Self::EnvFile { path, variable } => Secret::from_env_file(path, variable).map(Some),
        }
    }
}

/// One provider's key, as its client uses it now. Clones are the same key.
#[derive(Clone)]
pub struct Key(Arc<Inner>);

struct Inner {
    source: KeySource,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    current: Option<Secret>,
    /// Calls that were under way when the key was replaced may still quote the old one.
    previous: Option<Secret>,
    version: u64,
}

impl Key {
    pub(crate) fn new(current: Option<Secret>, source: KeySource) -> Self {
        let state = State { current, ..State::default() };
        Self(Arc::new(Inner { source, state: RwLock::new(state) }))
    }

    /// Another number after each time that another key was read.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.state.read().version
    }

    /// Reads the key again where it came from, and says which version is in use now. A key that
    /// cannot be read leaves the old one in use.
    ///
    /// # Errors
    /// [`SecretError`] names the file, and holds nothing of the key.
    pub fn read_again(&self) -> Result<u64, SecretError> {
        let read = self.0.source.read()?;
        let mut state = self.0.state.write();
        if let Some(read) = read
            && state.current.as_ref() != Some(&read)
        {
            state.previous = state.current.replace(read);
            state.version += 1;
        }
        Ok(state.version)
    }

    /// The key in use.
    pub(crate) fn current(&self) -> Option<Secret> {
        self.0.state.read().current.clone()
    }

    /// Puts asterisks in the place of the key, and of the one before it.
    pub(crate) fn masked(&self, text: &str) -> String {
        let state = self.0.state.read();
        let secrets = state.current.iter().chain(&state.previous);
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret.expose(), "******"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("source", &self.0.source)
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_key_is_read_and_neither_is_ever_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "first-key\n").unwrap();
        let source = KeySource::File(path.clone());
        let key = Key::new(source.read().unwrap(), source);
        assert_eq!((key.read_again().unwrap(), key.version()), (0, 0), "the same key is no other");
        std::fs::write(&path, "second-key\n").unwrap();
        assert_eq!(key.read_again().unwrap(), 1);
        assert_eq!(key.current().unwrap().expose(), "second-key");
        assert_eq!(key.masked("first-key, second-key"), "******, ******");
        std::fs::remove_file(&path).unwrap();
        assert!(key.read_again().unwrap_err().to_string().contains("cannot be read"));
        assert_eq!(key.current().unwrap().expose(), "second-key", "the old one stays in use");
        assert!(!format!("{key:?}").contains("second"));
    }

    #[test]
    fn an_environment_file_holds_a_key_among_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worker.env");
        let text =
            "# keys\nOTHER=x\nexport MINE = \"sk-1\"\nMINE_TOO=sk-2\nQUOTED='sk-3'\nEMPTY=\n";
        std::fs::write(&path, text).unwrap();
        let read = |variable: &str| {
            let source = KeySource::EnvFile { path: path.clone(), variable: variable.to_owned() };
            source.read().map(|key| key.unwrap().expose().to_owned())
        };
        assert_eq!(read("MINE").unwrap(), "sk-1");
        assert_eq!(read("MINE_TOO").unwrap(), "sk-2");
        assert_eq!(read("QUOTED").unwrap(), "sk-3");
        assert!(read("EMPTY").unwrap_err().to_string().contains("is empty"));
        let absent = read("ABSENT").unwrap_err().to_string();
        assert!(absent.contains("has no line ABSENT=") && !absent.contains("sk-"), "{absent}");
    }
}
