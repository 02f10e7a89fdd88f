//! The documents of a batch, page by page: memory does not grow with their number.

mod archived;
mod earlier_outputs;
mod manifest;
mod page;
mod records;
mod requests;

use std::{collections::HashSet, path::Path as FilePath};

use globset::{GlobBuilder, GlobMatcher};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{Job, Source};

pub use crate::batch::source::page::{Cursor, Page, PageBudget};
use crate::{
    batch::{
        archives,
        document_ids::DocumentIds,
        source::{
            earlier_outputs::{EarlierOutputs, is_ours},
            page::{Archived, FilePosition, Within},
            records::has_records,
        },
    },
    failure::{Failure, field_fault},
    output::{
        job::{Document, resolve},
        row_ids::RowIds,
        version::Version,
    },
    storage::{Entry, Location, OddEntry, Stamp, Storage},
};

/// Files, each with the position after it; and whether more may follow.
type Files = (Vec<(Document, FilePosition)>, bool);

/// Returns the next documents of a source, without files that earlier pages had. Each record and
/// each file in an archive is a document; so is each record of a file in an archive.
///
/// # Errors
/// `InvalidInput` for faults that the batch's author must correct; `Transient` when a store fails.
pub async fn page(
    storage: &Storage,
    job: &Job,
    output: &Location,
    cursor: Cursor,
    names: &DocumentIds,
    mut room: PageBudget,
) -> Result<Page, Failure> {
    if let Some(lines) = &job.lines {
        return requests::page(storage, job, lines, cursor.files.line(), names, &room).await;
    }
    let Cursor { mut files, mut within } = cursor;
    let (mut documents, mut had) = (Vec::new(), HashSet::new());
    // A listing names each file once.
    let can_repeat = !matches!(job.source, Source::Prefix(_));
    if let (Some(file), Some(fields)) = (within.take(), &job.records) {
        let known = RowIds::default();
        let (rows, next) =
            Box::pin(records::rows(storage, fields, &known, file, &mut room)).await?;
        documents = rows;
        within = next;
    }
    loop {
        let is_over = within.is_none() && files == FilePosition::Everything;
        if is_over || room.is_full() {
            let next = (!is_over).then_some(Cursor { files, within });
            return Ok(Page { documents, files: had.into_iter().collect(), next });
        }
        if let (FilePosition::Within(archive), Some(fields)) = (&files, &job.records) {
            let read = archive.clone().read(storage, fields, output, &mut room).await?;
            documents.extend(read.documents);
            (files, within) = (read.after, read.within);
            continue;
        }
        let (found, more) = next_files(storage, job, output, &files, room.documents).await?;
        let known = match &job.records {
            Some(_) => {
                let files = found.iter().map(|(file, _)| file);
                let of_records = files.filter(|file| has_records(file));
                RowIds::load(output, &of_records.map(|file| file.id.clone()).collect::<Vec<_>>())
                    .await?
            }
            None => RowIds::default(),
        };
        let mut found = found.into_iter().peekable();
        while !room.is_full()
            && within.is_none()
            && !matches!(files, FilePosition::Within(_))
            && let Some((file, after)) = found.next()
        {
            files = after;
            if can_repeat {
                let it = DocumentIds::file(&file);
                if names.contains_file(&it) || !had.insert(it) {
                    continue;
                }
            }
            match &job.records {
                Some(_) if archives::is_archive(&file) => {
                    files = FilePosition::Within(Archived::beginning(&file, files));
                }
                Some(fields) if has_records(&file) => {
                    let file = Within::beginning(&file);
                    let (rows, next) =
                        Box::pin(records::rows(storage, fields, &known, file, &mut room)).await?;
                    if documents.is_empty() {
                        documents = rows;
                    } else {
                        documents.extend(rows);
                    }
                    within = next;
                }
                _ => {
                    let files = Box::pin(archives::expand(storage, file, &room)).await?;
                    files.iter().for_each(|file| room.take(file));
                    documents.extend(files);
                }
            }
        }
        if found.peek().is_none() && !more && !matches!(files, FilePosition::Within(_)) {
            files = FilePosition::Everything;
        }
    }
}

