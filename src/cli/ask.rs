//! `tidegate ask`: prompts from stdin, one a line, and answers to stdout, in order.
//!
//! Each line is an activity of its own ([`Temporal::submit`]) whose id is made from what is asked, so
//! that the same command goes on where it was broken off and buys nothing twice.

use std::{
    collections::HashMap,
    io::{self, BufRead, IsTerminal, Write},
    pin::pin,
    thread,
};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tidegate_types::{Lane, ModelId};
use tidegate_workflows::contract::SubmittedCall;
use tokio::sync::mpsc;

use super::{
    exit::{Outcome, usage},
    given::{schema, text},
    output,
};
use crate::{
    config::Config,
    signal,
    temporal::{Submitted, Temporal},
};

const CALL: &str = "tidegate.call";

/// Temporal holds no payload of more than 2 MiB.
const MAX_PROMPT: usize = 1_500_000;

/// Ask each line of stdin, and write the answers to stdout, a line each, in the same order
///
/// The same command again goes on where it was broken off: what has an answer is not asked again, for
/// as long as the namespace keeps what has ended (its retention). A line that fails is empty, and the
/// exit code is 3. A line break in an answer is written as \n; with --json each line is an outcome.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Who is asked: provider:model
    #[arg(long, required_unless_present = "route", conflicts_with = "route")]
    model: Option<ModelId>,
    /// Or a route of the configuration
    #[arg(long)]
    route: Option<String>,
    /// What is said before each line, as the system prompt
    #[arg(long, short, value_name = "TEXT|@FILE")]
    instructions: Option<String>,
    /// A JSON Schema, which each answer follows
    #[arg(long, value_name = "FILE")]
    schema: Option<String>,
    /// The length of an answer at most
    #[arg(long, value_name = "TOKENS")]
    max_output_tokens: Option<u32>,
    /// The class of traffic
    #[arg(long, default_value = "standard")]
    lane: Lane,
    /// Lines that are asked at once, at most
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    at_once: u32,
    /// Each line as the whole outcome: {"line", "answer", "model", "cost_usd", …} or {"line", "failed"}
    #[arg(long)]
    json: bool,
}

/// What is asked with every line.
struct Asking {
    temporal: Temporal,
    lane: Lane,
    common: Map<String, Value>,
}

/// A line of stdin, or what became of it.
struct Line<T> {
    /// From 1.
    number: u64,
    it: T,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let common = common(&args)?;
    if !config.quota_lanes()?.iter().any(|(known, _)| *known == args.lane) {
        return Err(usage(format!("--lane: there is no lane called {}", args.lane)));
    }
    let temporal = Temporal::open(config).await?;
    if io::stdin().is_terminal() {
        output::say("a prompt a line; Ctrl-D ends them");
    }
    let asking = Asking { temporal, lane: args.lane.clone(), common };
    tokio::select! {
        outcome = Box::pin(answered(&asking, &args)) => outcome,
        () = signal::stop() => {
            Err(anyhow::anyhow!("interrupted; the same command goes on where it ended"))
        }
    }
}

/// The fields of `tidegate.call` but for its prompt.
fn common(args: &Args) -> anyhow::Result<Map<String, Value>> {
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
    Ok(fields)
}

/// The lines of stdin. What blocks in a read ends with this process.
fn lines() -> mpsc::Receiver<anyhow::Result<Line<String>>> {
    let (sender, lines) = mpsc::channel(64);
    thread::spawn(move || {
        for (number, line) in (1..).zip(io::stdin().lock().lines()) {
            let line = line.with_context(|| format!("line {number} of stdin cannot be read"));
            if sender.blocking_send(line.map(|it| Line { number, it })).is_err() {
                return;
            }
        }
    });
    lines
}

