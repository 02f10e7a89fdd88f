//! Archives of documents: ZIP, tar, mailboxes, and files compressed with gzip or Zstandard.
//!
//! A member is named by its path in the archive. A member of a nested archive is named by both
//! paths, joined by `#`. Within a path, `%` and `#` are percent-encoded. Of several members with
//! the same path, the last one keeps the plain name. The names of the others begin with `2%2F`,
//! `3%2F` and so on; no encoded path begins so.

mod entry;
pub(crate) mod in_process;
mod index;
mod mailbox;
pub mod open;
mod place;
mod repack;
mod tarred;
pub(crate) mod zipped;

use std::{
    collections::BTreeMap,
    io::{Cursor, Read},
    mem,
    ops::ControlFlow,
};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use self::{
    entry::{Budget, Entry, shorten_path},
    place::{Packing, Place},
};
pub(crate) use self::{mailbox::is_mailbox, tarred::is_tar};
use crate::{
    context::Context, format::Format, left_out::Kind, limits::Limits, unreadable::Unreadable,
    zstd::Frames,
};

/// Levels of nested archives that are read.
const MAX_DEPTH: usize = 3;

/// Longest path in bytes: `PATH_MAX` of Linux.
const MAX_PATH_BYTES: usize = 4_096;

/// Ends the number in the name of a member that shares its path. The number comes before the path,
/// so that the file extension stays at the end.
const NUMBER_END: &str = "%2F";

/// A document in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Name of the member, as [`read_member`] takes it.
    pub name: String,
    /// The fault that makes it unreadable, if already known.
    pub fault: Option<Unreadable>,
}

impl Member {
    /// Returns the path for display: the decoded paths of nested archives one after the other.
    pub fn path(&self) -> String {
        display_path(&self.name)
    }
}

/// Returns whether a file name has the extension of an archive that [`list_members`] reads.
pub fn has_archive_extension(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("zip" | "tar" | "tgz" | "gz" | "tzst" | "zst" | "mbox"))
}

/// Lists the documents in an archive in its order. The members of a nested archive take its place.
/// Folders and hidden files are left out. Returns `None` for a file that is no archive, or whose
/// archive is a format of its own (an office document, a book).
///
/// # Errors
/// [`Unreadable`] for an archive that is damaged or exceeds the limits.
pub fn list_members(
    bytes: &[u8],
    name: &str,
    limits: &Limits,
) -> Result<Option<Vec<Member>>, Unreadable> {
    list_members_within(bytes, name, limits, &Budget::new(bytes, limits))
}

fn list_members_within(
    bytes: &[u8],
    name: &str,
    limits: &Limits,
    budget: &Budget,
) -> Result<Option<Vec<Member>>, Unreadable> {
    let format = Format::detect(bytes, name)?;
    if !format.is_archive() {
        return Ok(None);
    }
    let mut all = Vec::new();
    append_members(bytes, name, format, "", (limits, budget), 0, &mut all)?;
    Ok(Some(all))
}

/// Reads one member. Returns its bytes and its file name.
///
/// # Errors
/// [`Unreadable`] if the member is missing, damaged, or larger than the limits allow.
pub fn read_member(
    bytes: &[u8],
    archive: &str,
    member: &str,
    limits: &Limits,
) -> Result<(Vec<u8>, String), Unreadable> {
    read_member_within(bytes, archive, member, limits, &Budget::new(bytes, limits))
}

