//! Reads each kind of field. An error says what the field must be, and follows the field's name:
//! "must be a text, not a number".

use std::time::{Duration, SystemTime};

use serde::{
    Deserialize, Deserializer, Serializer,
    de::{DeserializeOwned, Error},
    ser,
};
use serde_json::{Map, Value};
use tidegate_types::{Effort, InvalidName, ModelId, spend::is_amount};

use crate::contract::{
    Attach, Check, Deadline, Lines, LongHow, Message, Mode, OnCut, Pack, Records, ResultsAs, Task,
};

/// Maximum number of documents in one call. A larger answer is long, and one mistake in it loses
/// all of it.
pub const MAX_PACK: u64 = 50;

/// Ten years, in seconds: a later deadline is a mistake.
const MAX_DEADLINE: u64 = 10 * 365 * 86_400;

/// A value that is one of a few words, in the input and on the command line.
pub trait Word: DeserializeOwned {
    /// The allowed words, for the error after "must be".
    const MUST_BE: &'static str;

    /// Parses the word.
    fn read(text: &str) -> Option<Self> {
        serde_json::from_value(text.into()).ok()
    }
}

impl Word for LongHow {
    const MUST_BE: &'static str = "\"map_reduce\" or \"per_chunk\"";
}

impl Word for Task {
    const MUST_BE: &'static str = "\"answer\" or \"embed\"";
}

impl Word for OnCut {
    const MUST_BE: &'static str = "\"raise\", \"keep\" or \"fail\"";
}

impl Word for ResultsAs {
    const MUST_BE: &'static str = "\"jsonl\" or \"parquet\"";
}

impl Word for Effort {
    const MUST_BE: &'static str = "\"none\", \"low\", \"medium\" or \"high\"";
}

impl Word for Attach {
    const MUST_BE: &'static str = "\"native\", \"auto\" or \"text\"";
}

impl Word for Mode {
    const MUST_BE: &'static str = "\"direct\" or, for half the price within a day, \"economy\"";
}

impl Word for Deadline {
    const MUST_BE: &'static str =
        "a time such as \"2026-12-01T08:00:00Z\" or a span such as \"12h\"";

    fn read(text: &str) -> Option<Self> {
        let since_1970 = humantime::parse_rfc3339(text)
            .ok()
            .and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        if let Some(at) = since_1970 {
            return Some(Self::At(at.as_secs()));
        }
        let span = humantime::parse_duration(text).ok()?.as_secs();
        (1..=MAX_DEADLINE).contains(&span).then_some(Self::Within(span))
    }
}

/// Reads a word of the command line.
///
/// # Errors
/// A sentence that lists the allowed words.
pub fn word<T: Word>(text: &str) -> Result<T, String> {
    T::read(text).ok_or_else(|| must_be(T::MUST_BE, &text.into()))
}

/// A field that was given.
type Given<T, E> = Result<Option<T>, E>;

/// Reads a value that must be what `meaning` says.
fn value<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    meaning: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    read(&value).ok_or_else(|| D::Error::custom(must_be(meaning, &value)))
}

pub(super) fn given<'de, D: Deserializer<'de>, T: Word>(deserializer: D) -> Given<T, D::Error> {
    value(deserializer, T::MUST_BE, |it| it.as_str().and_then(T::read)).map(Some)
}

pub(super) fn text<'de, D: Deserializer<'de>, T: From<String>>(
    deserializer: D,
) -> Result<T, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) if text.trim().is_empty() => Err(D::Error::custom("is empty")),
        Value::String(text) => Ok(text.into()),
        other => Err(D::Error::custom(format!("must be a text, not {}", kind(&other)))),
    }
}

pub(super) fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Given<Lines, D::Error> {
    Lines::deserialize(deserializer).map(Some)
}

/// Reads a lane or a tenant.
pub(super) fn name<'de, D, T>(deserializer: D) -> Given<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<String, Error = InvalidName>,
{
    named(deserializer, "a text")
}

pub(super) fn model<'de, D: Deserializer<'de>>(deserializer: D) -> Given<ModelId, D::Error> {
    named(deserializer, "a text such as anthropic:claude-sonnet-5")
}

fn named<'de, D, T>(deserializer: D, meaning: &str) -> Given<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<String, Error = InvalidName>,
{
    match Value::deserialize(deserializer)? {
        Value::String(text) => {
            T::try_from(text).map(Some).map_err(|InvalidName { given, reason, .. }| {
                D::Error::custom(format!("\"{given}\" is not usable: {reason}"))
            })
        }
        other => Err(D::Error::custom(format!("must be {meaning}, not {}", kind(&other)))),
    }
}

pub(super) fn uris<'de, D: Deserializer<'de>>(deserializer: D) -> Given<Vec<String>, D::Error> {
    let uris = Vec::<Uri>::deserialize(deserializer)?;
    if uris.is_empty() {
        return Err(D::Error::custom("is an empty list; name at least one URI"));
    }
    Ok(Some(uris.into_iter().map(|Uri(uri)| uri).collect()))
}

