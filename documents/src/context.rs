//! What every reader of a format is given beside the bytes.

use crate::{
    left_out::{Kind, LeftOut, Tally},
    limits::{Deadline, Limits},
    unreadable::Unreadable,
};

/// Reads a document that lies in another one, so many documents deep: its text, and what is not in
/// it.
pub(crate) type ReadWithin =
    fn(&[u8], &str, &Limits, usize) -> Result<(String, LeftOut), Unreadable>;

/// Bounds, and where a reader puts what is not text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) deadline: Deadline,
    /// The documents around this one.
    pub(crate) depth: usize,
    /// Takes what is left out of the text.
    pub(crate) tally: &'a Tally,
    /// Reads what lies in this document. It comes from outside because it calls every reader.
    pub(crate) read_within: ReadWithin,
}

impl Context<'_> {
    /// The text of a document that lies in this one, `depth` documents deep. What it leaves out is
    /// counted as this document's; if it cannot be read, it is itself.
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
            // There is nothing to read.
            Err(Unreadable::Empty) => {}
            Err(Unreadable::Picture { .. }) => self.tally.in_part(Kind::Pictures, 1, name),
            Err(_) => self.tally.in_part(Kind::UnreadParts, 1, name),
        }
        read.map(|(text, _)| text)
    }
}