fn read_member_within(
    bytes: &[u8],
    archive: &str,
    member: &str,
    limits: &Limits,
    budget: &Budget,
) -> Result<(Vec<u8>, String), Unreadable> {
    let path = MemberPath::new(member);
    let (format, most, name) =
        (Format::detect(bytes, archive)?, path.max_bytes(limits), path.name());
    let MemberPath { wanted, number, rest } = path;
    let (mut found, mut seen) = (None, 0);
    visit_entries(bytes, archive, format, budget, |path, entry| {
        seen += u64::from(path == wanted);
        if path == wanted && (number == 1 || seen + 1 == number) {
            found = Some(entry.and_then(|mut entry| entry.read(most)));
        }
        let is_known = number > 1 && seen == number;
        Ok(if is_known { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    let found = found.filter(|_| seen >= number);
    let missing = || Unreadable::NoMember {
        what: format!("there is no {} in {archive} any more", shorten_path(&wanted)).into(),
    };
    let bytes = found.ok_or_else(missing)??;
    match rest {
        Some(rest) => read_member_within(&bytes, &name, rest, limits, budget),
        None => Ok((bytes, name)),
    }
}

/// A member's name, parsed.
struct MemberPath<'a> {
    /// The path in the outer archive.
    wanted: String,
    /// The member's number among those with this path.
    number: u64,
    /// The name in the archive that is this member.
    rest: Option<&'a str>,
}

impl<'a> MemberPath<'a> {
    fn new(member: &'a str) -> Self {
        let (first, rest) =
            member.split_once('#').map_or((member, None), |(one, rest)| (one, Some(rest)));
        let (number, first) = split_number(first);
        Self { wanted: decode_path(first), number, rest }
    }

    /// Returns the member's file name.
    fn name(&self) -> String {
        self.wanted.rsplit('/').next().unwrap_or(&self.wanted).to_owned()
    }

    fn max_bytes(&self, limits: &Limits) -> u64 {
        if self.rest.is_some() { limits.archive_bytes } else { limits.bytes }
    }
}

/// Extracts the texts of all members, each under its name, for an archive that is part of a
/// document. An unreadable member is named with its error.
pub(crate) fn extract(
    bytes: &[u8],
    name: &str,
    context: &Context<'_>,
) -> Result<String, Unreadable> {
    let Context { limits, depth, tally, .. } = *context;
    let format = Format::detect(bytes, name)?;
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let (mut text, mut count) = (String::new(), 0);
    let budget = Budget::new(bytes, limits);
    visit_entries(bytes, name, format, &budget, |path, entry| {
        if is_hidden(path) {
            return Ok(ControlFlow::Continue(()));
        }
        count += 1;
        if count > limits.members {
            return Err(Unreadable::TooManyMembers { most: limits.members });
        }
        let read = match entry.and_then(|mut entry| entry.read(limits.bytes)) {
            Ok(bytes) => context.text_of(&bytes, path, depth + 1),
            Err(error) => {
                tally.add_in_part(Kind::UnreadParts, 1, path);
                Err(error)
            }
        };
        text.push_str(if text.is_empty() { "" } else { "\n\n" });
        let path = shorten_path(path);
        match read {
            Ok(read) => text.push_str(&format!("## {path}\n\n{}", read.trim())),
            Err(error) => text.push_str(&format!("[{path}: {error}]")),
        }
        limits.take_text(text.len())?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(text)
}

fn append_members(
    bytes: &[u8],
    archive: &str,
    format: Format,
    prefix: &str,
    (limits, budget): (&Limits, &Budget),
    depth: usize,
    all: &mut Vec<Member>,
) -> Result<(), Unreadable> {
    let (mut places, begin): (Vec<(String, usize)>, _) = (Vec::new(), all.len());
    visit_entries(bytes, archive, format, budget, |path, entry| {
        if is_hidden(path) {
            return Ok(ControlFlow::Continue(()));
        }
        places.push((path.to_owned(), all.len()));
        let name = format!("{prefix}{}", encode_path(path));
        let fault = match entry {
            Err(fault) => Some(fault),
            // The only file of a compressed one is not measured: it is read once.
            Ok(entry) if !has_archive_extension(path) && depth == 0 && entry.size.is_none() => None,
            Ok(mut entry) if !has_archive_extension(path) => {
                match entry.count_document(max_bytes(path, limits)) {
                    Err(fault) if budget.is_spent() => return Err(fault),
                    counted => counted.err(),
                }
            }
            Ok(_) if depth + 1 >= MAX_DEPTH => Some(too_deep()),
            Ok(mut entry) => {
                match append_nested_members(&mut entry, path, &name, limits, depth, all) {
                    // The budget is shared by the whole archive.
                    Err(fault) if budget.is_spent() => return Err(fault),
                    Ok(true) => return Ok(ControlFlow::Continue(())),
                    Ok(false) => None,
                    Err(fault @ Unreadable::TooManyMembers { .. }) => return Err(fault),
                    // Other faults concern this member alone.
                    Err(fault) => Some(fault),
                }
            }
        };
        all.push(Member { name, fault });
        if all.len() > limits.members as usize {
            return Err(Unreadable::TooManyMembers { most: limits.members });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    number_duplicates(&places, begin, prefix, all);
    Ok(())
}

/// Numbers members that share a path. The last one keeps the plain path and moves to the position
/// of the first one; the others get 2, 3 and so on.
fn number_duplicates(
    places: &[(String, usize)],
    begin: usize,
    prefix: &str,
    all: &mut Vec<Member>,
) {
    let mut places_by_path: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, (path, _)) in places.iter().enumerate() {
        places_by_path.entry(path).or_default().push(place);
    }
    if places_by_path.len() == places.len() {
        return;
    }
    // Members listed for each entry of the archive.
    let mut members_by_entry: Vec<Vec<Member>> = Vec::with_capacity(places.len());
    for (_, from) in places.iter().rev() {
        members_by_entry.push(all.split_off((*from).max(begin)));
    }
    members_by_entry.reverse();
    for duplicates in places_by_path.into_values().filter(|places| places.len() > 1) {
        let mut rotated: Vec<Vec<Member>> = duplicates
            .iter()
            .filter_map(|place| members_by_entry.get_mut(*place).map(mem::take))
            .collect();
        rotated.rotate_right(1);
        for (number, (place, mut members)) in (1..).zip(duplicates.into_iter().zip(rotated)) {
            if number > 1 {
                for member in &mut members {
                    let path = member.name.strip_prefix(prefix).unwrap_or(&member.name);
                    member.name = format!("{prefix}{number}{NUMBER_END}{path}");
                }
            }
            if let Some(into) = members_by_entry.get_mut(place) {
                *into = members;
            }
        }
    }
    all.extend(members_by_entry.into_iter().flatten());
}

/// Lists a nested archive. Returns `false` if the entry is no archive.
fn append_nested_members(
    entry: &mut Entry<'_>,
    path: &str,
    name: &str,
    limits: &Limits,
    depth: usize,
    all: &mut Vec<Member>,
) -> Result<bool, Unreadable> {
    let bytes = entry.read(limits.archive_bytes)?;
    let inner = path.rsplit('/').next().unwrap_or(path);
    let format = Format::detect(&bytes, inner)?;
    if format.is_archive() {
        let (prefix, before) = (format!("{name}#"), all.len());
        let within = (limits, &entry.budget);
        let listed = append_members(&bytes, inner, format, &prefix, within, depth + 1, all);
        // The members listed before the damage are discarded.
        listed.inspect_err(|_| all.truncate(before))?;
    }
    Ok(format.is_archive())
}

/// Calls `visit` with the path and content of each file of an archive.
fn visit_entries(
    bytes: &[u8],
    name: &str,
    format: Format,
    budget: &Budget,
    mut visit: impl FnMut(&str, Result<Entry<'_>, Unreadable>) -> Result<ControlFlow<()>, Unreadable>,
) -> Result<(), Unreadable> {
    let mut visit = |path: &str, entry: Result<Entry<'_>, Unreadable>| {
        budget.count_entry()?;
        if path.len() > MAX_PATH_BYTES {
            let (size, most) = (path.len() as u64, MAX_PATH_BYTES as u64);
            return Err(Unreadable::TooLarge { what: "name of a member".into(), size, most });
        }
        visit(path, entry)
    };
    match format {
        Format::Zip => zipped::visit_entries(bytes, budget, &mut visit),
        Format::Tar => tarred::visit_entries(&mut budget.bound(bytes), format, budget, &mut visit),
        Format::Mbox => {
            for (number, message) in (1_u32..).zip(mailbox::messages(bytes)) {
                let size = Some(message.len() as u64);
                let place = Some(Place { range: message.range(), packing: Packing::Message });
                let (mut reader, budget) = (budget.bound(message), budget.clone());
                let entry = Entry { format, size, place, reader: &mut reader, budget };
                if visit(&format!("{number:05}.eml"), Ok(entry))?.is_break() {
                    break;
                }
            }
            Ok(())
        }
        _ => {
            let unpacked: Box<dyn Read + '_> = match format {
                Format::Zstd => Box::new(Frames::new(bytes)),
                _ => Box::new(MultiGzDecoder::new(bytes)),
            };
            let mut unpacked = budget.bound(unpacked);
            let mut start = Vec::new();
            let head = (&mut unpacked).take(512).read_to_end(&mut start);
            head.map_err(|error| budget.fault(format, &error))?;
            let is_tar = tarred::is_tar(&start);
            let mut reader = Cursor::new(start).chain(unpacked);
            if is_tar {
                return tarred::visit_entries(&mut reader, format, budget, &mut visit);
            }
            let (size, place, budget) = (None, None, budget.clone());
            let entry = Entry { format, size, place, reader: &mut reader, budget };
            visit(inner_name(name), Ok(entry)).map(drop)
        }
    }
}

/// Returns the most bytes of a document. A file of records may be as large as an archive.
fn max_bytes(path: &str, limits: &Limits) -> u64 {
    let is_table = path.to_ascii_lowercase().ends_with(".parquet");
    match Format::detect(b"", path) {
        Ok(Format::Csv | Format::Jsonl) => limits.archive_bytes,
        _ if is_table => limits.archive_bytes,
        _ => limits.bytes,
    }
}

/// Returns the name of a compressed file without its last extension.
fn inner_name(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((before, _)) if has_archive_extension(name) && !before.is_empty() => before,
        _ => name,
    }
}

/// Returns whether a path is hidden: a part begins with a dot, or is the folder that macOS adds to
/// archives.
fn is_hidden(path: &str) -> bool {
    path.split('/')
        .any(|part| (part.starts_with('.') && part != ".." && part != ".") || part == "__MACOSX")
}

fn too_deep() -> Unreadable {
    let what =
        format!("it lies too deep, in more than {MAX_DEPTH} archives; unpack the outer ones");
    Unreadable::NoMember { what: what.into() }
}

fn encode_path(path: &str) -> String {
    path.replace('%', "%25").replace('#', "%23")
}

fn decode_path(path: &str) -> String {
    path.replace("%23", "#").replace("%25", "%")
}

/// Splits a member's name into its number among members with the same path (1 if none is written)
/// and its encoded path.
fn split_number(name: &str) -> (u64, &str) {
    let number = name.split_once(NUMBER_END);
    number.and_then(|(number, path)| Some((number.parse().ok()?, path))).unwrap_or((1, name))
}

/// Decodes a member's name into a path for display.
fn display_path(name: &str) -> String {
    name.split('#').map(|name| decode_path(split_number(name).1)).collect::<Vec<_>>().join("/")
}
