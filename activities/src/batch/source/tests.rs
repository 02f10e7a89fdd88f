#[cfg(feature = "parquet")]
use std::sync::Arc;

use tidegate_documents::Limits;
use tidegate_workflows::contract::{Lines, Records};

use super::*;
use crate::{
    batch::document_ids::{Added, DocumentIds},
    output::{comparisons::Comparisons, question::StatedQuestion},
};

/// All documents of a source, ordered by id, and how many were numbered.
#[derive(Debug)]
struct Documents {
    documents: Vec<Document>,
    renamed: u64,
}

/// Lists in one page, and checks that pages of other lengths give equal documents.
async fn documents(storage: &Storage, job: &Job, output: &Location) -> Result<Documents, Failure> {
    let whole = in_pages(storage, job, output, PageBudget::page()).await?;
    for length in [1, 2, 3, 7] {
        let pages = in_pages(storage, job, output, PageBudget::of_documents(length)).await?;
        assert_eq!(pages.documents, whole.documents, "in pages of {length}");
        assert_eq!(pages.renamed, whole.renamed, "in pages of {length}");
    }
    Ok(whole)
}

async fn in_pages(
    storage: &Storage,
    job: &Job,
    output: &Location,
    room: PageBudget,
) -> Result<Documents, Failure> {
    let (mut names, mut next) = (DocumentIds::default(), Some(Cursor::default()));
    let (mut all, mut renamed) = (Vec::new(), 0);
    while let Some(cursor) = next {
        // Another worker continues.
        let cursor = serde_json::from_str(&serde_json::to_string(&cursor).unwrap()).unwrap();
        let found = page(storage, job, output, cursor, &names, room.clone()).await?;
        let (documents, numbered, added) = names.assign(found.documents, found.files);
        // The ids that are stored with the first page, and with several.
        let written = Added::from_bytes(&DocumentIds::default().stored_after(0, &added)).unwrap();
        names.add(&written);
        let whole = Added::from_bytes(&names.stored_after(31, &added)).unwrap();
        names = DocumentIds::default();
        names.add(&whole);
        all.extend(documents);
        renamed += numbered;
        next = found.next;
    }
    all.sort_by(|one: &Document, other| one.id.cmp(&other.id));
    Ok(Documents { documents: all, renamed })
}

async fn ids(folder: &std::path::Path, source: Source) -> Result<Vec<String>, String> {
    let root = url::Url::from_directory_path(folder).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let found = documents(&storage, &job(source, None), &output)
        .await
        .map_err(|failure| failure.message)?;
    Ok(found.documents.into_iter().map(|document| document.id.to_string()).collect())
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
    std::fs::write(path.join("d.csv"), b"\x93NUMPY\x01\0v\0{'descr': '<f8'}\0\0").unwrap();
    let root = url::Url::from_directory_path(&path).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let records =
        |id: Option<&str>| Records { id: id.map(str::to_owned), text: Some("note".to_owned()) };
    let source = Source::Prefix(format!("{root}[abd].*"));
    let found = documents(&storage, &job(source.clone(), Some(records(Some("name")))), &output)
        .await
        .unwrap()
        .documents;
    let shown: Vec<_> =
        found.iter().map(|document| (document.id.as_str(), document.text.as_deref())).collect();
    let [bert, anna] = [("a.csv__0000002", None), ("a.csv__Anna", Some("high"))];
    assert_eq!(shown, [bert, anna, ("b.txt", None), ("d.csv", None)]);
    assert!(found[3].unreadable.as_ref().unwrap().contains("binary data"), "it costs itself alone");
    assert!(
        found[0].unreadable.as_ref().unwrap().contains("it has 1 fields, the header 2"),
        "{found:?}"
    );
    assert!(found[1].uri.ends_with("/a.csv#Anna"));
    let failure =
        documents(&storage, &job(source, Some(records(Some("nom")))), &output).await.unwrap_err();
    assert!(failure.message.contains("no column \"nom\""), "{failure}");
}

