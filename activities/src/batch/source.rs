//! Which documents a batch has.

use std::{
    collections::{BTreeMap, HashMap, HashSet, btree_map},
    path::Path as FilePath,
};

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;
use tidegate_documents::{Format, Record, RecordFields, Records as RecordFile, Unreadable};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{Job, Records, Source};

use crate::{
    batch::{
        archives,
        job::{Document, resolve},
        places,
        rows::{IsNumbered, Known},
    },
    document::version::Version,
    failure::Failure,
    storage::{Entry, Location, OddEntry, Storage},
};

/// A file of records is read whole, by one worker.
const MAX_RECORDS_BYTES: u64 = 64 << 20;

/// What a batch works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// Ordered by id, which each has alone.
    pub documents: Vec<Document>,
    /// So many have a number behind their id, because others before them in the source have the
    /// same.
    pub renamed: u64,
}

/// All documents of a source. A file that is named twice under one id is one document; records are
/// as many documents as there are records, and archives as many as there are documents in them.
///
/// Costs about 250 bytes of memory a document, on the one worker that plans.
///
/// # Errors
/// `InvalidInput` for what the batch's author must change; `Transient` when a store fails.
pub async fn documents(
    storage: &Storage,
    job: &Job,
    output: &Location,
) -> Result<Documents, Failure> {
    let mut documents = match &job.source {
        Source::Prefix(uri) => under(storage, uri, output).await?,
        Source::Documents(uris) => each(storage, uris)?,
        Source::Manifest(uri) => listed(storage, uri).await?,
    };
    let mut seen = HashSet::new();
    documents.retain(|document| seen.insert((document.id.clone(), document.uri.clone())));
    documents = archives::expanded(storage, documents).await?;
    if let Some(fields) = &job.records {
        documents = records_of(storage, documents, fields, output).await?;
    }
    if documents.is_empty() {
        return Err(Failure::invalid_input("the source holds no documents"));
    }
    Ok(with_ids_of_their_own(documents))
}

/// The first document of an id keeps it; the later ones are numbered in the order of the source,
/// so that they have the same ids in every run over the same source.
fn with_ids_of_their_own(documents: Vec<Document>) -> Documents {
    let mut by_id: BTreeMap<DocumentId, Document> = BTreeMap::new();
    let mut later = Vec::new();
    for document in documents {
        match by_id.entry(document.id.clone()) {
            btree_map::Entry::Vacant(place) => drop(place.insert(document)),
            btree_map::Entry::Occupied(_) => later.push(document),
        }
    }
    let renamed = later.len() as u64;
    let mut numbers: HashMap<DocumentId, u64> = HashMap::new();
    for document in later {
        let number = numbers.entry(document.id.clone()).or_insert(1);
        let id = loop {
            *number += 1;
            let id = document.id.numbered(*number);
            if !by_id.contains_key(&id) {
                break id;
            }
        };
        // The place of a record names it by its id.
        let is_record = document.uri.contains('#')
            && (document.text.is_some() || document.unreadable.is_some());
        let uri =
            if is_record { format!("{}~{number}", document.uri) } else { document.uri.clone() };
        by_id.insert(id.clone(), Document { id, uri, ..document });
    }
    Documents { documents: by_id.into_values().collect(), renamed }
}

