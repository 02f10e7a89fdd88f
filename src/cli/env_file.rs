//! The file of `tidegate dev --env`, from which scripts learn the addresses of the stack.

use std::{
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::exit::usage;

/// The first line, by which a file that an earlier stack left is known.
const HEAD: &str = "# Written by tidegate dev, which removes it when it ends.\n";

/// A file that is there only while its stack is ready; dropping it removes the file.
#[derive(Debug)]
pub(super) struct EnvFile(PathBuf);

impl EnvFile {
    /// Removes the file if an earlier stack left it.
    ///
    /// # Errors
    /// Another file has this name, or it cannot be read or removed.
    pub(super) fn cleared(path: PathBuf) -> anyhow::Result<Self> {
        let shown = path.display();
        match std::fs::read(&path) {
            Ok(text) if text.starts_with(HEAD.as_bytes()) => std::fs::remove_file(&path)
                .with_context(|| format!("removing {shown}, which an earlier stack left"))?,
            Ok(_) => {
                return Err(usage(format!(
                    "{shown} was not written by tidegate dev; name another file with --env, or remove this one"
                )));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(usage(format!("{shown} cannot be read: {error}"))),
        }
        Ok(Self(path))
    }

    /// Writes the variables, completely or not at all. Only the user can read the file.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn write(&self, variables: &[(&str, String)]) -> anyhow::Result<()> {
        let exported = |(name, value): &(&str, String)| {
            format!("export {name}='{}'\n", value.replace('\'', r"'\''"))
        };
        let lines: String = variables.iter().map(exported).collect();
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        let what = || format!("writing {}", self.0.display());
        let mut file = tempfile::NamedTempFile::new_in(folder).with_context(what)?;
        file.write_all(format!("{HEAD}{lines}").as_bytes()).with_context(what)?;
        file.persist(&self.0).with_context(what)?;
        Ok(())
    }
}

impl Drop for EnvFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dev.env");
        let file = EnvFile::cleared(path.clone()).unwrap();
        assert!(!path.exists());
        let odd = "it's $HOME \"and\" `more`\n\\";
        file.write(&[("ONE", odd.to_owned()), ("TWO", "2".to_owned())]).unwrap();
        let script = ". \"$0\"; printf '%s|%s' \"$ONE\" \"$TWO\"";
        let told = std::process::Command::new("sh").arg("-c").arg(script).arg(&path).output();
        assert_eq!(String::from_utf8(told.unwrap().stdout).unwrap(), format!("{odd}|2"));
        // As after `kill -9`: the next stack takes the file away before it is ready.
        std::mem::forget(file);
        let next = EnvFile::cleared(path.clone()).unwrap();
        assert!(!path.exists());
        next.write(&[]).unwrap();
        drop(next);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_of_the_users_own_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile");
        std::fs::write(&path, "export EDITOR=vi\n").unwrap();
        let error = EnvFile::cleared(path.clone()).unwrap_err();
        assert!(error.to_string().contains("name another file"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "export EDITOR=vi\n");
    }
}
