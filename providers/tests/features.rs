//! `docs/providers/features.md` states the facts of the code. `TIDEGATE_WRITE_DOCS=1 cargo test
//! --test features` writes it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test stops at the first fault")]

use std::fmt::Write as _;

use tidegate_providers::{Api, Dialect, Vendor};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/providers/features.md");

fn all() -> Vec<(String, Dialect, Vendor)> {
    let mut all = Vec::new();
    for vendor in Vendor::known() {
        let named = |api| (vendor.to_string(), Dialect::new(vendor, api), vendor);
        all.push(named(Api::ChatCompletions));
        if vendor == Vendor::OPENAI {
            let (name, dialect, vendor) = named(Api::Responses);
            all.push((format!("{name}, `api = \"responses\"`"), dialect, vendor));
        }
    }
    all
}

fn page() -> String {
    let mut page = String::from(
        "# What each vendor takes\n\nWritten from the code by `providers/tests/features.rs`.\n\n\
         | vendor | key | batch API | embeddings | parameters |\n|---|---|---|---|---|\n",
    );
    for (name, dialect, vendor) in all() {
        let batches = if vendor.has_batches() { "yes" } else { "" };
        let names: Vec<String> =
            dialect.parameters().map(|(name, _)| format!("`{name}`")).collect();
        // The pages of the other vendors may cover two of them, and are linked in `README.md`.
        let name = if vendor.is_preset() { format!("[{name}]({name}.md)") } else { name };
        let embeds = if dialect.embeds("").is_some() { "yes" } else { "" };
        let (key, names) = (vendor.key_variable(), names.join(", "));
        writeln!(page, "| {name} | `{key}` | {batches} | {embeds} | {names} |").unwrap();
    }
    page.push_str("\n## What they may be\n");
    for (name, dialect, _) in all() {
        let pages: Vec<String> = dialect.sources().iter().map(|page| format!("<{page}>")).collect();
        writeln!(page, "\n### {name}\n\nFrom {}.\n\n| | |\n|---|---|", pages.join(", ")).unwrap();
        for (name, takes) in dialect.parameters() {
            writeln!(page, "| `{name}` | {takes} |").unwrap();
        }
        for (name, takes) in dialect.embedding_parameters() {
            writeln!(page, "| `{name}`, of embeddings | {takes} |").unwrap();
        }
    }
    page
}

#[test]
fn the_page_matches_the_code() {
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, page()).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page(), "write it anew: TIDEGATE_WRITE_DOCS=1 cargo test --test features");
}
