//! How many schemas one value is judged by.
//!
//! Where schemas refer to each other several times, that number grows as a power: 45 schemas of two
//! references each to the next are 2⁴⁵ judgements of one value.

use std::collections::HashMap;

use serde_json::Value;

/// References behind each other; longer chains count as endless.
const MAX_DEPTH: u32 = 200;

/// What one value may be judged by.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    /// The number of schemas, each as often as references lead to it. A reference to a schema that
    /// it lies in counts as one.
    pub(super) schemas: u64,
    /// There is such a reference, or one whose end is not known.
    pub(super) is_open: bool,
    /// There is a pattern that looks around itself or back: what it takes is no multiple of the
    /// text.
    pub(super) has_costly_pattern: bool,
}

impl Expansion {
    pub(super) fn of(schema: &Value) -> Self {
        let found = Self::default();
        let mut count = Count { root: schema, known: HashMap::new(), depth: 0, found };
        let schemas = count.of(schema);
        Self { schemas, ..count.found }
    }
}

struct Count<'s> {
    root: &'s Value,
    /// By reference; `None` while it is being counted.
    known: HashMap<&'s str, Option<u64>>,
    /// How many references lead to the schema that is being counted.
    depth: u32,
    found: Expansion,
}

impl<'s> Count<'s> {
    fn of(&mut self, schema: &'s Value) -> u64 {
        match schema {
            Value::Object(parts) => {
                let parts = parts.iter().map(|(name, part)| match (name.as_str(), part) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                        self.led_to(to)
                    }
                    ("pattern", Value::String(pattern)) => {
                        self.found.has_costly_pattern |= is_costly(pattern);
                        0
                    }
                    ("patternProperties", Value::Object(patterns)) => {
                        self.found.has_costly_pattern |= patterns.keys().any(|it| is_costly(it));
                        self.of(part)
                    }
                    // What is defined counts where it is referred to.
                    ("$defs" | "definitions" | "enum" | "const" | "default" | "examples", _) => 0,
                    _ => self.of(part),
                });
                parts.fold(1, u64::saturating_add)
            }
            Value::Array(parts) => {
                parts.iter().map(|part| self.of(part)).fold(0, u64::saturating_add)
            }
            _ => 0,
        }
    }

    fn led_to(&mut self, to: &'s str) -> u64 {
        if let Some(known) = self.known.get(to) {
            self.found.is_open |= known.is_none();
            return known.unwrap_or(1);
        }
        // An anchor, or a schema of an address of its own, is counted as one.
        let pointer =
            to.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let Some(target) = pointer.and_then(|pointer| self.root.pointer(pointer)) else {
            self.found.is_open = true;
            return 1;
        };
        if self.depth == MAX_DEPTH {
            return u64::MAX;
        }
        self.known.insert(to, None);
        self.depth += 1;
        let count = self.of(target);
        self.depth -= 1;
        self.known.insert(to, Some(count));
        count
    }
}

/// Whether a pattern has what only a matcher that goes back can find: groups of a kind, references
/// to groups.
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
