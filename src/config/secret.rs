//! Reads a secret whose variable or file the configuration names, for uses that need its text. A
//! provider's key is a [`tidegate_providers::Secret`], whose text is not accessible.

use std::{env, path::PathBuf};

use anyhow::{Context, bail};

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
        _ => bail!("needs one of {what}-env and {what}-file"),
    };
    Ok(text.trim().to_owned())
}
