//! What of a document goes to the provider: its text, or its pages.

use bytes::Bytes;
use tidegate_documents::{Format, Unreadable};
use tidegate_workflows::contract::FailureType;

use crate::{
    batch::job::Document, call::prompt::Content, document::version::Version, failure::Failure,
    services::Services, storage::Error,
};

/// A document as it lies in its store: nothing has been made of it yet.
#[derive(Debug)]
pub(crate) struct Raw {
    /// Which version it is.
    pub(crate) version: Version,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// A record's text.
    Text(String),
    /// A file's bytes, and its name.
    File(Bytes, String),
}

/// Reads a document: a record's text, or an object's text or pages.
pub(crate) async fn read(
    services: &Services,
    document: &Document,
    attach_pdf: bool,
) -> Result<(Content, Version), Failure> {
    let raw = fetch(services, document).await?;
    let version = raw.version.clone();
    Ok((extract(services, raw, attach_pdf).await?, version))
}

/// Reads a document's bytes.
pub(crate) async fn fetch(services: &Services, document: &Document) -> Result<Raw, Failure> {
    let unreadable = |message: String| Failure::never(FailureType::UnreadableDocument, message);
    if let Some(text) = &document.text {
        return Ok(Raw { version: document.version.clone(), body: Body::Text(text.clone()) });
    }
    if let Some(why) = &document.unreadable {
        return Err(unreadable(why.clone()));
    }
    let location =
        services.storage.resolve(&document.uri).map_err(|error| unreadable(error.to_string()))?;
    if let Some(what) = location.special() {
        return Err(unreadable(format!("{location} is {what}, and no file")));
    }
    let gone = || unreadable(format!("{location} does not exist any more"));
    let size = location.size().await.map_err(Failure::of_document)?.ok_or_else(gone)?;
    let most = services.reader.limits().bytes;
    if size > most {
        return Err(not_read(&Unreadable::TooLarge { what: "file".into(), size, most }));
    }
    let (bytes, stamp) = location.read_stamped().await.map_err(|error| match error {
        Error::Missing(_) => gone(),
        error => Failure::of_document(error),
    })?;
    let version = Version::read(&bytes, stamp);
    Ok(Raw { version, body: Body::File(bytes, location.name().to_owned()) })
}

/// Makes of a document's bytes what is sent.
pub(crate) async fn extract(
    services: &Services,
    raw: Raw,
    attach_pdf: bool,
) -> Result<Content, Failure> {
    let (bytes, name) = match raw.body {
        Body::Text(text) => return Ok(Content::Text(text)),
        Body::File(bytes, name) => (bytes, name),
    };
    let attached = attach_pdf && matches!(Format::of(&bytes, &name), Ok(Format::Pdf));
    let read = services.reader.read(bytes.clone(), &name).await;
    // No process for the parser: this worker's trouble, not the document's.
    let no_reader =
        |error| Failure::transient(format!("the document's reader cannot be started: {error}"));
    match read.map_err(no_reader)? {
        Ok(read) if attached => Ok(Content::Pdf(bytes, read.pages.unwrap_or(1))),
        Ok(read) => Ok(Content::Text(read.text)),
        // A scan: the model reads pictures.
        Err(Unreadable::NoTextLayer { pages }) if attached => Ok(Content::Pdf(bytes, pages)),
        Err(why) => Err(not_read(&why)),
    }
}

/// The same as [`read`], for streams.
pub(crate) async fn read_owned(
    services: &Services,
    document: Document,
    attach_pdf: bool,
) -> Result<(Content, Version), Failure> {
    read(services, &document, attach_pdf).await
}

fn not_read(unreadable: &Unreadable) -> Failure {
    let kind = match unreadable {
        Unreadable::TooLarge { .. } => FailureType::TooLarge,
        _ => FailureType::UnreadableDocument,
    };
    Failure::never(kind, unreadable.to_string())
}
