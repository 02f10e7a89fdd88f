//! The progress of a finish, from which the next worker continues.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    output::{
        finish::totals::{DocumentCounts, ResultTotals},
        jsonl::json,
    },
    storage::{
        Error, Location,
        assembly::{Assembled, Assembly},
    },
};

/// The written part of an object.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Written {
    /// The parts that the store has.
    assembled: Assembled,
    lengths: Vec<usize>,
    /// Bytes that are in no part yet: first the object's next bytes, then other state of it.
    #[serde(skip)]
    pieces: Vec<Bytes>,
}

impl Written {
    /// The written part of `object`, with `more` state.
    pub(super) fn new(object: &Assembly, more: impl IntoIterator<Item = Bytes>) -> Self {
        let rest = Bytes::copy_from_slice(object.rest());
        let pieces: Vec<Bytes> = std::iter::once(rest).chain(more).collect();
        let lengths = pieces.iter().map(Bytes::len).collect();
        Self { assembled: object.assembled().clone(), lengths, pieces }
    }

    /// The object with its parts, and its other state.
    pub(super) fn resume(self, object: Location, staging: &Location) -> (Assembly, Vec<Bytes>) {
        let mut pieces = self.pieces.into_iter();
        let rest = pieces.next().unwrap_or_default();
        (Assembly::resume(object, staging, self.assembled, rest), pieces.collect())
    }

    /// Takes the pieces from the beginning of `bytes`.
    fn take_pieces(&mut self, bytes: &mut Bytes) -> Option<()> {
        let take = |length: &usize| (*length <= bytes.len()).then(|| bytes.split_to(*length));
        self.pieces = self.lengths.iter().map(take).collect::<Option<_>>()?;
        Some(())
    }
}

/// The state after some shards, and some documents that are in no shard. It is stored as a line of JSON,
/// which the pieces follow, those of the results first. A version that expects one piece rejects it, and
/// begins anew.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    pub(super) shards: u32,
    pub(super) settled: u64,
    pub(super) counted: DocumentCounts,
    pub(super) answered: ResultTotals,
    pub(super) results: Written,
    pub(super) failures: Written,
}

impl Checkpoint {
    fn location(folder: &Location) -> Location {
        folder.child("finish.state")
    }

    /// Reads the checkpoint; `None` if no worker has written one, or it cannot be parsed.
    pub(super) async fn read(folder: &Location) -> Result<Option<Self>, Failure> {
        let whole = Self::location(folder).read_if_there().await?;
        Ok(whole.and_then(Self::parse))
    }

    fn parse(mut whole: Bytes) -> Option<Self> {
        let end = whole.iter().position(|byte| *byte == b'\n')?;
        let header = whole.split_to(end + 1);
        let mut read: Self = serde_json::from_slice(&header).ok()?;
        read.results.take_pieces(&mut whole)?;
        read.failures.take_pieces(&mut whole)?;
        whole.is_empty().then_some(read)
    }

    pub(super) async fn save(self, folder: &Location) -> Result<(), Failure> {
        let mut whole = json(&self)?;
        whole.push(b'\n');
        let pieces = || self.results.pieces.iter().chain(&self.failures.pieces);
        whole.reserve_exact(pieces().map(Bytes::len).sum());
        for piece in pieces() {
            whole.extend_from_slice(piece);
        }
        Ok(Self::location(folder).write(whole).await?)
    }

    /// Removes the checkpoint. If that fails, a repeated finish continues from it, which does no
    /// harm.
    pub(super) async fn forget(folder: &Location) {
        Self::location(folder).remove_or_log("a finish's state stays behind").await;
    }
}

/// Converts an error; if the store has dropped an old upload, removes the checkpoint, so that the
/// next attempt begins anew.
pub(super) async fn lost(folder: &Location, error: Error) -> Failure {
    if let Error::Missing(object) = &error {
        Checkpoint::forget(folder).await;
        return Failure::transient(format!(
            "what was written of {object} is gone; it is written from the beginning"
        ));
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_saved_is_read_and_what_is_cut_off_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = format!("file://{}/", folder.path().canonicalize().unwrap().display());
        let folder = crate::Storage::new([root.as_str()]).unwrap().resolve(&root).unwrap();
        assert!(Checkpoint::read(&folder).await.unwrap().is_none());
        let written = |pieces: &[&'static str]| Written {
            lengths: pieces.iter().map(|piece| piece.len()).collect(),
            pieces: pieces.iter().map(|piece| Bytes::from(*piece)).collect(),
            ..Written::default()
        };
        let (results, failures) = (written(&["rest", "", "more\n"]), written(&["{}\n"]));
        let saved = Checkpoint { shards: 3, settled: 7, results, failures, ..Default::default() };
        saved.save(&folder).await.unwrap();
        let read = Checkpoint::read(&folder).await.unwrap().unwrap();
        assert_eq!((read.shards, read.settled), (3, 7));
        assert_eq!(read.results.pieces, ["rest", "", "more\n"]);
        assert_eq!(read.failures.pieces, ["{}\n"]);
        let whole = Checkpoint::location(&folder).read_if_there().await.unwrap().unwrap();
        for length in 0..whole.len() {
            assert!(Checkpoint::parse(whole.slice(..length)).is_none(), "{length} bytes");
        }
        assert!(Checkpoint::parse([&whole, b"x".as_slice()].concat().into()).is_none());
    }
}
