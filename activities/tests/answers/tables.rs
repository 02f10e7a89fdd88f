//! Results as Parquet: the batches of the other tests, and both formats in turn.

use bytes::Bytes;
use parquet::{
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    record::RowAccessor,
};

use super::*;

/// The ids and answers in a table, read by a reader that knows only the format.
fn rows(rig: &Rig, name: &str) -> Vec<(String, String)> {
    let bytes = Bytes::from(std::fs::read(rig.path(name)).unwrap());
    let file = SerializedFileReader::new(bytes).unwrap();
    let rows = file.get_row_iter(None).unwrap();
    let row = |row: parquet::record::Row| {
        let place = |name: &str| row.get_column_iter().position(|(it, _)| it == name).unwrap();
        let text = |name: &str| row.get_string(place(name)).unwrap().clone();
        assert!(row.get_long(place("output_tokens")).unwrap() > 0);
        assert!(row.get_timestamp_millis(place("completed_at")).unwrap() > 1_700_000_000_000);
        (text("id"), text("answer"))
    };
    rows.map(|it| row(it.unwrap())).collect()
}

fn ids(rig: &Rig, name: &str) -> Vec<String> {
    rows(rig, name).into_iter().map(|(id, _)| id).collect()
}

fn names(rig: &Rig) -> Vec<String> {
    let names = std::fs::read_dir(rig.path("out/results")).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn results_are_tables_and_nothing_is_asked_twice() {
    let mut rig = Rig::new();
    ["a.md", "b.md", "c.md"].iter().for_each(|name| rig.document(name, name, 0));
    let tables = json!({"results": "parquet", "per_document": false});
    // A worker has died before it wrote the index of what it had sealed.
    std::fs::create_dir_all(rig.path("out/results")).unwrap();
    std::fs::write(rig.path("out/results/part-00000.jsonl"), "").unwrap();
    let first = json!({"results": "parquet", "replace": true});
    assert_eq!(rig.run(first).await.unwrap().figures(), ([3, 0, 0, 0], 3));
    let whole = ["a.md.json", "b.md.json", "c.md.json", "part-00000.parquet"];
    assert_eq!(names(&rig), whole);
    let expected = ["a.md", "b.md", "c.md"].map(|id| (id.to_owned(), format!("Sum up. {id}")));
    assert_eq!(rows(&rig, "out/results/part-00000.parquet"), expected);
    assert_eq!(rows(&rig, "out/results.parquet"), expected);
    assert!(!rig.path("out/results.jsonl").exists());

    let again = rig.run(tables.clone()).await.unwrap();
    assert_eq!((again.plan.settled, again.figures()), (3, ([0, 0, 3, 0], 0)));
    rig.document("b.md", "b, changed", 5);
    let updated = rig.run(tables.clone()).await.unwrap();
    assert_eq!((updated.plan.settled, updated.figures()), (2, ([1, 0, 2, 1], 1)));
    assert_eq!(ids(&rig, "out/results/part-00000.parquet"), ["a.md", "c.md"]);
    assert_eq!(rows(&rig, "out/results.parquet")[1].1, "Sum up. b, changed");
    // Only the part has it; when its document changes, the document still counts as updated.
    assert_eq!(names(&rig).len(), 4, "{:?}", names(&rig));
    rig.document("b.md", "b, changed again", 6);
    let updated = rig.run(tables).await.unwrap();
    assert_eq!(updated.figures(), ([1, 0, 2, 1], 1));

    // As lines, and as a table again: each format reads the other's parts.
    let lines = rig.run(json!({})).await.unwrap();
    assert_eq!((lines.plan.settled, lines.figures()), (3, ([0, 0, 3, 0], 0)));
    let written = rig.lines("out/results.jsonl");
    assert_eq!(written.len(), 3);
    let mut whole = rig.result("a.md");
    whole.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(written[0], whole, "nothing of a result is lost in a table");
    assert!(!rig.path("out/results.parquet").exists());
    rig.document("c.md", "c, changed", 7);
    rig.run(json!({})).await.unwrap();
    let back = rig.run(json!({"results": "parquet"})).await.unwrap();
    assert_eq!(back.figures(), ([0, 0, 3, 0], 0));
    assert_eq!(ids(&rig, "out/results.parquet"), ["a.md", "b.md", "c.md"]);
}

#[tokio::test]
async fn a_damaged_part_is_named() {
    let mut rig = Rig::new();
    rig.document("a.md", "a", 0);
    rig.run(json!({"results": "parquet"})).await.unwrap();
    let part = rig.path("out/results/part-00000.parquet");
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0);
    std::fs::write(&part, bytes).unwrap();
    let job = rig.job(&json!({"results": "parquet"}));
    let plan = plan::plan(&rig.services, &job, "w", "again").await.unwrap();
    let progress = Progress { documents: 1, done: true, ..Progress::default() };
    let of = Finish { plan, output: job.output.clone(), progress };
    let failure = finish::finish(&rig.services.storage, &of).await.unwrap_err();
    let message = failure.message;
    assert!(message.contains("part-00000.parquet is damaged"), "{message}");
}
