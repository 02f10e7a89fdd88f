//! `tidegate run`.

use std::path::Path;

use serde_json::{Map, Value, json};
use tidegate_activities::batch::plan;
use tidegate_types::{Effort, Lane, ModelId, Tenant};
use tidegate_workflows::{
    contract::{Deadline, Job, LongHow, Message, OnCut, Pack, Records, ResultsAs, Task},
    input::{self, Attach, Batch, BatchInput, Mode, word},
};
use tracing::Instrument;

use crate::{
    config::Config,
    temporal::{self, Temporal},
    worker,
};

use super::{
    exit::{Outcome, usage},
    follow, output, place, summary,
};

/// Start a batch and follow it; Ctrl-C detaches, and the work goes on
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A folder, a file or a glob; or an object-store prefix (s3://, gs://, az://)
    source: String,
    /// Where the results go: a folder, or an object-store prefix
    #[arg(long, short, value_name = "OUT")]
    output: String,
    /// What to do with each document; @FILE reads it from a file
    #[arg(long, short, value_name = "TEXT|@FILE", required_unless_present_any = ["messages", "task"])]
    instructions: Option<String>,
    /// What becomes of each document: answer, or embed, which makes a vector of its text [default:
    /// answer]
    #[arg(long, value_name = "TASK", value_parser = word::<Task>)]
    task: Option<Task>,
    /// Numbers of each vector [default: as many as the model likes]
    #[arg(long, value_name = "N", requires = "task")]
    dimensions: Option<u32>,
    /// {{ document }}, {{ id }}, {{ name }} and a record's own fields in the instructions stand for
    /// what they are of each document
    #[arg(long)]
    template: bool,
    /// The system prompt; the instructions stand before the document then. @FILE reads it from a
    /// file
    #[arg(long, value_name = "TEXT|@FILE")]
    system: Option<String>,
    /// Several turns in place of the instructions: a JSON list of {"role", "content"}, the last of
    /// which is about the document
    #[arg(long, value_name = "FILE", conflicts_with = "instructions")]
    messages: Option<String>,
    /// Documents with the answers that are wanted of them, shown to the model first: a JSONL file of
    /// {"document", "answer"}, or its URI
    #[arg(long, value_name = "FILE")]
    examples: Option<String>,
    /// provider:model, such as anthropic:claude-sonnet-5
    #[arg(
        long,
        short,
        value_name = "MODEL",
        required_unless_present = "route",
        conflicts_with = "route"
    )]
    model: Option<ModelId>,
    /// A configured list of models in place of one
    #[arg(long, value_name = "ROUTE")]
    route: Option<String>,
    /// The class of traffic: interactive, standard, batch, or a configured lane [default: batch]
    #[arg(long)]
    lane: Option<Lane>,
    /// Whose budget pays [default: default]
    #[arg(long)]
    tenant: Option<Tenant>,
    /// Output tokens per document at most [default: what the model and its limits allow]
    #[arg(long, value_name = "N")]
    max_output_tokens: Option<u32>,
    /// What becomes of an answer that is cut at --max-output-tokens, or empty: raise (ask again with
    /// more room), keep (take and flag it) or fail [default: raise]
    #[arg(long, value_name = "WHAT", value_parser = word::<OnCut>)]
    on_cut: Option<OnCut>,
    /// As what results are written together: jsonl or parquet [default: jsonl]
    #[arg(long, value_name = "FORMAT", value_parser = word::<ResultsAs>)]
    results: Option<ResultsAs>,
    /// JSON Schema that each answer must satisfy
    #[arg(long, value_name = "FILE")]
    schema: Option<String>,
    /// Documents in flight at once [default: what the limits can use]
    #[arg(long, value_name = "N")]
    max_in_flight: Option<u32>,
    /// Provider calls beyond the first of each document, for the whole batch [default: three for
    /// each document]
    #[arg(long, value_name = "N")]
    retry_budget: Option<u64>,
    /// US dollars that the batch may spend in all [default: no limit of its own]
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    budget_usd: Option<f64>,
    /// Say what the batch would take: documents, tokens, price and time. Nothing is started and
    /// nothing spent
    #[arg(long, conflicts_with_all = ["follow", "detach"])]
    dry_run: bool,
    /// How documents are read that are too long for one call: map_reduce or per_chunk
    #[arg(long, value_name = "HOW", value_parser = word::<LongHow>)]
    long: Option<LongHow>,
    /// Tokens of a part of a long document at most [default: 20000]
    #[arg(long, value_name = "N", requires = "long")]
    chunk_tokens: Option<u32>,
    /// Each row of a CSV file and each line of a JSONL file is a document
    #[arg(long)]
    records: bool,
    /// The field that names a record [default: they are numbered]
    #[arg(long, value_name = "FIELD", requires = "records")]
    record_id: Option<String>,
    /// The field that is a record's text [default: all fields]
    #[arg(long, value_name = "FIELD", requires = "records")]
    record_text: Option<String>,
    /// How PDFs go to the provider: text; auto, with pages whose text is missing as pictures; or
    /// native, for models that read the pages themselves
    #[arg(long, value_name = "HOW", value_parser = word::<Attach>)]
    attach: Option<Attach>,
    /// economy: through the provider's batch API, at half the price and within a day [default:
    /// direct]
    #[arg(long, value_name = "MODE", value_parser = word::<Mode>)]
    mode: Option<Mode>,
    /// When the batch must be done, such as 12h or 2026-12-01T08:00:00Z. With time to spare, it
    /// costs half
    #[arg(long, value_name = "WHEN", value_parser = word::<Deadline>)]
    deadline: Option<Deadline>,
    /// Small documents share calls: so many in each, or as many as spare requests are worth
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "0")]
    pack: Option<u32>,
    /// How much a reasoning model thinks: none, low, medium or high [default: as the model's section
    /// says, else as much as it likes]
    #[arg(long, value_name = "HOW", value_parser = word::<Effort>)]
    effort: Option<Effort>,
    /// Fields of the vendor's request as a JSON object, such as '{"temperature": 0}'; @FILE reads it
    /// from a file
    #[arg(long, value_name = "JSON|@FILE")]
    parameters: Option<String>,
    /// Only so many documents, drawn at random; the whole batch, into the same output, does not buy
    /// them again
    #[arg(long, value_name = "N")]
    sample: Option<u32>,
    /// The output holds answers to another question: ask again what differs, and replace it
    #[arg(long)]
    replace: bool,
    /// Read anew what an older version of the reader has read, and ask anew where its text differs
    #[arg(long)]
    reread: bool,
    /// The batch's name; the same again skips what is done, and follows one that runs [default: made
    /// from the source and the time]
    #[arg(long, value_name = "ID")]
    workflow_id: Option<String>,
    /// Show the progress until the batch ends (the default)
    #[arg(long, conflicts_with = "detach")]
    follow: bool,
    /// Return as soon as the batch is started
    #[arg(long)]
    detach: bool,
    /// The result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let input = input(&args)?;
    let batch = input::parse(&temporal::json(&input)).map_err(usage)?;
    if args.dry_run {
        return dry_run(&args, &batch.job, config).await;
    }
    let source = input.source.as_deref().unwrap_or_default();
    let id = args
        .workflow_id
        .clone()
        .unwrap_or_else(|| place::batch_id(source, chrono::Utc::now(), rand::random()));
    // A trace begins here, and ends with the batch if it is followed.
    let span = tracing::info_span!("tidegate run", batch = id);
    start(&args, config, &id, (&input, &batch)).instrument(span).await
}