/// `group` rows in each row group of a table.
#[cfg(feature = "parquet")]
fn table(file: &std::path::Path, rows: &[(i64, Option<&str>)], group: usize) {
    use parquet::{
        data_type::{ByteArray, ByteArrayType, Int64Type},
        file::writer::SerializedFileWriter,
        schema::parser::parse_message_type,
    };
    let schema = "message ship { REQUIRED INT64 number; OPTIONAL BYTE_ARRAY note (STRING); REQUIRED INT64 at (TIMESTAMP(MICROS,true)); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(file).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    for rows in rows.chunks(group) {
        let mut group = writer.next_row_group().unwrap();
        let numbers: Vec<i64> = rows.iter().map(|(number, _)| *number).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap();
        column.close().unwrap();
        let notes: Vec<ByteArray> = rows
            .iter()
            .filter_map(|(_, note)| Some(note.as_ref()?.as_bytes().to_vec().into()))
            .collect();
        let levels: Vec<i16> = rows.iter().map(|(_, note)| i16::from(note.is_some())).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&notes, Some(&levels), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let times = vec![1_700_000_000_000_000; rows.len()];
        column.typed::<Int64Type>().write_batch(&times, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

#[cfg(feature = "parquet")]
#[tokio::test]
async fn each_row_of_a_table_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let rows = [
        (7, Some("high")),
        (8, None),
        (9, Some("größer")),
        (10, Some("low")),
        (11, Some("")),
        (12, Some("slack")),
    ];
    table(&path.join("ships.Parquet"), &rows, 4);
    let root = url::Url::from_directory_path(&path).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let source = Source::Prefix(root.to_string());
    let records = |id: Option<&str>, text: Option<&str>| {
        let (id, text) = (id.map(str::to_owned), text.map(str::to_owned));
        job(source.clone(), Some(Records { id, text }))
    };
    let found = documents(&storage, &records(Some("number"), Some("note")), &output).await;
    let found = found.unwrap().documents;
    let shown: Vec<_> = found
        .iter()
        .map(|it| (it.id.as_str().rsplit('_').next().unwrap(), it.text.as_deref()))
        .collect();
    let expected = [
        ("0000002", None),
        ("10", Some("low")),
        ("11", None),
        ("12", Some("slack")),
        ("7", Some("high")),
        ("9", Some("größer")),
    ];
    assert_eq!(shown, expected);
    // Without names, rows are numbered; all columns are the text.
    let whole = documents(&storage, &records(None, None), &output).await.unwrap().documents;
    assert_eq!(whole.len(), 6);
    assert!(whole[2].uri.ends_with("/ships.Parquet#0000003"), "{}", whole[2].uri);
    assert_eq!(
        whole[2].text.as_deref().unwrap(),
        "at: 2023-11-14T22:13:20Z\nnote: größer\nnumber: 9"
    );
    let failure = documents(&storage, &records(Some("nom"), None), &output).await.unwrap_err();
    let expected = "it has no column \"nom\"; its columns are number, note, at";
    assert!(failure.message.contains(expected), "{failure}");

    let mut bytes = std::fs::read(path.join("ships.Parquet")).unwrap();
    for damaged in [5, bytes.len() / 2, bytes.len() - 20] {
        bytes[damaged] ^= 0xff;
        std::fs::write(path.join("ships.Parquet"), &bytes).unwrap();
        if let Err(failure) = documents(&storage, &records(None, None), &output).await {
            assert_eq!(failure.kind.as_str(), "InvalidInput", "{failure}");
        }
    }
    std::fs::write(path.join("ships.Parquet"), "PAR1").unwrap();
    let failure = documents(&storage, &records(None, None), &output).await.unwrap_err();
    assert!(failure.message.contains("cannot be read as Parquet"), "{failure}");
}

/// A file of 511 bytes once killed a worker that decoded it.
#[cfg(feature = "parquet")]
#[tokio::test]
async fn a_small_table_is_decoded_in_a_process_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    table(&path.join("ships.parquet"), &[(7, Some("high"))], 1);
    let root = url::Url::from_directory_path(&path).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let job = job(Source::Prefix(root.to_string()), Some(Records::default()));
    let nowhere = tidegate_documents::Reader::isolated("/nowhere", [], Limits::default());
    let room = PageBudget::page().with_reader(&nowhere);
    let error = in_pages(&storage, &job, &output, room).await.unwrap_err();
    assert!(error.message.ends_with("ships.parquet cannot be read"), "{error}");
}

