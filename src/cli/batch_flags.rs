//! The flags of `tidegate run` that define a batch: one for each field of the input with a flag in the
//! input's table.

use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde_json::{Map, Value};
use tidegate_types::spend::is_amount;
use tidegate_workflows::{
    contract::Message,
    input::{self, BatchInput, FIELDS, Field, Flag, Takes},
};

use super::{exit::usage, paths};

/// The given flags and their values. With `MANY`, the flags for the model are left out: the command names
/// several models separately.
#[derive(Debug, Clone)]
pub(super) struct BatchFlags<const MANY: bool = false>(Vec<(&'static Field, &'static Flag, Value)>);

fn flags(many: bool) -> impl Iterator<Item = (&'static Field, &'static Flag)> {
    let is_asked = move |field: &&Field| !(many && matches!(field.name, "model" | "route"));
    FIELDS.iter().filter(is_asked).filter_map(|field| Some((field, field.flag.as_ref()?)))
}

/// The flag's name after `--`.
fn name(field: &Field, flag: &Flag) -> String {
    flag.long.map_or_else(|| field.name.replace('_', "-"), str::to_owned)
}

/// Stands for a number that is left out.
const LEFT_OUT: u32 = u32::MAX;

fn argument(field: &Field, flag: &Flag) -> Arg {
    let arg = Arg::new(field.name).help(flag.help);
    let arg = match flag.takes {
        Takes::Nothing => arg.action(ArgAction::SetTrue),
        _ => arg.action(ArgAction::Set).value_name(flag.value),
    };
    let arg = match flag.takes {
        Takes::Nothing
        | Takes::Documents
        | Takes::Source
        | Takes::Results
        | Takes::Text
        | Takes::Instructions
        | Takes::Turns
        | Takes::List
        | Takes::Schema
        | Takes::Object => arg,
        Takes::Word(check) => {
            arg.value_parser(move |text: &str| check(text).map(|()| text.to_owned()))
        }
        // A negative number is refused as a value, not as an unknown flag.
        Takes::Number => arg.value_parser(value_parser!(u32)).allow_negative_numbers(true),
        Takes::LargeNumber => arg.value_parser(value_parser!(u64)).allow_negative_numbers(true),
        Takes::Dollars => arg.value_parser(dollars).allow_negative_numbers(true),
        Takes::NumberOrNothing => arg
            .value_parser(value_parser!(u32))
            .num_args(0..=1)
            .default_missing_value(LEFT_OUT.to_string()),
    };
    let arg = match (flag.takes, flag.short) {
        (Takes::Documents, _) => return arg.required(true),
        (_, Some(letter)) => arg.long(name(field, flag)).short(letter),
        (_, None) => arg.long(name(field, flag)),
    };
    let arg = match flag.required_unless {
        None => arg,
        Some([]) => arg.required(true),
        Some(others) => arg.required_unless_present_any(others.iter().copied()),
    };
    let arg = flag.requires.into_iter().fold(arg, Arg::requires);
    flag.excludes.into_iter().fold(arg, Arg::conflicts_with)
}

/// The given value; `None` if the flag is absent.
fn raw(matches: &ArgMatches, field: &Field, flag: &Flag) -> Option<Value> {
    let name = field.name;
    match flag.takes {
        Takes::Nothing => matches.get_flag(name).then_some(Value::Bool(true)),
        Takes::Number | Takes::NumberOrNothing => Some((*matches.get_one::<u32>(name)?).into()),
        Takes::LargeNumber => Some((*matches.get_one::<u64>(name)?).into()),
        Takes::Dollars => Some((*matches.get_one::<f64>(name)?).into()),
        _ => Some(matches.get_one::<String>(name)?.as_str().into()),
    }
}

