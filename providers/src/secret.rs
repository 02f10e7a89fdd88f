//! A credential that cannot be printed.

use std::{
    env::{self, VarError},
    fmt, fs, io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest run of a program that prints a token.
const PRINTS_WITHIN: Duration = Duration::from_secs(30);

/// An API key. It has no `Display` and no `Serialize`, and its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// An invalid key, and the remedy. Contains nothing of the key.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The environment lacks the variable.
    #[error(
        "the environment variable {variable} is not set; export it, or name another one in api-key-env"
    )]
    NotSet {
        /// Its name.
        variable: String,
    },
    /// The file cannot be read.
    #[error("the key file {} cannot be read; check the path in api-key-file and who may read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// An environment file lacks the variable.
    #[error("the environment file {} has no line {variable}=…; add it, or name another variable in api-key-env", path.display())]
    NotInFile {
        /// The file.
        path: PathBuf,
        /// The variable.
        variable: String,
    },
    /// The program that prints a token failed.
    #[error("token-command: {program} failed: {why}")]
    Command {
        /// Its name.
        program: String,
        /// The fault.
        why: String,
    },
    /// Google's application-default credentials give no token.
    #[error("application-default credentials ({place}): {why}")]
    Google {
        /// The file, or the machine's metadata server.
        place: String,
        /// The fault, and the remedy.
        why: String,
    },
    /// The key is empty or white space.
    #[error("{origin} is empty; put the API key into it")]
    Empty {
        /// The variable or file.
        origin: String,
    },
    /// It contains characters that no key has.
    #[error(
        "{origin} holds spaces, line breaks or characters other than ASCII; it must hold the API key and nothing else"
    )]
    Malformed {
        /// The variable or file.
        origin: String,
    },
}

impl Secret {
    /// Takes a key; surrounding white space is dropped.
    ///
    /// # Errors
    /// [`SecretError`] if it is empty or cannot stand in an HTTP header.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        Self::checked(text, || "the API key".to_owned())
    }

    /// Reads the key from an environment variable.
    ///
    /// # Errors
    /// [`SecretError`] names the variable.
    pub fn from_env(variable: &str) -> Result<Self, SecretError> {
        let origin = || format!("the environment variable {variable}");
        match env::var(variable) {
            Ok(text) => Self::checked(&text, origin),
            Err(VarError::NotPresent) => Err(SecretError::NotSet { variable: variable.to_owned() }),
            // The variant contains the value itself, so it is dropped here.
            Err(VarError::NotUnicode(_)) => Err(SecretError::Malformed { origin: origin() }),
        }
    }

    /// Reads the key from a file; the usual line break at its end is dropped.
    ///
    /// # Errors
    /// [`SecretError`] names the file.
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        Self::checked(&read(path)?, || format!("the key file {}", path.display()))
    }

    /// Reads the key from an environment file, like `docker --env-file` and systemd: the last line
    /// `NAME=value`, with or without `export` and quotes.
    ///
    /// # Errors
    /// [`SecretError`] names the file and the variable.
    pub fn from_env_file(path: &Path, variable: &str) -> Result<Self, SecretError> {
        let text = read(path)?;
        let value = |line: &str| {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
            let (name, value) = line.split_once('=')?;
            (name.trim() == variable).then(|| value.trim().to_owned())
        };
        let value = text.lines().rev().find_map(value).ok_or_else(|| SecretError::NotInFile {
            path: path.to_owned(),
            variable: variable.to_owned(),
        })?;
        let quoted = ['"', '\''].into_iter().find_map(|quote| {
            value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote))
        });
        let origin = || format!("{variable} in the environment file {}", path.display());
        Self::checked(quoted.unwrap_or(&value), origin)
    }

    /// Reads a token from a program's output, such as `az account get-access-token`. The program is
    /// ended after 30 s.
    ///
    /// # Errors
    /// [`SecretError`] names the program, and contains nothing of its output.
    pub fn from_command(command: &[String]) -> Result<Self, SecretError> {
        Self::from_command_within(command, PRINTS_WITHIN)
    }

    fn from_command_within(command: &[String], within: Duration) -> Result<Self, SecretError> {
        let (program, arguments) = match command {
            [program, arguments @ ..] => (program.as_str(), arguments),
            [] => ("", command),
        };
        let fault = |why: String| SecretError::Command { program: program.to_owned(), why };
        let ended = output(program, arguments, within).map_err(fault)?;
        if !ended.status.success() {
            return Err(fault(format!("it ended with {}", ended.status)));
        }
        let origin = || format!("the output of token-command ({program})");
        let text = std::str::from_utf8(&ended.stdout)
            .map_err(|_| SecretError::Malformed { origin: origin() })?;
        Self::checked(text, origin)
    }

    fn checked(text: &str, origin: impl Fn() -> String) -> Result<Self, SecretError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SecretError::Empty { origin: origin() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SecretError::Malformed { origin: origin() });
        }
        Ok(Self(text.to_owned()))
    }

    /// The key itself. Only this crate can get it: for a request's header and for masking.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

/// Runs a program, and kills it and its children if it takes longer than `within`.
fn output(program: &str, arguments: &[String], within: Duration) -> Result<Output, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.process_group(0).spawn().map_err(|error| error.to_string())?;
    let group = Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output()));
    end.recv_timeout(within).map_or_else(
        |_| {
            // It may have ended now.
            let _ = kill_process_group(group, Signal::KILL);
            Err(format!("it does not end within {within:?}"))
        },
        |output| output.map_err(|error| error.to_string()),
    )
}

fn read(path: &Path) -> Result<String, SecretError> {
    fs::read_to_string(path).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => {
            SecretError::Malformed { origin: format!("the key file {}", path.display()) }
        }
        _ => SecretError::Unreadable { path: path.to_owned(), source },
    })
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(******)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_trimmed_and_faults_name_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, " sk-1234\n").unwrap();
        assert_eq!(Secret::from_file(&path).unwrap().expose(), "sk-1234");
        for (content, expected) in [
            (&b" \n"[..], "is empty"),
            (b"two words", "nothing else"),
            (b"\xff\xfe", "nothing else"),
        ] {
            fs::write(&path, content).unwrap();
            let text = Secret::from_file(&path).unwrap_err().to_string();
            assert!(
                text.contains("key file") && text.contains(expected) && !text.contains("words"),
                "{text}"
            );
        }
        let text = Secret::from_file(&folder.path().join("absent")).unwrap_err().to_string();
        assert!(text.contains("absent") && text.contains("api-key-file"), "{text}");
    }

    #[test]
    fn an_absent_variable_is_named() {
        let text = Secret::from_env("TIDEGATE_NO_SUCH_KEY").unwrap_err().to_string();
        assert!(text.contains("TIDEGATE_NO_SUCH_KEY") && text.contains("api-key-env"), "{text}");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let command = ["sh", "-c", &script].map(str::to_owned);
        // A busy machine may not have started the child sooner.
        let child = [1, 4, 16].into_iter().find_map(|seconds| {
            let within = Duration::from_secs(seconds);
            let fault = Secret::from_command_within(&command, within).unwrap_err().to_string();
            assert!(fault.contains("sh failed: it does not end within"), "{fault}");
            fs::read_to_string(&file).ok().filter(|child| child.ends_with('\n'))
        });
        // The file of a process that has ended is empty until it is reaped.
        let running = format!("/proc/{}/cmdline", child.unwrap().trim());
        while fs::read(&running).is_ok_and(|line| !line.is_empty()) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