/// A folder, a single file, a glob, or an object-store prefix. Hidden files and the batch's own
/// output are left out.
async fn under(storage: &Storage, uri: &str, output: &Location) -> Result<Vec<Document>, Failure> {
    let (base, pattern) = split_glob(uri)?;
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
    // Where the output folder is the source folder itself, only what we write there is left out.
    let apart = output.is_within(&base) && !base.is_within(output);
    let matches = |relative: &FilePath| pattern.as_ref().is_none_or(|it| it.is_match(relative));
    let mut documents = Vec::new();
    let listed = base.entries(|entry| match entry {
        Entry::Object(location, stamp) => {
            let relative = location.relative_to(&base);
            let path = FilePath::new(&relative);
            let own = is_own(&location.relative_to(output), location.is_within(output), apart);
            if !relative.is_empty() && !own && !is_hidden(path) && matches(path) {
                let id = DocumentId::from_relative_path(&relative);
                let version = Version::listed(stamp);
                documents.push(Document { version, ..Document::file(id, location.uri()) });
            }
        }
        Entry::Odd(odd) => {
            let path = base.file_path().map(|base| base.join(&odd.path));
            let inside = path.zip(output.file_path()).and_then(|(path, output)| {
                Some(path.strip_prefix(output).ok()?.to_string_lossy().into_owned())
            });
            let own = is_own(inside.as_deref().unwrap_or_default(), inside.is_some(), apart);
            // A folder that cannot be read may hold what the pattern asks for.
            if !own && !is_hidden(&odd.path) && (odd.is_folder || matches(&odd.path)) {
                documents.push(unreadable(odd));
            }
        }
    });
    listed.await.map_err(|error| Failure::of_field("source", error))?;
    // Stores list in an order of their own.
    documents.sort_by(|one, other| one.uri.cmp(&other.uri));
    if documents.is_empty() && pattern.is_none() && base.size().await?.is_some() {
        let name = base.name().to_owned();
        documents.push(Document::file(DocumentId::from_relative_path(&name), base.uri()));
    }
    if documents.is_empty() {
        return Err(Failure::invalid_input(format!("source {uri}: no documents were found there")));
    }
    Ok(documents)
}

/// One file: HTTP knows no folders.
async fn over_http(uri: &str, base: &Location, pattern: bool) -> Result<Vec<Document>, Failure> {
    if pattern || base.name().is_empty() {
        return Err(Failure::invalid_input(format!(
            "source {uri}: over HTTP nothing can be listed; name each file in documents or in a manifest"
        )));
    }
    if base.size().await?.is_none() {
        return Err(Failure::invalid_input(format!("source {uri}: there is no such file")));
    }
    Ok(vec![Document::file(DocumentId::from_relative_path(base.name()), base.uri())])
}

/// What the batch itself writes: by its place in the output, if it lies there.
fn is_own(in_output: &str, inside: bool, apart: bool) -> bool {
    let ours = ["results", places::FOLDER, "results.jsonl", "failures.jsonl", "report.json"];
    let first = in_output.split('/').next().unwrap_or_default();
    // Behind a # stands the number of an upload that was broken off.
    let name = first.split('#').next().unwrap_or_default();
    inside && (apart || ours.contains(&name))
}

fn is_hidden(relative: &FilePath) -> bool {
    // A bucket's key may hold what would lead upwards in a folder: that hides nothing.
    relative.iter().any(|part| part != ".." && part.as_encoded_bytes().starts_with(b"."))
}

/// A document that fails by itself, and says why.
fn unreadable(odd: OddEntry) -> Document {
    let name = odd.printable();
    let id = DocumentId::from_relative_path(&name);
    let unreadable = Some(format!("{name}: {}", odd.why));
    Document { unreadable, ..Document::file(id, odd.uri) }
}

/// The folder before the first wildcard, and the pattern relative to it.
fn split_glob(uri: &str) -> Result<(String, Option<GlobMatcher>), Failure> {
    let Some(wildcard) = uri.find(['*', '?', '[']) else { return Ok((uri.to_owned(), None)) };
    let slash = uri[..wildcard].rfind('/').map_or(0, |slash| slash + 1);
    let (base, pattern) = uri.split_at(slash);
    let pattern = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| {
        Failure::invalid_input(format!("source {uri}: the pattern cannot be read: {error}"))
    })?;
    Ok((base.to_owned(), Some(pattern.compile_matcher())))
}

fn each(storage: &Storage, uris: &[String]) -> Result<Vec<Document>, Failure> {
    let document = |uri: &String| {
        let location = resolve(storage, "documents", uri)?;
        Ok(Document::file(
            DocumentId::from_relative_path(&location.relative_to_root()),
            location.uri(),
        ))
    };
    uris.iter().map(document).collect()
}