#[tokio::test]
async fn folders_files_globs_lists_and_manifests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    for name in ["b.md", "a.txt", "sub/c.md", ".hidden/x.md", "sub/.y.md", "out/results/a.txt.json"]
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
    std::fs::create_dir(path.join("names")).unwrap();
    std::fs::write(path.join("names/[x].txt"), "text").unwrap();
    assert_eq!(ids(&path, prefix("names/[x].txt")).await.unwrap().len(), 1, "it is a file");
    std::fs::remove_dir_all(path.join("names")).unwrap();
    assert_eq!(
        ids(&path, Source::Documents(vec![format!("{root}sub/c.md")])).await.unwrap(),
        ["sub__c.md"]
    );
    std::fs::write(
        path.join("m.jsonl"),
        format!("\u{feff}{{\"id\":\"one\",\"uri\":\"{root}a.txt\"}}\n\n{{\"id\":\"two\",\"uri\":\"{root}b.md\"}}\n"),
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
    std::fs::write(path.join("list.jsonl"), format!("[\"x\", \"{root}a.txt\"]")).unwrap();
    let cases = [
        (Source::Prefix(format!("{root}nowhere/")), "no such folder"),
        (Source::Prefix(format!("{root}empty/")), "no documents were found"),
        (Source::Prefix(format!("{root}[")), "pattern"),
        (Source::Prefix("file:///etc/".to_owned()), "outside the allowed roots"),
        (Source::Manifest(format!("{root}bad.jsonl")), "line 1: missing field `uri`"),
        (Source::Manifest(format!("{root}list.jsonl")), "line 1: it is an array; a line of a"),
        (Source::Manifest(format!("{root}none.jsonl")), "does not exist"),
        (Source::Documents(vec!["relative.md".to_owned()]), "is no URI"),
    ];
    for (source, expected) in cases {
        let message = ids(&path, source.clone()).await.unwrap_err();
        assert!(message.contains(expected), "{source:?}: {message}");
    }
}

/// The documents of a source, as id and the end of the URI; and how many were numbered.
async fn found(
    folder: &std::path::Path,
    source: Source,
    records: Option<Records>,
) -> (Vec<(String, String)>, u64) {
    let root = url::Url::from_directory_path(folder).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let found = documents(&storage, &job(source, records), &output).await.unwrap();
    let name = |uri: &str| uri.rsplit('/').next().unwrap_or_default().to_owned();
    let shown = found.documents.iter();
    (shown.map(|it| (it.id.to_string(), name(&it.uri))).collect(), found.renamed)
}

