//! Storage of documents and results: URIs under allowed roots, on any object store.

pub mod access;
pub mod assembly;
pub mod credential;
mod error;
mod listing;
mod local;
mod root;

use std::{
    collections::BTreeMap,
    fmt, io,
    ops::{ControlFlow, Range},
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt};
use object_store::{
    GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, RetryConfig,
    path::{Path, PathPart},
};
use url::Url;

pub use self::error::Error;
use crate::{
    host_rates::HostRates,
    storage::{
        listing::Listed,
        root::{Bucket, Root, stays_inside},
    },
};

pub use crate::storage::listing::Stamp;
pub use local::{OddEntry, special};

/// The roots that may be read and written.
#[derive(Debug, Clone)]
pub struct Storage {
    roots: Arc<[Root]>,
    rates: HostRates,
    /// The setting of the workers' configuration that holds the roots.
    setting: &'static str,
}

/// The location of one object, or the prefix of many.
#[derive(Debug, Clone)]
pub struct Location {
    storage: Storage,
    root: usize,
    path: Path,
}

/// An entry of a listing.
#[derive(Debug)]
pub enum Entry {
    /// An object, or a file.
    Object(Location, Stamp),
    /// An entry of a folder that cannot be read as a file, or a key that cannot be a path.
    Odd(OddEntry),
}

/// Some of the entries below a prefix.
#[derive(Debug)]
pub struct Listing {
    /// The entries, each with its key.
    pub entries: Vec<(String, Entry)>,
    /// Whether more entries may follow.
    pub more: bool,
}

impl Storage {
    /// Opens each root: `file:///folder`, `s3://bucket/prefix`, `gs://…`, `az://…`, and
    /// `https://host/prefix` to read from. Credentials come from the environment variables of each
    /// vendor's own tools. Nothing is read yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the root and the remedy.
    pub fn new<'a>(roots: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        Self::with_options(roots, &root::variables())
    }

    /// Like [`Self::new`], with these variables instead of the environment: `AWS_ENDPOINT`,
    /// `AWS_ACCESS_KEY_ID` …
    ///
    /// # Errors
    /// The errors of [`Self::new`].
    pub fn with_options<'a>(
        roots: impl IntoIterator<Item = &'a str>,
        options: &[(String, String)],
    ) -> Result<Self, Error> {
        Self::open(roots, options, &RetryConfig::default())
    }

    fn open<'a>(
        roots: impl IntoIterator<Item = &'a str>,
        options: &[(String, String)],
        retries: &RetryConfig,
    ) -> Result<Self, Error> {
        Ok(Self {
            roots: roots
                .into_iter()
                .map(|root| Root::open(root, options, retries))
                .collect::<Result<Vec<_>, _>>()?
                .into(),
            rates: HostRates::default(),
            setting: "roots in the [storage] section",
        })
    }

    /// Names the setting of the workers' configuration that holds the roots, for messages. Default:
    /// that of the roots for documents.
    pub(crate) fn with_setting(self, setting: &'static str) -> Self {
        Self { setting, ..self }
    }

    /// Limits reads over HTTP to the rates of their hosts.
    pub fn with_rates(self, rates: HostRates) -> Self {
        Self { rates, ..self }
    }

    /// Resolves a URI to a location under the root that covers it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URI that is not absolute, climbs out with `..`, follows a link out of
    /// its root, or is under no root.
    pub fn resolve(&self, uri: &str) -> Result<Location, Error> {
        self.resolver().resolve(uri)
    }

    /// A resolver for many URIs at once.
    pub fn resolver(&self) -> Resolver<'_> {
        Resolver { storage: self, folders: BTreeMap::new() }
    }
}

/// Resolves many URIs as [`Storage::resolve`] does. The links in the paths of the roots themselves are
/// followed once.
#[derive(Debug)]
pub struct Resolver<'s> {
    storage: &'s Storage,
    /// The folders of roots by their indices, with all links resolved; `None` for one that does not
    /// exist.
    folders: BTreeMap<usize, Option<PathBuf>>,
}

