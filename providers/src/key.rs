//! The key of one provider. It may be replaced while the program runs, because keys rotate.

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use parking_lot::{Mutex, RwLock};

use crate::{
    google::ApplicationDefault,
    secret::{Secret, SecretError},
};

/// Longest key that is no secret, such as the `x` for a server that asks for none: its letters stand in
/// many words.
const LONGEST_PLACEHOLDER: usize = 3;

/// The source from which a key is read again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeySource {
    /// None: it came from this process's environment, which no longer changes.
    #[default]
    Fixed,
    /// None: this environment variable contained it, or is not set.
    Env {
        /// The variable.
        variable: String,
    },
    /// A file with nothing but the key.
    File(PathBuf),
    /// The line of this variable in an environment file.
    EnvFile {
        /// The file.
        path: PathBuf,
        /// The variable.
        variable: String,
    },
    /// The output of a program: a token that lasts for about an hour.
    Command(Vec<String>),
    /// Google's application-default credentials: a token that lasts for about an hour.
    Google(ApplicationDefault),
}

/// Interval at which a token of unknown lifetime is renewed: `az` and `gcloud` print one that lasts
/// for at least five minutes.
const TOKEN_EVERY: Duration = Duration::from_secs(240);

/// Time before its stated end at which a token is renewed. Google's metadata servers keep one until
/// four minutes before.
const BEFORE_THE_END: Duration = Duration::from_secs(225);

/// Delay of the next try after a failure to get a token.
const AFTER_A_FAULT: Duration = Duration::from_secs(30);

impl KeySource {
    /// Reads the key; `None` if it cannot be read again.
    ///
    /// # Errors
    /// [`SecretError`] names the file, and holds nothing of the key.
    pub fn read(&self) -> Result<Option<Secret>, SecretError> {
        match self {
            Self::Fixed | Self::Env { .. } => Ok(None),
            Self::File(path) => Secret::from_file(path).map(Some),
            Self::EnvFile { path, variable } => Secret::from_env_file(path, variable).map(Some),
            Self::Command(command) => Secret::from_command(command).map(Some),
            Self::Google(found) => found.token().map(|token| Some(token.secret)),
        }
    }

    /// A token, and the time until the next one is needed.
    fn token(&self) -> Result<Option<(Secret, Duration)>, SecretError> {
        if let Self::Google(found) = self {
            let token = found.token()?;
            let next = token.lasts.saturating_sub(BEFORE_THE_END).max(AFTER_A_FAULT);
            return Ok(Some((token.secret, next)));
        }
        Ok(self.read()?.map(|read| (read, TOKEN_EVERY)))
    }
}

/// One provider's key, as its client uses it now. Clones share it.
#[derive(Clone)]
pub struct Key(Arc<Inner>);

struct Inner {
    source: KeySource,
    state: RwLock<State>,
    /// The time at which the next token is needed.
    due: Mutex<Instant>,
    /// The Google Cloud project whose quota is used.
    project: Option<String>,
}

#[derive(Default)]
struct State {
    current: Option<Secret>,
    /// Calls under way when the key was replaced may still quote the old one.
    previous: Option<Secret>,
    version: u64,
}

impl State {
    /// What messages must not show.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let keys = self.current.iter().chain(&self.previous);
        keys.map(Secret::expose).filter(|key| key.len() > LONGEST_PLACEHOLDER)
    }
}

impl Key {
    pub(crate) fn new(current: Option<Secret>, source: KeySource) -> Self {
        let state = State { current, ..State::default() };
        let project = match &source {
            KeySource::Google(found) => found.project(),
            _ => None,
        };
        let due = Mutex::new(Instant::now() + TOKEN_EVERY);
        Self(Arc::new(Inner { source, state: RwLock::new(state), due, project }))
    }

    /// A number that changes each time another key was read.
    pub fn version(&self) -> u64 {
        self.0.state.read().version
    }

    /// Reads the key again from its source; returns the version in use. If the key cannot be read,
    /// the old one stays in use.
    ///
    /// # Errors
    /// [`SecretError`] names the file, and holds nothing of the key.
    pub fn read_again(&self) -> Result<u64, SecretError> {
        if self.is_token() {
            self.ask_again();
            return Ok(self.version());
        }
        if let Some(read) = self.0.source.read()? {
            self.replace(read);
        }
        Ok(self.version())
    }

    /// The key's source, without anything of the key; `None` if unknown.
    pub fn place(&self) -> Option<String> {
        let is_set = self.0.state.read().current.is_some();
        Some(match &self.0.source {
            KeySource::Fixed => return None,
            KeySource::Env { variable } if is_set => format!("from {variable}"),
            KeySource::Env { variable } => {
                format!("{variable} is not set, so that calls go without one")
            }
            KeySource::File(path) => format!("from the file {}", path.display()),
            KeySource::EnvFile { path, variable } => {
                format!("from {variable} in the file {}", path.display())
            }
            KeySource::Command(command) => {
                format!("printed by {}", command.first().map_or("", String::as_str))
            }
            KeySource::Google(_) => "of Google's application-default credentials".to_owned(),
        })
    }