#[tokio::test]
async fn documents_of_one_id_are_numbered_in_the_order_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let root = url::Url::from_directory_path(&path).unwrap();
    // Twenty rows with five names, and one that looks like a numbered one.
    let rows: String = (0..20).map(|row| format!("n{},{row}\n", row % 5)).collect();
    std::fs::write(path.join("a.csv"), format!("name,note\n{rows}n0~2,last\n")).unwrap();
    let records = Some(Records { id: Some("name".into()), text: Some("note".into()) });
    let file = |name: &str| format!("{root}{name}");
    let twice = Source::Documents(vec![file("a.csv"), file("a.csv")]);
    let (first, renamed) = found(&path, twice.clone(), records.clone()).await;
    assert_eq!((first.len(), renamed), (21, 15), "a file that is named twice is one");
    let of_n0: Vec<_> = first.iter().filter(|(id, _)| id.starts_with("a.csv__n0")).collect();
    let pair = |id: &str, uri: &str| (id.to_owned(), uri.to_owned());
    assert_eq!(of_n0[0], &pair("a.csv__n0", "a.csv#n0"));
    assert!(of_n0[1].0.starts_with("a.csv__n0_2-") && of_n0[1].1 == "a.csv#n0~2");
    assert_eq!(
        of_n0[2..],
        [
            &pair("a.csv__n0~2", "a.csv#n0~2"),
            &pair("a.csv__n0~3", "a.csv#n0~3"),
            &pair("a.csv__n0~4", "a.csv#n0~4")
        ]
    );
    assert_eq!(found(&path, twice, records).await.0, first, "the same in the next run");

    let line = |id: &str, name: &str| format!("{{\"id\":\"{id}\",\"uri\":\"{root}{name}\"}}\n");
    std::fs::write(
        path.join("m.jsonl"),
        line("x", "2.md") + &line("x", "1.md") + &line("x", "2.md") + &line("y", "1.md"),
    )
    .unwrap();
    let (listed, renamed) = found(&path, Source::Manifest(file("m.jsonl")), None).await;
    assert_eq!(listed, [pair("x", "2.md"), pair("x~2", "1.md"), pair("y", "1.md")]);
    assert_eq!(renamed, 1);
}

#[test]
fn a_number_that_is_taken_is_left_out() {
    let document = |id: &DocumentId, uri: &str| Document::file(id.clone(), uri.to_owned());
    let id = DocumentId::from_relative_path("x");
    let taken = document(&id.numbered(2), "taken");
    let all = vec![document(&id, "1"), document(&id, "2"), document(&id, "3"), taken];
    let (found, renamed, _) = DocumentIds::default().assign(all, Vec::new());
    let shown: Vec<_> = found.iter().map(|it| (it.id.as_str(), it.uri.as_str())).collect();
    assert_eq!(shown, [("x", "1"), ("x~2", "taken"), ("x~3", "2"), ("x~4", "3")]);
    assert_eq!(renamed, 2);
}

#[cfg(unix)]
#[tokio::test]
async fn an_odd_entry_is_a_document_that_fails_by_itself() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(path.join("out/results")).unwrap();
    std::fs::write(path.join("good.md"), "good").unwrap();
    std::fs::write(path.join("new\nline.md"), "x").unwrap();
    std::fs::write(path.join(".hid\nden"), "x").unwrap();
    symlink("loop", path.join("loop")).unwrap();
    symlink("loop", path.join("out/results/loop")).unwrap();
    for pipe in ["pipe.csv", ".pipe"] {
        let made = std::process::Command::new("mkfifo").arg(path.join(pipe)).status().unwrap();
        assert!(made.success());
    }
    let root = url::Url::from_directory_path(&path).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let whole = Source::Prefix(root.to_string());
    let records = Some(Records::default());
    let found = documents(&storage, &job(whole.clone(), records), &output).await.unwrap();
    let shown: Vec<_> = found
        .documents
        .iter()
        .map(|it| (it.uri.rsplit('/').next().unwrap(), it.unreadable.as_deref()))
        .collect();
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert_eq!(shown[0], ("good.md", None));
    assert!(shown[1].0 == "loop" && shown[1].1.unwrap().starts_with("loop: it cannot be read"));
    assert_eq!(
        shown[2],
        (
            "new%0Aline.md",
            Some(
                "new\\nline.md: its path holds control characters or bytes that are not UTF-8; rename it"
            )
        )
    );
    assert_eq!(shown[3], ("pipe.csv", Some("pipe.csv: it is a named pipe, and no file")));
    // These entries, when the output is the source, by a pattern, and by name.
    let base = storage.resolve(root.as_str()).unwrap();
    std::fs::create_dir(path.join("results")).unwrap();
    symlink("loop", path.join("results/loop")).unwrap();
    std::fs::write(path.join("results.jsonl#1"), "half").unwrap();
    let again = documents(&storage, &job(whole, None), &base).await.unwrap();
    let odd = again.documents.iter().filter(|it| it.unreadable.is_some());
    let names: Vec<_> = odd.map(|it| it.uri.strip_prefix(root.as_str()).unwrap()).collect();
    assert_eq!(names, ["loop", "new%0Aline.md", "out/results/loop", "pipe.csv"]);
    let some = |rest: &str| Source::Prefix(format!("{root}{rest}"));
    assert_eq!(ids(&path, some("*.md")).await.unwrap().len(), 2);
    assert!(ids(&path, some("pipe.csv")).await.unwrap_err().contains("is a named pipe"));
    let manifest = Source::Manifest(format!("{root}pipe.csv"));
    assert!(ids(&path, manifest).await.unwrap_err().contains("is a named pipe"));
    let named = Source::Documents(vec![format!("{root}pipe.csv")]);
    let found = documents(&storage, &job(named, Some(Records::default())), &output).await;
    assert!(found.unwrap().documents[0].unreadable.is_some());
}

