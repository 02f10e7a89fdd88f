//! Files attached to a document. Those of a portfolio, which consists of nothing else, are read; those of
//! other documents are only named.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::{
    Pdf,
    object::{Array, Dict, Name, ObjectIdentifier, Stream, String as PdfString},
};

use super::forms::{decode_text, dictionaries};
use crate::{context::Context, left_out::Kind, spaces::one_line};

/// Most files that are read or named.
const MAX_NAMES: usize = 200;

/// From this depth of documents within documents on, attachments are only named.
const MAX_DEPTH: usize = 4;

/// Returns the text of the attachments, and whether any could be read. `None` if there are none.
pub(super) fn read_attachments(file: &Pdf, context: &Context<'_>) -> Option<(String, bool)> {
    let xref = file.xref();
    let root = xref.get::<Dict<'_>>(xref.root_id())?;
    let is_portfolio = root.contains_key("Collection") && context.depth < MAX_DEPTH;
    let mut files = files(file, &root).unwrap_or_default();
    add_files_of_notes(file, &mut files);
    if !is_portfolio {
        let names: Vec<String> = files.iter().filter_map(name).collect();
        context.tally.add(Kind::Attachments, names.len());
        let names = (!names.is_empty()).then(|| names.join(", "))?;
        return Some((format!("[Attached, not read: {names}]"), false));
    }
    let mut is_read = false;
    let texts = files.iter().map(|file| {
        let name = name(file).unwrap_or_else(|| "without a name".to_owned());
        let content = file.get::<Dict<'_>>("EF").and_then(|it| it.get::<Stream<'_>>("F"));
        let bytes = content.and_then(|content| content.decoded_data().ok());
        let read = bytes.map(|bytes| context.text_of(&bytes, &name, context.depth + 1));
        match read {
            Some(Ok(text)) => {
                is_read = true;
                format!("## Attachment: {name}\n\n{}", text.trim())
            }
            Some(Err(error)) => format!("[Attachment {name}: {error}]"),
            None => {
                context.tally.add_in_part(Kind::UnreadParts, 1, &name);
                format!("[Attachment {name}: it is damaged]")
            }
        }
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| (texts.join("\n\n"), is_read))
}

/// Returns the files named in the document's catalog.
fn files<'a>(file: &'a Pdf, root: &Dict<'a>) -> Option<Vec<Dict<'a>>> {
    let xref = file.xref();
    let tree = root.get::<Dict<'_>>("Names")?;
    let mut branches: Vec<Dict<'_>> = vec![tree.get("EmbeddedFiles")?];
    let (mut found, mut seen) = (Vec::new(), HashSet::<ObjectIdentifier>::new());
    while let Some(branch) = branches.pop() {
        if branch.obj_id().is_some_and(|id| !seen.insert(id)) || found.len() >= MAX_NAMES {
            continue;
        }
        if let Some(files) = branch.get::<Array<'_>>("Names") {
            found.extend(dictionaries(&files, xref).take(MAX_NAMES));
        }
        let kids = branch.get::<Array<'_>>("Kids");
        // A dictionary without an object number is skipped: a cycle through it would not be noticed.
        let kids = kids.iter().flat_map(|kids| dictionaries(kids, xref).take(MAX_NAMES));
        let mut kids: Vec<_> = kids.filter(|kid| kid.obj_id().is_some()).collect();
        kids.reverse();
        branches.extend(kids);
    }
    found.truncate(MAX_NAMES);
    Some(found)
}

/// Adds the files that notes on pages hold, unless they are named already.
fn add_files_of_notes<'a>(file: &'a Pdf, files: &mut Vec<Dict<'a>>) {
    let mut known: HashSet<ObjectIdentifier> = files.iter().filter_map(Dict::obj_id).collect();
    let notes = file.pages().iter().filter_map(|page| page.raw().get::<Array<'_>>("Annots"));
    let notes = notes.flat_map(|notes| dictionaries(&notes, file.xref()).collect::<Vec<_>>());
    let held = notes.filter(|note| {
        note.get::<Name<'_>>("Subtype").is_some_and(|kind| kind.as_str() == "FileAttachment")
    });
    let held = held.filter_map(|note| note.get::<Dict<'_>>("FS"));
    let held = held.filter(|file| file.obj_id().is_none_or(|id| known.insert(id)));
    let free = MAX_NAMES.saturating_sub(files.len());
    files.extend(held.take(free));
}

fn name(file: &Dict<'_>) -> Option<String> {
    let name = file.get::<PdfString<'_>>("UF").or_else(|| file.get("F"))?;
    let name = one_line(&decode_text(name.as_bytes()));
    (!name.is_empty()).then_some(name)
}