async fn answered(asking: &Asking, args: &Args) -> anyhow::Result<Outcome> {
    let mut asked_before: HashMap<[u8; 16], u32> = HashMap::new();
    let asked = stream::unfold(lines(), async |mut lines| Some((lines.recv().await?, lines)));
    let answers = asked
        .map_ok(|line| {
            let Line { number, it } = line;
            let input = asking.input(it);
            let id = input.as_ref().map(|input| id(input, &mut asked_before));
            async move {
                let it = match input.zip(id) {
                    None => None,
                    Some((input, id)) => Some(asking.one(&id, input).await.with_context(|| {
                        format!("line {number}; the same command goes on where this one ended")
                    })?),
                };
                anyhow::Ok(Line { number, it })
            }
        })
        .try_buffered(usize::try_from(args.at_once).unwrap_or(usize::MAX));
    let mut answers = pin!(answers);
    let (mut succeeded, mut failed) = (0_u64, 0_u64);
    let mut told = String::new();
    while let Some(Line { number, it }) = answers.next().await.transpose()? {
        let is_asked = it.is_some();
        let outcome = it.unwrap_or_else(|| Ok(json!({ "answer": "" })));
        match &outcome {
            Ok(_) => succeeded += u64::from(is_asked),
            Err(why) => {
                failed += 1;
                // A thousand lines may fail for one reason.
                if *why != told {
                    output::say(&format!("line {number}: {why}"));
                    told.clone_from(why);
                }
            }
        }
        if !written(&shown(number, outcome, args.json))? {
            break;
        }
    }
    output::say(&format!("{succeeded} answered, {failed} failed"));
    Ok(if failed == 0 { Outcome::Done } else { Outcome::SomeFailed })
}

impl Asking {
    /// The activity's input; none for a line without a word.
    fn input(&self, prompt: String) -> Option<Value> {
        if prompt.trim().is_empty() {
            return None;
        }
        let mut input = self.common.clone();
        input.insert("prompt".to_owned(), prompt.into());
        Some(input.into())
    }

    /// The outcome of a call, or why there is none.
    async fn one(&self, id: &str, input: Value) -> anyhow::Result<Result<Value, String>> {
        let length = input["prompt"].as_str().map_or(0, str::len);
        if length > MAX_PROMPT {
            return Ok(Err(format!(
                "it has {length} bytes, and a prompt may have {MAX_PROMPT}; make it a document, and use `tidegate run`"
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

/// `ask-<hash of the input>-<how many equal lines stand before it>`.
fn id(input: &Value, asked_before: &mut HashMap<[u8; 16], u32>) -> String {
    let sum = Sha256::digest(input.to_string());
    let mut hash = [0; 16];
    hash.copy_from_slice(&sum[..16]);
    let before = asked_before.entry(hash).or_default();
    let id = format!("ask-{:032x}-{before}", u128::from_be_bytes(hash));
    *before += 1;
    id
}

/// An outcome in one line.
fn shown(number: u64, outcome: Result<Value, String>, as_json: bool) -> String {
    if as_json {
        return match outcome {
            Ok(Value::Object(mut fields)) => {
                fields.insert("line".to_owned(), number.into());
                Value::from(fields).to_string()
            }
            Ok(other) => json!({ "line": number, "answer": other }).to_string(),
            Err(why) => json!({ "line": number, "failed": why }).to_string(),
        };
    }
    let Ok(outcome) = outcome else { return String::new() };
    let answer = match (outcome["answer"].as_str(), outcome["answer_uri"].as_str()) {
        (Some(answer), _) => answer,
        (None, Some(uri)) => uri,
        (None, None) => "",
    };
    answer.replace("\r\n", "\n").replace(['\n', '\r'], "\\n")
}

/// Writes a line; false where nobody reads any more (`| head`).
fn written(line: &str) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("writing to stdout"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn an_answer_stays_on_its_line() {
        let answer = |text: &str| shown(1, Ok(json!({ "answer": text })), false);
        assert_eq!(answer("one\ntwo\r\nthree"), "one\\ntwo\\nthree");
        assert_eq!(shown(7, Err("no".to_owned()), false), "");
        let whole = |outcome| serde_json::from_str::<Value>(&shown(7, outcome, true)).unwrap();
        assert_eq!(whole(Err("no".to_owned())), json!({ "line": 7, "failed": "no" }));
        assert_eq!(whole(Ok(json!({ "answer": "a" }))), json!({ "line": 7, "answer": "a" }));
    }
}
