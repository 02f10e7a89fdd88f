//! Which documents a batch has.

use std::collections::BTreeMap;

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;
use tidegate_documents::{Format, Record, RecordFields, Unreadable};
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{Job, Records, Source};

use crate::{
    batch::job::{self, Document, resolve},
    failure::Failure,
    storage::{Location, Storage},
};

/// A file of records is read whole, by one worker.
const MAX_RECORDS_BYTES: u64 = 64 << 20;

/// All documents of a source, ordered by id.
///
/// Costs about 150 bytes of memory a document, on the one worker that plans.
///
/// # Errors
/// `InvalidInput` for what the batch's author must change; `Transient` when a store fails.
pub async fn documents(
    storage: &Storage,
    job: &Job,
    output: &Location,
) -> Result<Vec<Document>, Failure> {
    let documents = match &job.source {
        Source::Prefix(uri) => under(storage, uri, output).await?,
        Source::Documents(uris) => each(storage, uris)?,
        Source::Manifest(uri) => listed(storage, uri).await?,
    };
    let documents = match &job.records {
        None => documents,
        Some(fields) => records_of(storage, documents, fields).await?,
    };
    let mut by_id: BTreeMap<DocumentId, Document> = BTreeMap::new();
    for document in documents {
        let (id, uri) = (document.id.clone(), document.uri.clone());
        if let Some(Document { uri: other, .. }) = by_id.insert(id.clone(), document)
            && other != uri
        {
            return Err(Failure::invalid_input(format!(
                "{other} and {uri} would both be document \"{id}\"; give them different ids"
            )));
        }
    }
    if by_id.is_empty() {
        return Err(Failure::invalid_input("the source holds no documents"));
    }
    Ok(by_id.into_values().collect())
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
    let mut documents = Vec::new();
    let mut add = |location: &Location, relative: &str| {
        documents.push(Document::file(DocumentId::from_relative_path(relative), location.uri()));
    };
    base.list(|location| {
        let relative = location.relative_to(&base);
        let hidden = relative.split('/').any(|part| part.starts_with('.'));
        let wanted = pattern.as_ref().is_none_or(|pattern| pattern.is_match(&relative));
        // Where the output folder is the source folder itself, only what we write there is left
        // out.
        let own = if output.is_within(&base) && !base.is_within(output) {
            location.is_within(output)
        } else {
            is_own(&location, output)
        };
        if !hidden && wanted && !own && !relative.is_empty() {
            add(&location, &relative);
        }
    })
    .await?;
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

fn is_own(location: &Location, output: &Location) -> bool {
    let ours = ["results", job::FOLDER, "results.jsonl", "failures.jsonl", "report.json"];
    ours.iter().any(|name| location.is_within(&output.child(name)))
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
    let bytes = resolve(storage, "manifest", uri)?
        .read()
        .await
        .map_err(|error| Failure::of_field("manifest", error))?;
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
) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::with_capacity(files.len());
    for file in files {
        let format = Format::of(b"", file.uri.rsplit('/').next().unwrap_or_default());
        match format {
            Ok(format @ (Format::Csv | Format::Jsonl)) => {
                documents.extend(read_records(storage, &file, format, fields).await?)
            }
            _ => documents.push(file),
        }
    }
    Ok(documents)
}

