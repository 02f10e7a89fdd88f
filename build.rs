//! Tells the program which commit it is made from: `TIDEGATE_COMMIT` where it is set (an image has no
//! repository), else what git says. A build for development asks nobody, so that a new commit compiles
//! nothing anew.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=TIDEGATE_COMMIT");
    let given = std::env::var("TIDEGATE_COMMIT").ok();
    let asked = || {
        if std::env::var("PROFILE").as_deref() != Ok("release") {
            return None;
        }
        // Grows with every commit and checkout, in a worktree too.
        if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
            println!("cargo:rerun-if-changed={log}");
        }
        git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
    };
    let commit = given.filter(|commit| !commit.is_empty()).or_else(asked).unwrap_or_default();
    println!("cargo:rustc-env=TIDEGATE_COMMIT={commit}");
}

/// What git answers, if it is there and this is a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
