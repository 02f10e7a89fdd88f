//! The spool: a folder of this machine for answers that could not be written to their store.
//!
//! Each answer is one file: a line with its destination, then the object unchanged. The file's name is
//! derived from the destination, so that an attempt that would buy the answer again finds it. A live
//! attempt, or a worker that writes the answer, locks the file; the lock ends with its process. Only
//! the owner can read folder and files.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;

const WHOLE: &str = "answer";
const BEGUN: &str = "new";

/// Largest answer, in bytes: the longest of today's models have some megabytes.
const LARGEST: u64 = 256 << 20;

/// Longest header, in bytes: a URI is shorter.
const LONGEST_HEADER: u64 = 64 << 10;

/// Age from which an unfinished file is abandoned: its process is gone.
const ABANDONED: Duration = Duration::from_secs(60);

/// The folder.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
}

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The URI of the object.
    pub(crate) uri: String,
    /// The objects that it may replace there.
    #[serde(flatten)]
    pub(crate) over: Overwrite,
    /// URI of an object; without that object the answer is not needed any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) needs: Option<String>,
}

/// The existing object that may be replaced; no other may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overwrite {
    /// Any object.
    #[serde(rename = "replaces")]
    pub(crate) anything: bool,
    /// The object with this fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<Fingerprint>,
}

/// A file of the spool, locked by this process until it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    path: PathBuf,
    _lock: File,
}

/// The outcome of looking for a file.
#[derive(Debug)]
pub(crate) enum SpoolLookup {
    Nothing,
    /// Another attempt or worker has locked it.
    Held,
    Answer(Entry, Header, Bytes),
}

