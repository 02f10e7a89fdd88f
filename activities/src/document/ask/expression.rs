//! Checks written as expressions of the template language.
//!
//! An expression knows the variables of templates, `answer` and `record`. The answer is a value if
//! the batch has a schema, otherwise a text. An answer passes if the value is true in an `{% if …
//! %}`.

use std::{borrow::Cow, collections::BTreeSet};

use minijinja::{Error, ErrorKind, Value, value::Serde};
use serde_json::{Map, json};
use tidegate_workflows::contract::{Check, Job};

use crate::{
    document::ask::{
        prompt_builder::{DocumentFacts, OF_ALL},
        template::{self, Variables, engine, fault, is_plain_tag, run_deep},
    },
    output::result::Checked,
};

/// Variables of checks in addition to those of templates.
pub(crate) const OF_CHECKS: [&str; 2] = ["answer", "record"];

/// Longest expression, in bytes.
const MAX_BYTES: usize = 4 << 10;

/// Maximum number of operators that join values in a plain expression.
const MAX_JOINED: usize = 8;

/// An expression, and its place in the author's input.
#[derive(Debug, Clone)]
pub(crate) struct Expression<'a> {
    /// The field of the author's input.
    pub(crate) place: String,
    text: &'a str,
}

/// The expressions of a job's checks, with their names.
pub(crate) fn expressions(checks: &[Check]) -> impl Iterator<Item = (&str, Expression<'_>)> {
    let checks = checks.iter().enumerate();
    checks.filter_map(|(at, Check { name, expression, .. })| {
        let place = format!("checks[{at}] \"{name}\"");
        Some((name.as_str(), Expression { place, text: expression.as_deref()? }))
    })
}

/// Whether no value of the expressions can be much longer than their inputs.
pub(crate) fn are_plain(checks: &[Check]) -> bool {
    expressions(checks).all(|(_, it)| is_plain(it.text))
}

/// Applies the rules for texts of templates, and allows a few values to be joined.
fn is_plain(text: &str) -> bool {
    let joins = |sign: char| matches!(sign, '+' | '~' | ',');
    let other = |sign: char| joins(sign) || matches!(sign, '-' | '/' | '%' | '[' | ']' | ':');
    let is_short = text.chars().filter(|sign| joins(*sign)).count() <= MAX_JOINED;
    is_short && !text.contains('\\') && is_plain_tag(&format!("{{{}", text.replace(other, " ")))
}

/// Evaluates a job's expressions for an answer.
pub(crate) fn outcomes(job: &Job, about: &DocumentFacts<'_>, answer: &str) -> Vec<Checked> {
    let answer = match &job.schema {
        Some(_) => serde_json::from_str(answer).unwrap_or_default(),
        None => json!(answer),
    };
    let with = variables(about, &answer);
    let outcomes = expressions(&job.checks).map(|(name, expression)| {
        let why = match expression.is_true(&with) {
            Ok(true) => None,
            Ok(false) => Some(format!("not true of it: {}", expression.text)),
            Err(fault) => Some(fault),
        };
        Checked { name: name.to_owned(), passed: why.is_none(), why }
    });
    outcomes.collect()
}

/// Checks a job's expressions before anything is asked.
///
/// # Errors
/// A sentence that says which expression is wrong, and where: it cannot be parsed, uses an unknown
/// name, has one value for every answer, or can be evaluated for no answer that the schema allows.
pub(crate) fn examine(job: &Job) -> Result<(), String> {
    expressions(&job.checks).try_for_each(|(_, expression)| expression.examine(job.schema.as_ref()))
}

fn variables<'a>(about: &'a DocumentFacts<'_>, answer: &serde_json::Value) -> Variables<'a> {
    let mut with = about.variables();
    let record = Value::from(Serde(&about.fields));
    with.extend([("answer", Value::from(Serde(answer))), ("record", record)]);
    with
}

