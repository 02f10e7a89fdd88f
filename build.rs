//! Sets the commit that the program shows: from `TIDEGATE_COMMIT` if set (an image has no repository),
//! otherwise from git. A development build does not ask git, so that a new commit recompiles nothing.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=TIDEGATE_COMMIT");
    let given = std::env::var("TIDEGATE_COMMIT").ok();
    let asked = || {
        if std::env::var("PROFILE").as_deref() != Ok("release") {
            return None;
        }
        // This file grows with every commit and checkout, also in a worktree.
        if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
            println!("cargo:rerun-if-changed={log}");
        }
        git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
    };
    let commit = given.filter(|commit| !commit.is_empty()).or_else(asked).unwrap_or_default();
    println!("cargo:rustc-env=TIDEGATE_COMMIT={commit}");
}

/// The output of git; `None` without git or a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
