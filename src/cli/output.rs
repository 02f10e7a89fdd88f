//! Data to stdout, talk to stderr.

use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;

/// Writes a text to stdout. A reader that has seen enough (`| head`) is no fault.
pub(super) fn data(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { stdout.write_all(b"\n") });
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("writing to stdout")
        }
        _ => Ok(()),
    }
}

/// Writes a value to stdout as JSON.
pub(super) fn json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    data(&serde_json::to_string_pretty(value).context("writing JSON")?)
}

/// Writes a line to stderr. Nobody can be told when that fails.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
