//! Dependency fences between the crates, checked with `cargo tree` and the compiler's lints.
//!
//! Each test also proves that its check can fail, on a pair of crates with that dependency.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at the first fault"
)]

mod admits;
mod circles;
mod layers;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use admits::{admissions, in_text};
use circles::{circles, circles_of_modules};
use layers::{ACTIVITIES, upward_imports};

/// The crates that `package` links, without build-time tools.
fn tree(package: &str, depth: Option<u32>) -> BTreeSet<String> {
    tree_with(package, &[], depth)
}

/// The crates that `package` links with these arguments, such as features.
fn tree_with(package: &str, arguments: &[&str], depth: Option<u32>) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args([
        "tree",
        "--locked",
        "--offline",
        "-p",
        package,
        "-e",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    command.args(arguments);
    if let Some(depth) = depth {
        command.args(["--depth", &depth.to_string()]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    names
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != package)
        .map(str::to_owned)
        .collect()
}

fn own(package: &str) -> BTreeSet<String> {
    tree(package, None).into_iter().filter(|name| name.starts_with("tidegate")).collect()
}

fn names(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn arrows_between_the_crates_point_one_way() {
    assert_eq!(own("tidegate-types"), names(&[]));
    assert_eq!(
        own("tidegate-documents"),
        names(&[]),
        "reading a document has nothing to do with asking about it"
    );
    assert_eq!(
        own("tidegate-quota"),
        names(&["tidegate-lua", "tidegate-types"]),
        "quota knows no vendor and no Temporal"
    );
    assert_eq!(own("tidegate-providers"), names(&["tidegate-types"]), "providers know no quota");
    assert_eq!(own("tidegate-workflows"), names(&["tidegate-types"]), "workflows know no activity");
    assert_eq!(own("tidegate-simulator"), names(&[]), "the simulator is an independent witness");
    assert_eq!(
        own("tidegate-activities"),
        names(&[
            "tidegate-lua",
            "tidegate-types",
            "tidegate-documents",
            "tidegate-workflows",
            "tidegate-quota",
            "tidegate-providers",
            "tidegate-calls"
        ])
    );
    assert_eq!(
        own("tidegate-calls"),
        names(&["tidegate-lua", "tidegate-types", "tidegate-quota", "tidegate-providers"]),
        "calls join the limiter with what is known of vendors"
    );
}

#[test]
fn quota_and_providers_know_no_temporal() {
    for package in [
        "tidegate-quota",
        "tidegate-providers",
        "tidegate-calls",
        "tidegate-documents",
        "tidegate-simulator",
    ] {
        let temporal: Vec<_> =
            tree(package, None).into_iter().filter(|name| name.starts_with("temporalio")).collect();
        assert!(temporal.is_empty(), "{package} links {temporal:?}");
    }
    assert!(
        tree("tidegate-activities", None).contains("temporalio-sdk"),
        "the check can see what is there"
    );
}

#[test]
fn workflows_link_nothing_that_does_input_or_output() {
    let forbidden = ["hyper", "h2", "reqwest", "mio", "socket2", "rustls", "redis", "axum"];
    let linked = tree("tidegate-workflows", None);
    let found: Vec<_> = forbidden.iter().filter(|name| linked.contains(**name)).collect();
    assert!(found.is_empty(), "workflows link {found:?}");
    assert!(
        tree("tidegate-activities", None).contains("reqwest"),
        "the check can see what is there"
    );
}

/// The README of the limiter states the number of crates that it links.
#[test]
fn the_limiters_readme_counts_what_it_links() {
    let counted = |arguments: &[&str]| tree_with("tidegate-quota", arguments, None).len();
    let row = format!(
        "| `tls` (default) | `rediss://` | {} | {} |",
        counted(&[]),
        counted(&["--no-default-features"])
    );
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("quota/README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    assert!(readme.contains(&row), "quota/README.md does not say {row}");
}

/// A published package must not need a file outside of it.
#[test]
fn packages_hold_all_that_they_include() {
    for (package, needed) in [
        ("tidegate-lua", "reserve-7.lua"),
        ("tidegate-lua", "include/state.lua"),
        ("tidegate-quota", "README.md"),
        ("tidegate", "build.rs"),
        ("tidegate", "src/cli/page/favicon.svg"),
    ] {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command.args(["package", "--list", "--allow-dirty", "--offline", "-p", package]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let files = String::from_utf8(output.stdout).unwrap();
        assert!(files.lines().any(|file| file == needed), "{package} lacks {needed}: {files}");
    }
}

/// A new dependency of the workflows is a decision, not an accident.
#[test]
fn workflows_name_only_what_is_written_here() {
    let expected = names(&[
        "anyhow",
        "futures",
        "humantime",
        "serde",
        "serde_json",
        "serde_path_to_error",
        "strsim",
        "temporalio-common-wasm",
        "temporalio-protos",
        "temporalio-workflow",
        "tidegate-types",
    ]);
    assert_eq!(tree("tidegate-workflows", Some(1)), expected);
}

/// A rule with a misspelt path has no effect and reports nothing: every rule of `workflows/clippy.toml`
/// must fire on a snippet.
#[test]
fn every_rule_of_determinism_fires() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = std::fs::read_to_string(root.join("workflows/clippy.toml")).unwrap();
    let paths: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.split("path = \"").nth(1)?.split('"').next())
        .filter(|path| path.starts_with("std::"))
        .collect();
    assert!(paths.len() >= 9, "{paths:?}");

    let folder = tempfile::tempdir().unwrap();
    let mut body = String::from("//! Breaks every rule.\n");
    for (number, path) in paths.iter().enumerate() {
        let kind = path.rsplit("::").next().unwrap();
        let snippet = if kind.starts_with(char::is_uppercase) {
            format!(
                "pub fn rule{number}() {{ let _: Option<{path}{}> = None; }}\n",
                if kind == "HashMap" { "<u8, u8>" } else { "<u8>" }
            )
        } else {
            format!("pub fn rule{number}() {{ let _ = {path}{}; }}\n", turbofish(path))
        };
        body.push_str(&snippet);
    }
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), body).unwrap();
    std::fs::write(
        folder.path().join("Cargo.toml"),
        "[package]\nname = \"snippet\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n",
    )
    .unwrap();
    std::fs::copy(root.join("workflows/clippy.toml"), folder.path().join("clippy.toml")).unwrap();

    let output = Command::new(env!("CARGO"))
        .args(["clippy", "--offline", "--quiet"])
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", folder.path().join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    for path in paths {
        assert!(said.contains(&format!("`{path}`")), "the rule for {path} did not fire:\n{said}");
    }
}