async fn read_records(
    storage: &Storage,
    file: &Document,
    format: Format,
    fields: &Records,
) -> Result<Vec<Document>, Failure> {
    let location = resolve(storage, "source", &file.uri)?;
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
    let records =
        tidegate_documents::records(&bytes, format, wanted).map_err(|error| refused(&error))?;
    let document = |(number, record): (u64, Result<Record, Unreadable>)| {
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn ids(folder: &std::path::Path, source: Source) -> Result<Vec<String>, String> {
        let root = url::Url::from_directory_path(folder).unwrap();
        let storage = Storage::new([root.as_str()]).unwrap();
        let output = storage.resolve(&format!("{root}out/")).unwrap();
        let found = documents(&storage, &job(source, None), &output)
            .await
            .map_err(|failure| failure.message)?;
        Ok(found.into_iter().map(|document| document.id.to_string()).collect())
    }

    fn job(source: Source, records: Option<Records>) -> Job {
        let value = serde_json::json!({"source": source, "output": "file:///x/", "instructions": "x", "model": "a:b", "lane": "batch",
            "tenant": "default", "max_output_tokens": 1, "records": records});
        serde_json::from_value(value).unwrap()
    }

    #[tokio::test]
    async fn each_record_is_a_document() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        std::fs::write(path.join("a.csv"), "name,note\nAnna,high\nBert\n").unwrap();
        std::fs::write(path.join("b.txt"), "not,records").unwrap();
        std::fs::write(path.join("c.csv"), "").unwrap();
        let root = url::Url::from_directory_path(&path).unwrap();
        let storage = Storage::new([root.as_str()]).unwrap();
        let output = storage.resolve(&format!("{root}out/")).unwrap();
        let records =
            |id: Option<&str>| Records { id: id.map(str::to_owned), text: Some("note".to_owned()) };
        let source = Source::Prefix(format!("{root}[ab].*"));
        let found = documents(&storage, &job(source.clone(), Some(records(Some("name")))), &output)
            .await
            .unwrap();
        let shown: Vec<_> =
            found.iter().map(|document| (document.id.as_str(), document.text.as_deref())).collect();
        assert_eq!(
            shown,
            [("a.csv__0000002", None), ("a.csv__Anna", Some("high")), ("b.txt", None)]
        );
        assert!(
            found[0].unreadable.as_ref().unwrap().contains("it has 1 fields, the header 2"),
            "{found:?}"
        );
        assert!(found[1].uri.ends_with("/a.csv#Anna"));
        let failure = documents(&storage, &job(source, Some(records(Some("nom")))), &output)
            .await
            .unwrap_err();
        assert!(failure.message.contains("no column \"nom\""), "{failure}");
    }

    #[tokio::test]
    async fn folders_files_globs_lists_and_manifests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        for name in
            ["b.md", "a.txt", "sub/c.md", ".hidden/x.md", "sub/.y.md", "out/results/a.txt.json"]
        {
            std::fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
            std::fs::write(path.join(name), "text").unwrap();
        }
        let root = url::Url::from_directory_path(&path).unwrap();
        let prefix = |rest: &str| Source::Prefix(format!("{root}{rest}"));
        assert_eq!(ids(&path, prefix("")).await.unwrap(), ["a.txt", "b.md", "sub__c.md"]);
        assert_eq!(ids(&path, prefix("b.md")).await.unwrap(), ["b.md"]);
        assert_eq!(ids(&path, prefix("*.md")).await.unwrap(), ["b.md"]);
        assert_eq!(ids(&path, prefix("**/*.md")).await.unwrap(), ["b.md", "sub__c.md"]);
        assert_eq!(
            ids(&path, Source::Documents(vec![format!("{root}sub/c.md")])).await.unwrap(),
            ["sub__c.md"]
        );
        std::fs::write(
            path.join("m.jsonl"),
            format!("{{\"id\":\"one\",\"uri\":\"{root}a.txt\"}}\n\n{{\"id\":\"two\",\"uri\":\"{root}b.md\"}}\n"),
        )
        .unwrap();
        assert_eq!(
            ids(&path, Source::Manifest(format!("{root}m.jsonl"))).await.unwrap(),
            ["one", "two"]
        );
    }

    #[tokio::test]
    async fn bad_sources_say_what_to_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let root = url::Url::from_directory_path(&path).unwrap();
        std::fs::create_dir(path.join("empty")).unwrap();
        std::fs::write(path.join("bad.jsonl"), "{\"id\":\"x\"}").unwrap();
        let cases = [
            (Source::Prefix(format!("{root}nowhere/")), "no such folder"),
            (Source::Prefix(format!("{root}empty/")), "no documents were found"),
            (Source::Prefix(format!("{root}[")), "pattern"),
            (Source::Prefix("file:///etc/".to_owned()), "outside the allowed roots"),
            (Source::Manifest(format!("{root}bad.jsonl")), "line 1: missing field `uri`"),
            (Source::Manifest(format!("{root}none.jsonl")), "does not exist"),
            (Source::Documents(vec!["relative.md".to_owned()]), "is no URI"),
        ];
        for (source, expected) in cases {
            let message = ids(&path, source.clone()).await.unwrap_err();
            assert!(message.contains(expected), "{source:?}: {message}");
        }
    }
}
