//! `tidegate ask`: reads prompts from stdin, as lines or as rows of a table, and writes answers to stdout
//! in order.
//!
//! Each prompt is a separate activity ([`Temporal::submit`]) whose id is derived from the input, so that
//! repeating the command continues where it stopped and pays nothing twice.

mod large_answer;
mod lines;
mod question;
mod table;

use std::{
    collections::HashMap,
    io::{self, IsTerminal},
    pin::pin,
};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tidegate_activities::services::Calls;
use tidegate_types::{Lane, ModelId};
use tidegate_workflows::{
    contract::{OnCut, SubmittedCall},
    input::word,
};
use tokio::sync::mpsc;

use self::question::{Output, Question};
use super::{
    batch_flags::{schema, text},
    exit::{Outcome, usage},
    output, quota,
};
use crate::{
    config::Config,
    signal,
    temporal::{Submitted, Temporal},
};

const CALL: &str = "tidegate.call";

/// Temporal accepts no payload of more than 2 MiB.
const MAX_PROMPT: usize = 1_500_000;

/// Ask a model about each line of stdin, or each row of a table, and write the answers to stdout in order
///
/// The same command again continues: what has an answer is not asked again within the namespace's
/// retention. A line or row that fails has an empty answer, and the exit code is 3. A line break in an
/// answer to a line is written as \n. With --csv stdout is the table with a column of answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model, as provider:model
    #[arg(long, short, required_unless_present = "route", conflicts_with = "route")]
    model: Option<ModelId>,
    /// A configured route in place of a model
    #[arg(long)]
    route: Option<String>,
    /// The system prompt before each line or row; @FILE reads it from a file
    #[arg(long, short, value_name = "TEXT|@FILE")]
    instructions: Option<String>,
    /// JSON Schema that each answer must satisfy
    #[arg(long, value_name = "FILE")]
    schema: Option<String>,
    /// Maximum length of an answer
    #[arg(
        long,
        value_name = "TOKENS",
        value_parser = clap::value_parser!(u32).range(1..),
        allow_negative_numbers = true
    )]
    max_output_tokens: Option<u32>,
    /// What to do with an answer that is empty or cut at --max-output-tokens: raise (ask again with more
    /// room), keep or fail [default: raise]
    #[arg(long, value_name = "WHAT", value_parser = word::<OnCut>)]
    on_cut: Option<OnCut>,
    /// The class of traffic
    #[arg(long, default_value = "standard")]
    lane: Lane,
    /// Maximum number of lines or rows in flight
    #[arg(long, value_name = "N", default_value_t = 256, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    at_once: u32,
    /// Write each line as a JSON object: {"line", "answer", "model", "cost_usd", …} or {"line", "failed"}
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Read a table with a header from stdin (CSV; also with ; tabs or |), and ask about each row
    #[arg(long, requires = "prompt")]
    csv: bool,
    /// The prompt for each row; {{ column }} and {{ row["Any name"] }} are replaced by its cells
    #[arg(long, value_name = "TEXT|@FILE", requires = "csv")]
    prompt: Option<String>,
    /// Name of the column of answers
    #[arg(long, value_name = "NAME", default_value = "answer", requires = "csv")]
    column: String,
    /// Add a column with the reason for each failed row
    #[arg(long, value_name = "NAME", requires = "csv")]
    error_column: Option<String>,
}

/// The settings that all prompts share.
struct Asking {
    temporal: Temporal,
    /// The store of large answers.
    calls: Option<Calls>,
    lane: Lane,
    common: Map<String, Value>,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let common = common_fields(&args)?;
    if !config.quota_lanes()?.iter().any(|(known, _)| *known == args.lane) {
        return Err(usage(format!("--lane: no lane is called {}", args.lane)));
    }
    if let Some(model) =
        args.model.as_ref().filter(|model| config.pool_members(model.as_str()).is_empty())
    {
        quota::known(&config.quota()?, model.as_str())?;
    }
    let calls = config.calls()?;
    let temporal = Temporal::open(config).await?;
    let asking = Asking { temporal, calls, lane: args.lane.clone(), common };
    let answers = async {
        let at_once = args.at_once;
        if let Some(prompt) = &args.prompt {
            let prompt = text("--prompt", prompt)?;
            let (answer, error) = (args.column.clone(), args.error_column.clone());
            let added = table::Added { answer, error };
            let (rows, table) = table::read_rows(io::stdin(), io::stdout(), prompt, added)?;
            return Box::pin(answer_all(&asking, rows, at_once, table)).await;
        }
        if io::stdin().is_terminal() {
            output::print_message("type one prompt a line; Ctrl-D ends");
        }
        let lines = lines::Lines { as_json: args.json };
        Box::pin(answer_all(&asking, lines::read_lines(), at_once, lines)).await
    };
    tokio::select! {
        outcome = answers => outcome,
        () = signal::stop() => {
            Err(anyhow::anyhow!("interrupted; run the same command to continue"))
        }
    }
}

/// The fields of `tidegate.call` except the prompt.
fn common_fields(args: &Args) -> anyhow::Result<Map<String, Value>> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    let schema = args.schema.as_deref().map(|file| schema("--schema", file));
    let instructions = args.instructions.as_deref().map(|given| text("--instructions", given));
    set("model", args.model.as_ref().map(|model| model.to_string().into()));
    set("route", args.route.clone().map(Value::String));
    set("system", instructions.transpose()?.map(Value::String));
    set("schema", schema.transpose()?);
    set("max_output_tokens", args.max_output_tokens.map(Value::from));
    set("on_cut", args.on_cut.map(serde_json::to_value).transpose()?);
    Ok(fields)
}