/// The parameters that a generic function needs to be named as a value.
fn turbofish(path: &str) -> &'static str {
    match path {
        "std::env::var" | "std::fs::read" | "std::fs::read_to_string" => "::<&str>",
        "std::fs::write" => "::<&str, &str>",
        "std::thread::spawn" => "::<fn(), ()>",
        _ => "",
    }
}

/// Two files may need each other; larger circles cannot be read file by file.
#[test]
fn no_circle_of_files_is_larger_than_two() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [
        "src",
        "types/src",
        "documents/src",
        "workflows/src",
        "activities/src",
        "quota/src",
        "providers/src",
        "calls/src",
        "simulator/src",
    ];
    let found: Vec<BTreeSet<PathBuf>> = folders
        .iter()
        .flat_map(|folder| circles(&root.join(folder).join("lib.rs")))
        .filter(|circle| circle.len() > 2)
        .collect();
    assert!(found.is_empty(), "files that import each other in a circle: {found:#?}");
}

/// The providers' modules for vendors, settings and dialects can be read one after the other.
#[test]
fn modules_of_the_providers_import_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = circles_of_modules(&root.join("providers/src/lib.rs"));
    assert!(found.is_empty(), "modules that import each other in a circle: {found:#?}");
}

/// The layer of a document's processing is above the layer of output, so that the crate can be read from
/// the top down.
#[test]
fn layers_of_the_activities_import_down_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("activities/src/lib.rs");
    let found = upward_imports(&root, &ACTIVITIES);
    assert!(found.is_empty(), "imports from a layer to one above it: {found:#?}");

    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("room")).unwrap();
    write("lib.rs", "pub mod low; pub mod room;");
    write("low.rs", "pub fn f() {}");
    write("room/mod.rs", "pub mod a; pub mod b; fn f() { a::f(); crate::low::f() }");
    write("room/a.rs", "pub fn f() { crate::low::f() }");
    write("room/b.rs", "pub fn g() { super::a::f() }");
    let root = folder.path().join("lib.rs");
    let layers: [&[&str]; 3] = [&["low"], &["room/a"], &["room"]];
    assert_eq!(upward_imports(&root, &layers), []);
    let found = |from: &str, to: &str| [(PathBuf::from(from), PathBuf::from(to))];
    write("low.rs", "pub use crate::room::b::g; pub fn f() {}");
    assert_eq!(upward_imports(&root, &layers), found("low", "room/b"), "a re-export is an import");
    write("low.rs", "pub fn f() {}");
    write("room/a.rs", "pub fn f() { super::b::g() }");
    assert_eq!(
        upward_imports(&root, &layers),
        found("room/a", "room/b"),
        "the longest name counts"
    );
}

