//! Arguments that each reader of a format gets besides the bytes.

use crate::{
    left_out::{Kind, LeftOut, Tally},
    limits::{Deadline, Limits},
    unreadable::Unreadable,
};

/// Reads a nested document at the given depth. Returns its text and its left-out parts.
pub(crate) type ReadWithin =
    fn(&[u8], &str, &Limits, usize) -> Result<(String, LeftOut), Unreadable>;

/// Bounds of a document, and the tally of its left-out parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) deadline: Deadline,
    /// Number of documents around this one.
    pub(crate) depth: usize,
    /// Counts what is left out of the text.
    pub(crate) tally: &'a Tally,
    /// Reads documents within this one. A function pointer, because it calls every reader.
    pub(crate) read_within: ReadWithin,
}

impl Context<'_> {
    /// Reads a document within this one, at `depth`. Its left-out parts are added to the tally. An
    /// unreadable document is itself counted as left out.
    ///
    /// # Errors
    /// As [`extract`](crate::extract()).
    pub(crate) fn text_of(
        &self,
        bytes: &[u8],
        name: &str,
        depth: usize,
    ) -> Result<String, Unreadable> {
        let read = (self.read_within)(bytes, name, self.limits, depth);
        match &read {
            Ok((_, left_out)) => self.tally.merge(left_out),
            // An empty document has nothing to count.
            Err(Unreadable::Empty) => {}
            Err(Unreadable::Picture { .. }) => self.tally.add_in_part(Kind::Pictures, 1, name),
            Err(_) => self.tally.add_in_part(Kind::UnreadParts, 1, name),
        }
        read.map(|(text, _)| text)
    }
}
