//! The content of a document to send: its text, or its pages.

use bytes::Bytes;
use tidegate_calls::route::Route;
use tidegate_documents::{Format, LeftOut, Limits, Unreadable};
use tidegate_providers::{Picture, picture};
use tidegate_types::Lane;
use tidegate_workflows::contract::{Attach, FailureType, Job};

use crate::{
    archives::Fault,
    attempt::Attempt,
    document::ask::prompt::Content,
    failure::{self, Failure, MAX_DEAD_READERS, document_fault},
    fingerprint::Fingerprint,
    memory::MemoryShare,
    output::{job::Document, version::Version},
    services::Services,
    storage::Error,
};

/// Size in bytes from which a text is counted against the worker's memory.
const LARGE: usize = 1 << 20;

/// Maximum pages of a document that are sent as pictures. Bedrock's Converse takes twenty pictures
/// in a message
/// (<https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-call.html>), other
/// APIs more.
const MAX_PAGE_PICTURES: u32 = 20;

/// A document's bytes as they are in its store, not parsed yet.
#[derive(Debug)]
pub(crate) struct Raw {
    /// The version of the document.
    pub(crate) version: Version,
    body: Body,
    held: MemoryShare,
}

/// The content of a document to send.
#[derive(Debug)]
pub(crate) struct Extracted {
    pub(crate) content: Content,
    /// The version of the document, and which pages are missing from the content.
    pub(crate) version: Version,
    /// Whether a parser was needed.
    pub(crate) parsed: bool,
    /// The start of each page in the text, in bytes; empty if not known.
    pub(crate) pages: Vec<usize>,
    /// Its share of this worker's memory.
    pub(crate) held: MemoryShare,
}

#[derive(Debug)]
enum Body {
    /// A record's text.
    Text(String),
    /// A file's bytes, and its name.
    File(Bytes, String),
}

/// Protection against a document that kills the process that reads it. An attempt knows how many
/// workers have died during a read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Care<'a> {
    /// Deaths are neither known nor recorded.
    None,
    /// For an activity on this document alone.
    Alone(&'a Attempt),
    /// For an activity on several documents. The document that killed a worker is then unknown, so
    /// no document that may take much memory is read.
    Several(&'a Attempt),
}

impl<'a> Care<'a> {
    /// Returns the protection for one of several documents; `None` is an activity that does not
    /// count deaths.
    pub(crate) fn of_several(attempt: Option<&'a Attempt>) -> Self {
        attempt.map_or(Self::None, Self::Several)
    }

    fn attempt(self) -> Option<&'a Attempt> {
        match self {
            Self::None => None,
            Self::Alone(attempt) | Self::Several(attempt) => Some(attempt),
        }
    }

    /// Whether an earlier attempt has found that the document must be asked again.
    pub(crate) fn knows_an_update(self) -> bool {
        self.attempt().is_some_and(|attempt| attempt.state().document.updated)
    }

    /// Begins a read. Returns whether the server was told of it.
    ///
    /// # Errors
    /// `UnreadableDocument` when enough workers have died.
    async fn begin(self) -> Result<bool, Failure> {
        let refuse = |attempt: &Attempt, most_dead: u32| match attempt.dead_readers() {
            dead if dead >= most_dead => Err(failure::kills_its_reader(dead)),
            _ => Ok(()),
        };
        match self {
            Self::None => Ok(false),
            Self::Alone(attempt) => {
                refuse(attempt, MAX_DEAD_READERS)?;
                Ok(attempt.announce_reading_alone().await)
            }
            Self::Several(attempt) => {
                refuse(attempt, 1)?;
                attempt.announce_reading().await;
                Ok(true)
            }
        }
    }

    async fn end(self, told: bool) {
        if let Some(attempt) = self.attempt() {
            attempt.finish_reading(told).await;
        }
    }
}