async fn start(
    args: &Args,
    config: &Config,
    id: &str,
    (input, batch): (&BatchInput, &Batch),
) -> anyhow::Result<Outcome> {
    let temporal = Temporal::open(config).await?;
    let is_new = temporal.start(id, input).await?;
    if !is_new {
        runs_already(&temporal, id, batch).await?;
    }
    if args.detach {
        return detached(args, id, is_new);
    }
    let sample = batch.job.sample.map(|_| &batch.job);
    output::say(&format!("batch {} on {}", output::styled(output::STRONG, id), temporal.address()));
    let source = input.source.as_deref().unwrap_or_default();
    let hint = |why: &str| place::roots_hint(why, config, source, &input.output);
    follow::to_its_end(config, &temporal, id, args.json, sample, hint).await
}

/// The same batch is followed; another one is not taken for started.
async fn runs_already(temporal: &Temporal, id: &str, batch: &Batch) -> anyhow::Result<()> {
    let started = temporal.first_input(id).await?;
    // What cannot be read here, because a codec server hides it, is not compared.
    if input::parse(&temporal::json(&started)).is_ok_and(|started| started != *batch) {
        return Err(usage(format!(
            "a batch called {id} runs already, with another input, and goes on as it was started; choose another --workflow-id, or end that one first: temporal workflow cancel --workflow-id {id}"
        )));
    }
    output::say(&format!("a batch called {id} runs already, and goes on"));
    Ok(())
}

