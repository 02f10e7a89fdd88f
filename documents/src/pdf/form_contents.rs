//! Forms that a page draws. The interpreter reads them itself, up to what it cannot read; what is behind
//! that counts as unread.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::{
    content::{TypedIter, ops::TypedInstruction},
    object::{Dict, Name, ObjectIdentifier, Stream},
};
use memchr::memmem;

use super::{content::END, page_budget::PageBudget, repair::repair};

/// Most forms of a page that are looked at.
const MAX_FORMS: usize = 200;

/// Longest name of a form, with the space behind it.
const MAX_NAME: usize = 130;

/// Whether a form that a page draws, or a form within one, is not read to its end.
pub(super) fn has_cut_off_form(objects: &Dict<'_>, content: &[u8], budget: &PageBudget) -> bool {
    let mut open = vec![(objects.clone(), content.to_vec())];
    let mut known: HashSet<ObjectIdentifier> = HashSet::new();
    while let Some((objects, content)) = open.pop() {
        let drawn = drawn_names(&content);
        for name in objects.keys().filter(|name| drawn.contains(name.as_ref())) {
            let Some(form) = objects.get::<Stream<'_>>(name.as_ref()) else { continue };
            let is_form = form.dict().get::<Name<'_>>("Subtype").is_some_and(|it| &*it == b"Form");
            if !is_form || known.len() >= MAX_FORMS || !known.insert(form.obj_id()) {
                continue;
            }
            budget.check_time();
            let Ok(content) = form.decoded() else { return true };
            if is_cut_off(&content) {
                return true;
            }
            let resources = form.dict().get::<Dict<'_>>("Resources");
            if let Some(within) = resources.and_then(|it| it.get::<Dict<'_>>("XObject")) {
                open.push((within, content.into_owned()));
            }
        }
    }
    false
}

/// Returns the names of the objects that a content draws.
fn drawn_names(content: &[u8]) -> HashSet<&[u8]> {
    let name_before = |at: usize| {
        let before = content.get(at.saturating_sub(MAX_NAME)..at)?.trim_ascii_end();
        let start = before.iter().rposition(|byte| *byte == b'/')?;
        before.get(start + 1..)
    };
    memmem::find_iter(content, b"Do").filter_map(name_before).collect()
}

/// Whether instructions follow what cannot be read.
fn is_cut_off(content: &[u8]) -> bool {
    let (count, is_whole) = count_instructions(content);
    !is_whole && count_instructions(&repair(content)).0 > count
}

/// Returns the number of instructions that can be read, and whether these are all.
fn count_instructions(content: &[u8]) -> (usize, bool) {
    let content = [content, b"\n/", END, b" BMC"].concat();
    let (mut instructions, mut count) = (TypedIter::new(&content), 0);
    while let Some(instruction) = instructions.next() {
        if matches!(&instruction, TypedInstruction::BeginMarkedContent(it) if AsRef::<[u8]>::as_ref(&it.0) == END)
        {
            return (count, true);
        }
        count += 1;
    }
    (count, false)
}