/// Names that sort differently by characters: folders whose names begin with a file's name.
#[tokio::test]
async fn a_listing_goes_on_behind_any_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let names = [
        "a/b/c.md", "a/b.md", "a.md", "a b/x.md", "a-b/y.md", "a0.md", "b/%41.md", "b/ü.md",
        "ab/c.md",
    ];
    for name in names {
        std::fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
        std::fs::write(path.join(name), "text").unwrap();
    }
    let found =
        found(&path, Source::Prefix(url::Url::from_directory_path(&path).unwrap().into()), None);
    assert_eq!(found.await.0.len(), names.len());
}

/// A file of records that is larger than a page, below and above the size that is read whole.
#[tokio::test]
async fn a_file_of_records_is_cut_while_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let root = url::Url::from_directory_path(&path).unwrap();
    let note = "The tide turns; \"so\" it does,\nand größer it grows. ".repeat(20);
    let note = note.replace('"', "\"\"");
    let rows: String = (0..20_000).map(|row| format!("ship-{},\"{note}\"\n", row / 2)).collect();
    std::fs::write(path.join("log.csv"), format!("ship,note\n{rows}")).unwrap();
    assert!(rows.len() > 20 << 20, "{}", rows.len());
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let records = Records { id: Some("ship".into()), text: Some("note".into()) };
    let job = job(Source::Prefix(root.to_string()), Some(records));
    let first = page(
        &storage,
        &job,
        &output,
        Cursor::default(),
        &DocumentIds::default(),
        PageBudget::page(),
    )
    .await
    .unwrap();
    assert!(first.next.is_some() && first.documents.len() < 20_000);
    let whole = in_pages(&storage, &job, &output, PageBudget::page()).await.unwrap();
    assert_eq!((whole.documents.len(), whole.renamed), (20_000, 10_000));
    let pages = in_pages(&storage, &job, &output, PageBudget::of_documents(777)).await.unwrap();
    assert!(pages.documents == whole.documents);
    let text = whole.documents[9_999].text.as_ref().unwrap();
    assert!(text.contains("größer") && text.contains("\"so\""), "{text}");
    // The file must not change during the listing.
    std::fs::write(path.join("log.csv"), format!("ship,note\nnew,\"row\"\n{rows}")).unwrap();
    let refused = page(
        &storage,
        &job,
        &output,
        first.next.unwrap(),
        &DocumentIds::default(),
        PageBudget::page(),
    )
    .await;
    let refused = refused.unwrap_err();
    assert!(refused.message.contains("has changed while the batch was planned"), "{refused}");
}

/// Of twenty times this length, a pattern took minutes of a core.
#[tokio::test]
async fn a_pattern_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("a.txt"), "a").unwrap();
    let root = url::Url::from_directory_path(&path).unwrap();
    let deep = |count: usize| Source::Prefix(format!("{root}{}.none", "**/".repeat(count)));
    let why = ids(&path, deep(330)).await.unwrap_err();
    assert!(why.contains("no documents were found there"), "{why}");
    let why = ids(&path, deep(1_001)).await.unwrap_err();
    assert!(why.contains("the pattern has") && why.contains("at most 1000 are read"), "{why}");
}

