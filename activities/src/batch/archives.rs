//! Archives in a source: each document in an archive is a document of the batch.

use bytes::Bytes;
use tidegate_documents::{Limits, Unreadable, archive};
use tidegate_types::DocumentId;

use crate::{
    archives::Fault,
    batch::source::PageBudget,
    failure::{Failure, field_fault},
    output::{
        job::{Document, resolve},
        version::Version,
    },
    storage::{Error, Location, Stamp, Storage},
};

/// Whether a file is an archive, by its name.
pub(super) fn is_archive(file: &Document) -> bool {
    let name = file.uri.rsplit('/').next().unwrap_or_default();
    file.unreadable.is_none() && file.text.is_none() && archive::has_archive_extension(name)
}

/// Replaces an archive by the documents in it; the archive is read whole. Returns any other file
/// unchanged.
pub(super) async fn expand(
    storage: &Storage,
    file: Document,
    room: &PageBudget,
) -> Result<Vec<Document>, Failure> {
    match is_archive(&file) {
        true => list_archive(storage, file, room).await,
        false => Ok(vec![file]),
    }
}

/// Unpacks a file from an archive. The file may be as large as an archive.
///
/// # Errors
/// Inner: why it cannot be read. Outer: `Transient` when a store fails.
pub(super) async fn unpack(
    location: &Location,
    member: &str,
    room: &PageBudget,
) -> Result<Result<(Bytes, Stamp), Unreadable>, Failure> {
    let limits = Limits { bytes: room.limits.archive_bytes, ..room.limits };
    match room.archives.read(location, member, &room.reader, &limits).await {
        Ok((bytes, _, stamp)) => Ok(Ok((bytes, stamp))),
        Err(fault) => unreadable(fault).map(Err),
    }
}

/// Why an archive cannot be read.
///
/// # Errors
/// `Transient` when a store or the worker fails.
fn unreadable(fault: Fault) -> Result<Unreadable, Failure> {
    match fault {
        Fault::Store(error) => Err(field_fault("source", error)),
        Fault::NoReader(error) => Err(no_reader(&error)),
        Fault::Unreadable(fault) => Ok(fault),
    }
}

/// The reader's process cannot be started: a fault of this worker, not of the archive.
fn no_reader(error: &std::io::Error) -> Failure {
    Failure::transient(format!("no process for an archive: {error}"))
}

/// Lists the documents of an archive. An unreadable archive becomes one document that reports the
/// fault.
async fn list_archive(
    storage: &Storage,
    file: Document,
    room: &PageBudget,
) -> Result<Vec<Document>, Failure> {
    let location = resolve(storage, "source", &file.uri)?;
    // An object that is missing, or is not a file, is reported when it is read.
    if location.special().is_some() {
        return Ok(vec![file]);
    }
    let faulty = |fault: &Unreadable| {
        let unreadable = Some(fault.to_string());
        vec![Document { unreadable, ..Document::file(file.id.clone(), file.uri.clone()) }]
    };
    let (archive, stamp) = match room.archives.archive(&location, &room.reader, &room.limits).await
    {
        Ok(loaded) => loaded,
        Err(Fault::Store(Error::Missing(_))) => return Ok(vec![file]),
        Err(fault) => return Ok(faulty(&unreadable(fault)?)),
    };
    let listed = room.reader.list_members(&archive, &room.limits).await;
    let members = match listed.map_err(|error| no_reader(&error))? {
        Ok(Some(members)) => members,
        Ok(None) => return Ok(vec![file]),
        Err(fault) => return Ok(faulty(&fault)),
    };
    if members.is_empty() {
        return Ok(faulty(&Unreadable::Empty));
    }
    let document = |member: archive::Member| {
        let id = DocumentId::from_relative_path(&format!("{}/{}", file.id, member.path()));
        let unreadable = member.fault.map(|fault| fault.to_string());
        // While the archive is unchanged, so are the files in it.
        let version = Version::listed(stamp.clone());
        let uri = format!("{}#{}", file.uri, member.name);
        Document { unreadable, version, ..Document::file(id, uri) }
    };
    Ok(members.into_iter().map(document).collect())
}
