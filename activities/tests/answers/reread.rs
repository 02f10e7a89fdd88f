//! An improved reader: documents that an older one has read are asked again where their text differs.

use serde_json::{Value, json};
use tidegate_documents::READER_VERSION;

use super::Rig;

/// Applies `change` to every object under `out/` that contains the document's version.
fn change(rig: &Rig, id: &str, change: impl Fn(&mut Value)) {
    let objects = ["out/results", "out/_tidegate/sealed"];
    let listed = objects.iter().filter_map(|folder| std::fs::read_dir(rig.path(folder)).ok());
    for entry in listed.flatten().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&entry).unwrap();
        let lines = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line["id"] == json!(id) {
                change(&mut line);
            }
            line.to_string() + "\n"
        });
        std::fs::write(entry, lines.collect::<String>()).unwrap();
    }
}

/// As an older reader would have left it that extracted an equal text.
fn same(line: &mut Value) {
    line["reader"] = json!(READER_VERSION - 1);
}

/// As an older reader would have left it that extracted another text.
fn other(line: &mut Value) {
    same(line);
    line["extracted"] = json!("0".repeat(64));
}

/// As a version left it that wrote neither field.
fn unknown(line: &mut Value) {
    line.as_object_mut().unwrap().retain(|name, _| name != "reader" && name != "extracted");
}

fn older(rig: &Rig) -> Value {
    let report = std::fs::read(rig.path("out/report.json")).unwrap();
    serde_json::from_slice::<Value>(&report).unwrap()["older_reader"].clone()
}

async fn is_asked_anew_where_its_text_differs(more: Value) {
    let more = |further: &str| {
        let mut all = more.clone();
        all[further] = json!(true);
        all
    };
    let mut rig = Rig::new();
    ["a.md", "b.md", "c.md", "d.md"].iter().for_each(|name| rig.document(name, name, 0));
    rig.run(more("in_pages")).await.unwrap();
    assert_eq!(older(&rig), Value::Null);
    assert_eq!(rig.run(more("reread")).await.unwrap().figures(), ([0, 0, 4, 0], 0));
    change(&rig, "a.md", same);
    change(&rig, "b.md", other);
    change(&rig, "c.md", unknown);

    // A plain run reports how many there are.
    assert_eq!(rig.run(more("in_pages")).await.unwrap().figures(), ([0, 0, 4, 0], 0));
    assert_eq!(older(&rig), json!(3));
    let ran = rig.run(more("reread")).await.unwrap();
    assert_eq!(ran.figures(), ([2, 0, 2, 2], 2));
    assert_eq!(ran.asked, ["b.md", "c.md"]);
    assert_eq!(older(&rig), Value::Null, "what has the same text says so");
    let lines = rig.lines("out/results.jsonl");
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line["reader"] == json!(READER_VERSION)), "{lines:?}");
    assert_eq!(rig.run(more("reread")).await.unwrap().figures(), ([0, 0, 4, 0], 0));
}

#[tokio::test]
async fn what_an_older_reader_has_read_is_asked_anew_where_its_text_differs() {
    Box::pin(is_asked_anew_where_its_text_differs(json!({}))).await;
}

#[tokio::test]
async fn the_same_where_the_parts_alone_hold_the_results() {
    Box::pin(is_asked_anew_where_its_text_differs(json!({"per_document": false}))).await;
}

#[tokio::test]
async fn the_same_in_packs() {
    let mut rig = Rig::new();
    ["a.md", "b.md", "c.md"].iter().for_each(|name| rig.document(name, name, 0));
    rig.run(json!({"pack": {"of": 3}})).await.unwrap();
    change(&rig, "a.md", same);
    change(&rig, "b.md", other);
    let ran = rig.run(json!({"pack": {"of": 3}, "reread": true})).await.unwrap();
    assert_eq!(ran.figures(), ([1, 0, 2, 1], 1));
    assert_eq!(older(&rig), Value::Null);
}

/// The store of answers must not return the answer to the older reader's text.
#[tokio::test]
async fn a_stored_answer_to_the_older_text_is_not_taken() {
    let mut rig = Rig::new();
    let store = tempfile::tempdir().unwrap();
    let prefix = format!("file://{}", store.path().display());
    rig.services.answers = Some(super::Answers::open(&prefix).unwrap());
    rig.document("a.md", "a.md", 0);
    rig.run(json!({})).await.unwrap();
    change(&rig, "a.md", other);
    let question = std::fs::read_dir(store.path()).unwrap().next().unwrap().unwrap();
    let object = std::fs::read_dir(question.path()).unwrap().next().unwrap().unwrap();
    let mut kept: Value = serde_json::from_slice(&std::fs::read(object.path()).unwrap()).unwrap();
    other(&mut kept);
    std::fs::write(object.path(), kept.to_string()).unwrap();
    assert_eq!(rig.run(json!({"reread": true})).await.unwrap().figures(), ([1, 0, 0, 1], 1));
    let kept: Value = serde_json::from_slice(&std::fs::read(object.path()).unwrap()).unwrap();
    assert_eq!(kept["reader"], json!(READER_VERSION));
}