/// Every call of a provider goes through the guard, so that budgets, keys and health apply to it.
#[test]
fn there_is_one_way_to_admit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src", "activities/src", "calls/src", "clients/python/src"];
    let found = folders.iter().flat_map(|folder| admissions(&root.join(folder)));
    let (inside, outside): (Vec<_>, Vec<_>) =
        found.partition(|(file, _)| *file == root.join("calls/src/admit.rs"));
    assert!(outside.is_empty(), "asks the limiter beside the guard: {outside:#?}");
    assert!(!inside.is_empty(), "the check can see what is there");

    let sees = |text: &str| in_text(&format!("async fn f() {{ {text}; }}")).len();
    assert_eq!(sees("quota.admit(&request).await?.sent()"), 1);
    assert_eq!(sees("self.guard.quota.admit_patiently(&request).await"), 1);
    assert_eq!(sees("loop { let permit = it.admit_until(&request, stop).await; }"), 1);
    assert_eq!(sees("self.quota.run(&request, work).await"), 1);
    assert_eq!(
        sees("guard.admit(&attempt, &request, &budget).await; quota.run(ctx, ask, work)"),
        0
    );
    assert_eq!(in_text("#[cfg(test)] mod tests { fn f() { quota.admit(&request); } }").len(), 0);
}

#[test]
fn a_circle_is_seen_through_paths_and_re_exports() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("room")).unwrap();
    write("lib.rs", "pub mod a; pub mod b; pub mod room; pub use a::A;");
    write("a.rs", "use crate::{b::{self, B}}; pub struct A(B);");
    write("b.rs", "pub struct B; impl B { fn f() { crate::room::c() } }");
    write("room/mod.rs", "mod c; pub use c::*;");
    write("room/c.rs", "pub fn c() { let _: Option<crate::A> = None; }");
    let root = folder.path().join("lib.rs");
    let expected = ["a.rs", "b.rs", "room/c.rs"].map(|name| folder.path().join(name));
    assert_eq!(circles(&root), [BTreeSet::from(expected)]);
    let modules = ["a", "b", "room"].map(PathBuf::from);
    assert_eq!(circles_of_modules(&root), [BTreeSet::from(modules)]);

    write("room/c.rs", "#[cfg(test)] mod tests { use crate::A; } pub fn c() {}");
    assert_eq!(circles(&root), [], "what tests import is no arrow");

    write("room/mod.rs", "mod c; pub fn d() { c::c() }");
    write("room/c.rs", "pub(super) fn c() {}");
    assert_eq!(circles(&root), [], "a visibility is no arrow");

    write("room/mod.rs", "mod c; mod d; fn f() { c::c(); crate::a::f() }");
    write("room/d.rs", "pub fn d() {}");
    write("b.rs", "pub struct B; impl B { fn f() { crate::room::d::d() } }");
    assert_eq!(circles(&root), [], "no file of the folder is in a circle");
    let modules = ["a", "b", "room"].map(PathBuf::from);
    assert_eq!(circles_of_modules(&root), [BTreeSet::from(modules)], "but the folder is");
}