    /// Whether it is a generated token, sent as a bearer token.
    pub(crate) fn is_token(&self) -> bool {
        matches!(self.0.source, KeySource::Command(_) | KeySource::Google(_))
    }

    /// The Google Cloud project whose quota is used.
    pub(crate) fn project(&self) -> Option<&str> {
        self.0.project.as_deref()
    }

    /// Renews a token in the background, because that takes seconds.
    fn ask_again(&self) {
        let mut due = self.0.due.lock();
        if Instant::now() < *due {
            return;
        }
        // No other caller renews it in the meantime: every source answers or fails sooner.
        *due = Instant::now() + TOKEN_EVERY;
        drop(due);
        let key = self.clone();
        std::thread::spawn(move || {
            let next = match key.0.source.token() {
                Ok(Some((token, next))) => {
                    key.replace(token);
                    next
                }
                Ok(None) => return,
                Err(fault) => {
                    tracing::warn!(%fault, "no new token; the old one stays in use");
                    AFTER_A_FAULT
                }
            };
            *key.0.due.lock() = Instant::now() + next;
        });
    }

    fn replace(&self, read: Secret) {
        let mut state = self.0.state.write();
        if state.current.as_ref() != Some(&read) {
            state.previous = state.current.replace(read);
            state.version += 1;
        }
    }

    /// The key in use.
    pub(crate) fn current(&self) -> Option<Secret> {
        self.0.state.read().current.clone()
    }

    /// The key and the one before it in the forms that a message may quote: plain, reversed, base64
    /// and hexadecimal, with any prefix.
    pub(crate) fn quoted(&self) -> Vec<String> {
        self.0.state.read().secrets().flat_map(forms).collect()
    }

    /// Masks the key and the one before it with asterisks.
    pub(crate) fn masked(&self, text: &str) -> String {
        let state = self.0.state.read();
        state.secrets().fold(text.to_owned(), |text, secret| text.replace(secret, "******"))
    }
}

fn forms(secret: &str) -> Vec<String> {
    let encoded = (0..3).map(|offset| {
        // The letters of base64 depend on a byte's position in its group of three; the letters at
        // the ends depend on the neighbouring bytes too.
        let whole = STANDARD_NO_PAD.encode([&b"\0\0"[..offset], secret.as_bytes()].concat());
        whole.chars().skip(if offset == 0 { 0 } else { offset + 1 }).collect()
    });
    let digits = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    [secret.to_owned(), secret.chars().rev().collect(), digits].into_iter().chain(encoded).collect()
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
        let placeholder = Key::new(Some(Secret::new("x").unwrap()), KeySource::Fixed);
        assert_eq!(placeholder.masked("a longer context"), "a longer context");
        assert!(placeholder.quoted().is_empty());
        std::fs::remove_file(&path).unwrap();
        assert!(key.read_again().unwrap_err().to_string().contains("cannot be read"));
        assert_eq!(key.current().unwrap().expose(), "second-key", "the old one stays in use");
        assert!(!format!("{key:?}").contains("second"));
    }

    #[test]
    fn its_place_is_named_and_nothing_of_it() {
        let source = || KeySource::Env { variable: "MY_KEY".to_owned() };
        let absent = Key::new(None, source()).place().unwrap();
        assert!(absent.starts_with("MY_KEY is not set"), "{absent}");
        let set = Key::new(Some(Secret::new("sk-1").unwrap()), source()).place();
        assert_eq!(set.as_deref(), Some("from MY_KEY"));
        assert_eq!(Key::new(None, KeySource::Fixed).place(), None);
        let file = Key::new(None, KeySource::File("/run/key".into())).place().unwrap();
        assert_eq!(file, "from the file /run/key");
    }

    #[test]
    fn a_programs_token_is_read_and_its_faults_hold_nothing_of_it() {
        let command = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
        let source = KeySource::Command(command("echo eyJ-token"));
        let key = Key::new(source.read().unwrap(), source);
        assert!(key.is_token() && key.current().unwrap().expose() == "eyJ-token");
        assert_eq!(key.read_again().unwrap(), 0, "it was asked for just now");
        for (script, expected) in [
            ("echo eyJ-token; exit 3", "sh failed: it ended with exit status: 3"),
            ("echo eyJ-token two", "holds spaces"),
            (":", "is empty"),
        ] {
            let fault = KeySource::Command(command(script)).read().unwrap_err().to_string();
            assert!(fault.contains(expected) && !fault.contains("eyJ"), "{fault}");
        }
        let fault = KeySource::Command(vec!["/no/such".to_owned()]).read().unwrap_err();
        assert!(fault.to_string().starts_with("token-command: /no/such failed"), "{fault}");
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
