//! Checks of answers about generated invoices: checks catch exactly what they describe, failed answers go
//! on to the next model, and nothing is paid twice.

use std::{collections::BTreeMap, process::Command, time::Duration};

use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, fleet, lines},
    why::tidegate,
};

const RIGHT: &str = "anthropic:claude-opus-4-8";
pub(crate) const CHEAP: &str = "anthropic:claude-haiku-4-5";
const WRONG: &str = "anthropic:claude-sonnet-5";

/// The fields that the invoices' checks describe.
const DESCRIBED: [&str; 6] = ["date", "due", "currency", "net", "vat", "total"];

fn settings() -> String {
    let price = "price = { input-usd-per-mtok = 1.0, output-usd-per-mtok = 5.0 }";
    let dear = "price = { input-usd-per-mtok = 10.0, output-usd-per-mtok = 50.0 }";
    let models = [(RIGHT, dear), (CHEAP, price), (WRONG, price)];
    let models =
        models.map(|(model, price)| format!("[models.\"{model}\"]\nrpm = 6_000\n{price}\n"));
    format!("{}[routes.up]\nmodels = [\"{CHEAP}\", \"{RIGHT}\"]\n", models.concat())
}

/// A fleet with `count` invoices in its folder.
pub(crate) async fn invoices(count: usize, simulator: &str) -> Option<Fleet> {
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/invoices.py");
    let [right, cheap, wrong] = [(RIGHT, 0.0), (CHEAP, 0.4), (WRONG, 1.0)]
        .map(|(model, rate)| format!("{}={rate}", model.split_once(':').unwrap().1));
    let made = Command::new("python3")
        .arg(script)
        .arg(folder.path())
        .args(["--count", &count.to_string(), "--rate", &right, "--rate", &cheap, "--rate", &wrong])
        .args(["--invented", &cheap])
        .status();
    assert!(made.unwrap().success());
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let fleet = fleet(&format!("{}{simulator}", read("simulator.toml")), &settings()).await?;
    for file in std::fs::read_dir(folder.path().join("in")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), fleet.path("in").join(file.file_name())).unwrap();
    }
    for name in ["truth.jsonl", "quotes.jsonl", "schema.json", "checks.json"] {
        std::fs::write(fleet.path(name), read(name)).unwrap();
    }
    Some(fleet)
}

pub(crate) fn batch(fleet: &Fleet, output: &str, more: Value) -> Value {
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(fleet.path(name)).unwrap()).unwrap()
    };
    let mut batch = json!({"source": fleet.uri("in/"), "output": fleet.uri(output),
        "instructions": "Read the invoice.", "schema": read("schema.json"),
        "checks": read("checks.json"), "retry_budget": 0, "max_output_tokens": 512});
    batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    batch
}

fn truth(fleet: &Fleet) -> BTreeMap<String, Value> {
    let rows = lines(&fleet.path("truth.jsonl")).into_iter();
    rows.map(|row| (row["id"].as_str().unwrap().to_owned(), row["expected"].clone())).collect()
}

/// The fields in which an answer differs from the truth.
fn differences(answer: &Value, truth: &Value) -> Vec<String> {
    let answer: Value = serde_json::from_str(answer.as_str().unwrap()).unwrap();
    let fields = truth.as_object().unwrap().iter();
    fields.filter(|(name, it)| answer[*name] != **it).map(|(name, _)| name.clone()).collect()
}

fn is_described(fields: &[String]) -> bool {
    fields.iter().any(|field| DESCRIBED.contains(&field.as_str()))
}

