//! Archives in a source: each document in one is a document of the batch.

use bytes::Bytes;
use tidegate_documents::{Limits, Unreadable, archive};
use tidegate_types::DocumentId;

use crate::{
    batch::job::{Document, resolve},
    document::version::Version,
    failure::Failure,
    storage::{Error, Location, Stamp, Storage},
};

/// Whether a file's name is one of an archive.
pub(super) fn is_archive(file: &Document) -> bool {
    let name = file.uri.rsplit('/').next().unwrap_or_default();
    file.unreadable.is_none() && file.text.is_none() && archive::is_named(name)
}

/// The documents in an archive, which is read whole; another file stays as it is.
pub(super) async fn expanded(
    storage: &Storage,
    file: Document,
    limits: &Limits,
) -> Result<Vec<Document>, Failure> {
    match is_archive(&file) {
        true => of_archive(storage, file, *limits).await,
        false => Ok(vec![file]),
    }
}

/// A file in an archive, unpacked: as large as archives may be.
///
/// # Errors
/// Within, why it cannot be read; without, `Transient` when a store fails.
pub(super) async fn unpacked(
    location: &Location,
    member: &str,
    limits: &Limits,
) -> Result<Result<(Bytes, Stamp), Unreadable>, Error> {
    let (bytes, stamp) = location.read_stamped().await?;
    let limits = Limits { bytes: limits.archive_bytes, ..*limits };
    let (name, member) = (location.name().to_owned(), member.to_owned());
    let read = tokio::task::spawn_blocking(move || archive::read(&bytes, &name, &member, &limits));
    let failed =
        || Unreadable::Unsupported { what: "in an archive at which its reader failed".into() };
    let read = read.await.unwrap_or_else(|_| Err(failed()));
    Ok(read.map(|(bytes, _)| (bytes.into(), stamp)))
}

/// An archive that cannot be read is a document that says why.
async fn of_archive(
    storage: &Storage,
    file: Document,
    limits: Limits,
) -> Result<Vec<Document>, Failure> {
    let location = resolve(storage, "source", &file.uri)?;
    let failed = |error| Failure::of_field("source", error);
    let size = match location.special() {
        Some(_) => None,
        None => location.size().await.map_err(failed)?,
    };
    // What is not there, or is no file, says so when it is read.
    let Some(size) = size else { return Ok(vec![file]) };
    let faulty = |fault: &Unreadable| {
        let unreadable = Some(fault.to_string());
        vec![Document { unreadable, ..Document::file(file.id.clone(), file.uri.clone()) }]
    };
    if size > limits.archive_bytes {
        let (what, most) = ("archive".into(), limits.archive_bytes);
        return Ok(faulty(&Unreadable::TooLarge { what, size, most }));
    }
    let (bytes, stamp) = match location.read_stamped().await {
        Ok(read) => read,
        Err(Error::Missing(_)) => return Ok(vec![file]),
        Err(error) => return Err(failed(error)),
    };
    let name = location.name().to_owned();
    let listed = tokio::task::spawn_blocking(move || archive::members(&bytes, &name, &limits));
    let members = match listed.await {
        Ok(Ok(Some(members))) => members,
        Ok(Ok(None)) => return Ok(vec![file]),
        Ok(Err(fault)) => return Ok(faulty(&fault)),
        Err(_) => {
            let what = "an archive at which its reader failed".into();
            return Ok(faulty(&Unreadable::Unsupported { what }));
        }
    };
    if members.is_empty() {
        return Ok(faulty(&Unreadable::Empty));
    }
    let document = |member: archive::Member| {
        let id = DocumentId::from_relative_path(&format!("{}/{}", file.id, member.path()));
        let unreadable = member.fault.map(|fault| fault.to_string());
        // While the archive is the same, so is what lies in it.
        let version = Version::listed(stamp.clone());
        let uri = format!("{}#{}", file.uri, member.name);
        Document { unreadable, version, ..Document::file(id, uri) }
    };
    Ok(members.into_iter().map(document).collect())
}