impl Expression<'_> {
    /// Returns the names that the expression uses.
    ///
    /// # Errors
    /// A sentence that names the place of a syntax error.
    pub(crate) fn names(&self) -> Result<BTreeSet<String>, String> {
        let paths = self.paths()?;
        let first = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
        Ok(paths.iter().map(first).collect())
    }

    /// Returns the expression's names with the fields that follow them: `answer.total`.
    fn paths(&self) -> Result<BTreeSet<String>, String> {
        let Self { place, text } = self;
        if text.len() > MAX_BYTES {
            let size = text.len();
            return Err(format!(
                "{place}: an expression of {size} bytes; at most {MAX_BYTES} are read"
            ));
        }
        run_deep(place, || {
            let engine = engine(0);
            let read = engine.compile_expression(text);
            let read = read.map_err(|error| fault(place, &error, &Variables::new()))?;
            let mut paths: BTreeSet<String> = read.undeclared_variables(true).into_iter().collect();
            engine.globals().for_each(|(known, _)| {
                paths.remove(known);
            });
            Ok(paths)
        })
    }

    fn is_true(&self, with: &Variables<'_>) -> Result<bool, String> {
        run_deep(&self.place, || {
            let value = self.value(with).map_err(|error| fault(&self.place, &error, with))?;
            Ok(value.is_true())
        })
    }

    fn value(&self, with: &Variables<'_>) -> Result<Value, Error> {
        let engine = engine(template::max_output_bytes(self.text, with));
        let values = Value::from_pairs(with.iter().map(|(name, value)| (*name, value.clone())));
        engine.compile_expression(self.text)?.eval(values)
    }

    fn examine(&self, schema: Option<&serde_json::Value>) -> Result<(), String> {
        let (place, paths) = (&self.place, self.paths()?);
        // No names: text literals are not among them.
        if paths.is_empty() && self.is_true(&Variables::new()).is_ok() {
            return Err(format!(
                "{place}: the expression names nothing, and is the same for every answer; it may use answer, {}, record, and a record's fields",
                OF_ALL.join(", ")
            ));
        }
        if let Some(schema) = schema {
            let mut of_answer = paths.iter().filter_map(|path| path.strip_prefix("answer."));
            let known = of_answer.try_for_each(|path| has(schema, path));
            known.map_err(|why| format!("{place}: {why}"))?;
        }
        // The names of a record's fields are checked when there are records.
        let mut said = None;
        for text in SAMPLES {
            let answer = schema.map_or_else(|| json!(text), |schema| sample(schema, text, 0));
            let [id, name, sent] = [text; 3].map(Cow::Borrowed);
            let about = DocumentFacts { id, name, fields: Cow::Owned(Map::new()), text: sent };
            let with = variables(&about, &answer);
            let wrong = run_deep(place, || {
                let error = self.value(&with).err();
                Ok(error.map(|error| (is_static(error.kind()), fault(place, &error, &with))))
            })?;
            match wrong {
                Some((true, fault)) => said = Some(fault),
                // Another value, or a record's fields, may be valid.
                _ => return Ok(()),
            }
        }
        said.map_or(Ok(()), Err)
    }

    /// Whether the expression can be evaluated for a document with these fields, judged by its
    /// names.
    pub(crate) fn knows_its_names(&self, about: &DocumentFacts<'_>) -> bool {
        let with = variables(about, &serde_json::Value::Null);
        let error = run_deep(&self.place, || Ok(self.value(&with).err().map(|error| error.kind())));
        error != Ok(Some(ErrorKind::UndefinedError))
    }
}

/// Texts with which an expression is tried: a number, a date, a word.
const SAMPLES: [&str; 3] = ["1", "2026-01-31", "text"];

/// Whether the error occurs for every value of that type.
fn is_static(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidOperation
            | ErrorKind::UnknownFilter
            | ErrorKind::UnknownFunction
            | ErrorKind::UnknownMethod
            | ErrorKind::UnknownTest
            | ErrorKind::MissingArgument
            | ErrorKind::TooManyArguments
    )
}

/// Checks that a schema has the field of this path, as far as the schema is explicit.
fn has(schema: &serde_json::Value, path: &str) -> Result<(), String> {
    let mut part = schema;
    for name in path.split('.') {
        let Some(properties) = part["properties"].as_object() else { return Ok(()) };
        let others = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"];
        let is_open = others.iter().any(|key| part.get(key).is_some())
            || part.get("additionalProperties").is_some_and(|more| *more != json!(false));
        match properties.get(name) {
            Some(property) => part = property,
            None if is_open => return Ok(()),
            None => {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                return Err(format!(
                    "answer.{path} is not known; the schema has {}",
                    known.join(", ")
                ));
            }
        }
    }
    Ok(())
}

