//! A manifest: a JSONL object that names a batch's documents, read block by block.

use serde::Deserialize;
use tidegate_types::DocumentId;

use crate::{
    batch::source::page::LinePosition,
    failure::{Failure, field_fault},
    output::{
        job::{Document, resolve},
        jsonl::{object, unmarked},
    },
    storage::{Location, Storage},
};

/// Bytes that are read at once.
const BLOCK: u64 = 4 << 20;

/// Longest manifest of a web server, in bytes.
const MAX_AT_ONCE: u64 = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    uri: String,
}

/// The next documents, each with the position after it, and whether more may follow.
pub(super) async fn lines(
    storage: &Storage,
    uri: &str,
    mut place: LinePosition,
    most: usize,
) -> Result<(Vec<(Document, LinePosition)>, bool), Failure> {
    let location = resolve(storage, "manifest", uri)?;
    if let Some(what) = location.special() {
        return Err(Failure::invalid_input(format!("manifest {uri} is {what}; name a file")));
    }
    let (bytes, is_last) = block(&location, place.byte).await?;
    let (mut documents, mut resolver) = (Vec::new(), storage.resolver());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if documents.len() >= most {
            return Ok((documents, true));
        }
        if !is_last && line.last() != Some(&b'\n') {
            break;
        }
        let text = if place.byte == 0 { unmarked(line) } else { line };
        place = LinePosition { byte: place.byte + line.len() as u64, line: place.line + 1 };
        let bad = |why: String| {
            Failure::invalid_input(format!("manifest {uri}, line {}: {why}", place.line))
        };
        if text.trim_ascii().is_empty() {
            continue;
        }
        let Ok(text) = std::str::from_utf8(text) else {
            return Err(Failure::invalid_input(format!("manifest {uri} is not UTF-8 text")));
        };
        let line: Line = object(text.as_bytes(), "a line of a manifest")
            .map_err(|why| bad(format!("{why}; write {{\"id\":…,\"uri\":…}}")))?;
        if line.id.trim().is_empty() {
            return Err(bad("the id is empty".to_owned()));
        }
        let location = resolver.resolve(&line.uri).map_err(|error| bad(error.to_string()))?;
        let id = DocumentId::from_relative_path(&line.id);
        documents.push((Document::file(id, location.uri()), place.clone()));
    }
    if documents.is_empty() && !is_last {
        return Err(Failure::invalid_input(format!(
            "manifest {uri}, line {}: it has no end within {} MiB",
            place.line + 1,
            BLOCK >> 20
        )));
    }
    Ok((documents, !is_last))
}

/// Reads the bytes from this offset on, and whether they are the last ones.
async fn block(location: &Location, from: u64) -> Result<(bytes::Bytes, bool), Failure> {
    let of_field = |error| field_fault("manifest", error);
    let size = location.size().await.map_err(of_field)?;
    let size = size.unwrap_or(0);
    // Not every web server supports ranges.
    if (from == 0 && size <= BLOCK) || location.is_read_only() {
        let (whole, _) = location.read_at_most(MAX_AT_ONCE).await.map_err(of_field)?;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(whole.len());
        return Ok((whole.slice(from..), true));
    }
    if from >= size {
        return Ok((bytes::Bytes::new(), true));
    }
    let end = (from + BLOCK).min(size);
    Ok((location.read_range(from..end).await.map_err(of_field)?, end == size))
}
