//! The work of judging one value: the number of schemas, of values to compare with, and of places in
//! patterns.
//!
//! Where schemas refer to each other several times, the number grows exponentially: 45 schemas with two
//! references each to the next make 2⁴⁵ judgements of one value.
//!
//! A regular expression counts with its repetitions written out, as the engine writes `a{50}` out as
//! fifty places. Nested counts multiply, so a short pattern can take gigabytes to compile, and each letter
//! of a text may be tried at all places.

use std::collections::HashMap;

use serde_json::Value;

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
            Value::Object(fields) => {
                let parts = fields.iter().map(|(name, part)| match (name.as_str(), part) {
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
                let steps = parts.fold(1, u64::saturating_add);
                // What is judged beside these is judged twice more, to find what it covers.
                let covered = ["unevaluatedProperties", "unevaluatedItems"];
                let covered = covered.iter().filter(|name| fields.contains_key(**name));
                covered.fold(steps, |steps, _| steps.saturating_mul(3))
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

/// Places that a class of Unicode counts as. It takes 45 KiB of memory or more, a place 73 bytes; so
/// many would be 3.6 KiB. Most schemas with `\p{L}{1,100}` are still accepted.
const CLASS_PLACES: u64 = 50;

/// Counts the places of a pattern. It is an upper bound, within the weights above.
pub(super) fn count_places(pattern: &str) -> u64 {
    // Signs that the engine may read in several ways: a list that begins with its end, and spaces and
    // comments within a pattern.
    let is_ambiguous = ["[]", "[^]", "(?#"].iter().any(|list| pattern.contains(list))
        || pattern.split("(?").skip(1).any(|group| {
            let mut flags = group.chars().take_while(|it| it.is_ascii_alphabetic() || *it == '-');
            flags.any(|flag| flag == 'x')
        });
    let mut walk = Walk { pattern, is_special: needs_backtracking(pattern) };
    if is_ambiguous { walk.all_counts() } else { walk.count() }
}

/// Returns whether a pattern needs backtracking: special groups, or references to groups.
pub(super) fn needs_backtracking(pattern: &str) -> bool {
    let groups = pattern
        .split("(?")
        .skip(1)
        .any(|group| !group.starts_with([':', 'i', 'm', 's', 'x']) && !group.starts_with("P<"));
    let references = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && (pair[1].is_ascii_digit() || pair[1] == b'k'));
    groups || references
}

struct Walk<'p> {
    /// What is left of the pattern.
    pattern: &'p str,
    /// A pattern with special groups keeps `\w` as the letters of all scripts; in others it means
    /// those of ASCII.
    is_special: bool,
}

impl Walk<'_> {
    fn count(&mut self) -> u64 {
        // The places of the open groups, without their last part.
        let (mut open, mut places, mut last) = (Vec::new(), 0_u64, 0_u64);
        while let Some(sign) = self.next() {
            if sign == '{'
                && let Some(count) = self.read_count()
            {
                last = last.saturating_mul(count);
                continue;
            }
            match sign {
                '(' => {
                    open.push(places.saturating_add(last));
                    (places, last) = (0, 1);
                }
                ')' => {
                    last = places.saturating_add(last).max(1);
                    places = open.pop().unwrap_or(0);
                }
                '*' | '+' | '?' => {}
                sign => {
                    places = places.saturating_add(last);
                    last = match sign {
                        '\\' => self.read_escape(),
                        '[' => self.read_list(),
                        _ => 1,
                    };
                }
            }
        }
        open.into_iter().fold(places, u64::saturating_add).saturating_add(last)
    }

    /// The length times all counts, for a pattern whose parts cannot be told apart.
    fn all_counts(&mut self) -> u64 {
        let mut places = self.pattern.len() as u64 * CLASS_PLACES;
        while let Some(sign) = self.next() {
            if sign == '{'
                && let Some(count) = self.read_count()
            {
                places = places.saturating_mul(count);
            }
        }
        places
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.pattern.chars().next()?;
        self.pattern = &self.pattern[sign.len_utf8()..];
        Some(sign)
    }

    /// Reads the rest of `{2}`, `{2,}` or `{2,3}`; `None` for a brace without a number.
    fn read_count(&mut self) -> Option<u64> {
        let (inside, behind) = self.pattern.split_once('}')?;
        let number = |text: &str| match text.trim() {
            "" => Some(0),
            // A number too large is refused by the engine.
            digits if digits.bytes().all(|it| it.is_ascii_digit()) => {
                Some(digits.parse().unwrap_or(u64::MAX))
            }
            _ => None,
        };
        let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
        let count = number(least)?.max(number(most)?).max(1);
        self.pattern = behind;
        Some(count)
    }

    /// Reads the rest of an escape.
    fn read_escape(&mut self) -> u64 {
        let sign = self.next();
        if matches!(sign, Some('p' | 'P' | 'x' | 'u' | 'k'))
            && let Some(named) = self.pattern.strip_prefix('{')
            && let Some((_, behind)) = named.split_once('}')
        {
            self.pattern = behind;
        }
        match sign {
            Some('p' | 'P') => CLASS_PLACES,
            Some('w' | 'W' | 'd' | 'D' | 's' | 'S') if self.is_special => CLASS_PLACES,
            _ => 1,
        }
    }

    /// Reads the rest of a list, such as `[a-z]`.
    fn read_list(&mut self) -> u64 {
        let mut places = 1_u64;
        while let Some(sign) = self.next() {
            match sign {
                ']' => break,
                '\\' => places += self.read_escape(),
                _ => places += 1,
            }
        }
        // A range has three signs and takes less than one place.
        places.div_ceil(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_repetitions_are_written_out() {
        for (pattern, places) in [
            ("", 0),
            ("abc", 3),
            ("a{50}", 50),
            ("a{2,}b{,3}c{4,9}", 2 + 3 + 9),
            ("^(?:a{50}){2000}$", 2 + 2_000 * 52),
            ("((a{9}){9}){9}", 9 * (1 + 9 * (1 + 9))),
            ("a{10}{10}", 100),
            ("[a-z]{5}", 5),
            ("[)({]{5}", 5),
            (r"\({5}\p{Lu}{2}\u{41}{3}", 5 + 2 * CLASS_PLACES + 3),
            (r"\w{30}", 30),
            (r"(?=b)\w{30}", 3 + 30 * CLASS_PLACES),
            ("a{b}", 4),
        ] {
            assert_eq!(count_places(pattern), places, "{pattern}");
        }
        // Here the engine may not see the parts that are seen here.
        let uncertain = ["[](a{50}){2000}]", "(?x)(a{50}) # {\n{ 2000 }", "(a{50})(?#)){2000}"];
        for pattern in uncertain {
            assert!(count_places(pattern) > 100_000, "{pattern}");
        }
        assert_eq!(count_places(&format!("{}a{}", "(".repeat(20), "){99}".repeat(20))), u64::MAX);
    }
}