/// On this machine and with its configuration, which should be the workers' too.
async fn dry_run(args: &Args, job: &Job, config: &Config) -> anyhow::Result<Outcome> {
    let services = worker::services_without_providers(config)?;
    let forecast = plan::forecast(&services, job).await?;
    let over = forecast.check(job.budget_usd);
    if args.json {
        output::json(&forecast)?;
    } else {
        output::data(&output::pairs(&summary::forecast(&forecast, job.pack.is_some())))?;
    }
    over?;
    Ok(Outcome::Done)
}

fn detached(args: &Args, id: &str, is_new: bool) -> anyhow::Result<Outcome> {
    if args.json {
        output::json(&json!({ "workflow_id": id }))?;
    } else {
        output::data(id)?;
        let started = if is_new { "started. " } else { "" };
        output::say(&format!("{started}See how it goes with: tidegate status {id}"));
    }
    Ok(Outcome::Done)
}

/// The workflow's input; what is not given keeps the workflow's own default.
fn input(args: &Args) -> anyhow::Result<BatchInput> {
    let instructions = args.instructions.as_deref().map(|it| text("--instructions", it));
    let system = args.system.as_deref().map(|it| text("--system", it)).transpose()?;
    let schema = args.schema.as_deref().map(schema).transpose()?;
    let records = Records { id: args.record_id.clone(), text: args.record_text.clone() };
    let pack = |documents| if documents == 0 { Pack::Fitting } else { Pack::Of(documents) };
    Ok(BatchInput {
        source: Some(place::source(&args.source)?),
        output: place::output(&args.output)?,
        task: args.task,
        dimensions: args.dimensions,
        instructions: instructions.transpose()?.unwrap_or_default(),
        template: args.template.then_some(true),
        system,
        messages: args.messages.as_deref().map(messages).transpose()?,
        examples: args.examples.as_deref().map(place::source).transpose()?,
        model: args.model.clone(),
        route: args.route.clone(),
        lane: args.lane.clone(),
        tenant: args.tenant.clone(),
        max_output_tokens: args.max_output_tokens,
        on_cut: args.on_cut,
        results: args.results,
        effort: args.effort,
        parameters: args.parameters.as_deref().map(parameters).transpose()?,
        sample: args.sample,
        schema,
        max_in_flight: args.max_in_flight,
        retry_budget: args.retry_budget,
        budget_usd: args.budget_usd,
        long: args.long,
        chunk_tokens: args.chunk_tokens,
        records: args.records.then_some(records),
        attach: args.attach,
        mode: args.mode,
        deadline: args.deadline,
        pack: args.pack.map(pack),
        replace: args.replace.then_some(true),
        reread: args.reread.then_some(true),
        ..BatchInput::default()
    })
}

/// As it is given, or what a file holds.
fn text(option: &str, given: &str) -> anyhow::Result<String> {
    given.strip_prefix('@').map_or_else(|| Ok(given.to_owned()), |file| read(option, file))
}

fn messages(file: &str) -> anyhow::Result<Vec<Message>> {
    serde_json::from_str(&read("--messages", file)?).map_err(|error| {
        usage(format!(
            "--messages: {file} must hold a JSON list of {{\"role\", \"content\"}}: {error}"
        ))
    })
}

fn parameters(given: &str) -> anyhow::Result<Map<String, Value>> {
    match serde_json::from_str(&text("--parameters", given)?) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(usage("--parameters: write a JSON object, such as '{\"temperature\": 0}'")),
        Err(error) => Err(usage(format!("--parameters: this is not JSON: {error}"))),
    }
}

fn schema(file: &str) -> anyhow::Result<Map<String, Value>> {
    match serde_json::from_str(&read("--schema", file)?) {
        Ok(Value::Object(schema)) => Ok(schema),
        Ok(_) => Err(usage(format!("--schema: {file} must hold a JSON Schema object"))),
        Err(error) => Err(usage(format!("--schema: {file} is not JSON: {error}"))),
    }
}

/// Not a number and infinity would vanish on their way through JSON, and with them the budget.
fn dollars(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|usd: &f64| usd.is_finite() && *usd > 0.0)
        .ok_or_else(|| "write US dollars as a number above 0, such as 2.50".to_owned())
}

