//! Reads a secret whose variable or file the configuration names, for uses that need its text. A
//! provider's key is a [`tidegate_providers::Secret`], whose text is not accessible.

use std::{env, path::PathBuf};

use anyhow::{Context, bail, ensure};

/// Minimum length in bytes of a secret that lets callers in: a shorter one could be guessed.
const MIN_LENGTH: usize = 16;

/// The text of `<what>-env` or `<what>-file`, trimmed.
///
/// # Errors
/// The secret is missing, or both keys are set, or neither.
pub(super) fn read(
    what: &str,
    variable: Option<&String>,
    file: Option<&PathBuf>,
) -> anyhow::Result<String> {
    let text = match (variable, file) {
        (Some(name), None) => env::var(name).ok().with_context(|| {
            format!("{what}-env names {name}, which is not set; set it where this program runs")
        })?,
        (None, Some(file)) => std::fs::read_to_string(file)
            .with_context(|| format!("{what}-file {} cannot be read", file.display()))?,
        _ => bail!("needs exactly one of {what}-env and {what}-file"),
    };
    Ok(text.trim().to_owned())
}

/// Like [`read`], for a secret that lets callers in.
///
/// # Errors
/// As [`read`], or the secret is too short.
pub(super) fn read_access(
    what: &str,
    variable: Option<&String>,
    file: Option<&PathBuf>,
) -> anyhow::Result<String> {
    let secret = read(what, variable, file)?;
    ensure!(secret.len() >= MIN_LENGTH, "the {what} has fewer than {MIN_LENGTH} characters");
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_callers_in_is_not_short() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read_text = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            read_access("key", None, Some(&file.path().to_owned()))
        };
        assert!(read_text("fifteen-letters\n").is_err());
        assert_eq!(read_text("sixteen--letters\n").unwrap(), "sixteen--letters");
    }
}
