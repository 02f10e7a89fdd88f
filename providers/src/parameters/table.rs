//! One vendor's parameters.

use serde_json::{Map, Value};
use tidegate_types::Effort;

use super::takes::Takes;

/// The field that lets unknown fields pass unchanged. No vendor has a field of that name.
pub const ALLOW_UNKNOWN: &str = "allow_unknown";

/// One vendor's parameters.
pub(crate) struct Table {
    pub(crate) rows: &'static [Row],
    /// Fields that the client writes itself, or that would change the form of the reply.
    pub(crate) own: &'static [&'static str],
    /// The object for fields that the table does not know; empty for the body itself.
    pub(crate) unknown: &'static [&'static str],
    /// Returns the fields for an effort, for a model whose answer has this much room; or the reason
    /// why it is not possible.
    pub(crate) effort: fn(&str, Effort, u32) -> Result<Value, String>,
    /// Returns the reason why a model refuses a parameter, if it does.
    pub(crate) refuses: fn(&Refusal<'_>) -> Option<&'static str>,
    /// The vendor's pages that document them.
    pub(crate) sources: &'static [&'static str],
}

/// One parameter.
pub(crate) struct Row {
    /// The name in inputs and configurations.
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    /// The path in the body; the last segment is the vendor's own name.
    pub(crate) path: &'static [&'static str],
    /// A field that must be set with it in the same object.
    pub(crate) companion: Option<(&'static str, &'static str)>,
}

impl Row {
    pub(crate) const fn new(
        name: &'static str,
        takes: Takes,
        path: &'static [&'static str],
    ) -> Self {
        Self { name, takes, path, companion: None }
    }
}

/// A parameter and a model, to be checked for a refusal.
pub(crate) struct Refusal<'a> {
    pub(crate) model: &'a str,
    pub(crate) name: &'a str,
    pub(crate) value: &'a Value,
    pub(crate) effort: Option<Effort>,
    /// The other fields.
    pub(crate) fields: &'a Map<String, Value>,
}

impl Table {
    fn row(&self, name: &str) -> Option<&Row> {
        let named = |row: &&Row| row.name == name;
        let own = |row: &&Row| row.path.last() == Some(&name);
        self.rows.iter().find(named).or_else(|| self.rows.iter().find(own))
    }

    /// Checks fields and returns them under this table's names; the error states the fault of one.
    pub(crate) fn check(
        &self,
        vendor: &str,
        model: &str,
        effort: Option<Effort>,
        given: &Map<String, Value>,
        room: Option<u32>,
    ) -> Result<Map<String, Value>, String> {
        let allow_unknown = match given.get(ALLOW_UNKNOWN) {
            None => false,
            Some(Value::Bool(allow)) => *allow,
            Some(_) => return Err(format!("{ALLOW_UNKNOWN} must be true or false")),
        };
        let mut fields = Map::new();
        for (name, value) in given.iter().filter(|(name, _)| *name != ALLOW_UNKNOWN) {
            let (name, value) = match self.row(name) {
                Some(row) => {
                    let value = row.takes.read(value);
                    let value = value.map_err(|must| format!("{name} must be {must}"))?;
                    (row.name, value)
                }
                None if self.own.contains(&name.as_str()) => {
                    return Err(format!("{name} is written by tidegate itself; leave it out"));
                }
                None if allow_unknown => (name.as_str(), value.clone()),
                None => return Err(self.unknown(vendor, name)),
            };
            if fields.insert(name.to_owned(), value).is_some() {
                return Err(format!("{name} is given twice, under two names; leave one out"));
            }
        }
        if effort.is_some() && fields.contains_key("thinking_budget") {
            return Err("give only one of effort and thinking_budget".to_owned());
        }
        for (name, value) in &fields {
            let asked = Refusal { model, name, value, effort, fields: &fields };
            if let Some(why) = (self.refuses)(&asked) {
                return Err(format!("{name} cannot be given: {why}"));
            }
        }
        if let Some(effort) = effort {
            (self.effort)(model, effort, room.unwrap_or(u32::MAX))
                .map_err(|why| format!("effort \"{effort}\" cannot be given: {why}"))?;
        }
        Ok(fields)
    }

    fn unknown(&self, vendor: &str, name: &str) -> String {
        let name: String = name.chars().take(60).collect();
        let known: Vec<&str> = self.rows.iter().map(|row| row.name).collect();
        format!(
            "{} is not known at {vendor}; known are {}; add \"{ALLOW_UNKNOWN}\": true beside it to send it as it is",
            name.escape_debug(),
            known.join(", ")
        )
    }

    /// Puts a field into its place in the body.
    pub(crate) fn place(&self, body: &mut Value, name: &str, value: &Value) {
        let nest = |path: &[&str], value: Value| {
            path.iter().rev().fold(value, |value, part| {
                Value::Object(Map::from_iter([((*part).to_owned(), value)]))
            })
        };
        match self.row(name) {
            Some(row) => {
                merge(body, nest(row.path, value.clone()));
                if let (Some((name, word)), [object @ .., _]) = (row.companion, row.path) {
                    let path: Vec<&str> = object.iter().copied().chain([name]).collect();
                    merge(body, nest(&path, word.into()));
                }
            }
            None => {
                let path: Vec<&str> = self.unknown.iter().copied().chain([name]).collect();
                merge(body, nest(&path, value.clone()));
            }
        }
    }
}

/// Merges `other` into `into`, object by object.
pub(crate) fn merge(into: &mut Value, other: Value) {
    match (into, other) {
        (Value::Object(into), Value::Object(other)) => {
            for (name, value) in other {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, other) => *into = other,
    }
}