fn report(fleet: &Fleet, output: &str) -> Value {
    let report = std::fs::read(fleet.path(&format!("{output}/report.json"))).unwrap();
    serde_json::from_slice(&report).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_catch_what_they_describe_and_raise_no_false_alarm() {
    let count = usize::try_from(crate::fleet::number("TIDEGATE_INVOICES", 30)).unwrap();
    let Some(mut fleet) = invoices(count, "").await else { return };
    fleet.worker();
    let judge = json!({"model": RIGHT, "instructions": "Is each field as the invoice has it?"});
    let mut judged = batch(&fleet, "judged", json!({"model": CHEAP}));
    judged["checks"].as_array_mut().unwrap().push(json!({"name": "all", "judge": judge}));
    for (id, input) in [
        ("right", batch(&fleet, "right", json!({"model": RIGHT}))),
        ("wrong", batch(&fleet, "wrong", json!({"model": WRONG}))),
        ("up", batch(&fleet, "up", json!({"route": "up", "escalate": true}))),
        ("judged", judged),
    ] {
        fleet.start(id, &input).await;
    }
    let (truth, all) = (truth(&fleet), json!(count));

    let right = fleet.result("right").await.unwrap();
    assert_eq!((&right["succeeded"], &right["provider_calls"]), (&all, &all), "no false alarm");
    let results = fleet.results("right");
    assert!(results.values().all(|it| it["checks"].as_array().unwrap().len() == 3));

    // Each answer has one wrong field. The answers that pass are wrong only in fields without a check.
    let wrong = fleet.result("wrong").await.unwrap();
    let results = fleet.results("wrong");
    for (id, result) in &results {
        let fields = differences(&result["answer"], &truth[id]);
        assert!(!is_described(&fields), "{id}: {fields:?} was not caught");
    }
    let failures = fleet.lines("wrong/failures.jsonl");
    assert_eq!(wrong["failed"], json!(failures.len()), "{wrong}");
    assert!(failures.len() >= count / 4 && results.len() + failures.len() == count);
    for failure in &failures {
        assert_eq!(failure["error_type"], "CheckFailed");
        let kept = failure["kept"].as_str().unwrap().strip_prefix("file://").unwrap();
        let kept: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
        let fields = differences(&kept["answer"], &truth[failure["id"].as_str().unwrap()]);
        assert!(is_described(&fields), "{failure}: {fields:?}");
        assert_eq!(failure["provider_calls"], json!(2));
        let names = failure["failed_checks"].as_array().unwrap();
        assert!(
            names
                .iter()
                .all(|it| failure["message"].as_str().unwrap().contains(it.as_str().unwrap()))
        );
    }
    let checks = &report(&fleet, "wrong")["checks"];
    let failed = |name: &str| checks["by_name"][name]["failed"].as_u64().unwrap_or_default();
    let sum = failed("total") + failed("dates") + failed("currency");
    assert!(sum >= failures.len() as u64 && checks["documents"] == all, "{checks}");
    // Each that has failed, and each that has passed in the end, was asked once more.
    let second: usize = results.values().filter(|it| it["provider_calls"] == 2).count();
    let again = ["total", "dates", "currency"]
        .map(|name| checks["by_name"][name]["asked_again"].as_u64().unwrap_or_default());
    assert!(again.iter().sum::<u64>() >= (failures.len() + second) as u64, "{checks}");
    let calls = failures.len() * 2 + results.len() + second;
    assert_eq!(checks["asked"][WRONG], json!(calls), "{checks}");

    let up = fleet.result("up").await.unwrap();
    assert_eq!((&up["succeeded"], &up["failed"]), (&all, &json!(0)), "{up}");
    let (results, checks) = (fleet.results("up"), &report(&fleet, "up")["checks"]);
    let went_on = results.values().filter(|it| it["model"] == RIGHT).count();
    assert!(went_on > 0 && checks["escalated"] == json!(went_on), "{checks}");
    assert_eq!(checks["asked"][RIGHT], json!(went_on));
    for (id, result) in &results {
        assert!(!is_described(&differences(&result["answer"], &truth[id])), "{id}");
        let asked = result["asked"].as_array().unwrap();
        assert_eq!(asked.len() as u64, result["provider_calls"].as_u64().unwrap());
        assert_eq!(asked.last().unwrap()["model"], result["model"]);
    }
    let calls: u64 = results.values().map(|it| it["provider_calls"].as_u64().unwrap()).sum();
    assert_eq!(up["provider_calls"], json!(calls), "{up}");
    let again: Vec<u64> = checks["by_name"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(|it| it["asked_again"].as_u64())
        .collect();
    assert!(again.iter().sum::<u64>() >= calls - count as u64 - went_on as u64, "{checks}");

    let ended = fleet.result("judged").await.unwrap();
    for (id, result) in &fleet.results("judged") {
        assert_eq!(differences(&result["answer"], &truth[id]), Vec::<String>::new(), "{id}");
    }
    let failed = fleet.lines("judged/failures.jsonl");
    assert_eq!(ended["failed"], json!(failed.len()));
    assert!(failed.iter().all(|it| it["error_type"] == "CheckFailed"), "{failed:?}");
    println!(
        "{count} invoices: {} of those answered wrongly have failed, {went_on} went on, {} were given up by the judge; {} calls in all",
        failures.len(),
        failed.len(),
        fleet.simulator.account().model("claude-haiku-4-5").requests
    );
    fleet.stop().await;
}

/// The share of the first documents that went on predicts the share of all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forecast_prices_the_share_that_went_on() {
    let count = usize::try_from(crate::fleet::number("TIDEGATE_INVOICES", 60)).unwrap();
    let Some(mut fleet) = invoices(count, "").await else { return };
    fleet.worker();
    let (source, output) = (fleet.uri("in/"), fleet.uri("out/"));
    let files = ["schema.json", "checks.json"].map(|name| fleet.path(name).display().to_string());
    let run = async |more: &[&str]| {
        let words = [
            "run",
            &source,
            "--output",
            &output,
            "-i",
            "Read the invoice.",
            "--route",
            "up",
            "--escalate",
            "--schema",
            &files[0],
            "--checks",
            &files[1],
            "--json",
            "--max-output-tokens",
            "100",
        ];
        let ran = tidegate(&fleet, &[&words, more].concat()).await;
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let tells = said.contains("reading the whole source for the estimate");
        assert_eq!(tells, more == ["--dry-run"], "{said}");
        serde_json::from_slice::<Value>(&ran.stdout).unwrap_or_else(|_| panic!("{said}"))
    };
    let usd = |forecast: &Value| {
        let of = |end: &str| forecast["cost_usd"][end].as_f64().unwrap();
        (of("from"), of("to"))
    };
    let before = usd(&run(&["--dry-run"]).await);
    run(&["--sample", "20"]).await;
    let after = usd(&run(&["--dry-run"]).await);
    assert!(after.1 < before.1 / 2.0, "{before:?}, and then {after:?}");
    run(&[]).await;
    let results = fleet.results("out");
    let cost: f64 = results.values().map(|it| it["cost_usd"].as_f64().unwrap()).sum();
    println!("forecast {before:?}, after a sample {after:?}; it has cost {cost}");
    assert!(results.len() == count && after.0 <= cost && cost <= after.1, "{cost} in {after:?}");
    fleet.stop().await;
}

/// Agreement with the truth is what a count of the answers says, and decides which models may follow each
/// other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agreement_with_the_truth_is_what_is_counted_and_a_bad_model_is_not_recorded() {
    const COUNT: usize = 30;
    let Some(mut fleet) = invoices(COUNT, "").await else { return };
    fleet.worker();
    let expected = truth(&fleet);
    let rows = std::fs::read_to_string(fleet.path("truth.jsonl")).unwrap();
    let unknown = json!({"id": "invoice-9999.md", "expected": {"net": 1}});
    std::fs::write(fleet.path("truth.jsonl"), format!("{rows}{unknown}\n")).unwrap();
    let (source, rows) = (fleet.uri("in/"), fleet.uri("truth.jsonl"));
    let schema = fleet.path("schema.json").display().to_string();
    let ask = async |words: &[&str], output: &str, more: &[&str]| {
        let output = fleet.uri(output);
        let given = [
            &*source,
            "-o",
            &output,
            "-i",
            "Read the invoice.",
            "--schema",
            &schema,
            "--truth",
            &rows,
        ];
        tidegate(&fleet, &[words, &given, more].concat()).await
    };
    let counts = |rate: &Value| [&rate["agreed"], &rate["compared"]].map(|it| it.as_u64().unwrap());

    for (model, output) in [(WRONG, "of-wrong/"), (CHEAP, "of-cheap/")] {
        let ran = ask(&["run", "--model", model], output, &["--at-least", "0.9"]).await;
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{said}");
        let mut wrong: BTreeMap<String, u64> = BTreeMap::new();
        let results = fleet.results(output);
        for (id, result) in &results {
            for field in differences(&result["answer"], &expected[id]) {
                *wrong.entry(field).or_default() += 1;
            }
        }
        let agreement = report(&fleet, output)["agreement"].clone();
        let fields = agreement["fields"].as_object().unwrap();
        assert_eq!((results.len(), fields.len()), (COUNT, 8), "{agreement}");
        for (name, field) in fields {
            let wrong = wrong.get(name).copied().unwrap_or_default();
            assert_eq!(counts(field), [COUNT as u64 - wrong, COUNT as u64], "{name}: {field}");
            let mistakes = field["confusion"].as_array().into_iter().flatten();
            let mistakes: u64 = mistakes.map(|it| it["documents"].as_u64().unwrap()).sum();
            assert_eq!(mistakes, wrong, "{name}: {field}");
        }
        // A wrong answer has one wrong field.
        let right = COUNT as u64 - wrong.values().sum::<u64>();
        assert_eq!(counts(&agreement["documents"]), [right, COUNT as u64], "{agreement}");
        println!("{model}: {right} of {COUNT} agree; wrong by field: {wrong:?}");
    }

    // A sample without a truth, then with it, then all. Only the row that no document of the source has is
    // named, although most are not in the sample.
    let ask_sample = async |id: &str, more: Value| {
        let mut input = batch(&fleet, "sampled/", json!({"model": CHEAP, "checks": null}));
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fleet.start(id, &input).await;
        let result = fleet.result(id).await.unwrap();
        let counted = ["succeeded", "skipped", "provider_calls"].map(|name| result[name].clone());
        (counted, report(&fleet, "sampled/")["agreement"].clone())
    };
    let (counted, agreement) = ask_sample("sample", json!({"sample": 8})).await;
    assert_eq!((counted, agreement), ([json!(8), json!(0), json!(8)], Value::Null));
    assert!(!fleet.path("sampled/disagreements.jsonl").exists());
    let (counted, agreement) = ask_sample("known", json!({"sample": 8, "truth": rows})).await;
    assert_eq!(counted, [json!(0), json!(8), json!(0)], "nothing is bought again");
    let unmatched = json!({"count": 1, "first": ["invoice-9999.md"]});
    for (agreement, all) in
        [(agreement, 8), (ask_sample("whole", json!({"truth": rows})).await.1, COUNT as u64)]
    {
        assert_eq!(counts(&agreement["documents"])[1], all, "{agreement}");
        assert_eq!(agreement["how"], json!("fields by their values"), "{agreement}");
        assert_eq!(agreement["without_document"], unmatched, "{agreement}");
        assert_eq!(agreement["without_truth"], Value::Null, "{agreement}");
    }

    let compare = async |more: &[&str]| {
        let ran = ask(&["compare", RIGHT, WRONG], "compared/", more).await;
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let entries = std::fs::read_dir(fleet.path("compared/_tidegate")).unwrap();
        let is_of_a_question = |name: &String| name.len() > 40 && name.ends_with(".json");
        let mut names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        let recorded = names.find(is_of_a_question).unwrap();
        let recorded = std::fs::read(fleet.path("compared/_tidegate").join(recorded)).unwrap();
        let recorded: Value = serde_json::from_slice(&recorded).unwrap();
        (ran, said, recorded["pairs"].as_array().unwrap().len())
    };
    let (ran, said, recorded) = compare(&[]).await;
    assert_eq!((ran.status.code(), recorded), (Some(0), 1), "{said}");
    let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
    println!("{shown}");
    for part in ["TIME", "AGREES WITH THE TRUTH", "whichever answers: $"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // 30 of 30 are surely more than 0.85, and none of 30 is not.
    let (ran, said, recorded) = compare(&["--at-least", "0.85", "--json"]).await;
    assert_eq!((ran.status.code(), recorded), (Some(1), 0), "{said}");
    assert!(said.contains(WRONG) && !said.contains(&format!("{RIGHT}: 100")), "{said}");
    let told: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let agreed = [0, 1].map(|model| counts(&told["models"][model]["agreement"]["documents"]));
    assert_eq!(agreed, [[30, 30], [0, 30]], "{told}");
    let (route, of_all) = (&told["pairs"][0]["cost_usd_of_route"], &told["models"]);
    assert_eq!(
        (&route["from"], &route["to"]),
        (&of_all[1]["cost_usd_of_all"], &of_all[0]["cost_usd_of_all"]),
        "{told}"
    );
    assert!(told["models"][0]["seconds_each"].as_f64() > Some(0.0), "{told}");
    fleet.stop().await;
}

/// A worker is killed between answers and judgements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_buys_neither_answers_nor_judgements_twice() {
    const COUNT: usize = 24;
    let Some(mut fleet) = invoices(COUNT, "[latency]\nbase = \"1s\"\n").await else { return };
    fleet.worker();
    let judge = json!({"model": RIGHT, "instructions": "Is each field as the invoice has it?"});
    let mut input = batch(&fleet, "out", json!({"model": RIGHT, "retry_budget": 100}));
    input["checks"].as_array_mut().unwrap().push(json!({"name": "all", "judge": judge}));
    fleet.start("killed", &input).await;
    let checking = fleet.path("out/_tidegate/checking");
    let is_whole = |entry: &std::io::Result<std::fs::DirEntry>| {
        entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "json")
    };
    let kept =
        || std::fs::read_dir(&checking).map_or(0, |entries| entries.filter(is_whole).count());
    for _ in 0..3_000 {
        if kept() == COUNT {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A judgement takes a second, so none has arrived.
    let answered = kept();
    assert_eq!(answered, COUNT, "not every answer is kept");
    fleet.kill_worker(0).await;
    fleet.worker();
    let result = fleet.result("killed").await.unwrap();
    assert_eq!(result["succeeded"], json!(COUNT), "{result}");
    let account = fleet.simulator.account().model("claude-opus-4-8");
    println!("{answered} answers kept, {} calls, {} cut off", account.requests, account.abandoned);
    let most = 2 * COUNT as u64 + account.abandoned;
    assert!(account.requests <= most, "{} calls of {most}", account.requests);
    assert_eq!(kept(), 0, "nothing is left behind");
    for result in fleet.results("out").values() {
        assert_eq!(result["checks"].as_array().unwrap().len(), 4, "{result}");
    }
    fleet.stop().await;
}

/// The budget of a document includes what may follow; a document that the budget does not cover is not
/// started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_is_begun_only_if_its_checks_can_be_paid() {
    const COUNT: usize = 30;
    const BUDGET_USD: f64 = 0.1;
    let Some(mut fleet) = invoices(COUNT, "").await else { return };
    fleet.worker();
    let judge = json!({"model": RIGHT, "instructions": "Is each field as the invoice has it?"});
    let mut input =
        batch(&fleet, "out", json!({"model": CHEAP, "budget_usd": BUDGET_USD, "max_in_flight": 4}));
    input["checks"].as_array_mut().unwrap().push(json!({"name": "all", "judge": judge}));
    fleet.start("money", &input).await;
    let result = fleet.result("money").await.unwrap();
    assert!(result["cost_usd"].as_f64() <= Some(BUDGET_USD), "{result}");
    assert!(
        result["failed"].as_u64() > Some(0) && result["succeeded"].as_u64() > Some(0),
        "{result}"
    );
    let failures = fleet.lines("out/failures.jsonl");
    let for_money = failures.iter().filter(|it| it["error_type"] == "BudgetExceeded");
    let calls: Vec<&Value> = for_money.map(|failure| &failure["provider_calls"]).collect();
    assert!(!calls.is_empty() && calls.iter().all(|calls| **calls == json!(0)), "{failures:?}");
    fleet.stop().await;
}

