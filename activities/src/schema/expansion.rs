//! The work of judging one value: the number of schemas, of values to compare with, and of places in
//! patterns.
//!
//! Where schemas refer to each other several times, the number grows exponentially: 45 schemas with two
//! references each to the next make 2⁴⁵ judgements of one value.

use std::collections::HashMap;

use serde_json::Value;

use super::pattern::{count_places, needs_backtracking};

/// Longest chain of references; a longer one counts as endless.
const MAX_DEPTH: u32 = 200;

/// Most places of a pattern that is tried in this process: at ten nanoseconds each, they take 0.3 s
/// for a text of 100 kB.
const MAX_HARMLESS_PLACES: u64 = 300;

/// The schemas that one value may be judged by.
#[derive(Debug, Default)]
pub(super) struct Expansion<'s> {
    /// The number of schemas, each counted as often as references lead to it, and within them of
    /// places in patterns and of values in an `enum` that are compared one by one. A reference to an
    /// enclosing schema counts as one.
    pub(super) steps: u64,
    /// Whether a reference leads to an enclosing schema or to an unknown target.
    pub(super) is_open: bool,
    /// Whether a pattern has lookaround or a backreference, so that the time to match it can exceed any
    /// multiple of the text's length; or has many places.
    pub(super) has_costly_pattern: bool,
    /// A reference to a schema that is a reference too, and so on back to this one.
    pub(super) cycle: Option<&'s str>,
}

impl<'s> Expansion<'s> {
    pub(super) fn measure(schema: &'s Value) -> Self {
        let found = Self::default();
        let mut count = Count { root: schema, known: HashMap::new(), depth: 0, found };
        let steps = count.count(schema);
        Self { steps, ..count.found }
    }
}

struct Count<'s> {
    root: &'s Value,
    /// By reference; `None` while it is being counted.
    known: HashMap<&'s str, Option<u64>>,
    /// References between the root and the schema that is being counted.
    depth: u32,
    found: Expansion<'s>,
}

impl<'s> Count<'s> {
    fn count(&mut self, schema: &'s Value) -> u64 {
        match schema {
            Value::Object(parts) => {
                let parts = parts.iter().map(|(name, part)| match (name.as_str(), part) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                        self.count_reference(to)
                    }
                    ("pattern", Value::String(pattern)) => self.count_pattern(pattern),
                    ("patternProperties", Value::Object(patterns)) => {
                        let places = patterns.keys().map(|pattern| self.count_pattern(pattern));
                        let places = places.fold(0, u64::saturating_add);
                        self.count(part).saturating_add(places)
                    }
                    ("enum", Value::Array(values)) => count_compared(values),
                    // Definitions are counted where references lead to them.
                    ("$defs" | "definitions" | "enum" | "const" | "default" | "examples", _) => 0,
                    _ => self.count(part),
                });
                parts.fold(1, u64::saturating_add)
            }
            Value::Array(parts) => {
                parts.iter().map(|part| self.count(part)).fold(0, u64::saturating_add)
            }
            _ => 0,
        }
    }

    fn count_pattern(&mut self, pattern: &str) -> u64 {
        let places = count_places(pattern);
        self.found.has_costly_pattern |=
            places > MAX_HARMLESS_PLACES || needs_backtracking(pattern);
        places
    }

    fn count_reference(&mut self, to: &'s str) -> u64 {
        if let Some(known) = self.known.get(to) {
            self.found.is_open |= known.is_none();
            return known.unwrap_or(1);
        }
        // An anchor, or a schema with its own address, counts as one.
        let Some(target) = target(self.root, to) else {
            self.found.is_open = true;
            return 1;
        };
        if self.depth == MAX_DEPTH {
            return u64::MAX;
        }
        if self.is_cycle(to) {
            self.found.cycle = Some(to);
        }
        self.known.insert(to, None);
        self.depth += 1;
        let count = self.count(target);
        self.depth -= 1;
        self.known.insert(to, Some(count));
        count
    }

    /// Whether a reference leads to references alone, and back to itself.
    fn is_cycle(&self, to: &str) -> bool {
        let next = |to: &str| target(self.root, to)?.get("$ref")?.as_str();
        let mut at = next(to);
        for _ in 0..MAX_DEPTH {
            match at {
                Some(reference) if reference == to => return true,
                Some(reference) => at = next(reference),
                None => return false,
            }
        }
        false
    }
}

/// The schema that a reference leads to; `None` for an anchor or a schema with its own address.
fn target<'s>(root: &'s Value, to: &str) -> Option<&'s Value> {
    let pointer = to.strip_prefix('#')?;
    (pointer.is_empty() || pointer.starts_with('/')).then(|| root.pointer(pointer)).flatten()
}

/// The values of an `enum` that are compared one by one. Texts are looked up in a table.
fn count_compared(values: &[Value]) -> u64 {
    fn count(value: &Value) -> u64 {
        match value {
            Value::Array(values) => values.iter().map(count).fold(1, u64::saturating_add),
            Value::Object(fields) => fields.values().map(count).fold(1, u64::saturating_add),
            _ => 1,
        }
    }
    if values.iter().all(|value| matches!(value, Value::String(_) | Value::Null)) {
        return 0;
    }
    values.iter().map(count).fold(0, u64::saturating_add)
}