/// In memory a row takes a kilobyte, however small it is in its file.
#[tokio::test]
async fn a_small_file_of_very_many_rows_is_cut_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let root = url::Url::from_directory_path(&path).unwrap();
    std::fs::write(path.join("rows.csv"), format!("a\n{}", "1\n".repeat(300_000))).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let job = job(Source::Prefix(root.to_string()), Some(Records { id: None, text: None }));
    let whole = in_pages(&storage, &job, &output, PageBudget::page()).await.unwrap();
    assert_eq!(whole.documents.len(), 300_000);
    let (from, none, room) = (Cursor::default(), DocumentIds::default(), PageBudget::page());
    let first = page(&storage, &job, &output, from, &none, room).await.unwrap();
    assert_eq!((first.documents.len(), first.next.is_some()), (100_000, true));
}

/// An output is recognised by its recorded question; a folder that only looks like one is a folder of
/// documents.
#[tokio::test]
async fn outputs_of_earlier_batches_are_no_documents_of_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let files = [
        "a.md",
        "yesterday/_tidegate/question.json",
        "yesterday/_tidegate/batch-1/shard-00000.jsonl",
        "yesterday/results/a.md.json",
        "yesterday/results.jsonl",
        "yesterday/report.html",
        "yesterday/disagreements.jsonl",
        "yesterday/notes.md",
        "measured/results/table.md",
        "measured/report.json",
        "compared/comparison.json",
        "compared/disagreements.jsonl",
    ];
    for file in files {
        let file = path.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "x").unwrap();
    }
    let prefix = |uri: &str| Source::Prefix(format!("file://{}/{uri}", path.display()));
    let root = format!("file://{}/", path.display());
    let compared = Storage::new([root.as_str()]).unwrap().resolve(&format!("{root}compared/"));
    let question = StatedQuestion::from_job(&job(prefix(""), None)).of_any_model();
    Comparisons::default().write(&compared.unwrap(), &question).await.unwrap();
    let found = ids(&path, prefix("")).await.unwrap();
    assert_eq!(found.len(), 4, "{found:?}");
    for name in ["a.md", "notes.md", "table.md", "report.json"] {
        assert!(found.iter().any(|id| id.ends_with(name)), "{name}: {found:?}");
    }
    // A source that names an output, or a pattern, includes its objects, except the internal ones.
    let named = ids(&path, prefix("yesterday/")).await.unwrap();
    assert!(named.len() == 5 && !named.iter().any(|id| id.contains("_tidegate")), "{named:?}");
    assert_eq!(ids(&path, prefix("yesterday/results/")).await.unwrap().len(), 1);
    assert_eq!(ids(&path, prefix("*/results/*")).await.unwrap().len(), 2);
}

