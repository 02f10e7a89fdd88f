//! Documents in archives: `file:///folder/all.zip#path/in/it.pdf`.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use tidegate_documents::{Limits, Reader, Unreadable, archive::Archive};
use tokio::sync::Mutex;

use crate::storage::{Error, Location, Stamp};

/// Maximum number of cached archives. The documents of one archive are planned one after the other.
const AT_HAND: usize = 2;

/// A cache of the archives that this worker has read lately.
#[derive(Debug, Default)]
pub struct Archives(Mutex<VecDeque<(String, Stamp, Arc<Archive>)>>);

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
        let (archive, stamp) = self.archive(location, limits).await?;
        let read = reader.read_member(&archive, member, limits).await;
        let (bytes, name) = read.map_err(Fault::NoReader)?.map_err(Fault::Unreadable)?;
        Ok((bytes, name, stamp))
    }

    /// The archive. Concurrent callers share one read.
    async fn archive(
        &self,
        location: &Location,
        limits: &Limits,
    ) -> Result<(Arc<Archive>, Stamp), Fault> {
        let uri = location.uri();
        let mut at_hand = self.0.lock().await;
        let stamp = location.stamp().await.map_err(Fault::Store)?;
        let stamp = stamp.ok_or_else(|| Fault::Store(Error::Missing(uri.clone())))?;
        let known = at_hand.iter().find(|(known, of, _)| *known == uri && of.is_same(&stamp));
        if let Some((_, stamp, archive)) = known {
            return Ok((Arc::clone(archive), stamp.clone()));
        }
        let (size, most) = (stamp.size, limits.archive_bytes);
        if size > most {
            let what = "archive".into();
            return Err(Fault::Unreadable(Unreadable::TooLarge { what, size, most }));
        }
        let (bytes, stamp) = location.read_stamped().await.map_err(Fault::Store)?;
        let archive = Arc::new(open(bytes, location.name().to_owned(), *limits).await);
        at_hand.retain(|(known, _, _)| *known != uri);
        at_hand.truncate(AT_HAND - 1);
        at_hand.push_front((uri, stamp.clone(), Arc::clone(&archive)));
        Ok((archive, stamp))
    }
}

/// Unpacks an archive and finds its members once for all documents in it.
async fn open(bytes: Bytes, name: String, limits: Limits) -> Archive {
    let (packed, file) = (bytes.clone(), name.clone());
    let opened = tokio::task::spawn_blocking(move || Archive::open(packed, &file, &limits)).await;
    opened.unwrap_or_else(|_| Archive::unopened(bytes, &name))
}
