//! The prompts of documents: templates, turns, examples; and the fields of a record in its result.

use super::*;

impl Rig {
    /// The system prompt, the turns before, and the document's own, of each call since the last look.
    fn prompts(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut *self.provider.said.lock().unwrap())
    }
}

#[tokio::test]
async fn records_are_asked_about_by_their_own_fields_and_keep_them() {
    let mut rig = Rig::new();
    rig.document("in.csv", "nr,city,note\n7,Husum,Ebb.\n8,Emden,Flood.\n", 0);
    let asks = |instructions: &str| json!({"records": {"id": "nr", "text": "note"}, "template": true, "instructions": instructions});
    let ran = rig.run(asks("{{ city }} ({{ id }}, {{ name }}): {{ document }}")).await.unwrap();
    assert_eq!(ran.figures().0, [2, 0, 0, 0]);
    let said = rig.prompts();
    assert_eq!(said[0], ["", "Husum (in.csv__7, in.csv): Ebb."]);
    assert_eq!(said[1], ["", "Emden (in.csv__8, in.csv): Flood."]);
    let lines = rig.lines("out/results.jsonl");
    assert_eq!(lines[1]["fields"], json!({"nr": "8", "city": "Emden"}), "{}", lines[1]);
    assert_eq!(rig.lines("out/results/part-00000.jsonl")[0]["fields"]["city"], json!("Husum"));

    // Another column is another content; other words are another question.
    rig.document("in.csv", "nr,city,note\n7,Büsum,Ebb.\n8,Emden,Flood.\n", 7);
    let again = asks("{{ city }} ({{ id }}, {{ name }}): {{ document }}");
    assert_eq!(rig.run(again).await.unwrap().figures(), ([1, 0, 1, 1], 1));
    let other = refused(rig.run(json!({"records": {"id": "nr", "text": "note"}})).await);
    assert!(other.contains("instructions and template differ"), "{other}");
}

#[tokio::test]
async fn a_file_of_no_records_says_so() {
    let mut rig = Rig::new();
    rig.document("header.csv", "nr,city\n", 0);
    rig.document("page.csv", "%PDF-1.4\n1 0 obj\n", 0);
    rig.document("rows.csv", "nr,city\n7,Husum\n", 0);
    let ran = rig.run(json!({"records": {}})).await.unwrap();
    assert_eq!(ran.figures().0, [1, 2, 0, 0]);
    let failures = rig.lines("out/failures.jsonl");
    let said = |at: usize| failures[at]["message"].as_str().unwrap();
    assert!(said(0).contains("the file has no records"), "{failures:?}");
    assert!(said(1).contains("the content is PDF, not records"), "{failures:?}");
}

#[tokio::test]
async fn a_name_that_is_not_known_fails_the_plan_and_says_where() {
    let mut rig = Rig::new();
    rig.document("in.csv", "nr,city\n7,Husum\n", 0);
    let asks =
        |instructions: &str| json!({"records": {}, "template": true, "instructions": instructions});
    let message = refused(rig.run(asks("Of {{ town }}.")).await);
    assert!(message.starts_with("instructions: {{ town }} is not known of file://"), "{message}");
    assert!(message.ends_with("in.csv#0000001; known: document, id, name, city, nr"), "{message}");
    let message = refused(rig.run(asks("Of {{ city")).await);
    assert!(message.starts_with("instructions, line 1: syntax error"), "{message}");
    let message = refused(
        plan::forecast(&rig.services, &rig.job(&asks("{{ x }}"))).await.map(|_| unreachable!()),
    );
    assert!(message.contains("{{ x }} is not known"), "{message}");
    assert!(rig.prompts().is_empty());

    // Without templates, braces are ordinary text.
    let ran = rig.run(json!({"instructions": "Keep {{ town }} and {% this %}."})).await.unwrap();
    assert_eq!(ran.figures().0, [1, 0, 0, 0]);
    assert_eq!(rig.prompts()[0][0], "Keep {{ town }} and {% this %}.");
}

#[tokio::test]
async fn turns_and_examples_come_before_the_document() {
    let mut rig = Rig::new();
    rig.document("a.md", "Ebb.", 0);
    std::fs::write(
        rig.path("shown.jsonl"),
        "{\"document\":\"Flood.\",\"answer\":{\"high\":true}}\n",
    )
    .unwrap();
    let examples = format!("file://{}", rig.path("shown.jsonl").display());
    let messages = json!([{"role": "user", "content": "Who are you?"}, {"role": "assistant", "content": "A pilot."}]);
    let asks = json!({"system": "Be brief.", "messages": messages, "examples": examples});
    rig.run(asks.clone()).await.unwrap();
    let wrapped = |text: &str| format!("Sum up.\n\n<document>\n{text}\n</document>");
    let said = rig.prompts();
    let expected = [
        "Be brief.",
        &wrapped("Flood."),
        "{\"high\":true}",
        "Who are you?",
        "A pilot.",
        &wrapped("Ebb."),
    ];
    assert_eq!(said[0], expected);
    assert_eq!(rig.run(asks.clone()).await.unwrap().figures(), ([0, 0, 1, 0], 0));

    std::fs::write(rig.path("shown.jsonl"), "{\"document\":\"Flood.\",\"answer\":\"high\"}\n")
        .unwrap();
    let other = refused(rig.run(asks.clone()).await);
    assert!(other.contains("question: examples differs"), "{other}");
    std::fs::write(rig.path("shown.jsonl"), "\n{\"document\":\"Flood.\"}\n").unwrap();
    let bad = refused(rig.run(asks).await);
    assert!(bad.contains("shown.jsonl, line 2: missing field `answer`"), "{bad}");
}

#[tokio::test]
async fn the_parts_of_a_long_document_are_documents_to_a_template() {
    let mut rig = Rig::new();
    let text: String =
        (0..300).map(|line| format!("Line {line} of the log says nothing new.\n\n")).collect();
    rig.document("long.txt", &text, 0);
    let asks = json!({"template": true, "instructions": "From {{ name }}: {{ document }}",
        "long": {"how": "per_chunk", "chunk_tokens": 1_000}});
    assert_eq!(rig.run(asks).await.unwrap().figures().0, [1, 0, 0, 0]);
    let said = rig.prompts();
    assert!(said.len() > 1 && said[0][1].starts_with("From long.txt: [Part 1 of"), "{:?}", said[0]);
}