struct Uri(String);

impl<'de> Deserialize<'de> for Uri {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(uri) if !uri.trim().is_empty() => Ok(Self(uri)),
            other => Err(D::Error::custom(format!("must be a URI, not {}", kind(&other)))),
        }
    }
}

pub(super) fn whole<'de, D, T, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Given<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let bounds = match MAX > u64::from(u32::MAX) {
        true => format!("a whole number at least {MIN}"),
        false => format!("a whole number from {MIN} to {MAX}"),
    };
    let number = |it: &Value| {
        let number = it.as_u64().filter(|number| (MIN..=MAX).contains(number))?;
        T::try_from(number).ok()
    };
    value(deserializer, &bounds, number).map(Some)
}

pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Given<bool, D::Error> {
    value(deserializer, "true or false", Value::as_bool).map(Some)
}

pub(super) fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Given<f64, D::Error> {
    let usd = |it: &Value| it.as_f64().filter(|usd| *usd > 0.0 && is_amount(*usd));
    value(deserializer, "a number of US dollars above 0, at most 1e12", usd).map(Some)
}

pub(super) fn schema<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Given<Map<String, Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Object(schema) => Ok(Some(schema)),
        other => {
            Err(D::Error::custom(format!("must be a JSON Schema object, not {}", kind(&other))))
        }
    }
}

pub(super) fn parameters<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Given<Map<String, Value>, D::Error> {
    let meaning = "an object with fields of the request, such as {\"temperature\": 0}";
    let mut fields = value(deserializer, meaning, |it| it.as_object().cloned())?;
    // A null field counts as absent.
    fields.retain(|_, value| !value.is_null());
    Ok(Some(fields))
}

pub(super) fn checks<'de, D: Deserializer<'de>>(deserializer: D) -> Given<Vec<Check>, D::Error> {
    let meaning =
        "a list of checks, such as [{\"name\": \"total\", \"expression\": \"answer.total > 0\"}]";
    list(deserializer, meaning)
}

pub(super) fn messages<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Given<Vec<Message>, D::Error> {
    list(deserializer, "a list of turns, such as [{\"role\": \"user\", \"content\": \"…\"}]")
}

/// Reads the values of a list; an error begins with the index of the wrong value.
fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
    meaning: &str,
) -> Given<Vec<T>, D::Error> {
    let values = value(deserializer, meaning, |it| it.as_array().cloned())?;
    let read = |(place, value)| {
        serde_json::from_value(value)
            .map_err(|error| D::Error::custom(format!("[{place}]: {error}")))
    };
    values.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Some)
}

pub(super) fn records<'de, D: Deserializer<'de>>(deserializer: D) -> Given<Records, D::Error> {
    let meaning = "true, or say which fields to take: {\"id\":\"…\",\"text\":\"…\"}";
    match Value::deserialize(deserializer)? {
        Value::Bool(false) => Ok(None),
        Value::Bool(true) => Ok(Some(Records::default())),
        value @ Value::Object(_) => serde_json::from_value(value)
            .map(Some)
            .map_err(|error| D::Error::custom(format!("must be {meaning}; {error}"))),
        other => Err(D::Error::custom(must_be(meaning, &other))),
    }
}

pub(super) fn pack<'de, D: Deserializer<'de>>(deserializer: D) -> Given<Pack, D::Error> {
    let meaning = format!("true, or the number of documents in one call, from 2 to {MAX_PACK}");
    value(deserializer, &meaning, |it| match it {
        Value::Bool(packs) => Some(packs.then_some(Pack::Fitting)),
        _ => {
            let number = it.as_u64().filter(|number| (2..=MAX_PACK).contains(number))?;
            Some(Some(Pack::Of(u32::try_from(number).ok()?)))
        }
    })
}

pub(super) fn write_pack<S: Serializer>(
    pack: &Option<Pack>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match pack {
        None => serializer.serialize_none(),
        Some(Pack::Fitting) => serializer.serialize_bool(true),
        Some(Pack::Of(number)) => serializer.serialize_u32(*number),
    }
}

pub(super) fn write_deadline<S: Serializer>(
    deadline: &Option<Deadline>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match deadline {
        None => serializer.serialize_none(),
        Some(Deadline::At(seconds)) => {
            let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(*seconds));
            let at = at.ok_or_else(|| ser::Error::custom("the deadline is no time"))?;
            serializer.collect_str(&humantime::format_rfc3339_seconds(at))
        }
        Some(Deadline::Within(seconds)) => {
            serializer.collect_str(&humantime::format_duration(Duration::from_secs(*seconds)))
        }
    }
}

/// Null fields count as absent.
pub(super) fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

fn must_be(meaning: &str, value: &Value) -> String {
    let text = value.to_string();
    let shown = if text.len() <= 40 { text.as_str() } else { kind(value) };
    format!("must be {meaning}, not {shown}")
}

/// The JSON type of a value, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