impl Resolver<'_> {
    /// Resolves a URI to a location under the root that covers it.
    ///
    /// # Errors
    /// The errors of [`Storage::resolve`].
    pub fn resolve(&mut self, uri: &str) -> Result<Location, Error> {
        let Self { storage, folders } = self;
        let invalid = |why: &str| Error::Invalid(format!("\"{}\" {why}", uri.escape_debug()));
        let url = Url::parse(uri).map_err(|_| {
            invalid("is no URI; write file:///folder/, s3://bucket/prefix/, gs://… or az://…")
        })?;
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(Error::Invalid(
                "a storage URI must hold no user, password, query or fragment; credentials come from the environment".to_owned(),
            ));
        }
        let mut parts = Vec::new();
        for part in url.path_segments().into_iter().flatten().filter(|part| !part.is_empty()) {
            let part = percent_encoding::percent_decode_str(part)
                .decode_utf8()
                .map_err(|_| invalid("holds bytes that are not UTF-8"))?;
            if part == "." || part == ".." || part.contains(['/', '\\', '\0']) {
                return Err(invalid("must not hold . or .. or encoded slashes or NUL"));
            }
            parts.push(part.into_owned());
        }
        let covering = storage
            .roots
            .iter()
            .enumerate()
            .filter_map(|(index, root)| Some((index, root, root.rest(&url, &parts)?)));
        // The innermost root wins, so that roots may be nested.
        let Some((index, root, _)) = covering.min_by_key(|(_, _, rest)| *rest) else {
            let roots: Vec<&str> = storage.roots.iter().map(|root| root.url.as_str()).collect();
            let roots =
                if roots.is_empty() { "none is configured".to_owned() } else { roots.join(", ") };
            return Err(invalid(&format!(
                "lies outside the allowed roots ({roots}); choose a place under one of them, or add it to {} of the workers' configuration",
                storage.setting
            )));
        };
        let path = path_of(&parts);
        if let Some(folder) = &root.folder {
            let file = FilePath::new("/").join(parts.join("/"));
            let real = folders.entry(index).or_insert_with(|| folder.canonicalize().ok());
            if !stays_inside(real.as_deref(), &file) {
                return Err(invalid("leads out of its root by a link"));
            }
        }
        Ok(Location { storage: storage.clone(), root: index, path })
    }
}

fn path_of(parts: &[String]) -> Path {
    Path::parse(parts.join("/"))
        .unwrap_or_else(|_| Path::from_iter(parts.iter().map(String::as_str)))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri())
    }
}