#[tokio::test]
async fn archives_have_the_bounds_of_whoever_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = url::Url::from_directory_path(folder.path().canonicalize().unwrap()).unwrap();
    std::fs::write(folder.path().join("all.zip"), [b'x'; 100]).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let job = job(Source::Prefix(root.to_string()), None);
    // A file with an archive's name that is no archive is left to the reader of documents.
    for (archive_bytes, is_refused) in [(99, true), (100, false)] {
        let limits = Limits { archive_bytes, ..Limits::default() };
        let room = PageBudget { limits, ..PageBudget::page() };
        let found = in_pages(&storage, &job, &output, room).await.unwrap();
        let [archive] = found.documents.as_slice() else { panic!("{found:?}") };
        let why = archive.unreadable.as_deref().unwrap_or_default();
        assert_eq!(why.contains("99"), is_refused, "{archive_bytes}: {why}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;

    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}

/// Records in an archive are documents as outside it, for each kind of archive. Ids are equal after
/// every reading, and rows without names keep their results.
#[tokio::test]
async fn records_in_archives_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let root = url::Url::from_directory_path(&path).unwrap();
    let csv: &[u8] = b"name,note\nAnna,high\nBert,low\nCleo\n";
    let lines: &[u8] =
        b"{\"name\":\"Dora\",\"note\":\"ebb\"}\n{\"name\":\"Emil\",\"note\":\"flow\"}\n";
    let inner = gzip(&tar(&[("deep/more.jsonl", lines)]));
    let all = tar(&[
        ("a.txt", b"Slack."),
        ("data/ships.csv", csv),
        ("b.txt", b"Spring."),
        ("in.tgz", &inner),
        ("z.md", b"# Neap"),
    ]);
    std::fs::write(path.join("all.tar"), &all).unwrap();
    std::fs::write(path.join("rows.csv.gz"), gzip(csv)).unwrap();
    std::fs::write(path.join("x.csv"), csv).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let records = Records { id: Some("name".into()), text: Some("note".into()) };
    let source = Source::Prefix(root.to_string());
    let of_all = |found: Documents| -> Vec<(String, Option<String>)> {
        found.documents.into_iter().map(|it| (it.id.to_string(), it.text)).collect()
    };
    let with = job(source.clone(), Some(records));
    let found = of_all(documents(&storage, &with, &output).await.unwrap());
    // The id that a row has in a file in a folder.
    let named = |file: &str, row: &str| {
        DocumentId::from_relative_path(&format!("{file}/{row}")).to_string()
    };
    let row = |file: &str, row: &str, text: &str| (named(file, row), Some(text.to_owned()));
    let bad = |file: &str| (named(file, "0000003"), None);
    let none = |id: &str| (id.to_owned(), None);
    let expected = [
        none("all.tar__a.txt"),
        none("all.tar__b.txt"),
        bad("all.tar__data__ships.csv"),
        row("all.tar__data__ships.csv", "Anna", "high"),
        row("all.tar__data__ships.csv", "Bert", "low"),
        row("all.tar__in.tgz__deep__more.jsonl", "Dora", "ebb"),
        row("all.tar__in.tgz__deep__more.jsonl", "Emil", "flow"),
        none("all.tar__z.md"),
        bad("rows.csv.gz__rows.csv"),
        row("rows.csv.gz__rows.csv", "Anna", "high"),
        row("rows.csv.gz__rows.csv", "Bert", "low"),
        bad("x.csv"),
        row("x.csv", "Anna", "high"),
        row("x.csv", "Bert", "low"),
    ];
    assert_eq!(found, expected);
    // The result is equal for a source given by name or in a list; without records, the file is one
    // document.
    let listed = Source::Documents(vec![format!("{root}all.tar"), format!("{root}all.tar")]);
    let with = Job { source: listed, ..with };
    assert_eq!(of_all(documents(&storage, &with, &output).await.unwrap())[..], expected[..8]);
    let files = documents(&storage, &job(source, None), &output).await.unwrap();
    let ids: Vec<&str> = files.documents.iter().map(|it| it.id.as_str()).collect();
    assert!(ids.contains(&"all.tar__data__ships.csv") && ids.contains(&"rows.csv.gz__rows.csv"));
    // An error names archive and file.
    let wrong = Records { id: None, text: Some("text".into()) };
    let wrong = Job { records: Some(wrong), ..with };
    let refused = documents(&storage, &wrong, &output).await.unwrap_err().message;
    assert!(refused.contains("all.tar#data/ships.csv: "), "{refused}");
    assert!(refused.contains("no column \"text\""), "{refused}");
}

