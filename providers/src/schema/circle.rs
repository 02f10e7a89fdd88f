//! Whether the definitions of a schema refer to themselves.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// Returns whether a definition refers to itself, directly or by others.
pub(super) fn refers_to_itself(definitions: &Map<String, Value>) -> bool {
    fn references<'a>(value: &'a Value, found: &mut HashSet<&'a str>) {
        match value {
            Value::Object(fields) => {
                if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                    found.insert(name.strip_prefix("#/$defs/").unwrap_or(name));
                }
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let names = definitions.iter().map(|(name, definition)| {
        let mut found = HashSet::new();
        references(definition, &mut found);
        (name.as_str(), found)
    });
    let mut referring: HashMap<&str, HashSet<&str>> = names.collect();
    // How many definitions refer to each.
    let mut uses: HashMap<&str, usize> = HashMap::new();
    referring.values().flatten().for_each(|name| *uses.entry(name).or_default() += 1);
    // Takes away the definitions that none of the others refers to. Those of a circle stay.
    let is_free = |name: &&str| !uses.contains_key(*name);
    let mut free: Vec<&str> = referring.keys().copied().filter(is_free).collect();
    while let Some(name) = free.pop() {
        for to in referring.remove(name).into_iter().flatten() {
            if let Some(left) = uses.get_mut(to) {
                *left -= 1;
                free.extend((*left == 0).then_some(to));
            }
        }
    }
    !referring.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Definitions that each refer to the next; the last one refers to `to`.
    fn chain(length: usize, to: &str) -> Map<String, Value> {
        let link = |at: usize| {
            let next = if at + 1 == length { to.to_owned() } else { format!("d{}", at + 1) };
            (format!("d{at}"), json!({"items": {"$ref": format!("#/$defs/{next}")}}))
        };
        (0..length).map(link).collect()
    }

    #[test]
    fn circles_of_any_length_are_found() {
        for (length, to, expected) in [
            (1, "d0", true),
            (1, "missing", false),
            (20_000, "missing", false),
            (20_000, "d0", true),
            (20_000, "d19990", true),
        ] {
            assert_eq!(refers_to_itself(&chain(length, to)), expected, "{length} to {to}");
        }
    }
}