async fn answer_all<O: Output>(
    asking: &Asking,
    asked: mpsc::Receiver<anyhow::Result<Question<O::Context>>>,
    at_once: u32,
    mut out: O,
) -> anyhow::Result<Outcome> {
    let mut asked_before: HashMap<[u8; 16], u32> = HashMap::new();
    let asked = stream::unfold(asked, async |mut asked| Some((asked.recv().await?, asked)));
    let answers = asked
        .map_ok(|Question { number, context, prompt }| {
            // A blank prompt is not asked.
            let input = prompt.map(|prompt| asking.input(prompt));
            let input =
                input.map(|input| input.map(|input| (id(&input, &mut asked_before), input)));
            async move {
                let outcome = match input {
                    Err(why) => Some(Err(why)),
                    Ok(None) => None,
                    Ok(Some((id, input))) => Some(
                        asking
                            .ask_one(&id, input)
                            .await
                            .with_context(|| resume_hint::<O>(number))?,
                    ),
                };
                anyhow::Ok((number, context, outcome))
            }
        })
        .try_buffered(usize::try_from(at_once).unwrap_or(usize::MAX));
    let mut answers = pin!(answers);
    let (mut succeeded, mut failed) = (0_u64, 0_u64);
    let mut told = String::new();
    while let Some((number, context, outcome)) = answers.next().await.transpose()? {
        let is_asked = outcome.is_some();
        let outcome = match outcome {
            None => Ok(json!({ "answer": "" })),
            Some(Err(why)) => Err(why),
            Some(Ok(outcome)) => large_answer::load(outcome, asking.calls.as_ref())
                .await
                .with_context(|| resume_hint::<O>(number))?,
        };
        match &outcome {
            Ok(_) => succeeded += u64::from(is_asked),
            Err(why) => {
                failed += 1;
                // A thousand lines may fail for one reason: print it once.
                if *why != told {
                    output::print_message(&format!("{} {number}: {why}", O::UNIT));
                    told.clone_from(why);
                }
            }
        }
        if !out.write(number, context, outcome)? {
            break;
        }
    }
    output::print_message(&format!("{succeeded} answered, {failed} failed"));
    Ok(if failed == 0 { Outcome::Done } else { Outcome::SomeFailed })
}

/// A note that the calls continue after the command's end, and how to resume.
fn resume_hint<O: Output>(number: u64) -> String {
    format!("{} {number}; run the same command to continue", O::UNIT)
}

impl Asking {
    /// The activity's input; `None` for a blank prompt.
    fn input(&self, prompt: String) -> Option<Value> {
        if prompt.trim().is_empty() {
            return None;
        }
        let mut input = self.common.clone();
        input.insert("prompt".to_owned(), prompt.into());
        Some(input.into())
    }

    /// Returns the outcome of a call, or the reason why there is none.
    async fn ask_one(&self, id: &str, input: Value) -> anyhow::Result<Result<Value, String>> {
        let length = input["prompt"].as_str().map_or(0, str::len);
        if length > MAX_PROMPT {
            return Ok(Err(format!(
                "the prompt has {length} bytes, more than {MAX_PROMPT}; make it a document, and use `tidegate run`"
            )));
        }
        let call = SubmittedCall { activity: CALL.to_owned(), lane: self.lane.clone(), input };
        Ok(match self.temporal.submit(id, &call).await? {
            Submitted::Done(outcome) => Ok(outcome),
            Submitted::Failed(why) => Err(why),
            Submitted::Another => Err(format!("the id {id} belongs to another call")),
        })
    }
}

/// `ask-<hash of the input>-<number of equal prompts before it>`.
fn id(input: &Value, asked_before: &mut HashMap<[u8; 16], u32>) -> String {
    let sum = Sha256::digest(input.to_string());
    let mut hash = [0; 16];
    hash.copy_from_slice(&sum[..16]);
    let before = asked_before.entry(hash).or_default();
    let id = format!("ask-{:032x}-{before}", u128::from_be_bytes(hash));
    *before += 1;
    id
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn fields(more: &[&str]) -> Result<Map<String, Value>, String> {
        let line = Line::try_parse_from(["ask", "--model", "a:b"].iter().chain(more));
        let line = line.map_err(|error| error.to_string())?;
        common_fields(&line.args).map_err(|error| error.to_string())
    }

    #[test]
    fn a_bound_of_the_answer_and_what_is_done_at_it_are_passed_on() {
        let given = fields(&["--max-output-tokens", "8", "--on-cut", "keep"]).unwrap();
        let expected = json!({"model": "a:b", "max_output_tokens": 8, "on_cut": "keep"});
        assert_eq!(Value::from(given), expected);
        assert_eq!(Value::from(fields(&[]).unwrap()), json!({"model": "a:b"}));
        assert!(fields(&["--max-output-tokens", "0"]).unwrap_err().contains("0 is not in"));
        assert!(fields(&["--on-cut", "maybe"]).unwrap_err().contains("must be \"raise\""));
    }

    #[test]
    fn equal_lines_are_calls_of_their_own_and_the_same_ones_in_the_next_run() {
        let ids = || {
            let mut before = HashMap::new();
            ["a", "b", "a"].map(|prompt| id(&json!({ "prompt": prompt }), &mut before))
        };
        let first = ids();
        assert_eq!(first, ids());
        assert!(first[0].ends_with("-0") && first[2].ends_with("-1"));
        assert_eq!(first[0].len(), first[2].len());
        assert_ne!(first[0], first[1]);
    }
}
