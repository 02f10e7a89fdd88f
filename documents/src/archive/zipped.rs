//! ZIP archives.

use std::{
    borrow::Cow,
    cell::OnceCell,
    io::{Cursor, Read},
    ops::ControlFlow,
};

use memchr::memmem;
use zip::{
    CompressionMethod, ZipArchive, ZipReadOptions,
    read::{Config, ZipFile},
    result::{ZipError, ZipResult},
    unstable::read::ZipIterable,
};

use super::{
    entry::{Budget, Entry, Visit, not_a_file},
    place::{Packing, Place},
};
use crate::{code_page::CodePage, encoding, format::Format, unreadable::Unreadable};

/// Entries of a ZIP archive that are listed in this process. Each takes some hundred bytes of
/// memory.
const MAX_ENTRIES: usize = 20_000;

/// Returns whether a ZIP archive has at most [`MAX_ENTRIES`] entries. Its readers allocate memory
/// for all of them when they open it.
pub(crate) fn has_few_entries(zip: &[u8]) -> bool {
    memmem::find_iter(zip, b"PK\x01\x02").nth(MAX_ENTRIES).is_none()
}

/// Calls `visit` for each file, including several with the same name.
pub(super) fn visit_entries(
    bytes: &[u8],
    budget: &Budget,
    visit: &mut Visit<'_>,
) -> Result<(), Unreadable> {
    let damaged = |error| Unreadable::damaged(Format::Zip, error);
    let mut contents = Cursor::new(bytes);
    let names = &Names { bytes, page: OnceCell::new() };
    // A few kilobytes can be the contents of thousands of overlapping members: a bomb
    // (CVE-2019-9674).
    let overlaps =
        ZipArchive::new(contents.clone()).and_then(|mut zip| zip.has_overlapping_files());
    if matches!(overlaps, Ok(true)) {
        return Err(Unreadable::damaged(Format::Zip, "members of it lie over each other"));
    }
    // `ZipArchive` gives only the last member of each name. `ZipIterable` gives all, but fails if
    // the size of the directory is wrong.
    let Ok(mut every) = ZipIterable::try_new(contents.clone(), Config::default()) else {
        let mut archive = ZipArchive::new(contents).map_err(damaged)?;
        for place in 0..archive.len() {
            let path = archive.name_for_index(place).and_then(Result::ok).map(Cow::into_owned);
            if visit_member(names, path, place, archive.by_index(place), budget, visit)?.is_break()
            {
                break;
            }
        }
        return Ok(());
    };
    for (place, entry) in every.files().map_err(damaged)?.enumerate() {
        let entry = entry.map_err(damaged)?;
        let path = entry.name().ok().map(Cow::into_owned);
        let opened = entry.with_reader(&mut contents, ZipReadOptions::new());
        if visit_member(names, path, place, opened, budget, visit)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Decodes a name that is not ASCII: as UTF-8, else in the encoding that fits the names of the
/// whole archive.
fn decode_name(name: &[u8], names: &Names<'_>) -> Option<String> {
    if name.is_ascii() {
        return None;
    }
    let page = || {
        let mut archive = ZipArchive::new(Cursor::new(names.bytes)).ok()?;
        let mut all = Vec::new();
        for place in 0..archive.len() {
            if let Ok(file) = archive.by_index_raw(place) {
                all.extend_from_slice(file.name_raw());
                all.push(b'\n');
            }
        }
        Some(CodePage::of_names(encoding::detect_encoding(&all), &all))
    };
    match std::str::from_utf8(name) {
        Ok(name) => Some(name.to_owned()),
        Err(_) => names.page.get_or_init(page).map(|page| page.decode(name).into_owned()),
    }
}

/// The archive, and the encoding of its names once detected.
struct Names<'a> {
    bytes: &'a [u8],
    page: OnceCell<Option<CodePage>>,
}

/// Returns where the packed bytes of a file lie.
fn place_of<R: Read>(file: &ZipFile<'_, R>) -> Option<Place> {
    let start = usize::try_from(file.data_start()?).ok()?;
    let end = start.checked_add(usize::try_from(file.compressed_size()).ok()?)?;
    let is_deflated = file.compression() == CompressionMethod::Deflated;
    let packing = Packing::Zip { is_deflated, size: file.size(), checksum: file.crc32() };
    Some(Place { range: start..end, packing })
}

/// Calls `visit` for one member. A member without a path is named by its number.
fn visit_member<R: Read>(
    names: &Names<'_>,
    path: Option<String>,
    place: usize,
    opened: ZipResult<ZipFile<'_, R>>,
    budget: &Budget,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Unreadable> {
    let format = Format::Zip;
    let path = path.unwrap_or_else(|| format!("member-{place}"));
    if path.ends_with('/') {
        return Ok(ControlFlow::Continue(()));
    }
    match opened {
        Ok(file) if file.is_symlink() => visit(&path, Err(not_a_file(&path))),
        Ok(file) => {
            let path = decode_name(file.name_raw(), names).unwrap_or(path);
            if !matches!(
                file.compression(),
                CompressionMethod::Stored | CompressionMethod::Deflated
            ) {
                let what = "it is packed by a method that is not read; pack it with Deflate";
                return visit(&path, Err(Unreadable::NoMember { what: what.into() }));
            }
            let (size, place, budget) = (Some(file.size()), place_of(&file), budget.clone());
            let mut reader = budget.bound(file);
            visit(&path, Ok(Entry { format, size, place, reader: &mut reader, budget }))
        }
        Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
            visit(&path, Err(Unreadable::Encrypted { format }))
        }
        Err(error) => visit(&path, Err(Unreadable::damaged(format, error))),
    }
}