/// If the judge's account has no money left, answers stay unchecked: none fails, and none is paid again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_judge_that_cannot_be_paid_leaves_answers_unchecked() {
    const COUNT: usize = 12;
    let instructions = "Is each field as the invoice has it?";
    let fault = format!("[[faults]]\nkind = \"spend-limit\"\nmatching = \"{instructions}\"\n");
    let Some(mut fleet) = invoices(COUNT, &fault).await else { return };
    fleet.worker();
    let judge = json!({"model": WRONG, "instructions": instructions});
    let mut input = batch(&fleet, "out", json!({"model": RIGHT}));
    input["checks"].as_array_mut().unwrap().push(json!({"name": "all", "judge": judge}));
    for run in ["first", "again"] {
        fleet.start(run, &input).await;
        let result = fleet.result(run).await.unwrap();
        let done = result["succeeded"].as_u64().unwrap() + result["skipped"].as_u64().unwrap();
        assert_eq!(done, COUNT as u64, "{result}");
        assert_eq!(report(&fleet, "out")["checks"]["by_name"]["all"]["unchecked"], COUNT);
    }
    let results = fleet.results("out");
    assert!(results.values().all(|result| result["unchecked"] == json!(["all"])));
    let account = fleet.simulator.account();
    assert_eq!(account.models["claude-opus-4-8"].ok, COUNT as u64, "each answer is bought once");
    fleet.stop().await;
}
