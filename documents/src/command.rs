//! The user's own extractor: a program that reads a document from standard input and writes its
//! text to standard output.
//!
//! It replaces the process that reads documents, with the same bounds of memory and time. Of the
//! worker's environment it gets the variables that programs commonly need, and no credentials.

use std::{
    borrow::Cow, collections::BTreeMap, ffi::OsString, os::unix::process::CommandExt,
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
};

use crate::{
    detect, encoding,
    extract::{self, Extracted},
    format::Format,
    left_out::{Kind, Tally},
    limits::Limits,
    unreadable::Unreadable,
};

/// Variables that the program gets, besides those that begin with `DOCUMENTS_`.
const ENVIRONMENT: [&str; 9] =
    ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "JAVA_HOME", "TESSDATA_PREFIX"];

/// Exit code for a missing program, as in shells.
const NOT_FOUND: i32 = 127;

/// Programs by the formats that they read. Formats are lowercase file extensions (`pdf`, `png`,
/// `doc`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands(BTreeMap<String, Vec<String>>);

impl Commands {
    /// Takes for each format a program with its arguments.
    pub fn new(by_format: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        let normal = |(format, command): (String, Vec<String>)| {
            (
                detect::normal_extension(&format.trim_start_matches('.').to_ascii_lowercase())
                    .to_owned(),
                command,
            )
        };
        Self(by_format.into_iter().map(normal).filter(|(_, command)| !command.is_empty()).collect())
    }

    /// Returns the program for a document, by its first bytes, else by its name.
    pub(crate) fn for_document(&self, bytes: &[u8], name: &str) -> Option<&Vec<String>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(detect::detect_extension(bytes, name)?.as_str())
    }
}

/// Returns the environment variables that a process that reads documents gets.
pub(crate) fn allowed_environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        name.to_str()
            .is_some_and(|name| ENVIRONMENT.contains(&name) || name.starts_with("DOCUMENTS_"))
    })
}

/// Replaces this process by the program, which reads the document from standard input. Returns only
/// if that fails.
pub(crate) fn become_program(command: &[String], name: &str) -> std::io::Error {
    let Some((program, arguments)) = command.split_first() else {
        return std::io::ErrorKind::InvalidInput.into();
    };
    let error = std::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(allowed_environment())
        .env("DOCUMENT_NAME", name)
        .exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        std::process::exit(NOT_FOUND);
    }
    error
}

/// Runs `helper`, which becomes the program, in its own process group.
pub(crate) async fn run(
    mut helper: Command,
    program: &str,
    task: &[u8],
    bytes: &[u8],
    name: &str,
    limits: &Limits,
) -> std::io::Result<Result<Extracted, Unreadable>> {
    let mut child = helper
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    // Kills all processes of the group when this function ends or is dropped.
    let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let _group = Group(leader);
    let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let most = limits.text_bytes;
    let write = async {
        if let Some(stdin) = &mut stdin {
            // A program that needs no more input may close it; its output and exit code decide.
            let _ = stdin.write_all(task).await;
            let _ = stdin.write_all(bytes).await;
        }
        drop(stdin.take());
        std::future::pending::<()>().await;
    };
    let read = async {
        let mut output = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(most as u64 + 1).read_to_end(&mut output).await?;
        }
        std::io::Result::Ok(output)
    };
    let work = async {
        let output = tokio::select! { output = read => output?, () = write => Vec::new() };
        if output.len() > most {
            let (size, most) = (output.len() as u64, most as u64);
            return Ok(Err(Unreadable::TooLarge { what: "text".into(), size, most }));
        }
        let status = child.wait().await?;
        Ok(output_text(&output, status, program).and_then(|text| {
            let tally = Tally::new(limits.hidden);
            let text = extract::clean_and_check(text, limits, &tally)?.into_owned();
            tally.add(Kind::UndecodedCharacters, text.matches('\u{fffd}').count());
            Ok(Extracted {
                text,
                pictures: Vec::new(),
                format: Format::detect(bytes, name).unwrap_or(Format::Text),
                pages: None,
                page_starts: Vec::new(),
                left_out: tally.into_left_out(),
            })
        }))
    };
    match tokio::time::timeout(limits.time, work).await {
        Ok(ended) => ended,
        Err(_) => Ok(Err(Unreadable::TooSlow(limits.time))),
    }
}

fn output_text<'s>(
    output: &'s [u8],
    status: std::process::ExitStatus,
    program: &str,
) -> Result<Cow<'s, str>, Unreadable> {
    if !status.success() {
        let what = match status.code() {
            Some(NOT_FOUND) => "was not found; install it where the workers run".to_owned(),
            Some(code) => {
                format!("ended with {code}; run it on this document by hand to see its error")
            }
            None => "was killed; it may need more memory (documents.memory)".to_owned(),
        };
        return Err(Unreadable::Command { program: program.to_owned(), what });
    }
    if output.iter().all(u8::is_ascii_whitespace) {
        let what = "found no text".to_owned();
        return Err(Unreadable::Command { program: program.to_owned(), what });
    }
    encoding::decode(output)
}

/// A process group that is killed on drop.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may have ended.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