impl<const MANY: bool> FromArgMatches for BatchFlags<MANY> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given =
            flags(MANY).filter_map(|(field, flag)| Some((field, flag, raw(matches, field, flag)?)));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const MANY: bool> Args for BatchFlags<MANY> {
    fn augment_args(command: Command) -> Command {
        command.args(flags(MANY).map(|(field, flag)| argument(field, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const MANY: bool> BatchFlags<MANY> {
    /// The workflow's input; absent flags keep the workflow's defaults.
    pub(super) fn input(&self) -> anyhow::Result<BatchInput> {
        let mut fields = Map::new();
        for (field, flag, raw) in &self.0 {
            let option = format!("--{}", name(field, flag));
            let Some(value) = value(&option, flag.takes, raw)? else { continue };
            match field.name.split_once('.') {
                None => drop(fields.insert(field.name.to_owned(), value)),
                // A field is `true` as a whole until one of its parts is given.
                Some((whole, part)) => {
                    let whole = fields.entry(whole).or_insert(Value::Null);
                    if !whole.is_object() {
                        *whole = Value::Object(Map::new());
                    }
                    whole[part] = value;
                }
            }
        }
        input::read(Value::Object(fields)).map_err(usage)
    }
}

/// A field's value; `None` if the given value is empty.
fn value(option: &str, takes: Takes, raw: &Value) -> anyhow::Result<Option<Value>> {
    let given = raw.as_str().unwrap_or_default();
    Ok(Some(match takes {
        Takes::Source if !paths::is_url(given) && !Path::new(given).exists() => {
            return Err(usage(format!("{option}: {given} does not exist")));
        }
        Takes::Documents | Takes::Source => paths::source_url(given)?.into(),
        Takes::Results => paths::output_url(given)?.into(),
        Takes::Text => text(option, given)?.into(),
        Takes::Instructions => {
            let text = text(option, given)?;
            return Ok(Some(text).filter(|text| !text.is_empty()).map(Value::from));
        }
        Takes::NumberOrNothing if raw == &Value::from(LEFT_OUT) => true.into(),
        Takes::Turns => turns(option, given)?,
        Takes::List => list(option, given)?,
        Takes::Schema => schema(option, given)?,
        Takes::Object => object(option, given)?,
        _ => raw.clone(),
    }))
}

/// The given text, or the content of the named file.
pub(super) fn text(option: &str, given: &str) -> anyhow::Result<String> {
    given.strip_prefix('@').map_or_else(|| Ok(given.to_owned()), |file| read(option, file))
}

fn turns(option: &str, file: &str) -> anyhow::Result<Value> {
    let text = read(option, file)?;
    // Parsed here, so that an error names its place in the file.
    let turns = serde_json::from_str::<Vec<Message>>(&text).and_then(serde_json::to_value);
    turns.map_err(|error| {
        usage(format!(
            "{option}: {file} must hold a JSON list of {{\"role\", \"content\"}}: {error}"
        ))
    })
}

fn list(option: &str, file: &str) -> anyhow::Result<Value> {
    match serde_json::from_str(&read(option, file)?) {
        Ok(list @ Value::Array(_)) => Ok(list),
        Ok(_) => Err(usage(format!("{option}: {file} must hold a JSON list"))),
        Err(error) => Err(usage(format!("{option}: {file} is not JSON: {error}"))),
    }
}

fn object(option: &str, given: &str) -> anyhow::Result<Value> {
    match serde_json::from_str(&text(option, given)?) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => {
            Err(usage(format!("{option}: write a JSON object, such as '{{\"temperature\": 0}}'")))
        }
        Err(error) => Err(usage(format!("{option}: this is not JSON: {error}"))),
    }
}

pub(super) fn schema(option: &str, file: &str) -> anyhow::Result<Value> {
    match serde_json::from_str(&read(option, file)?) {
        Ok(schema @ Value::Object(_)) => Ok(schema),
        Ok(_) => Err(usage(format!("{option}: {file} must hold a JSON Schema object"))),
        Err(error) => Err(usage(format!("{option}: {file} is not JSON: {error}"))),
    }
}

/// NaN and infinity would be lost in JSON, and the budget with them.
fn dollars(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|usd| *usd > 0.0 && is_amount(*usd)).ok_or_else(|| {
        "write US dollars as a number above 0, at most 1e12, such as 2.50".to_owned()
    })
}

/// Reads a file without a byte-order mark at its beginning.
fn read(option: &str, file: &str) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(Path::new(file))
        .map_err(|error| usage(format!("{option}: {file} cannot be read: {error}")))?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use serde_json::json;

    use super::*;
    use crate::temporal;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        given: BatchFlags,
    }

    fn given(extra: &[&str]) -> BatchFlags {
        let line = ["x", "s3://b/in/", "--output", "s3://b/out/", "--model", "a:b"];
        Line::try_parse_from(line.iter().chain(extra))
            .map(|line| line.given)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The input for this command line; a percent sign stands for a space in a word.
    fn sent(line: &str) -> Value {
        let words: Vec<String> = line.split(' ').map(|word| word.replace('%', " ")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let input = given(&words).input().unwrap();
        input::parse(&temporal::json(&input)).unwrap();
        input.to_json().unwrap()
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
            ("--budget-usd", "1e308", "write US dollars"),
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
        std::fs::write(&file, "\u{feff}Sum up.").unwrap();
        assert_eq!(
            given(&["-i", &format!("@{}", file.display())]).input().unwrap().instructions,
            "Sum up."
        );
        let error = given(&["-i", "@/no/such"]).input().unwrap_err().to_string();
        assert!(error.starts_with("--instructions: /no/such cannot be read"), "{error}");
        let error = given(&["-i", "x", "--schema", file.to_str().unwrap()])
            .input()
            .unwrap_err()
            .to_string();
        assert!(error.contains("is not JSON"), "{error}");
        let error =
            given(&["-i", "x", "--truth", "no-such.jsonl"]).input().unwrap_err().to_string();
        assert_eq!(error, "--truth: no-such.jsonl does not exist");
    }
}
