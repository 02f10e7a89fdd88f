//! How many schemas one value is judged by.
//!
//! Where schemas refer to each other several times, that number grows as a power: 45 schemas of two
//! references each to the next are 2⁴⁵ judgements of one value.

use std::collections::HashMap;

use serde_json::Value;

/// The number of schemas in `schema`, each as often as references lead to it. A reference to a schema
/// that it lies in counts as one.
pub(super) fn of(schema: &Value) -> u64 {
    Expansion { root: schema, known: HashMap::new(), depth: 0 }.of(schema)
}

/// References behind each other; longer chains count as endless.
const MAX_DEPTH: u32 = 200;

struct Expansion<'s> {
    root: &'s Value,
    /// By reference; `None` while it is being counted.
    known: HashMap<&'s str, Option<u64>>,
    /// How many references lead to the schema that is being counted.
    depth: u32,
}

impl<'s> Expansion<'s> {
    fn of(&mut self, schema: &'s Value) -> u64 {
        match schema {
            Value::Object(parts) => {
                let parts = parts.iter().map(|(name, part)| match (name.as_str(), part) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                        self.led_to(to)
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
            return known.unwrap_or(1);
        }
        // An anchor, or a schema of an address of its own, is counted as one.
        let pointer =
            to.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let Some(target) = pointer.and_then(|pointer| self.root.pointer(pointer)) else { return 1 };
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
