//! Documents in archives: `file:///folder/all.zip#path/in/it.pdf`.

use std::collections::VecDeque;

use bytes::Bytes;
use tidegate_documents::{Limits, Reader, Unreadable, archive};
use tokio::sync::Mutex;

use crate::storage::{Error, Location, Stamp};

/// Maximum number of cached archives. The documents of one archive are planned one after the other.
const AT_HAND: usize = 2;

/// A cache of the archives that this worker has read lately.
#[derive(Debug, Default)]
pub struct Archives(Mutex<VecDeque<(String, Stamp, Bytes)>>);

/// Why a document in an archive cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    Store(Error),
    NoReader(std::io::Error),
    Unreadable(Unreadable),
}

impl Archives {
    /// A document's bytes, its file name, and the stamp of the archive.
    pub(crate) async fn read(
        &self,
        location: &Location,
        member: &str,
        reader: &Reader,
    ) -> Result<(Bytes, String, Stamp), Fault> {
        let limits = reader.limits();
        let (bytes, stamp) = self.archive(location, limits).await?;
        let read = reader.read_member(bytes, location.name(), member, limits).await;
        let (bytes, name) = read.map_err(Fault::NoReader)?.map_err(Fault::Unreadable)?;
        Ok((bytes, name, stamp))
    }

    /// The archive. Concurrent callers share one read.
    async fn archive(&self, location: &Location, limits: &Limits) -> Result<(Bytes, Stamp), Fault> {
        let uri = location.uri();
        let mut at_hand = self.0.lock().await;
        let stamp = location.stamp().await.map_err(Fault::Store)?;
        let stamp = stamp.ok_or_else(|| Fault::Store(Error::Missing(uri.clone())))?;
        let known = at_hand.iter().find(|(known, of, _)| *known == uri && of.is_same(&stamp));
        if let Some((_, stamp, bytes)) = known {
            return Ok((bytes.clone(), stamp.clone()));
        }
        let (size, most) = (stamp.size, limits.archive_bytes);
        if size > most {
            let what = "archive".into();
            return Err(Fault::Unreadable(Unreadable::TooLarge { what, size, most }));
        }
        let (bytes, stamp) = location.read_stamped().await.map_err(Fault::Store)?;
        let bytes = unpack(bytes, location.name().to_owned(), *limits).await;
        at_hand.retain(|(known, _, _)| *known != uri);
        at_hand.truncate(AT_HAND - 1);
        at_hand.push_front((uri, stamp.clone(), bytes.clone()));
        Ok((bytes, stamp))
    }
}

/// Unpacks a compressed tar archive once for all documents in it. Returns other archives unchanged.
async fn unpack(bytes: Bytes, name: String, limits: Limits) -> Bytes {
    let packed = bytes.clone();
    let unpacked =
        tokio::task::spawn_blocking(move || archive::unpack_tar(&packed, &name, &limits)).await;
    unpacked.ok().flatten().map_or(bytes, Bytes::from)
}
