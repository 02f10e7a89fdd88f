//! Answers with quotes as evidence, at each API and for each way of reading a document.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Value, json};

use crate::{
    checks::{self, CHEAP, invoices},
    fleet::{Fleet, MODEL, fleet},
    providers::{MODELS, every_provider},
};

/// A PDF with a line on each page; its table of contents is deliberately broken.
fn pdf(pages: &[&str]) -> String {
    let kids: Vec<String> = (0..pages.len()).map(|at| format!("{} 0 R", 4 + 2 * at)).collect();
    let mut text = format!(
        "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[{}]/Count {}>>\nendobj\n\
         3 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>\nendobj\n",
        kids.join(" "),
        pages.len()
    );
    for (at, line) in pages.iter().enumerate() {
        let drawn = format!("BT /F1 12 Tf 72 720 Td ({line}) Tj ET");
        let _ = write!(
            text,
            "{} 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents {} 0 R>>\nendobj\n\
             {} 0 obj\n<</Length {}>>\nstream\n{drawn}\nendstream\nendobj\n",
            4 + 2 * at,
            5 + 2 * at,
            5 + 2 * at,
            drawn.len()
        );
    }
    text
}

const PAGES: [&str; 3] = [
    "The harbour master writes about the tide.",
    "The ferry Seagull carries forty passengers.",
    "All of it was paid for in the spring of that year.",
];

fn schema() -> Value {
    json!({"type": "object", "required": ["title", "ship"], "properties": {
        "title": {"type": "string"},
        "ship": {"$ref": "#/$defs/ship"},
        "crew": {"type": "integer"},
    }, "$defs": {"ship": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}})
}

fn evidence(result: &Value) -> Vec<Value> {
    result["evidence"].as_array().unwrap_or_else(|| panic!("{result}")).clone()
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that a quote counts as found exactly where this text contains it. Returns the number of quotes.
fn agree(result: &Value, text: &str) -> usize {
    let text = plain(text);
    for quote in evidence(result) {
        let words = plain(quote["quote"].as_str().unwrap());
        let letters = words.chars().filter(|it| it.is_alphanumeric()).count();
        let stands = letters >= 12 && text.contains(&words);
        assert_eq!(quote["found"], json!(stands), "{quote} in {result}");
    }
    evidence(result).len()
}

fn batch(fleet: &Fleet, output: &str, more: Value) -> Value {
    let mut batch = json!({"source": fleet.uri("in/"), "output": fleet.uri(output), "instructions": "Sum up.", "evidence": true});
    batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    batch
}

/// The simulator answers by the schema that it gets, with sentences of the document.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotes_are_asked_for_and_looked_for_at_each_api() {
    let Some(mut fleet) = every_provider("", "").await else { return };
    fleet.documents(10, 200);
    std::fs::write(fleet.path("in/three.pdf"), pdf(&PAGES)).unwrap();
    fleet.worker();
    let mut quotes = 0;
    for (number, model) in MODELS.iter().enumerate() {
        let (with, without) = (format!("with{number}"), format!("without{number}"));
        let more = json!({"model": model, "schema": schema()});
        fleet.start(&with, &batch(&fleet, &with, more.clone())).await;
        let text = json!({"model": model});
        fleet.start(&without, &batch(&fleet, &without, text)).await;
        let result = fleet.result(&with).await.unwrap();
        assert_eq!(result["succeeded"], json!(11), "{model}: {result}");
        for (id, result) in fleet.results(&with) {
            let answer: Value = serde_json::from_str(result["answer"].as_str().unwrap()).unwrap();
            assert!(answer["title"].is_string() && answer["ship"]["name"].is_string(), "{answer}");
            assert!(answer.get("evidence").is_none(), "{answer}");
            let fields: Vec<Value> =
                evidence(&result).iter().map(|it| it["field"].clone()).collect();
            for field in ["title", "ship.name", "crew"] {
                assert!(fields.contains(&json!(field)), "{model}: {result}");
            }
            if id != "three.pdf" {
                let text = std::fs::read_to_string(fleet.path(&format!("in/{id}"))).unwrap();
                quotes += agree(&result, &text);
                assert!(evidence(&result).iter().all(|it| it["page"].is_null()), "{result}");
                continue;
            }
            quotes += agree(&result, &PAGES.join("\n\n"));
            for quote in evidence(&result) {
                let is_on = |page: &str| page.contains(quote["quote"].as_str().unwrap());
                let page = PAGES.iter().position(|page| is_on(page)).unwrap();
                assert_eq!(quote["page"], json!(page + 1), "{quote}");
            }
        }
        // Without a schema, the answer stays a text.
        assert_eq!(fleet.result(&without).await.unwrap()["succeeded"], json!(11), "{model}");
        for (id, result) in fleet.results(&without) {
            let answer = result["answer"].as_str().unwrap();
            assert!(!answer.starts_with('{') && !answer.is_empty(), "{answer}");
            assert!(evidence(&result).iter().all(|it| it["field"] == "answer"), "{id}: {result}");
        }
    }
    println!("{quotes} quotes of five APIs, each told as it is");
    let attached =
        json!({"model": MODELS[0], "attach": "native", "source": fleet.uri("in/three.pdf")});
    fleet.start("attached", &batch(&fleet, "attached", attached)).await;
    fleet.result("attached").await.unwrap();
    let result = &fleet.results("attached")["three.pdf"];
    assert!(evidence(result).iter().all(|it| it["found"] != json!(true)), "{result}");
    // The batch runs again: nothing is paid, and the results are equal.
    let calls = fleet.simulator.account().model("claude").requests;
    fleet
        .start("again", &batch(&fleet, "with0", json!({"model": MODELS[0], "schema": schema()})))
        .await;
    assert_eq!(fleet.result("again").await.unwrap()["skipped"], json!(11));
    assert_eq!(fleet.simulator.account().model("claude").requests, calls);
    let packed = json!({"model": MODELS[0], "pack": 3});
    fleet.start("packed", &batch(&fleet, "packed", packed)).await;
    let refused = fleet.result("packed").await.unwrap_err().to_string();
    assert!(refused.contains("InvalidInput") && refused.contains("evidence and pack"), "{refused}");
    fleet.stop().await;
}