async fn next_files(
    storage: &Storage,
    job: &Job,
    output: &Location,
    after: &FilePosition,
    most: usize,
) -> Result<Files, Failure> {
    match (&job.source, after) {
        (_, FilePosition::Everything) => Ok((Vec::new(), false)),
        (Source::Prefix(uri), FilePosition::Key(key)) => {
            under(storage, uri, output, Some(key), most).await
        }
        (Source::Prefix(uri), _) => under(storage, uri, output, None, most).await,
        (Source::Documents(uris), FilePosition::Listed(before)) => each(storage, uris, *before),
        (Source::Documents(uris), _) => each(storage, uris, 0),
        (Source::Manifest(uri), after) => {
            let (listed, more) = manifest::lines(storage, uri, after.line(), most).await?;
            let after = |(file, place)| (file, FilePosition::Line(place));
            Ok((listed.into_iter().map(after).collect(), more))
        }
    }
}

/// A folder, a single file, a glob, or an object-store prefix. Hidden files, the batch's own output and
/// outputs of earlier batches in the folder are left out.
async fn under(
    storage: &Storage,
    uri: &str,
    output: &Location,
    after: Option<&str>,
    most: usize,
) -> Result<Files, Failure> {
    let is_literal =
        storage.resolve(uri).is_ok_and(|file| file.exists_as_folder_or_file() == Some(true));
    // The characters of a pattern may be part of a file's name.
    let (base, pattern) = if is_literal { (uri.to_owned(), None) } else { split_glob(uri)? };
    let base = resolve(storage, "source", &base)?;
    if pattern.is_none() && base.exists_as_folder_or_file() == Some(false) {
        return Err(Failure::invalid_input(format!(
            "source {base}: there is no such folder or file where the workers run; check the path"
        )));
    }
    if base.is_read_only() {
        return over_http(uri, &base, pattern.is_some()).await;
    }
    if let Some(what) = base.special() {
        return Err(Failure::invalid_input(format!(
            "source {base} is {what}; name a folder or a file"
        )));
    }
    // Where the output folder is the source folder itself, only the objects that batches write are left
    // out.
    let apart = output.is_within(&base) && !base.is_within(output);
    let matches = |relative: &FilePath| pattern.as_ref().is_none_or(|it| it.is_match(relative));
    let wanted = |entry| match entry {
        Entry::Object(location, stamp) => {
            let location: Location = location;
            let relative = location.relative_to(&base);
            let path = FilePath::new(&relative);
            let own = is_own(&location.relative_to(output), location.is_within(output), apart);
            (!relative.is_empty() && !own && !is_hidden(path) && matches(path)).then(|| {
                let id = DocumentId::from_relative_path(&relative);
                let version = Version::listed(stamp);
                Document { version, ..Document::file(id, location.uri()) }
            })
        }
        Entry::Odd(odd) => {
            let path = base.file_path().map(|base| base.join(&odd.path));
            let inside = path.zip(output.file_path()).and_then(|(path, output)| {
                Some(path.strip_prefix(output).ok()?.to_string_lossy().into_owned())
            });
            let own = is_own(inside.as_deref().unwrap_or_default(), inside.is_some(), apart);
            // An unreadable folder may contain files that match the pattern.
            (!own && !is_hidden(&odd.path) && (odd.is_folder || matches(&odd.path)))
                .then(|| unreadable(odd))
        }
    };
    let (mut files, mut behind) = (Vec::new(), after.map(str::to_owned));
    let mut earlier = EarlierOutputs::default();
    let mut more = true;
    // Repeated until a file is found that is not left out.
    while files.is_empty() && more {
        let listed = base
            .entries_after(behind.as_deref(), most)
            .await
            .map_err(|error| field_fault("source", error))?;
        more = listed.more;
        behind = listed.entries.last().map(|(key, _)| key.clone()).or(behind);
        for (key, entry) in listed.entries {
            let is_left_out = match &entry {
                Entry::Object(location, stamp) => {
                    // A pattern names its files explicitly, so earlier outputs are not left out.
                    (pattern.is_none()
                        && earlier.wrote(&base, &location.relative_to(&base)).await?)
                        || is_folder(location, stamp).await?
                }
                Entry::Odd(_) => false,
            };
            if let Some(document) = wanted(entry).filter(|_| !is_left_out) {
                files.push((document, FilePosition::Key(key)));
            }
        }
    }
    if after.is_none() && files.is_empty() {
        if pattern.is_some() || base.size().await?.is_none() {
            return Err(Failure::invalid_input(format!(
                "source {uri}: no documents were found there"
            )));
        }
        let id = DocumentId::from_relative_path(base.name());
        files.push((Document::file(id, base.uri()), FilePosition::Everything));
    }
    Ok((files, more))
}