/// Gets the version of a document from its stamp, without reading the content.
pub(crate) async fn fetch_version(
    services: &Services,
    document: &Document,
) -> Result<Version, Failure> {
    // The read reports a fault of the location.
    let Ok(location) = services.storage.resolve(split_uri(document).0) else {
        return Ok(Version::default());
    };
    let stamp = location.stamp().await.map_err(document_fault)?;
    Ok(stamp.map(Version::listed).unwrap_or_default())
}

/// Reads a document's bytes.
pub(crate) async fn fetch(
    services: &Services,
    document: &Document,
    lane: &Lane,
) -> Result<Raw, Failure> {
    let unreadable = |message: String| Failure::never(FailureType::UnreadableDocument, message);
    if let Some(text) = &document.text {
        let (version, body) = (document.version.clone(), Body::Text(text.clone()));
        return Ok(Raw { version, body, held: MemoryShare::default() });
    }
    if let Some(why) = &document.unreadable {
        return Err(unreadable(why.clone()));
    }
    if let Some(line) = document.line {
        let bytes = Box::pin(self::read_line(services, document, line)).await?;
        let (version, text) = (document.version.clone(), String::from_utf8_lossy(&bytes));
        return Ok(Raw {
            version,
            body: Body::Text(text.into_owned()),
            held: MemoryShare::default(),
        });
    }
    let (uri, member) = split_uri(document);
    let location = services.storage.resolve(uri).map_err(|error| unreadable(error.to_string()))?;
    if let Some(what) = location.special() {
        return Err(unreadable(format!("{location} is {what}, and no file")));
    }
    let gone = || unreadable(format!("{location} does not exist"));
    if let Some(member) = member {
        let reader = services.reader_for(lane);
        let read = services.archives.read(&location, member, &reader, reader.limits()).await;
        let (bytes, name, stamp) = read.map_err(|fault| match fault {
            Fault::Store(Error::Missing(_)) => gone(),
            Fault::Store(error) => document_fault(error),
            Fault::NoReader(error) => no_reader(&error),
            Fault::Unreadable(why) => not_read(&why),
        })?;
        let held = services.memory.hold(bytes.len() as u64).await;
        let version = Version::read(&bytes, stamp);
        return Ok(Raw { version, body: Body::File(bytes, name), held });
    }
    let size = location.size().await.map_err(document_fault)?.ok_or_else(gone)?;
    let most = services.reader.limits().bytes;
    if size > most {
        return Err(not_read(&Unreadable::TooLarge { what: "file".into(), size, most }));
    }
    let held = services.memory.hold(size).await;
    let (bytes, stamp) = location.read_at_most(most).await.map_err(|error| match error {
        Error::Missing(_) => gone(),
        error => document_fault(error),
    })?;
    let version = Version::read(&bytes, stamp);
    Ok(Raw { version, body: Body::File(bytes, location.name().to_owned()), held })
}

/// Reads a line of a file, by its range of bytes.
pub(crate) async fn read_line(
    services: &Services,
    document: &Document,
    (from, to): (u64, u64),
) -> Result<Bytes, Failure> {
    let (uri, _) = split_uri(document);
    let unreadable = |message: String| Failure::never(FailureType::UnreadableDocument, message);
    let location = services.storage.resolve(uri).map_err(|error| unreadable(error.to_string()))?;
    location.read_range(from..to).await.map_err(|error| match error {
        Error::Missing(_) => unreadable("the file of the requests was removed".to_owned()),
        error => document_fault(error),
    })
}

