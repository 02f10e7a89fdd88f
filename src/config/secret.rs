//! A secret that the configuration names by a variable of the environment or by a file, for those who
//! need its text. A provider's is a [`tidegate_providers::Secret`], whose text nobody can have.

use std::{env, path::PathBuf};

use anyhow::{Context, bail};

/// The text of `<what>-env` or `<what>-file`, without the white space around it.
///
/// # Errors
/// It is not there, or both are named, or none.
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