impl Spool {
    /// A spool in this folder, which is created if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created, or is not this user's.
    pub fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Writes an object to the spool, whole or not at all.
    pub(crate) fn put(&self, header: &Header, object: &[u8]) -> io::Result<Entry> {
        let path = self.path(&header.uri);
        let begun = path.with_extension(format!("{:016x}.{BEGUN}", rand::random::<u64>()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
        let mut put = || {
            file.lock()?;
            serde_json::to_writer(&mut file, header)?;
            file.write_all(b"\n")?;
            file.write_all(object)?;
            file.sync_all()?;
            std::fs::rename(&begun, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        match put() {
            Ok(()) => Ok(Entry { path, _lock: file }),
            Err(error) => {
                let _ = std::fs::remove_file(&begun);
                Err(error)
            }
        }
    }

    /// Finds the file for this URI.
    pub(crate) fn find(&self, uri: &str) -> io::Result<SpoolLookup> {
        self.take(&self.path(uri))
    }

    /// All files, locked or not.
    pub(crate) fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            match path.extension().and_then(|end| end.to_str()) {
                Some(WHOLE) => files.push(path),
                Some(BEGUN) => remove_abandoned(&path),
                _ => {}
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    /// Locks and reads one of [`Self::files`].
    pub(crate) fn take(&self, path: &Path) -> io::Result<SpoolLookup> {
        // Only regular files are opened: a read from a pipe might never end.
        match path.symlink_metadata() {
            Ok(meta) => self.is_ours(&meta)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(SpoolLookup::Nothing);
            }
            Err(error) => return Err(error),
        }
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(SpoolLookup::Nothing);
            }
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(SpoolLookup::Held),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Its holder wrote its object and removed it between the look-up and the lock.
        if file.metadata()?.nlink() == 0 {
            return Ok(SpoolLookup::Nothing);
        }
        let (mut line, mut object) = (String::new(), Vec::new());
        let mut reader = BufReader::new(&file);
        reader.by_ref().take(LONGEST_HEADER).read_line(&mut line)?;
        let header: Header = serde_json::from_str(&line)?;
        if self.path(&header.uri) != path {
            return Err(odd("it has the name of another place's answer"));
        }
        reader.take(LARGEST).read_to_end(&mut object)?;
        Ok(SpoolLookup::Answer(Entry { path: path.to_owned(), _lock: file }, header, object.into()))
    }

    /// Checks that a file is as [`Self::put`] creates it: owned by the folder's owner, and no
    /// larger than an answer.
    fn is_ours(&self, meta: &Metadata) -> io::Result<()> {
        if !meta.file_type().is_file() {
            return Err(odd("it is a link, or no file"));
        }
        if meta.uid() != self.folder.metadata()?.uid() {
            return Err(odd("it is another user's"));
        }
        if meta.len() > LARGEST {
            return Err(odd("it is larger than an answer can be"));
        }
        Ok(())
    }

    fn path(&self, uri: &str) -> PathBuf {
        self.folder.join(format!("{}.{WHOLE}", Fingerprint::of_bytes(uri.as_bytes())))
    }
}

impl Entry {
    /// Removes the file, once its object is in the store.
    pub(crate) fn remove(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, file = %self.path.display(), "an answer that was written stays in the spool");
        }
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn remove_abandoned(path: &Path) {
    let modified = path.metadata().and_then(|meta| meta.modified()).ok();
    let age = modified.and_then(|modified| modified.elapsed().ok());
    if age.is_some_and(|age| age > ABANDONED) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    const URI: &str = "s3://bucket/out/results/a.json";

    fn header() -> Header {
        Header { uri: URI.to_owned(), over: Overwrite::default(), needs: None }
    }

    #[test]
    fn what_is_put_is_found_by_others_when_its_holder_is_gone_and_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("deep/spool");
        let (one, other) = (Spool::open(&folder).unwrap(), Spool::open(&folder).unwrap());
        assert!(matches!(other.find(URI).unwrap(), SpoolLookup::Nothing));
        let entry = one.put(&header(), b"{\"answer\":\"High.\n\"}").unwrap();
        assert!(matches!(other.find(URI).unwrap(), SpoolLookup::Held));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let files = other.files().unwrap();
        assert_eq!((files.len(), mode(&files[0]), mode(&folder)), (1, 0o600, 0o700));
        drop(entry);
        let SpoolLookup::Answer(entry, found, object) = other.find(URI).unwrap() else {
            panic!("it is held by nobody")
        };
        assert_eq!((found, &object[..]), (header(), &b"{\"answer\":\"High.\n\"}"[..]));
        assert!(matches!(one.find(URI).unwrap(), SpoolLookup::Held));
        entry.remove();
        assert!(matches!(one.find(URI).unwrap(), SpoolLookup::Nothing));
        assert!(one.files().unwrap().is_empty());
    }

    #[test]
    fn what_others_have_laid_there_is_refused_in_a_word_and_nothing_of_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(&folder.path().join("spool")).unwrap();
        let refused = |what: &str| {
            let why = spool.find(URI).unwrap_err().to_string();
            assert!(why.contains(what), "{what}: {why}");
            std::fs::remove_file(spool.path(URI)).unwrap();
        };
        std::os::unix::fs::symlink("/dev/zero", spool.path(URI)).unwrap();
        refused("it is a link");
        // The pipe has no writer: opening it would block for ever.
        let pipe = std::process::Command::new("mkfifo").arg(spool.path(URI)).status().unwrap();
        assert!(pipe.success());
        refused("no file");
        let huge = File::create(spool.path(URI)).unwrap();
        huge.set_len(LARGEST + 1).unwrap();
        refused("larger than an answer");
        huge.set_len(0).unwrap();
        File::create(spool.path(URI)).unwrap().set_len(LARGEST).unwrap();
        refused("expected value");
        std::fs::write(spool.path(URI), "{\"uri\": 1}\n").unwrap();
        refused("invalid type");
        let other = r#"{"uri":"file:///etc/passwd","replaces":true}"#;
        std::fs::write(spool.path(URI), format!("{other}\nroot::0:0::/:/bin/sh\n")).unwrap();
        refused("another place's answer");
    }
}
