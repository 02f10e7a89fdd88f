//! The names of files that are attached to a document, which are not read.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::{
    Pdf,
    object::{Array, Dict, ObjectIdentifier, String as PdfString},
};

use super::forms::{decoded, dictionaries};

/// Names at most.
const MAX_NAMES: usize = 200;

/// A line that names what is attached; nothing where nothing is.
pub(super) fn named(file: &Pdf) -> Option<String> {
    let xref = file.xref();
    let tree = xref.get::<Dict<'_>>(xref.root_id())?.get::<Dict<'_>>("Names")?;
    let mut branches: Vec<Dict<'_>> = vec![tree.get("EmbeddedFiles")?];
    let (mut names, mut seen) = (Vec::new(), HashSet::<ObjectIdentifier>::new());
    while let Some(branch) = branches.pop() {
        if branch.obj_id().is_some_and(|id| !seen.insert(id)) || names.len() >= MAX_NAMES {
            continue;
        }
        if let Some(files) = branch.get::<Array<'_>>("Names") {
            let files = dictionaries(&files, xref).take(MAX_NAMES);
            names.extend(files.filter_map(|file| name(&file)));
        }
        let kids = branch.get::<Array<'_>>("Kids");
        // A branch that is written where it is named has no number that could be met again.
        let kids = kids.iter().flat_map(|kids| dictionaries(kids, xref).take(MAX_NAMES));
        let mut kids: Vec<_> = kids.filter(|kid| kid.obj_id().is_some()).collect();
        kids.reverse();
        branches.extend(kids);
    }
    names.truncate(MAX_NAMES);
    (!names.is_empty()).then(|| format!("[Attached, not read: {}]", names.join(", ")))
}

fn name(file: &Dict<'_>) -> Option<String> {
    let name = file.get::<PdfString<'_>>("UF").or_else(|| file.get("F"))?;
    let name = decoded(name.as_bytes()).split_whitespace().collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}