/// Turns a document's bytes into the content that is sent.
pub(crate) async fn extract(
    services: &Services,
    raw: Raw,
    job: &Job,
    route: &Route,
    care: Care<'_>,
) -> Result<Extracted, Failure> {
    let Raw { mut version, body, mut held } = raw;
    let (bytes, name) = match body {
        Body::Text(text) => {
            let (content, pages) = (Content::Text(text), Vec::new());
            return Ok(Extracted { content, version, parsed: false, pages, held });
        }
        Body::File(bytes, name) => (bytes, name),
    };
    let attached =
        job.attach == Attach::Native && matches!(Format::detect(&bytes, &name), Ok(Format::Pdf));
    let is_plain = Format::detect(&bytes, &name).is_ok_and(Format::is_plain);
    let may_kill = bytes.len() >= LARGE || !is_plain;
    let told = if may_kill { Some(care.begin().await?) } else { None };
    let edge = route.models.iter().map(|model| picture::edge(model.model())).min();
    let limits = *services.reader.limits();
    let limits = Limits {
        picture_edge: edge.unwrap_or(limits.picture_edge),
        page_pictures: if job.attach == Attach::Auto { MAX_PAGE_PICTURES } else { 0 },
        ..limits
    };
    let reader = services.reader_for(&job.lane);
    let read = reader.read_within(bytes.clone(), &name, limits).await;
    if let Some(told) = told {
        care.end(told).await;
    }
    let mut pages = Vec::new();
    let content = match read.map_err(|error| no_reader(&error))? {
        // All pages are sent as pictures, so none is missing.
        Ok(read) if attached => {
            version = version.extracted(Fingerprint::of_bytes(&bytes), LeftOut::default());
            Content::Pdf(bytes, read.pages.unwrap_or(1))
        }
        Ok(read) => {
            let pictures = read.pictures.iter().map(|picture| &*picture.bytes);
            let extracted =
                Fingerprint::of_parts([read.text.as_bytes()].into_iter().chain(pictures));
            version = version.extracted(extracted, read.left_out);
            pages = read.page_starts;
            match read.pictures.is_empty() {
                true => Content::Text(read.text),
                false => Content::Pictures(
                    read.text,
                    read.pictures.into_iter().map(to_picture).collect(),
                ),
            }
        }
        // A scan: its pages are sent as pictures.
        Err(Unreadable::NoTextLayer { pages }) if attached => {
            version = version.extracted(Fingerprint::of_bytes(&bytes), LeftOut::default());
            Content::Pdf(bytes, pages)
        }
        Err(why) => return Err(not_read(&why)),
    };
    held.shrink(content.bytes());
    Ok(Extracted { content, version, parsed: !is_plain, pages, held })
}

/// Reads a document: a record's text, or an object's text or pages.
pub(crate) async fn read(
    services: &Services,
    document: Document,
    job: &Job,
    route: &Route,
    care: Care<'_>,
) -> Result<(Content, Version), Failure> {
    let raw = fetch(services, &document, &job.lane).await?;
    let Extracted { content, version, .. } = extract(services, raw, job, route, care).await?;
    Ok((content, version))
}

/// A document's bytes, unless they were fetched already.
pub(crate) async fn fetch_unless_read(
    services: &Services,
    document: &Document,
    raw: Option<Box<Raw>>,
    lane: &Lane,
) -> Result<Raw, Failure> {
    match raw {
        Some(raw) => Ok(*raw),
        None => fetch(services, document, lane).await,
    }
}

/// Splits a document's URI into the URI of its object and, for an archive, the path within it.
fn split_uri(document: &Document) -> (&str, Option<&str>) {
    match document.uri.split_once('#') {
        Some((archive, member)) if document.text.is_none() => (archive, Some(member)),
        _ => (&document.uri, None),
    }
}

fn to_picture(picture: tidegate_documents::Picture) -> Picture {
    let tidegate_documents::Picture { media_type, width, height, bytes } = picture;
    Picture { media_type, width, height, bytes }
}

/// The parser's process cannot be started: a fault of this worker, not of the document.
fn no_reader(error: &std::io::Error) -> Failure {
    Failure::transient(format!("the document's reader cannot be started: {error}"))
}

fn not_read(unreadable: &Unreadable) -> Failure {
    let kind = match unreadable {
        Unreadable::TooLarge { .. } => FailureType::TooLarge,
        _ => FailureType::UnreadableDocument,
    };
    Failure::never(kind, unreadable.to_string())
}