/// One file: HTTP has no folders.
async fn over_http(uri: &str, base: &Location, pattern: bool) -> Result<Files, Failure> {
    if pattern || base.name().is_empty() {
        return Err(Failure::invalid_input(format!(
            "source {uri}: over HTTP nothing can be listed; name each file in documents or in a manifest"
        )));
    }
    if base.size().await?.is_none() {
        return Err(Failure::invalid_input(format!("source {uri}: there is no such file")));
    }
    let file = Document::file(DocumentId::from_relative_path(base.name()), base.uri());
    Ok((vec![(file, FilePosition::Everything)], false))
}

/// Whether a listed object is a folder that a store's console has made. Its key ends in a slash, which a
/// listing omits: there is no object of this name.
async fn is_folder(location: &Location, stamp: &Stamp) -> Result<bool, Failure> {
    let may_be = stamp.size == 0 && location.file_path().is_none();
    Ok(may_be && location.stamp().await?.is_none())
}

/// Whether the object was written by the batch itself, by its path in the output.
fn is_own(in_output: &str, inside: bool, apart: bool) -> bool {
    inside && (apart || in_output.split('/').next().is_some_and(is_ours))
}

fn is_hidden(relative: &FilePath) -> bool {
    // A bucket's key may contain `..`, which does not make it hidden.
    relative.iter().any(|part| part != ".." && part.as_encoded_bytes().starts_with(b"."))
}

/// A document that fails and reports the reason.
fn unreadable(odd: OddEntry) -> Document {
    let name = odd.printable();
    let id = DocumentId::from_relative_path(&name);
    let unreadable = Some(format!("{name}: {}", odd.why));
    Document { unreadable, ..Document::file(id, odd.uri) }
}

/// Longest pattern, in bytes. Its time to be compiled and to be tried grows faster than its length.
const MAX_PATTERN: usize = 1_000;

/// The folder before the first wildcard, and the pattern relative to it.
fn split_glob(uri: &str) -> Result<(String, Option<GlobMatcher>), Failure> {
    let Some(wildcard) = uri.find(['*', '?', '[']) else { return Ok((uri.to_owned(), None)) };
    let slash = uri[..wildcard].rfind('/').map_or(0, |slash| slash + 1);
    let (base, pattern) = uri.split_at(slash);
    if pattern.len() > MAX_PATTERN {
        return Err(Failure::invalid_input(format!(
            "source {base}…: the pattern has {} bytes; at most {MAX_PATTERN} are read",
            pattern.len()
        )));
    }
    let pattern = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| {
        Failure::invalid_input(format!("source {uri}: the pattern cannot be read: {error}"))
    })?;
    Ok((base.to_owned(), Some(pattern.compile_matcher())))
}

fn each(storage: &Storage, uris: &[String], before: usize) -> Result<Files, Failure> {
    let mut resolver = storage.resolver();
    let document = |(place, uri): (usize, &String)| {
        let location = resolver.resolve(uri);
        let location =
            location.map_err(|error| Failure::invalid_input(format!("documents {error}")))?;
        let id = DocumentId::from_relative_path(&location.relative_to_root());
        Ok((Document::file(id, location.uri()), FilePosition::Listed(place + 1)))
    };
    let files: Result<_, Failure> = uris.iter().enumerate().skip(before).map(document).collect();
    Ok((files?, false))
}

#[cfg(test)]
mod tests;