fn read(option: &str, file: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(Path::new(file))
        .map_err(|error| usage(format!("{option}: {file} cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(extra: &[&str]) -> Args {
        let line = ["x", "s3://b/in/", "--output", "s3://b/out/", "--model", "a:b"];
        Line::try_parse_from(line.iter().chain(extra))
            .map(|line| line.args)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// What is sent for these words; a percent sign stands for a space in one.
    fn sent(line: &str) -> Value {
        let words: Vec<String> = line.split(' ').map(|word| word.replace('%', " ")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let input = input(&args(&words)).unwrap();
        input::parse(&temporal::json(&input)).unwrap();
        serde_json::to_value(input).unwrap()
    }

    #[test]
    fn only_what_is_given_is_sent() {
        let least = json!({"source": "s3://b/in/", "output": "s3://b/out/", "instructions": "Sum up.", "model": "a:b"});
        assert_eq!(sent("-i Sum%up."), least);
        let some = sent("-i x --lane standard --max-in-flight 9 --retry-budget 0");
        assert_eq!(
            (&some["lane"], &some["max_in_flight"], &some["retry_budget"]),
            (&json!("standard"), &json!(9), &json!(0))
        );
        let some = sent("-i x --records --record-id n --long per_chunk --attach text");
        assert_eq!(
            (&some["records"], &some["long"], &some["attach"]),
            (&json!({"id": "n"}), &json!("per_chunk"), &json!("text"))
        );
        assert_eq!(sent("-i x --on-cut keep")["on_cut"], json!("keep"));
        assert_eq!(sent("-i x --results parquet")["results"], json!("parquet"));
        assert_eq!(sent("-i x --replace")["replace"], json!(true));
        assert_eq!(sent("-i x --reread")["reread"], json!(true));
        let asked = sent("-i x --effort low --parameters {\"seed\":7} --sample 20");
        assert_eq!(
            (&asked["effort"], &asked["parameters"], &asked["sample"]),
            (&json!("low"), &json!({"seed": 7}), &json!(20))
        );
        let some = sent("-i x --pack --deadline 2h --budget-usd 2.50");
        assert_eq!(
            (&some["pack"], &some["deadline"], &some["budget_usd"]),
            (&json!(true), &json!("2h"), &json!(2.5))
        );
        let some = sent("-i x --pack 7 --mode direct --deadline 2026-12-01T08:00:00Z");
        assert_eq!(
            (&some["pack"], &some["mode"], &some["deadline"]),
            (&json!(7), &json!("direct"), &json!("2026-12-01T08:00:00Z"))
        );
    }

    #[test]
    fn what_has_no_meaning_is_refused_with_what_it_must_be() {
        for (option, bad, expected) in [
            ("--budget-usd", "nan", "write US dollars"),
            ("--budget-usd", "inf", "write US dollars"),
            ("--budget-usd", "-1", "write US dollars as a number above 0"),
            ("--budget-usd", "0", "write US dollars as a number above 0"),
            ("--budget-usd", "$2", "write US dollars"),
            ("--on-cut", "maybe", "must be \"raise\", \"keep\" or \"fail\""),
            ("--mode", "cheap", "must be \"direct\" or, for half the price"),
            ("--deadline", "tomorrow", "or a span such as \"12h\", not \"tomorrow\""),
            ("--lane", "a b", "lane \"a b\" is not usable"),
        ] {
            let line = ["x", "s3://b/in/", "--output", "s3://b/out/", "--model", "a:b", "-i", "x"];
            let refused = Line::try_parse_from(line.iter().chain(&[option, bad]));
            let message = refused.map(|_| ()).unwrap_err().to_string();
            assert!(message.contains(expected), "{option} {bad}: {message}");
        }
    }

    #[test]
    fn files_are_read_and_named_when_they_cannot_be() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("i.txt");
        std::fs::write(&file, "Sum up.").unwrap();
        assert_eq!(
            input(&args(&["-i", &format!("@{}", file.display())])).unwrap().instructions,
            "Sum up."
        );
        let error = input(&args(&["-i", "@/no/such"])).unwrap_err().to_string();
        assert!(error.starts_with("--instructions: /no/such cannot be read"), "{error}");
        let error =
            input(&args(&["-i", "x", "--schema", file.to_str().unwrap()])).unwrap_err().to_string();
        assert!(error.contains("is not JSON"), "{error}");
    }
}