impl Location {
    fn root(&self) -> &Root {
        &self.storage.roots[self.root]
    }

    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.root().store
    }

    /// The canonical URI; [`Storage::resolve`] returns this location for it.
    pub fn uri(&self) -> String {
        let mut url = self.root().url.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.clear().extend(self.path.parts().map(|part| part.as_ref().to_owned()));
        }
        url.into()
    }

    /// Another location under the roots of this one.
    ///
    /// # Errors
    /// The errors of [`Storage::resolve`].
    pub fn elsewhere(&self, uri: &str) -> Result<Self, Error> {
        self.storage.resolve(uri)
    }

    /// A location below this one; `name` may contain slashes.
    pub fn child(&self, name: &str) -> Self {
        let path = name
            .split('/')
            .filter(|part| !part.is_empty())
            // Not encoded: an encoded `~` would change a document's id.
            .fold(self.path.clone(), |path, part| match PathPart::parse(part) {
                Ok(part) => path.join(part),
                Err(_) => path.join(part),
            });
        Self { path, ..self.clone() }
    }

    /// The path relative to `base`, or the whole path if it is not below it.
    pub fn relative_to(&self, base: &Self) -> String {
        self.path.prefix_match(&base.path).map_or_else(
            || self.path.to_string(),
            |parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"),
        )
    }

    /// The path relative to its root.
    pub fn relative_to_root(&self) -> String {
        let root = Self { path: path_of(&self.root().parts()), ..self.clone() };
        self.relative_to(&root)
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.filename().unwrap_or_default()
    }

    /// Whether this location is `other` or below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.root().url == other.root().url && self.path.prefix_matches(&other.path)
    }

    /// Whether a file system has a folder or a file here; object stores have no folders.
    pub fn exists_as_folder_or_file(&self) -> Option<bool> {
        let file = || FilePath::new("/").join(self.path.as_ref());
        // If a folder above cannot be entered, the read reports it.
        self.root().folder.as_ref().map(|_| file().try_exists().unwrap_or(true))
    }

    /// The path on the file system, if it has one.
    pub fn file_path(&self) -> Option<PathBuf> {
        self.root().folder.as_ref().map(|_| FilePath::new("/").join(self.path.as_ref()))
    }

    /// Returns a file at this location or at one of its parent folders, where a folder is needed.
    pub fn blocking_file(&self) -> Option<PathBuf> {
        let path = self.file_path()?;
        path.ancestors().find(|above| above.is_file()).map(FilePath::to_owned)
    }

    /// The kind of a file system's entry that is neither file nor folder, and must not be opened: a
    /// read from a pipe without a writer never ends.
    pub fn special(&self) -> Option<&'static str> {
        let meta = self.file_path()?.metadata().ok()?;
        local::special(meta.file_type())
    }

    /// Waits for the turn of a host whose reads have a rate.
    async fn wait_for_turn(&self) -> Result<(), Error> {
        match self.root().url.host_str().filter(|_| self.is_read_only()) {
            Some(host) => {
                let turn = self.storage.rates.wait(host).await;
                turn.map_err(|busy| Error::Failed(format!("cannot read {}: {busy}", self.uri())))
            }
            None => Ok(()),
        }
    }

    /// Size in bytes, if the object exists.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn size(&self) -> Result<Option<u64>, Error> {
        Ok(self.stamp().await?.map(|stamp| stamp.size))
    }

    /// The stamp of the object, if it exists.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn stamp(&self) -> Result<Option<Stamp>, Error> {
        self.wait_for_turn().await?;
        match self.store().head(&self.path).await {
            Ok(meta) => Ok(Some(self.stamp_of(meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("look at", &error)),
        }
    }

    /// The whole object.
    ///
    /// # Errors
    /// [`Error::Missing`], or another error of the store.
    pub async fn read(&self) -> Result<Bytes, Error> {
        Ok(self.read_stamped().await?.0)
    }

    /// The whole object, and the stamp of exactly these bytes.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub async fn read_stamped(&self) -> Result<(Bytes, Stamp), Error> {
        self.read_at_most(u64::MAX).await
    }

    /// The whole object of at most `most` bytes, and the stamp of exactly these bytes. What its size was
    /// before says nothing: it may have grown, and a web server may send more than it said.
    ///
    /// # Errors
    /// The errors of [`Self::read`]; [`Error::Invalid`] for a larger object, of which nothing is read.
    pub async fn read_at_most(&self, most: u64) -> Result<(Bytes, Stamp), Error> {
        self.wait_for_turn().await?;
        match self.store().get(&self.path).await {
            Ok(result) if result.meta.size > most => Err(Error::Invalid(format!(
                "{} has {} bytes now; at most {most} are read",
                self.uri(),
                result.meta.size
            ))),
            Ok(result) => {
                let stamp = self.stamp_of(result.meta.clone());
                self.bytes_of(result).await.map(|bytes| (bytes, stamp))
            }
            Err(error) => Err(self.unread(&error)),
        }
    }

    /// The bytes of an answer. A web server may send more than it has said; no more is read.
    /// Other stores are believed, so that their bytes are copied once.
    async fn bytes_of(&self, result: GetResult) -> Result<Bytes, Error> {
        let said = result.range.end - result.range.start;
        if !self.is_read_only() {
            return result.bytes().await.map_err(|error| self.unread(&error));
        }
        let (mut pieces, mut all) = (result.into_stream(), BytesMut::new());
        while let Some(piece) = pieces.try_next().await.map_err(|error| self.unread(&error))? {
            if (all.len() + piece.len()) as u64 > said {
                return Err(Error::Invalid(format!(
                    "{} is sent with more than the {said} bytes that its server had said",
                    self.uri()
                )));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    fn unread(&self, error: &object_store::Error) -> Error {
        match error {
            object_store::Error::NotFound { .. } => Error::Missing(self.uri()),
            error => self.failed("read", error),
        }
    }

    /// The whole object; `None` where there is none.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn read_if_there(&self) -> Result<Option<Bytes>, Error> {
        Ok(self.read_stamped_if_there().await?.map(|(bytes, _)| bytes))
    }

    /// A range of the object's bytes.
    ///
    /// # Errors
    /// [`Error::Missing`], or another error of the store.
    pub async fn read_range(&self, range: Range<u64>) -> Result<Bytes, Error> {
        self.wait_for_turn().await?;
        let options = GetOptions::new().with_range(Some(range));
        match self.store().get_opts(&self.path, options).await {
            Ok(result) => self.bytes_of(result).await,
            Err(error) => Err(self.unread(&error)),
        }
    }

    /// Removes the object. An object that does not exist counts as removed.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn delete(&self) -> Result<(), Error> {
        match self.store().delete(&self.path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove", &error)),
        }
    }

    /// Removes an object that does no harm if it stays, which the log then says in these words.
    pub(crate) async fn remove_or_log(&self, stays: &str) {
        if let Err(error) = self.delete().await {
            tracing::debug!(%error, "{stays}");
        }
    }

    /// Removes everything below this location, and on a file system the folder itself. What does not
    /// exist counts as removed.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn clear(&self) -> Result<(), Error> {
        if let Some(folder) = self.file_path() {
            return match tokio::fs::remove_dir_all(&folder).await {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::Failed(format!("cannot remove {}: {error}", self.uri())))
                }
                _ => Ok(()),
            };
        }
        let store = self.store();
        let listed = store.list(Some(&self.path)).map_ok(|meta| meta.location).boxed();
        let mut removed = store.delete_stream(listed);
        while let Some(one) = removed.next().await {
            match one {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed("remove", &error)),
            }
        }
        Ok(())
    }

    /// Writes the whole object over any that exists.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn write(&self, bytes: impl Into<PutPayload>) -> Result<(), Error> {
        self.put(bytes.into(), PutMode::Overwrite).await
    }

    /// Writes the whole object, and only if none exists.
    ///
    /// # Errors
    /// [`Error::Exists`], or another error of the store.
    pub async fn create(&self, bytes: impl Into<PutPayload>) -> Result<(), Error> {
        self.put(bytes.into(), PutMode::Create).await
    }

    /// Whether this location can only be read: over HTTP nothing is written or listed.
    pub fn is_read_only(&self) -> bool {
        matches!(self.root().url.scheme(), "http" | "https")
    }

    async fn put(&self, payload: PutPayload, mode: PutMode) -> Result<(), Error> {
        if self.is_read_only() {
            return Err(Error::Invalid(format!(
                "{self} can only be read; write to file:///folder/, s3://…, gs://… or az://…"
            )));
        }
        match self.store().put_opts(&self.path, payload, PutOptions::from(mode)).await {
            Ok(_) => Ok(()),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Err(Error::Exists(self.uri())),
            Err(error) => Err(self.failed("write", &error)),
        }
    }

    /// The whole object and the stamp of exactly these bytes, if it exists.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn read_stamped_if_there(&self) -> Result<Option<(Bytes, Stamp)>, Error> {
        match self.read_stamped().await {
            Ok(read) => Ok(Some(read)),
            Err(Error::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A writer for an object of any length. Memory stays flat, and the object appears only when it is
    /// complete.
    pub fn writer(&self) -> object_store::buffered::BufWriter {
        object_store::buffered::BufWriter::new(Arc::clone(self.store()), self.path.clone())
    }

    /// Some object below this prefix, if there is one.
    ///
    /// # Errors
    /// The errors of [`Self::list`].
    pub async fn first(&self) -> Result<Option<Self>, Error> {
        if self.file_path().is_some() {
            let names = self.names().await?;
            return Ok(names.into_iter().next().map(|name| self.child(&name)));
        }
        let mut first = None;
        let object = |_, entry| match entry {
            Entry::Object(location, _) => {
                first = Some(location);
                ControlFlow::Break(())
            }
            Entry::Odd(_) => ControlFlow::Continue(()),
        };
        self.visit(None, usize::MAX, object).await?;
        Ok(first)
    }

    /// The names of the objects directly below this location.
    ///
    /// # Errors
    /// The errors of [`Self::list`].
    pub async fn names(&self) -> Result<Vec<String>, Error> {
        if let Some(folder) = self.file_path() {
            return self.names_of_files(folder, false).await;
        }
        let listed = self.store().list_with_delimiter(Some(&self.path)).await;
        let objects = listed.map_err(|error| self.failed("list", &error))?.objects;
        Ok(objects
            .into_iter()
            .filter_map(|meta| Some(meta.location.filename()?.to_owned()))
            .collect())
    }

    /// Removes what interrupted writes have left directly below this location of a file system. `is_old`
    /// tells, by its name, whether a write cannot be under way any more.
    ///
    /// # Errors
    /// The folder cannot be read or changed.
    pub async fn remove_unfinished(&self, is_old: impl Fn(&str) -> bool) -> Result<(), Error> {
        let Some(folder) = self.file_path() else { return Ok(()) };
        for name in self.names_of_files(folder.clone(), true).await? {
            if is_old(&name) {
                match tokio::fs::remove_file(folder.join(name)).await {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(self.failed_folder(error));
                    }
                    // Or another process has removed it.
                    _ => {}
                }
            }
        }
        Ok(())
    }

    async fn names_of_files(&self, folder: PathBuf, staged: bool) -> Result<Vec<String>, Error> {
        let read = tokio::task::spawn_blocking(move || local::names(&folder, staged));
        let names = read.await.map_err(std::io::Error::other).flatten();
        names.map_err(|error| self.failed_folder(error))
    }

    /// Visits every object below this prefix, in any order.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn list(&self, mut each: impl FnMut(Self)) -> Result<(), Error> {
        self.entries(|entry| {
            if let Entry::Object(location, _) = entry {
                each(location);
            }
        })
        .await
    }

    /// Like [`Self::list`], including other entries of a file system's folders, and keys of a bucket
    /// that cannot be paths.
    ///
    /// # Errors
    /// The errors of [`Self::list`].
    pub async fn entries(&self, mut each: impl FnMut(Entry)) -> Result<(), Error> {
        let all = |_, entry| {
            each(entry);
            ControlFlow::Continue(())
        };
        self.visit(None, usize::MAX, all).await
    }

    /// Up to `most` of these entries after the one with this key, in a stable order.
    ///
    /// # Errors
    /// The errors of [`Self::list`].
    pub async fn entries_after(&self, after: Option<&str>, most: usize) -> Result<Listing, Error> {
        let mut entries = Vec::new();
        let some = |key, entry| {
            entries.push((key, entry));
            if entries.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        self.visit(after, most, some).await?;
        Ok(Listing { more: entries.len() >= most, entries })
    }

    async fn visit(
        &self,
        after: Option<&str>,
        most: usize,
        mut each: impl FnMut(String, Entry) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        if let (Some(folder), Some(root)) = (self.file_path(), self.root().folder.clone()) {
            let after = after.map(local::of_key);
            let walk = move || local::walk(&folder, &root, after.as_deref(), most);
            let walk = tokio::task::spawn_blocking(walk);
            let found = walk.await.map_err(std::io::Error::other).flatten();
            let found = found.map_err(|error| self.failed_folder(error))?;
            for (path, found) in found {
                let entry = match found {
                    local::FolderEntry::File(path, stamp) => {
                        Entry::Object(Self { path, ..self.clone() }, stamp)
                    }
                    local::FolderEntry::Odd(odd) => Entry::Odd(odd),
                };
                if each(local::to_key(&path), entry).is_break() {
                    break;
                }
            }
            return Ok(());
        }
        if let Some(lister) = self.root().bucket.as_ref().and_then(Bucket::lister) {
            let found = |found| match found {
                Listed::Object(meta) => {
                    let location = Self { path: meta.location.clone(), ..self.clone() };
                    let key = meta.location.to_string();
                    each(key, Entry::Object(location, Stamp::of_object(meta)))
                }
                Listed::Odd(key, why) => {
                    let entry = Entry::Odd(self.odd(&key, why));
                    each(key, entry)
                }
            };
            let after = after.map(str::to_owned);
            let listed = listing::list(lister, &self.path, after, found).await;
            return listed.map_err(|error| self.unlisted(&error));
        }
        let mut objects = match after.and_then(|after| Path::parse(after).ok()) {
            Some(after) => self.store().list_with_offset(Some(&self.path), &after),
            None => self.store().list(Some(&self.path)),
        };
        while let Some(meta) = objects.try_next().await.map_err(|error| self.unlisted(&error))? {
            let location = Self { path: meta.location.clone(), ..self.clone() };
            let key = meta.location.to_string();
            if each(key, Entry::Object(location, Stamp::of_object(meta))).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn failed_folder(&self, error: std::io::Error) -> Error {
        let source = Box::new(error);
        self.failed("list", &object_store::Error::Generic { store: "file system", source })
    }

    fn stamp_of(&self, meta: ObjectMeta) -> Stamp {
        match self.root().folder {
            Some(_) => Stamp::of_file(meta.size, meta.last_modified),
            None => Stamp::of_object(meta),
        }
    }

    /// A key that cannot be a path. Its URI names the key and cannot be resolved.
    fn odd(&self, key: &str, why: String) -> OddEntry {
        let below = key.strip_prefix(self.path.as_ref()).unwrap_or(key);
        let mut url = self.root().url.clone();
        url.set_path(key);
        OddEntry {
            path: below.strip_prefix('/').unwrap_or(below).into(),
            uri: url.into(),
            why: format!(
                "the key \"{}\" cannot be read: {why}; rename the object",
                key.escape_debug()
            ),
            is_folder: false,
        }
    }

    /// The error for a listing that cannot skip keys that cannot be paths: the source is at fault.
    fn unlisted(&self, error: &object_store::Error) -> Error {
        match error {
            object_store::Error::InvalidPath { source } => Error::Invalid(format!(
                "{} cannot be listed, because a key there cannot be a path here ({source}); rename that object, or name a prefix without it",
                self.uri()
            )),
            error => self.failed("list", error),
        }
    }

    fn failed(&self, what: &str, error: &object_store::Error) -> Error {
        Error::of_store(what, &self.uri(), error)
    }
}

#[cfg(test)]
mod tests;