async fn listed(storage: &Storage, uri: &str) -> Result<Vec<Document>, Failure> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        id: String,
        uri: String,
    }
    let location = resolve(storage, "manifest", uri)?;
    if let Some(what) = location.special() {
        return Err(Failure::invalid_input(format!("manifest {uri} is {what}; name a file")));
    }
    let bytes = location.read().await.map_err(|error| Failure::of_field("manifest", error))?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Failure::invalid_input(format!("manifest {uri} is not UTF-8 text")))?;
    let mut documents = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |why: String| {
            Failure::invalid_input(format!("manifest {uri}, line {}: {why}", number + 1))
        };
        let line: Line = serde_json::from_str(line)
            .map_err(|error| bad(format!("{error}; write {{\"id\":…,\"uri\":…}}")))?;
        if line.id.trim().is_empty() {
            return Err(bad("the id is empty".to_owned()));
        }
        let location = storage.resolve(&line.uri).map_err(|error| bad(error.to_string()))?;
        documents.push(Document::file(DocumentId::from_relative_path(&line.id), location.uri()));
    }
    Ok(documents)
}

/// Puts the records of every CSV and JSONL file in the file's place; other files stay as they are.
/// Their texts lie in the shards' manifests, because a file of records is read once.
async fn records_of(
    storage: &Storage,
    files: Vec<Document>,
    fields: &Records,
    output: &Location,
) -> Result<Vec<Document>, Failure> {
    let of_records: Vec<DocumentId> = files
        .iter()
        .filter(|file| format_of_records(file).is_some())
        .map(|file| file.id.clone())
        .collect();
    let known = Known::of(output, &of_records).await?;
    let mut documents = Vec::with_capacity(files.len());
    for file in files {
        match format_of_records(&file) {
            Some(format) => {
                let mut rows = read_records(storage, &file, format, fields).await?;
                known.bind(&mut rows);
                documents.extend(rows.into_iter().map(|(row, _)| row));
            }
            None => documents.push(file),
        }
    }
    Ok(documents)
}

/// The format of a file of records; `None` for other files.
fn format_of_records(file: &Document) -> Option<Format> {
    let format = Format::of(b"", file.uri.rsplit('/').next().unwrap_or_default());
    format
        .ok()
        .filter(|format| matches!(format, Format::Csv | Format::Jsonl) && file.unreadable.is_none())
}

async fn read_records(
    storage: &Storage,
    file: &Document,
    format: Format,
    fields: &Records,
) -> Result<Vec<(Document, IsNumbered)>, Failure> {
    let location = resolve(storage, "source", &file.uri)?;
    if let Some(what) = location.special() {
        let unreadable = Some(format!("{location} is {what}, and no file"));
        return Ok(vec![(Document { unreadable, ..file.clone() }, IsNumbered(false))]);
    }
    let refused =
        |why: &dyn std::fmt::Display| Failure::invalid_input(format!("{location}: {why}"));
    let size =
        location.size().await.map_err(|error| Failure::of_field("source", error))?.unwrap_or(0);
    if size > MAX_RECORDS_BYTES {
        return Err(refused(&Unreadable::TooLarge {
            what: "file of records".into(),
            size,
            most: MAX_RECORDS_BYTES,
        }));
    }
    let bytes = location.read().await.map_err(|error| Failure::of_field("source", error))?;
    let wanted = RecordFields { id: fields.id.as_deref(), text: fields.text.as_deref() };
    let mut records =
        RecordFile::of_bytes(&bytes, format, wanted).map_err(|error| refused(&error))?;
    let mut read = Vec::new();
    while let Some(record) = records.read_next().map_err(|error| refused(&error))? {
        read.push(record);
    }
    let document = |(number, record): (u64, Result<Record, Unreadable>)| {
        let mut is_numbered = true;
        let (name, text, unreadable, version) = match record {
            Ok(record) => {
                is_numbered = record.is_numbered;
                let text = Some(record.text).filter(|text| !text.trim().is_empty());
                let unreadable = text.is_none().then(|| Unreadable::Empty.to_string());
                (record.id, text, unreadable, Version::of_record(&record.json))
            }
            Err(error) => {
                (format!("{number:07}"), None, Some(error.to_string()), Version::default())
            }
        };
        let id = DocumentId::from_relative_path(&format!("{}/{name}", file.id));
        let uri = format!("{}#{name}", file.uri);
        (Document { id, uri, text, unreadable, version }, IsNumbered(is_numbered))
    };
    Ok((1..).zip(read).map(document).collect())
}

#[cfg(test)]
mod tests;