/// In parts, as records, and through the provider's batch API.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotes_are_looked_for_however_a_document_is_read() {
    let settings = format!(
        "[models.\"{MODEL}\"]\nrpm = 60_000\n[gate]\nbase-backoff = \"20ms\"\nmax-backoff = \"100ms\"\n"
    );
    let Some(mut fleet) = fleet("[batches]\nduration = \"3s\"\n", &settings).await else { return };
    let mut text = String::new();
    for day in 0..400 {
        let _ = write!(text, "On day {day} the harbour master notes the height of the tide.\n\n");
    }
    std::fs::write(fleet.path("in/long.md"), &text).unwrap();
    std::fs::create_dir(fleet.path("rows")).unwrap();
    let row = |number: usize| {
        json!({"text": format!("Parcel {number} was sent to the lighthouse keeper."), "from": format!("customer number {number} of the island")}).to_string()
    };
    let rows: Vec<String> = (0..5).map(row).collect();
    std::fs::write(fleet.path("rows/rows.jsonl"), rows.join("\n")).unwrap();
    fleet.worker();

    let parts =
        |how: &str| json!({"model": MODEL, "long": how, "chunk_tokens": 1_000, "schema": schema()});
    fleet.start("parts", &batch(&fleet, "parts", parts("per_chunk"))).await;
    let whole = json!({"model": MODEL, "long": "map_reduce", "chunk_tokens": 1_000});
    fleet.start("reduced", &batch(&fleet, "reduced", whole)).await;
    let rows = json!({"model": MODEL, "source": fleet.uri("rows/"), "template": true,
        "records": {"text": "text"}, "instructions": "{{ from }} asks about {{ document }}"});
    fleet.start("rows", &batch(&fleet, "rows-out", rows)).await;
    let economy = json!({"model": MODEL, "mode": "economy", "schema": schema()});
    fleet.start("economy", &batch(&fleet, "economy", economy)).await;

    for id in ["parts", "reduced", "rows", "economy"] {
        let result = fleet.result(id).await.unwrap();
        assert_eq!(result["failed"], json!(0), "{id}: {result}");
    }
    let result = &fleet.results("parts")["long.md"];
    assert!(agree(result, &text) > 3);
    let numbers: Vec<u64> = evidence(result).iter().filter_map(|it| it["part"].as_u64()).collect();
    assert!(numbers.contains(&1) && numbers.contains(&2), "{result}");
    assert!(agree(&fleet.results("reduced")["long.md"], &text) > 0);
    let results = fleet.results("rows-out");
    assert_eq!(results.len(), 5);
    for result in results.values() {
        assert!(!evidence(result).is_empty(), "{result}");
    }
    let result = &fleet.results("economy")["long.md"];
    assert!(agree(result, &text) > 3, "{result}");
    assert!(evidence(result).iter().any(|it| it["found"] == json!(true)), "{result}");
    fleet.stop().await;
}

