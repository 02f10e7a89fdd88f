//! Plans that are made page by page.

use super::*;

/// Plans as the workflow does; the worker dies after each page, before it can report it.
pub(super) async fn plan(
    services: &Services,
    job: &Job,
    run: &str,
    room: &PageBudget,
) -> Result<Plan, Failure> {
    let batch = Holder { namespace: String::new(), workflow: "w".to_owned(), run: run.to_owned() };
    let has_ended = |_| std::future::ready(Ok(true));
    let mut plan = plan::plan_in(services, None, job, &batch, room.clone(), has_ended).await?;
    while plan.more {
        let next = plan::plan_more(services, &plan, room.clone()).await?;
        assert_eq!(plan::plan_more(services, &plan, room.clone()).await?, next, "once more");
        assert!(next.documents > plan.documents || next.pages > plan.pages, "{plan:?} {next:?}");
        plan = next;
    }
    Ok(plan)
}

fn stored(rig: &Rig, run: u32) -> Value {
    let path = rig.path(&format!("out/_tidegate/w-run-{run:04}/job.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn ids(rig: &Rig) -> Vec<String> {
    let lines = rig.lines("out/results.jsonl");
    lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

/// 1,203 documents in pages of 300, and shards of 500: documents that do not fill a shard are carried
/// over.
#[tokio::test]
async fn pages_make_the_plan_that_one_page_makes() {
    let mut rig = Rig::new();
    let rows = |changed: &str| -> String {
        // Each name occurs twice, in different pages.
        let row = |row: u32| format!("ship-{:04},{changed}{row}\n", row % 600);
        (0..1_200).map(row).collect()
    };
    let text = format!("ship,note\n{}", rows("note "));
    ["a.md", "z.md", "b.md"].iter().for_each(|name| rig.document(name, name, 0));
    rig.document("log.csv", &text, 0);
    let records = json!({"records": {"id": "ship", "text": "note"}});
    let forecast = plan::forecast(&rig.services, &rig.job(&records)).await.unwrap();
    assert_eq!(forecast.documents, 1_203);

    rig.room = Some(PageBudget::of_documents(300));
    let ran = rig.run(records.clone()).await.unwrap();
    let Plan { documents, settled, renamed, pages, .. } = ran.plan;
    assert_eq!((documents, settled, renamed, ran.plan.shards()), (1_203, 0, 600, 3));
    assert!(pages >= 2, "{pages}");
    assert_eq!(ran.figures(), ([1_203, 0, 0, 0], 1_203));
    let first = ids(&rig);
    let mut sorted = first.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!((first.len(), sorted.len()), (1_203, 1_203));
    let job = stored(&rig, 1);
    assert_eq!(
        (&job["retry_budget"], &job["forecast"]["documents"]),
        (&json!(3_609), &json!(1_203))
    );
    assert_eq!(job["forecast"]["of_the_first"], json!(true));

    // All of it is known from the sealed parts; the ids are those of the first run.
    let again = rig.run(records.clone()).await.unwrap();
    assert_eq!((again.plan.settled, again.plan.shards(), again.asked.len()), (1_203, 0, 0));
    assert_eq!(ids(&rig), first, "in the plan's order");

    // In one page they have these ids too.
    rig.room = None;
    let whole = rig.run(records.clone()).await.unwrap();
    assert_eq!((whole.plan.settled, whole.plan.renamed, whole.plan.pages), (1_203, 600, 1));
    assert_eq!(ids(&rig), sorted, "ordered by id as a whole");

    // Changed rows are asked, wherever they are.
    rig.room = Some(PageBudget::of_documents(300));
    rig.document(
        "log.csv",
        &text.replace("note 7\n", "other 7\n").replace("note 1111\n", "other\n"),
        5,
    );
    let updated = rig.run(records).await.unwrap();
    assert_eq!((updated.plan.settled, updated.figures()), (1_201, ([2, 0, 1_201, 2], 2)));
    assert_eq!(ids(&rig), first);
}

/// Forty records of 500 kB: the manifest, and what a page carries over to the next, has none of their
/// texts; each is asked about its own text and fields.
#[tokio::test]
async fn large_records_are_kept_apart() {
    let mut rig = Rig::new();
    let text = |number: usize| format!("record {number} {}", "of many words ".repeat(36_000));
    let record = |number| json!({"text": text(number), "ship": number}).to_string() + "\n";
    rig.document("log.jsonl", &(0..40).map(record).collect::<String>(), 0);
    rig.room = Some(PageBudget::page());
    let records = json!({"records": {"text": "text"},
        "template": true, "instructions": "What has ship {{ ship }} on board? {{ document }}"});
    let ran = rig.run(records).await.unwrap();
    assert_eq!(ran.figures(), ([40, 0, 0, 0], 40));
    assert!(ran.plan.pages > 1, "{:?}", ran.plan);
    let folder = rig.path("out/_tidegate/w-run-0001");
    for name in ["shard-00000.jsonl", "page-00001.json"] {
        let size = std::fs::metadata(folder.join(name)).unwrap().len();
        assert!(size < 20_000, "{name}: {size}");
    }
    let said = rig.provider.said.lock().unwrap();
    for number in 0..40 {
        let question = format!("What has ship {number} on board?");
        let about =
            said.iter().find(|said| said.iter().any(|it| it.contains(&question))).expect(&question);
        let its = format!("record {number} of many words");
        assert!(about.iter().any(|it| it.contains(&its)), "{question}");
    }
}

/// Decisions that need all documents are made before any is asked.
#[tokio::test]
async fn a_budget_is_held_against_all_pages() {
    let mut rig = Rig::new();
    (0..20).for_each(|number| rig.document(&format!("{number}.md"), "a text", 0));
    rig.room = Some(PageBudget::of_documents(3));
    let all = plan::forecast(&rig.services, &rig.job(&json!({}))).await.unwrap().cost_usd.unwrap();
    let enough_for_a_page = all.from / 4.0;
    let failure = rig.run(json!({"budget_usd": enough_for_a_page})).await.unwrap_err();
    assert_eq!(failure.kind, FailureType::BudgetExceeded, "{failure}");
    let ran = rig.run(json!({"deadline": {"within": 7_200}})).await.unwrap();
    assert_eq!((ran.plan.documents, ran.figures().1), (20, 20));
    assert!(!ran.plan.more && ran.plan.pages > 1);

    // A budget need not pay for what is done. The next step of the plan wants Redis, which is not there.
    let for_one = json!({"budget_usd": all.from / 15.0});
    let forecast = plan::forecast(&rig.services, &rig.job(&for_one)).await.unwrap();
    assert_eq!((forecast.documents, forecast.asked), (20, Some(0)));
    forecast.check(Some(all.from / 15.0)).unwrap();
    for (new, refused) in [
        (None, FailureType::Transient),
        (Some("new.md"), FailureType::Transient),
        (Some("newer.md"), FailureType::BudgetExceeded),
    ] {
        new.into_iter().for_each(|name| rig.document(name, "a text", 0));
        let failure = rig.run(for_one.clone()).await.unwrap_err();
        assert_eq!(failure.kind, refused, "{new:?}: {failure}");
    }
}

/// A later page that cannot be planned says what to change.
#[tokio::test]
async fn a_source_that_changes_on_the_way_is_refused() {
    let rig = Rig::new();
    let rows: String = (0..40_000).map(|row| format!("{row},{}\n", "x".repeat(600))).collect();
    rig.document("log.csv", &format!("ship,note\n{rows}"), 0);
    let job = rig.job(&json!({"records": {"id": "ship"}}));
    let batch = Holder { namespace: String::new(), workflow: "w".to_owned(), run: "r".to_owned() };
    let has_ended = |_| std::future::ready(Ok(true));
    let plan =
        plan::plan_in(&rig.services, None, &job, &batch, PageBudget::page(), has_ended).await;
    let plan = plan.unwrap();
    assert!(plan.more && plan.documents >= 4_000, "{plan:?}");
    rig.document("log.csv", &format!("ship,note\nnew,row\n{rows}"), 9);
    let refused = plan::plan_more(&rig.services, &plan, PageBudget::page()).await.unwrap_err();
    assert_eq!(refused.kind, FailureType::InvalidInput);
    assert!(refused.message.contains("has changed"), "{refused}");
}

/// No store is asked again and again for what no wait can mend.
#[tokio::test]
async fn an_output_that_is_a_file_is_refused() {
    let rig = Rig::new();
    rig.document("a.md", "Ebb.", 0);
    for output in ["in/a.md", "in/a.md/out/"] {
        let output = format!("file://{}/{output}", rig.folder.path().display());
        let job = rig.job(&json!({ "output": output }));
        let refused = plan::plan(&rig.services, &job, "w", "r").await.unwrap_err();
        assert_eq!(refused.kind, FailureType::InvalidInput, "{refused}");
        assert!(refused.message.contains("in/a.md is a file; choose a folder"), "{refused}");
    }
}

/// The forecast refuses what the plan refuses.
#[tokio::test]
async fn expected_answers_that_cannot_be_read_are_refused() {
    let rig = Rig::new();
    rig.document("a.md", "Ebb.", 0);
    std::fs::write(rig.path("truth.jsonl"), "{\"id\": \"a.md\", \"expect\n").unwrap();
    let truth = format!("file://{}/truth.jsonl", rig.folder.path().display());
    let job = rig.job(&json!({ "truth": truth }));
    let planned = plan::plan(&rig.services, &job, "w", "r").await.unwrap_err();
    let forecast = plan::forecast(&rig.services, &job).await.unwrap_err();
    for refused in [planned, forecast] {
        assert_eq!(refused.kind, FailureType::InvalidInput, "{refused}");
        assert!(refused.message.contains("truth.jsonl, line 1"), "{refused}");
    }
}

const SOURCE: &str = "TIDEGATE_TEST_SOURCE";

/// Started by the test below: a process that plans one batch, and prints its peak memory.
#[tokio::test]
#[ignore = "a process that another test starts"]
async fn plans_and_says_its_memory() {
    let Ok(source) = std::env::var(SOURCE) else { return };
    let (megabytes, sample) = source.split_once(' ').unwrap();
    let sample = sample.parse::<u64>().ok();
    let rig = Rig::new();
    let row = |row: u64| format!("{row:09},{}\n", "The tide turns. ".repeat(64));
    let path = rig.path("in/log.csv");
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    std::io::Write::write_all(&mut file, b"ship,note\n").unwrap();
    let rows = megabytes.parse::<u64>().unwrap() << 10;
    for number in 0..rows {
        std::io::Write::write_all(&mut file, row(number).as_bytes()).unwrap();
    }
    std::io::Write::flush(&mut file).unwrap();
    drop(file);
    let before = memory();
    let job = rig.job(&json!({"records": {"id": "ship"}, "sample": sample}));
    let batch = Holder { namespace: String::new(), workflow: "w".to_owned(), run: "r".to_owned() };
    let has_ended = |_| std::future::ready(Ok(true));
    let plan =
        plan::plan_in(&rig.services, None, &job, &batch, PageBudget::page(), has_ended).await;
    let mut plan = plan.unwrap();
    while plan.more {
        plan = plan::plan_more(&rig.services, &plan, PageBudget::page()).await.unwrap();
    }
    assert_eq!(plan.documents, sample.unwrap_or(rows));
    println!("took {} kB", memory() - before);
}

/// The peak memory of this process, in kB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A table of four times the length takes equal memory, and less than its own size.
#[cfg(target_os = "linux")]
#[test]
fn planning_takes_the_same_memory_whatever_the_source() {
    let took = |megabytes: u64, sample: &str| -> u64 {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pages::plans_and_says_its_memory", "--ignored", "--nocapture"])
            .env(SOURCE, format!("{megabytes} {sample}"))
            // Else glibc keeps up to eight heaps a core, and what is measured is their number.
            .env("MALLOC_ARENA_MAX", "1")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let said = text.split("took ").nth(1).and_then(|text| text.split(' ').next());
        said.unwrap_or_else(|| panic!("{text}")).parse::<u64>().unwrap() / 1_024
    };
    let (small, large, sampled) = (took(24, "all"), took(96, "all"), took(96, "9"));
    println!("24 MiB of records take {small} MiB, 96 MiB take {large} MiB, and sampled {sampled}");
    assert!(large <= 60, "{large} MiB for 96 MiB");
    assert!(large <= small + 12, "{small} MiB for 24 MiB, {large} MiB for 96 MiB");
    assert!(sampled <= 60, "{sampled} MiB for a sample of 96 MiB");
}
