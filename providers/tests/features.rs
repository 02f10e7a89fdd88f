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

/// What each parameter may be, as a table; parameters that take the same share a row.
fn parameters(dialect: &Dialect) -> String {
    let own = dialect.parameters().map(|(name, takes)| (format!("`{name}`"), takes.to_string()));
    let of_embeddings = dialect
        .embedding_parameters()
        .map(|(name, takes)| (format!("`{name}` of embeddings"), takes.to_string()));
    let mut rows: Vec<(Vec<String>, String)> = Vec::new();
    for (name, takes) in own.chain(of_embeddings) {
        match rows.iter_mut().find(|(_, known)| *known == takes) {
            Some((names, _)) => names.push(name),
            None => rows.push((vec![name], takes)),
        }
    }
    let row =
        |(names, takes): &(Vec<String>, String)| format!("| {} | {takes} |\n", names.join(", "));
    "| | |\n|---|---|\n".to_owned() + &rows.iter().map(row).collect::<String>()
}

fn page() -> String {
    let mut page = String::from(
        "# What each vendor takes\n\nWritten from the code by `providers/tests/features.rs`.\n\n\
         | vendor | key | batch API | embeddings |\n|---|---|---|---|\n",
    );
    for (name, dialect, vendor) in all() {
        let batches = if vendor.has_batches() { "yes" } else { "" };
        // The pages of the other vendors may cover two of them, and are linked in `README.md`.
        let name = if vendor.is_preset() { format!("[{name}]({name}.md)") } else { name };
        let embeds = if dialect.embeds("").is_some() { "yes" } else { "" };
        let key = vendor.key_variable();
        writeln!(page, "| {name} | `{key}` | {batches} | {embeds} |").unwrap();
    }
    page.push_str("\n## Parameters\n");
    let mut written: Vec<(String, String)> = Vec::new();
    for (name, dialect, _) in all() {
        let table = parameters(&dialect);
        if let Some((like, _)) = written.iter().find(|(_, known)| *known == table) {
            writeln!(page, "\n### {name}\n\nAs {like}.").unwrap();
            continue;
        }
        let pages: Vec<String> = dialect.sources().iter().map(|page| format!("<{page}>")).collect();
        write!(page, "\n### {name}\n\nFrom {}.\n\n{table}", pages.join(", ")).unwrap();
        written.push((name, table));
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