/// With the check `evidence`, an answer is a result only if the document contains each of its quotes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_evidence_holds_answers_to_their_quotes() {
    let Some(mut fleet) = fleet("", &format!("[models.\"{MODEL}\"]\nrpm = 6_000")).await else {
        return;
    };
    fleet.documents(12, 200);
    fleet.worker();
    let checks = json!([{"name": "evidence"}]);
    let more = json!({"model": MODEL, "schema": schema(), "checks": checks});
    fleet.start("checked", &batch(&fleet, "checked", more)).await;
    let told = fleet.result("checked").await.unwrap();
    let results = fleet.results("checked");
    let failures = std::fs::read_to_string(fleet.path("checked/failures.jsonl")).unwrap();
    assert_eq!(results.len() + failures.lines().count(), 12, "{told}");
    for result in results.values() {
        assert_eq!(result["checks"], json!([{"name": "evidence", "passed": true}]));
        assert!(evidence(result).iter().all(|it| it["found"] == json!(true)), "{result}");
    }
    for failure in failures.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        assert_eq!(failure["type"], json!("CheckFailed"), "{failure}");
        assert_eq!(failure["failed_checks"], json!(["evidence"]), "{failure}");
        let kept = failure["kept"].as_str().unwrap().strip_prefix("file://").unwrap();
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
        assert!(evidence(&kept).iter().any(|it| it["found"] == json!(false)), "{kept}");
    }
    fleet.stop().await;
}

/// A model that makes up four of ten quotes: each is close to a line of the document.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quotes_of_invoices_are_found_and_none_that_is_made_up() {
    const COUNT: usize = 300;
    let Some(mut fleet) = invoices(COUNT, "").await else { return };
    fleet.worker();
    let mut asked = checks::batch(&fleet, "quoted", json!({"model": CHEAP, "evidence": true}));
    asked.as_object_mut().unwrap().remove("checks");
    fleet.start("quoted", &asked).await;
    let result = fleet.result("quoted").await.unwrap();
    assert_eq!(result["succeeded"], json!(COUNT), "{result}");
    let lines = fleet.lines("quotes.jsonl").into_iter();
    let lines: BTreeMap<String, Value> =
        lines.map(|row| (row["id"].as_str().unwrap().to_owned(), row["quotes"].clone())).collect();
    // How many there are, and how many of them were found.
    let (mut standing, mut invented) = ([0_u32; 2], [0_u32; 2]);
    for (id, result) in fleet.results("quoted") {
        for quote in evidence(&result) {
            let is_true = lines[&id][quote["field"].as_str().unwrap()] == quote["quote"];
            let counts = if is_true { &mut standing } else { &mut invented };
            counts[0] += 1;
            counts[1] += u32::from(quote["found"] == json!(true));
        }
    }
    println!(
        "{} of {} true quotes found, {} of {} that were made up",
        standing[1], standing[0], invented[1], invented[0]
    );
    assert_eq!(standing[0] + invented[0], 8 * 300);
    assert!(standing[0] > 1_000 && f64::from(standing[1]) >= 0.99 * f64::from(standing[0]));
    assert!(invented[0] > 500 && invented[1] == 0);
    fleet.stop().await;
}