/// An example value of a simple schema; null for any other.
fn sample(schema: &serde_json::Value, text: &str, depth: usize) -> serde_json::Value {
    // Far deeper than the path of any expression.
    if depth > 16 {
        return json!(null);
    }
    if let Some(first) = schema["enum"].get(0).or_else(|| schema.get("const")) {
        return first.clone();
    }
    let of = |schema| sample(schema, text, depth + 1);
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, property)| (name.clone(), of(property))).collect()
        }
        Some("array") => json!([of(&schema["items"])]),
        Some("string") => json!(text),
        Some("number") => json!(1.5),
        Some("integer") => json!(1),
        Some("boolean") => json!(true),
        _ => json!(null),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    fn job(expression: &str, schema: serde_json::Value) -> Job {
        serde_json::from_value(json!({
            "source": {"prefix": "file:///a/"}, "output": "file:///b/", "instructions": "c",
            "model": "a:b", "lane": "batch", "tenant": "default", "max_output_tokens": 9,
            "schema": schema, "checks": [{"name": "it", "expression": expression}],
        }))
        .unwrap()
    }

    fn schema() -> serde_json::Value {
        json!({"type": "object", "properties": {
            "total": {"type": "number"}, "net": {"type": "number"}, "vat": {"type": "number"},
            "date": {"type": "string"}, "currency": {"enum": ["EUR", "CHF"]},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"sum": {"type": "number"}}}},
            "customer": {"type": "object", "properties": {"name": {"type": "string"}}},
        }})
    }

    #[test]
    fn what_is_wrong_whatever_the_answer_is_refused_and_nothing_else() {
        for (expression, part) in [
            ("answer.total >", "syntax error"),
            ("answer.totl > 0", "answer.totl is not known; the schema has currency, customer"),
            ("answer.customer.nam == 'x'", "answer.customer.nam is not known"),
            ("1 + 1 == 2", "names nothing"),
            ("answer.total + 'x' == 3", "operator"),
            ("answer.total|absolute > 0", "unknown filter"),
            ("answer.date is dated", "unknown test"),
            ("sqrt(answer.total) > 0", "sqrt"),
        ] {
            let fault = examine(&job(expression, schema())).unwrap_err();
            let said = fault.starts_with("checks[0] \"it\"") && fault.contains(part);
            assert!(said, "{expression}: {fault}");
        }
        for expression in [
            "(answer.net + answer.vat - answer.total)|abs < 0.005",
            "answer.date[:4]|int > 2000",
            "answer.lines|map(attribute='sum')|sum == answer.net",
            "answer.currency in document and answer.date <= due",
            "answer.customer.name and city == 'Husum'",
            "answer.lines[2].sum > 0",
            "answer.note is defined or record.nr",
        ] {
            let open = expression.contains("note");
            let schema = if open { json!({"type": "object"}) } else { schema() };
            examine(&job(expression, schema)).unwrap_or_else(|it| panic!("{expression}: {it}"));
        }
    }

    #[test]
    fn an_answer_passes_what_is_true_of_it() {
        let fields = json!({"nr": 7, "odd name": "x"}).as_object().unwrap().clone();
        let about = DocumentFacts {
            id: "a".into(),
            name: "a.txt".into(),
            fields: Cow::Borrowed(&fields),
            text: "In EUR.".into(),
        };
        let of = |expression: &str, answer: &str| {
            outcomes(&job(expression, schema()), &about, answer).remove(0)
        };
        for (expression, passed) in [
            ("answer.currency in document", true),
            ("answer.total > 10", false),
            ("answer.total == 9.5 and nr == 7 and record['odd name'] == 'x'", true),
            ("id ~ name == 'aa.txt'", true),
            ("answer.missing > 1", false),
        ] {
            let checked = of(expression, r#"{"total": 9.5, "currency": "EUR"}"#);
            assert_eq!(checked.passed, passed, "{expression}: {checked:?}");
            assert_eq!(checked.why.is_none(), passed);
        }
        let text = Job { schema: None, ..job("answer|length < 5 and answer == '12'", json!(null)) };
        assert!(outcomes(&text, &about, "12")[0].passed, "without a schema it is a text");
    }

    #[test]
    fn work_is_bounded_and_what_can_grow_is_not_plain() {
        let fields = Map::new();
        let about = DocumentFacts {
            id: "a".into(),
            name: "a".into(),
            fields: Cow::Borrowed(&fields),
            text: "".into(),
        };
        // Both are true; only the long one takes more steps than it may.
        let of = |most: usize, length: usize| {
            let digits = format!("range({most})|map('string')|map('upper')|map('lower')");
            let expression = format!("{digits}|join|length == {length} and answer == 1");
            outcomes(&job(&expression, schema()), &about, "1").remove(0)
        };
        assert!(of(9_999, 38_886).passed, "{:?}", of(9_999, 38_886));
        let why = of(99_999, 488_885).why.unwrap();
        assert!(why.contains("takes too many steps"), "{why}");
        let plain = |expression: &str| are_plain(&job(expression, schema()).checks);
        assert!(plain("answer.total > 0") && plain("answer.currency in document"));
        assert!(plain("(answer.net + answer.vat - answer.total)|abs < 0.005"));
        assert!(plain("(answer.date[8:] ~ '.' ~ answer.date[:4]) in document"));
        let many = ["answer.a"; MAX_JOINED + 2].join(" ~ ");
        for other in ["answer.a * 999999999 == 'x'", "answer.a|join == 'x'", &many, "'\\'' ~ id"] {
            assert!(!plain(other), "{other}");
        }
        let long = format!("answer == {}", "(".repeat(MAX_BYTES));
        assert!(examine(&job(&long, schema())).unwrap_err().contains("at most 4096"));
        let deep = format!("{}answer{}", "(".repeat(2_000), ")".repeat(2_000));
        drop(examine(&job(&deep, schema())));
    }
}
