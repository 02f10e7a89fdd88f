//! `tidegate completions` and `tidegate man`: generated from the command line.

use std::path::PathBuf;

use anyhow::Context;
use clap_complete::Shell;

use super::{
    exit::{Outcome, usage},
    output,
};

/// Print shell completions
///
/// bash: source <(tidegate completions bash); zsh: a file _tidegate in $fpath; fish: a file
/// ~/.config/fish/completions/tidegate.fish
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(super) fn completions(
    args: &CompletionsArgs,
    mut command: clap::Command,
) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tidegate", &mut script);
    output::print_data(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}

/// Write a man page for each command
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The folder for the pages
    folder: PathBuf,
}

pub(super) fn man(args: &ManArgs, command: clap::Command) -> anyhow::Result<Outcome> {
    let folder = &args.folder;
    if !folder.is_dir() {
        return Err(usage(format!("{} is not a folder; make it first", folder.display())));
    }
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("writing man pages to {}", folder.display()))?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap_complete::Shell;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_shell_completes_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in Cli::command().get_subcommands().filter(|it| !it.is_hide_set()) {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }

    #[test]
    fn every_command_has_its_page() {
        let folder = tempfile::tempdir().unwrap();
        man(&ManArgs { folder: folder.path().to_owned() }, Cli::command()).unwrap();
        let page = std::fs::read_to_string(folder.path().join("tidegate-worker.1")).unwrap();
        assert!(page.contains("SIGTERM"), "{page}");
        assert!(folder.path().join("tidegate.1").exists());
        let nowhere = folder.path().join("nowhere");
        let error = man(&ManArgs { folder: nowhere }, Cli::command()).unwrap_err();
        assert!(error.to_string().contains("make it first"), "{error}");
    }

    #[test]
    fn a_version_names_the_layouts() {
        let error = Cli::command().try_get_matches_from(["tidegate", "--version"]).unwrap_err();
        let text = error.to_string();
        for part in [env!("CARGO_PKG_VERSION"), "redis", "keys v1", "workflows", "answers"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
