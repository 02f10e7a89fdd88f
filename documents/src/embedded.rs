//! Documents and objects of other programs within a document.

use crate::{
    context::Context,
    left_out::Kind,
    package::{Package, Relation},
    unreadable::Unreadable,
};

/// Deepest nesting of documents.
const MAX_DEPTH: usize = 4;

/// Returns the text of an embedded document, or its name with the reason why it has none. An object of
/// an unknown program is counted; the document shows a picture of it.
///
/// # Errors
/// [`Unreadable::TooLarge`] for an archive that unpacks to more than the limits allow.
pub(crate) fn embedded_text(
    package: &mut Package<'_>,
    relation: &Relation,
    context: &Context<'_>,
) -> Result<String, Unreadable> {
    let name = &relation.target;
    if !matches!(&*relation.kind, "aFChunk" | "package") {
        context.tally.add_in_part(Kind::UnreadParts, 1, name);
        return Ok(String::new());
    }
    let unread = |error: Unreadable| {
        context.tally.add_in_part(Kind::UnreadParts, 1, name);
        Err(error)
    };
    let no_member = |what: &str| unread(Unreadable::NoMember { what: what.to_owned().into() });
    let read = match package.read(name) {
        Err(too_large @ Unreadable::TooLarge { .. }) => return Err(too_large),
        Err(error) => unread(error),
        _ if context.depth >= MAX_DEPTH => no_member("it lies too deep in other documents"),
        Ok(Some(bytes)) => context.text_of(&bytes, name, context.depth + 1),
        Ok(None) => no_member("it is missing from the archive"),
    };
    Ok(match read {
        Ok(text) => text.trim().to_owned(),
        Err(Unreadable::Empty) => String::new(),
        Err(error) => name_with_reason(name, &error),
    })
}

/// Returns the name of a part with the reason why it is not read.
pub(crate) fn name_with_reason(name: &str, reason: &Unreadable) -> String {
    format!("[{}: {reason}]", name.rsplit('/').next().unwrap_or_default())
}
