//! Files whose records are documents: read once, when the batch is planned. Their texts lie in the
//! shards' manifests.

use tidegate_documents::{Format, RecordFields, Unreadable, records};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::Records;

use crate::{
    batch::source::{Document, input_or_store_failure, resolve},
    failure::Failure,
    storage::Storage,
};

/// A file of records is read whole, by one worker.
const MAX_BYTES: u64 = 64 << 20;

/// Puts the records of every CSV and JSONL file in the file's place; other files stay as they are.
///
/// # Errors
/// `InvalidInput` for a file that has no records, or not the fields that are asked for; `Transient`
/// when the store fails.
pub async fn of(
    storage: &Storage,
    files: Vec<Document>,
    fields: &Records,
) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::with_capacity(files.len());
    for file in files {
        let format = Format::of(b"", file.uri.rsplit('/').next().unwrap_or_default());
        match format {
            Ok(format @ (Format::Csv | Format::Jsonl)) => {
                documents.extend(read(storage, &file, format, fields).await?)
            }
            _ => documents.push(file),
        }
    }
    Ok(documents)
}

async fn read(
    storage: &Storage,
    file: &Document,
    format: Format,
    fields: &Records,
) -> Result<Vec<Document>, Failure> {
    let location = resolve(storage, "source", &file.uri)?;
    let refused =
        |why: &dyn std::fmt::Display| Failure::invalid_input(format!("{location}: {why}"));
    let size = location
        .size()
        .await
        .map_err(|error| input_or_store_failure("source", error))?
        .unwrap_or(0);
    if size > MAX_BYTES {
        return Err(refused(&Unreadable::TooLarge {
            what: "file of records".into(),
            size,
            most: MAX_BYTES,
        }));
    }
    let bytes = location.read().await.map_err(|error| input_or_store_failure("source", error))?;
    let wanted = RecordFields { id: fields.id.as_deref(), text: fields.text.as_deref() };
    let records = records(&bytes, format, wanted).map_err(|error| refused(&error))?;
    let document = |(number, record): (u64, Result<tidegate_documents::Record, Unreadable>)| {
        let (name, text, unreadable) = match record {
            Ok(record) if record.text.trim().is_empty() => {
                (record.id, None, Some(Unreadable::Empty.to_string()))
            }
            Ok(record) => (record.id, Some(record.text), None),
            Err(error) => (format!("{number:07}"), None, Some(error.to_string())),
        };
        let id = DocumentId::from_relative_path(&format!("{}/{name}", file.id));
        Document { id, uri: format!("{}#{name}", file.uri), text, unreadable }
    };
    Ok((1..).zip(records).map(document).collect())
}
