//! Documents in archives: `file:///folder/all.zip#path/in/it.pdf`.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_documents::{Limits, Reader, Unreadable, archive::open::Archive};
use tokio::sync::{OnceCell, Semaphore};

use crate::storage::{Error, Location, Stamp};

/// Maximum number of cached archives, and of archives that are loaded at once. The documents of one
/// archive are planned one after the other.
const AT_HAND: usize = 2;

/// A cache of the archives that this worker has read lately.
#[derive(Debug)]
pub struct Archives {
    /// The latest first.
    at_hand: Mutex<VecDeque<Known>>,
    /// Bounds the memory of archives that are being loaded.
    loads: Semaphore,
}

/// An archive, and the stamp with which it was read.
pub(crate) type Loaded = (Arc<Archive>, Stamp);

/// An archive that is cached or being loaded.
#[derive(Debug)]
struct Known {
    uri: String,
    /// The stamp when it was first needed.
    stamp: Stamp,
    /// Its content, shared with those that wait for it.
    content: Arc<OnceCell<Loaded>>,
}

impl Known {
    fn is_loading(&self) -> bool {
        !self.content.initialized() && Arc::strong_count(&self.content) > 1
    }
}

/// Why a document in an archive cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    Store(Error),
    NoReader(std::io::Error),
    Unreadable(Unreadable),
}

impl Default for Archives {
    fn default() -> Self {
        Self { at_hand: Mutex::default(), loads: Semaphore::new(AT_HAND) }
    }
}

impl Archives {
    /// A file's bytes, its name, and the stamp of the archive.
    pub(crate) async fn read(
        &self,
        location: &Location,
        member: &str,
        reader: &Reader,
        limits: &Limits,
    ) -> Result<(Bytes, String, Stamp), Fault> {
        let (archive, stamp) = self.archive(location, reader, limits).await?;
        let read = reader.read_member(&archive, member, limits).await;
        let (bytes, name) = read.map_err(Fault::NoReader)?.map_err(Fault::Unreadable)?;
        Ok((bytes, name, stamp))
    }

    /// The archive. Concurrent callers for one archive share one load; those for another one do not
    /// wait for it, unless [`AT_HAND`] archives are being loaded.
    pub(crate) async fn archive(
        &self,
        location: &Location,
        reader: &Reader,
        limits: &Limits,
    ) -> Result<Loaded, Fault> {
        let uri = location.uri();
        let stamp = location.stamp().await.map_err(Fault::Store)?;
        let stamp = stamp.ok_or_else(|| Fault::Store(Error::Missing(uri.clone())))?;
        let (size, most) = (stamp.size, limits.archive_bytes);
        if size > most {
            let what = "archive".into();
            return Err(Fault::Unreadable(Unreadable::TooLarge { what, size, most }));
        }
        let content = self.content(uri, stamp);
        let load = || async {
            // The semaphore is never closed.
            let _turn = self.loads.acquire().await;
            let (bytes, stamp) = location.read_at_most(most).await.map_err(Fault::Store)?;
            let archive = reader.open_archive(bytes, location.name(), limits).await;
            Ok((Arc::new(archive), stamp))
        };
        content.get_or_try_init(load).await.cloned()
    }

    /// The place of an archive's content, which the first caller fills.
    fn content(&self, uri: String, stamp: Stamp) -> Arc<OnceCell<Loaded>> {
        let mut at_hand = self.at_hand.lock();
        let known = at_hand.iter().find(|known| known.uri == uri && known.stamp.is_same(&stamp));
        if let Some(known) = known {
            return Arc::clone(&known.content);
        }
        let content = Arc::default();
        let mut others = 0;
        at_hand.retain(|known| {
            let stays = known.uri != uri && (known.is_loading() || others < AT_HAND - 1);
            others += usize::from(stays);
            stays
        });
        at_hand.push_front(Known { uri, stamp, content: Arc::clone(&content) });
        content
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{Router, extract::Path, http::Method, routing::any};

    use super::*;
    use crate::storage::Storage;

    fn tar() -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        builder.append_data(&mut header, "a.txt", &b"Ebb"[..]).unwrap();
        builder.into_inner().unwrap()
    }

    /// A server whose `slow.tar` is sent only after a permit is added.
    async fn serve(gets: Arc<AtomicUsize>, began: Arc<Semaphore>, sends: Arc<Semaphore>) -> String {
        let reply = move |method: Method, Path(name): Path<String>| {
            let (gets, began, sends) = (Arc::clone(&gets), Arc::clone(&began), Arc::clone(&sends));
            async move {
                if method == Method::GET && name == "slow.tar" {
                    gets.fetch_add(1, Ordering::SeqCst);
                    began.add_permits(1);
                    drop(sends.acquire().await.unwrap());
                }
                ([("last-modified", "Sun, 22 Nov 2026 10:00:00 GMT")], tar())
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}/", listener.local_addr().unwrap());
        let app = Router::new().route("/{name}", any(reply));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        root
    }

    #[tokio::test]
    async fn one_load_blocks_no_other_archive_and_is_shared() {
        let (gets, began, sends) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(Semaphore::new(0)),
            Arc::new(Semaphore::new(0)),
        );
        let root = serve(Arc::clone(&gets), Arc::clone(&began), Arc::clone(&sends)).await;
        let storage = Storage::new([root.as_str()]).unwrap();
        let location = |name: &str| storage.resolve(&format!("{root}{name}")).unwrap();
        let (archives, slow) = (Archives::default(), location("slow.tar"));
        let reader = Reader::in_this_process(Limits::default());
        let read = |location: Location| {
            let (archives, reader) = (&archives, &reader);
            async move {
                let read = archives.read(&location, "a.txt", reader, reader.limits()).await;
                read.unwrap().0
            }
        };
        let others = async {
            began.acquire().await.unwrap().forget();
            for name in ["b.tar", "c.tar", "d.tar"] {
                assert_eq!(&read(location(name)).await[..], b"Ebb", "{name}");
            }
            assert!(archives.at_hand.lock().iter().any(Known::is_loading));
            sends.add_permits(1);
        };
        let all = async { tokio::join!(read(slow.clone()), read(slow.clone()), others) };
        let (one, other, ()) =
            tokio::time::timeout(std::time::Duration::from_secs(60), Box::pin(all)).await.unwrap();
        assert_eq!(
            (&one[..], &other[..], gets.load(Ordering::SeqCst)),
            (&b"Ebb"[..], &b"Ebb"[..], 1)
        );
        assert!(archives.at_hand.lock().len() <= AT_HAND + 1);
    }
}
