//! Answers compared with the truth, and models compared with each other.

use serde_json::{Value, json};

use crate::{
    fleet::{MODEL, fleet, lines},
    why::tidegate,
};

fn models(names: &[&str]) -> String {
    names.iter().map(|name| format!("[models.\"{name}\"]\nrpm = 6000\n")).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_report_says_how_many_answers_are_as_they_should_be() {
    let Some(mut fleet) = fleet("", &models(&[MODEL])).await else { return };
    fleet.documents(20, 40);
    fleet.worker();
    fleet.start("bought", &fleet.batch("out")).await;
    fleet.result("bought").await.unwrap();
    let rows: Vec<String> = (fleet.results("out").iter())
        .filter(|(id, _)| *id != "report-0019.md")
        .map(|(id, result)| match &**id {
            "report-0003.md" => json!({"id": id, "expected": "another answer"}).to_string(),
            _ => json!({"id": id, "expected": result["answer"]}).to_string(),
        })
        .collect();
    let unknown = json!({"id": "report-0099.md", "expected": "x"}).to_string();
    let rows = format!("\u{feff}{}\n{unknown}\n", rows.join("\n"));
    std::fs::write(fleet.path("truth.jsonl"), rows).unwrap();
    let (source, output) = (fleet.uri("in/"), fleet.uri("out/"));
    let truth = fleet.uri("truth.jsonl");
    let run = async |truth: &str, at_least: &str| {
        let batch = fleet.batch("out");
        let said = batch["instructions"].as_str().unwrap();
        tidegate(
            &fleet,
            &[
                "run",
                &source,
                "--output",
                &output,
                "-i",
                said,
                "--model",
                MODEL,
                "--truth",
                truth,
                "--at-least",
                at_least,
                "--json",
            ],
        )
        .await
    };
    // With 18 of 19 right, perhaps no more than 75 % of all documents are right.
    let enough = run(&truth, "0.7").await;
    assert_eq!(enough.status.code(), Some(0), "{}", text(&enough.stderr));
    let told: Value = serde_json::from_slice(&enough.stdout).unwrap();
    assert_eq!((&told["skipped"], &told["provider_calls"]), (&json!(20), &json!(0)), "{told}");
    let agreement = &told["agreement"];
    assert_eq!(
        (&agreement["documents"]["agreed"], &agreement["documents"]["compared"]),
        (&json!(18), &json!(19)),
        "{agreement}"
    );
    let named = |name: &str| json!({"count": 1, "first": [name]});
    assert_eq!(agreement["without_document"], named("report-0099.md"), "{agreement}");
    assert_eq!(agreement["without_truth"], named("report-0019.md"), "{agreement}");
    assert!(
        text(&enough.stderr)
            .contains("ids of the truth in no document of the source: 1 (report-0099.md)")
    );
    let mistake = &agreement["fields"]["answer"]["confusion"][0];
    assert_eq!(mistake["expected"], json!("\"another answer\""));
    let how = agreement["how"].as_str().unwrap();
    assert!(how.starts_with("whole answers word by word; tidegate compare --judge"), "{how}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(fleet.path("out/report.json")).unwrap()).unwrap();
    assert_eq!(report["agreement"], *agreement);
    let differ = lines(&fleet.path("out/disagreements.jsonl"));
    assert_eq!((differ.len(), &differ[0]["id"]), (1, &json!("report-0003.md")));
    let too_few = run(&truth, "0.97").await;
    assert_eq!(too_few.status.code(), Some(1));
    assert!(
        text(&too_few.stderr).contains("94.7 % agree, of 19 documents"),
        "{}",
        text(&too_few.stderr)
    );
    std::fs::write(fleet.path("truth.jsonl"), "{\"id\": \"a\", \"expect\": 1}\n").unwrap();
    let wrong = run(&truth, "0.97").await;
    let said = text(&wrong.stderr);
    assert!(said.contains("line 1") && said.contains("expect"), "{said}");
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn models_are_asked_about_one_sample_and_compared() {
    let other = "anthropic:claude-haiku-4-5";
    let Some(mut fleet) = fleet("", &models(&[MODEL, other])).await else { return };
    fleet.documents(30, 40);
    fleet.worker();
    let (source, output) = (fleet.uri("in/"), fleet.uri("compared/"));
    let compare = async |more: &[&str]| {
        let words =
            ["compare", MODEL, other, &source, "-o", &output, "-i", "Sum up.", "--sample", "10"];
        tidegate(&fleet, &[&words, more].concat()).await
    };
    let theirs = fleet.path("compared/comparison.json");
    std::fs::create_dir(fleet.path("compared")).unwrap();
    std::fs::write(&theirs, "mine").unwrap();
    let refused = compare(&[]).await;
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("holds comparison.json"), "{}", text(&refused.stderr));
    assert_eq!(
        (std::fs::read_to_string(&theirs).unwrap(), fleet.account().requests),
        ("mine".to_owned(), 0)
    );
    std::fs::remove_file(&theirs).unwrap();
    let first = compare(&["--json"]).await;
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let told: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(told["documents_in_all"], json!(30));
    let answered: Vec<&Value> = (0..2).map(|model| &told["models"][model]["answered"]).collect();
    assert_eq!(answered, [&json!(10), &json!(10)], "{told}");
    let pair = &told["pairs"][0];
    assert_eq!(pair["models"], json!([MODEL, other]));
    assert_eq!(pair["documents"]["compared"], json!(10));
    let calls = fleet.account().admitted;
    let again = compare(&["--at-least", "1"]).await;
    assert_eq!(again.status.code(), Some(1), "ten of ten say nothing so sure");
    assert_eq!(fleet.account().admitted, calls, "nothing is bought twice");
    assert!(text(&again.stdout).contains("COST OF ALL"), "{}", text(&again.stdout));
    assert!(fleet.path("compared/comparison.json").exists());
    fleet.stop().await;
}

/// What is wrong with one model is told before another is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_model_is_asked_before_all_are_looked_at() {
    let unpriced = "anthropic:claude-of-tomorrow";
    let Some(mut fleet) = fleet("", &models(&[MODEL, unpriced])).await else { return };
    fleet.documents(3, 40);
    fleet.worker();
    let (source, output) = (fleet.uri("in/"), fleet.uri("compared/"));
    let refused = async |model: &str, more: &[&str]| {
        let words = ["compare", MODEL, model, &source, "-o", &output, "-i", "Sum up."];
        let told = tidegate(&fleet, &[&words, more].concat()).await;
        assert_eq!(told.status.code(), Some(2), "{}", text(&told.stderr));
        text(&told.stderr)
    };
    let unknown = refused("anthropic:claude-sonet-5", &[]).await;
    assert!(unknown.contains("nothing was started; anthropic:claude-sonet-5: "), "{unknown}");
    assert!(unknown.contains("is not configured"), "{unknown}");
    let priceless = refused(unpriced, &["--budget-usd", "1"]).await;
    assert!(priceless.contains("no price"), "{priceless}");
    let twice = refused(MODEL, &[]).await;
    assert!(twice.contains("is named twice"), "{twice}");
    assert_eq!(fleet.account().requests, 0);
    let list = fleet.cli(&["workflow", "count"]).await;
    assert!(text(&list.stdout).contains("Total: 0"), "{}", text(&list.stdout));
    fleet.stop().await;
}

/// Answers that differ from the truth as texts are judged once each. What the judge cannot say is in no
/// figure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn free_texts_are_compared_by_a_judge() {
    const COUNT: u64 = 12;
    const KNOWN: u64 = 5;
    let other = "anthropic:claude-haiku-4-5";
    let judge = "anthropic:claude-opus-4-8";
    let price = "price = { input-usd-per-mtok = 1.0, output-usd-per-mtok = 5.0 }";
    let priced = format!("{}{price}\n", models(&[MODEL, other, judge]));
    let unpaid = "[[faults]]\nkind = \"spend-limit\"\nmatching = \"Is it paid?\"\n";
    let Some(mut fleet) = fleet(unpaid, &priced).await else { return };
    fleet.documents(COUNT as usize, 40);
    fleet.worker();
    let rows: String = (0..KNOWN)
        .map(|number| json!({"id": format!("report-{number:04}.md"), "expected": "The tide."}))
        .map(|row| format!("{row}\n"))
        .collect();
    std::fs::write(fleet.path("truth.jsonl"), rows).unwrap();
    let (source, output, truth) =
        (fleet.uri("in/"), fleet.uri("compared/"), fleet.uri("truth.jsonl"));
    let compare = async |more: &[&str]| {
        let words = ["compare", MODEL, other, &source, "-o", &output, "-i", "Sum up.", "--json"];
        let ran = tidegate(&fleet, &[&words, ["--truth", &truth].as_slice(), more].concat()).await;
        let told = serde_json::from_slice::<Value>(&ran.stdout).unwrap_or_default();
        (ran.status.code(), told, text(&ran.stderr))
    };
    let number = |value: &Value| value.as_u64().unwrap();
    let rate = |agreement: &Value| {
        ["agreed", "compared"].map(|name| number(&agreement["documents"][name]))
    };
    let agreements = |told: &Value| [0, 1].map(|model| told["models"][model]["agreement"].clone());
    let requests = || {
        ["claude-sonnet-5", "claude-haiku-4-5", "claude-opus-4-8"]
            .map(|model| fleet.simulator.account().model(model).requests)
    };

    let (code, _, said) = compare(&["--judge", "anthropic:claude-of-tomorrow"]).await;
    assert_eq!((code, requests()), (Some(2), [0, 0, 0]), "{said}");
    assert!(said.contains("nothing was started; anthropic:claude-of-tomorrow: "), "{said}");

    let (code, told, said) = compare(&[]).await;
    assert_eq!((code, &told["judge"]), (Some(0), &Value::Null), "{said}");
    for agreement in agreements(&told) {
        assert_eq!(rate(&agreement), [0, KNOWN], "{agreement}");
        assert!(agreement["how"].as_str().unwrap().contains("word by word"), "{agreement}");
    }
    // The simulator's models give the same texts, so that each pair is judged for both.
    assert_eq!(rate(&told["pairs"][0]), [COUNT, COUNT], "{told}");

    let unpaid = ["--judge", other, "--judge-instructions", "Is it paid?", "--at-least", "0.01"];
    let (code, told, said) = compare(&unpaid).await;
    assert_eq!(code, Some(1), "{said}");
    for agreement in agreements(&told) {
        assert_eq!((number(&agreement["unjudged"]), rate(&agreement)), (KNOWN, [0, 0]), "{told}");
    }

    let [one, _, before] = requests();
    let (code, told, said) = compare(&["--judge", judge]).await;
    assert_eq!((code, requests()[0]), (Some(0), one), "no answer is bought twice: {said}");
    assert_eq!(requests()[2] - before, KNOWN, "one call for each pair of texts");
    let verdicts = lines(&fleet.path("compared/judged/results.jsonl"));
    let passed = verdicts.iter().filter(|line| {
        let said: Value = serde_json::from_str(line["answer"].as_str().unwrap()).unwrap();
        said["passed"].as_bool().unwrap()
    });
    let passed = passed.count() as u64;
    for agreement in agreements(&told) {
        assert_eq!(rate(&agreement), [passed, KNOWN], "{agreement}");
        assert_eq!(agreement["how"], format!("what whole answers say, as {judge} judges it"));
        assert_eq!(number(&agreement["without_truth"]["count"]), COUNT - KNOWN, "{agreement}");
        assert_eq!(number(&agreement["timed"]), KNOWN, "{agreement}");
    }
    let usd = verdicts.iter().map(|line| line["cost_usd"].as_f64().unwrap()).sum::<f64>();
    let told_usd = told["judge"]["cost_usd"].as_f64().unwrap();
    assert!(usd > 0.0 && (told_usd - usd).abs() < 1e-9, "{told_usd} and {usd}");
    assert_eq!(
        (number(&told["judge"]["pairs"]), number(&told["judge"]["verdicts"])),
        (KNOWN, KNOWN)
    );
    println!("{said}\n{told:#}");

    let before = requests();
    compare(&["--judge", judge]).await;
    assert_eq!(requests(), before, "nothing is bought twice");
    fleet.stop().await;
}