/// A file above the size that is read whole: it takes several pages, each from one archive.
#[tokio::test]
async fn a_large_file_of_records_in_an_archive_is_cut_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let root = url::Url::from_directory_path(&path).unwrap();
    let note = "The tide turns. ".repeat(60);
    let rows: String = (0..18_000).map(|row| format!("{row},{note}\n")).collect();
    let csv = format!("ship,note\n{rows}");
    assert!(csv.len() > 16 << 20, "{}", csv.len());
    std::fs::write(path.join("log.csv.gz"), gzip(csv.as_bytes())).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let records = Records { id: Some("ship".into()), text: Some("note".into()) };
    let job = job(Source::Prefix(root.to_string()), Some(records));
    let names = DocumentIds::default();
    let from = |cursor| page(&storage, &job, &output, cursor, &names, PageBudget::page());
    let first = from(Cursor::default()).await.unwrap();
    assert!(first.next.is_some() && first.documents.len() < 18_000, "{}", first.documents.len());
    let whole = in_pages(&storage, &job, &output, PageBudget::page()).await.unwrap();
    assert_eq!(whole.documents.len(), 18_000);
    let ids: HashSet<&str> = whole.documents.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), 18_000);
    let last = DocumentId::from_relative_path("log.csv.gz__log.csv/17999");
    assert!(ids.contains(last.as_str()), "{last}");
    std::fs::write(path.join("log.csv.gz"), gzip(format!("{csv}x,y\n").as_bytes())).unwrap();
    let refused = from(first.next.unwrap()).await.unwrap_err();
    assert!(refused.message.contains("has changed while the batch was planned"), "{refused}");
    // An archive that unpacks to more than the bound is a document that reports it.
    let limits = Limits { archive_bytes: 1 << 20, ..Limits::default() };
    let room = PageBudget { limits, ..PageBudget::page() };
    let found = in_pages(&storage, &job, &output, room).await.unwrap();
    let [one] = found.documents.as_slice() else { panic!("{}", found.documents.len()) };
    assert!(one.unreadable.as_ref().unwrap().contains("1048576"), "{one:?}");
}

#[tokio::test]
async fn a_file_of_requests_is_the_same_in_pages_of_any_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let line = |id: &str| {
        format!(r#"{{"custom_id":"{id}","method":"POST","url":"/v1/responses","body":{{}}}}"#)
    };
    let lines = [line("a"), String::new(), line("b"), line("c"), line("a"), line("d"), line("b")];
    std::fs::write(path.join("in.jsonl"), lines.join("\n")).unwrap();
    let root = url::Url::from_directory_path(&path).unwrap();
    let storage = Storage::new([root.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let endpoint = "/v1/responses".to_owned();
    let lines = Lines { endpoint, ..Lines::default() };
    let source = Source::Prefix(format!("{root}in.jsonl"));
    let job = Job { lines: Some(lines), ..job(source, None) };
    let found = documents(&storage, &job, &output).await.unwrap();
    let told: Vec<_> = found
        .documents
        .iter()
        .map(|it| (it.id.as_str(), it.unreadable.as_deref().unwrap_or_default()))
        .collect();
    let expected = [
        ("0000001", ""),
        ("0000003", ""),
        ("0000004", ""),
        ("0000005", "line 5: custom_id is that of line 1, too"),
        ("0000006", ""),
        ("0000007", "line 7: custom_id is that of line 3, too"),
    ];
    assert_eq!(told, expected);
}

/// Two files of records in an archive, in pages of one row: the archive is read once.
#[tokio::test]
async fn an_archive_is_read_once_for_all_its_files_and_pages() {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use axum::{Router, http::Method, routing::any};

    let rows = b"note\nEbb\nSlack\nFlow\n";
    let archive = gzip(&tar(&[("a.csv", rows), ("b.csv", rows), ("c.txt", b"Surge")]));
    let gets = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&gets);
    let reply = move |method: Method| {
        counted.fetch_add(usize::from(method == Method::GET), Ordering::SeqCst);
        let archive = archive.clone();
        async move { ([("last-modified", "Sun, 22 Nov 2026 10:00:00 GMT")], archive) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let web = format!("http://{}/", listener.local_addr().unwrap());
    let app = Router::new().route("/all.tgz", any(reply));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let root = url::Url::from_directory_path(folder.path().canonicalize().unwrap()).unwrap();
    let storage = Storage::new([root.as_str(), web.as_str()]).unwrap();
    let output = storage.resolve(&format!("{root}out/")).unwrap();
    let records = Records { id: None, text: Some("note".to_owned()) };
    let job = job(Source::Documents(vec![format!("{web}all.tgz")]), Some(records));
    let found = in_pages(&storage, &job, &output, PageBudget::of_documents(1)).await.unwrap();
    assert_eq!((found.documents.len(), gets.load(Ordering::SeqCst)), (7, 1), "{found:?}");
}
