//! Listing of a file system's folders that continues after an unreadable entry.
//!
//! The store's own listing ends at the first such entry, and omits entries that are not regular files.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{ffi::OsStringExt as _, fs::FileTypeExt as _},
    path::{Path as FilePath, PathBuf},
};

use object_store::path::Path;
use url::Url;
use walkdir::{DirEntry, WalkDir};

use crate::storage::listing::Stamp;

/// Bytes that are not escaped in a key.
const KEPT: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS.add(b'%');

/// An entry of a folder.
#[derive(Debug)]
pub(super) enum FolderEntry {
    /// A file.
    File(Path, Stamp),
    /// An entry that cannot be read as a file.
    Odd(OddEntry),
}

/// An entry of a folder that is neither a readable file nor a readable folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddEntry {
    /// Its path, relative to the listed folder.
    pub path: PathBuf,
    /// Its URI, also if the name is not UTF-8.
    pub uri: String,
    /// The fault.
    pub why: String,
    /// Whether it is a folder, whose content is unknown.
    pub is_folder: bool,
}

impl OddEntry {
    /// Its path in printable characters.
    pub fn printable(&self) -> String {
        printable(&self.path)
    }
}

/// A path with control characters escaped, and bytes that are not UTF-8 as `\xff`. Different paths stay
/// different.
fn printable(path: &FilePath) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                text.extend(c.escape_debug());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Up to `most` of the entries below a folder, in the order of their names, after the one with this
/// relative path. Links are followed if they stay in `root`. Each entry has its own relative path. A
/// folder that does not exist has no entries.
///
/// # Errors
/// The folder itself cannot be read.
pub(super) fn walk(
    folder: &FilePath,
    root: &FilePath,
    after: Option<&FilePath>,
    most: usize,
) -> io::Result<Vec<(PathBuf, FolderEntry)>> {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut found = Vec::new();
    let mut walk =
        WalkDir::new(folder).min_depth(1).follow_links(true).sort_by_file_name().into_iter();
    let relative = |path: &FilePath| path.strip_prefix(folder).unwrap_or(path).to_owned();
    // Paths are compared by their parts, in the order of the walk.
    let is_behind = |path: &FilePath| after.is_none_or(|after| path > after);
    while found.len() < most
        && let Some(entry) = walk.next()
    {
        let path = match &entry {
            Ok(entry) => Some(entry.path()),
            Err(error) => error.path(),
        };
        let path = path.map(relative).unwrap_or_default();
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {
                let holds_more = after.is_some_and(|after| after.starts_with(&path));
                if !is_behind(&path) && !holds_more {
                    walk.skip_current_dir();
                } else if let Some(why) = not_followed(&entry, &root) {
                    walk.skip_current_dir();
                    if is_behind(&path) {
                        found.push((path, odd(folder, entry.path(), why, true)));
                    }
                }
            }
            Ok(entry) if is_behind(&path) => {
                let entry = match file(&entry) {
                    Ok((path, stamp)) => FolderEntry::File(path, stamp),
                    Err(why) => odd(folder, entry.path(), why, false),
                };
                found.push((path, entry));
            }
            Ok(_) => {}
            Err(error) if error.depth() == 0 => match error.into_io_error() {
                Some(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return Ok(found),
            },
            Err(error) => {
                // An error without a path means that the rest of the folder could not be read.
                let Some(whole) = error.path() else { return Err(error.into()) };
                let is_link = match whole.symlink_metadata() {
                    // The entry was removed after its folder was read.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    meta => meta.is_ok_and(|meta| meta.is_symlink()),
                };
                if !is_behind(&path) {
                    continue;
                }
                let why = match (error.loop_ancestor(), error.io_error()) {
                    (Some(_), _) => "it is a link to a folder that it lies in".to_owned(),
                    (_, Some(io)) if is_link && io.kind() == io::ErrorKind::NotFound => {
                        "it is a link that leads nowhere".to_owned()
                    }
                    (_, Some(io)) => format!("it cannot be read: {io}"),
                    (None, None) => "it cannot be read".to_owned(),
                };
                found.push((path, odd(folder, whole, why, !is_link)));
            }
        }
    }
    Ok(found)
}

/// Encodes a path of any bytes as a text that [`of_key`] decodes.
pub(super) fn to_key(path: &FilePath) -> String {
    percent_encoding::percent_encode(path.as_os_str().as_encoded_bytes(), KEPT).to_string()
}

/// The path of a key.
pub(super) fn of_key(key: &str) -> PathBuf {
    OsString::from_vec(percent_encoding::percent_decode_str(key).collect()).into()
}

/// The names of the complete files in a folder, or of those that are being written; none where there is no
/// folder.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn names(folder: &FilePath, staged: bool) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file()
            && let Ok(name) = entry.file_name().into_string()
            && is_staged(&name) == staged
        {
            names.push(name);
        }
    }
    Ok(names)
}

fn odd(folder: &FilePath, path: &FilePath, why: String, is_folder: bool) -> FolderEntry {
    let relative = path.strip_prefix(folder).unwrap_or(path).to_owned();
    let uri = Url::from_file_path(path).map_or_else(|()| printable(path), String::from);
    FolderEntry::Odd(OddEntry { path: relative, uri, why, is_folder })
}

/// The reason why a link is not followed: it leads out of the root, which workers must not read.
fn not_followed(entry: &DirEntry, root: &FilePath) -> Option<String> {
    if !entry.path_is_symlink() {
        return None;
    }
    match entry.path().canonicalize() {
        Ok(real) if real.starts_with(root) => None,
        Ok(_) => Some("it leads out of its root by a link".to_owned()),
        Err(error) => Some(format!("it cannot be read: {error}")),
    }
}

/// The file's path in the store and its stamp, or the reason why it has none.
fn file(entry: &DirEntry) -> Result<(Path, Stamp), String> {
    if let Some(what) = special(entry.file_type()) {
        return Err(format!("it is {what}, and no file"));
    }
    let Some(name) = entry.file_name().to_str() else {
        return Err("its name holds bytes that are not UTF-8; rename it".to_owned());
    };
    let path = Path::from_absolute_path(entry.path()).map_err(|_| {
        "its path holds control characters or bytes that are not UTF-8; rename it".to_owned()
    })?;
    if is_staged(name) {
        return Err(
            "its name ends in # and a number, as unfinished uploads do; rename it".to_owned()
        );
    }
    let meta = entry.metadata().map_err(|error| format!("it cannot be read: {error}"))?;
    Ok((path, Stamp::of_metadata(&meta)))
}

/// Whether the name is the store's own for an object that is being written: `results.jsonl#1`.
fn is_staged(name: &str) -> bool {
    name.split_once('#').is_some_and(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The kind of an entry that is neither file nor folder: opening it may block for ever.
pub fn special(kind: fs::FileType) -> Option<&'static str> {
    if kind.is_file() || kind.is_dir() { None } else { Some(kind_of(kind)) }
}

fn kind_of(kind: fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
