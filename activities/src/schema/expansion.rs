//! The number of schemas that one value is judged by.
//!
//! Where schemas refer to each other several times, the number grows exponentially: 45 schemas with two
//! references each to the next make 2⁴⁵ judgements of one value.

use std::collections::HashMap;

use serde_json::Value;

/// Longest chain of references; a longer one counts as endless.
const MAX_DEPTH: u32 = 200;

/// The schemas that one value may be judged by.
#[derive(Debug, Default)]
pub(super) struct Expansion<'s> {
    /// The number of schemas, each counted as often as references lead to it. A reference to an
    /// enclosing schema counts as one.
    pub(super) schemas: u64,
    /// Whether a reference leads to an enclosing schema or to an unknown target.
    pub(super) is_open: bool,
    /// Whether a pattern has lookaround or a backreference: the time to match it can exceed any
    /// multiple of the text's length.
    pub(super) has_costly_pattern: bool,
    /// A reference to a schema that is a reference too, and so on back to this one.
    pub(super) cycle: Option<&'s str>,
}

impl<'s> Expansion<'s> {
    pub(super) fn measure(schema: &'s Value) -> Self {
        let found = Self::default();
        let mut count = Count { root: schema, known: HashMap::new(), depth: 0, found };
        let schemas = count.count(schema);
        Self { schemas, ..count.found }
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
                    ("pattern", Value::String(pattern)) => {
                        self.found.has_costly_pattern |= is_costly(pattern);
                        0
                    }
                    ("patternProperties", Value::Object(patterns)) => {
                        self.found.has_costly_pattern |= patterns.keys().any(|it| is_costly(it));
                        self.count(part)
                    }
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

/// Whether a pattern needs backtracking: special groups, or references to groups.
fn is_costly(pattern: &str) -> bool {
    let groups = pattern.match_indices("(?").any(|(at, _)| {
        !matches!(pattern[at + 2..].chars().next(), Some(':' | 'P' | 'i' | 'm' | 's' | 'x'))
    });
    let references = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && (pair[1].is_ascii_digit() || pair[1] == b'k'));
    groups || references
}
