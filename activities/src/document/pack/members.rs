//! The layout of several documents in one prompt, and of their answers in one reply.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Joins the documents' texts, each in an item of its own. A document's text cannot end its item.
pub(super) fn text<'a>(documents: impl Iterator<Item = &'a str>, salt: u64) -> String {
    let item = |(place, text): (usize, &str)| {
        format!(
            "<item id=\"{}\">\n{}\n</item>",
            name(salt, place),
            text.replace("</item", "&lt;/item")
        )
    };
    documents.enumerate().map(item).collect::<Vec<_>>().join("\n\n")
}

fn name(salt: u64, place: usize) -> String {
    format!("{salt:04x}-{}", place + 1)
}

/// The schema of all answers. Definitions of the batch's schema stay at the top, because references
/// look for them there.
pub(super) fn form(schema: Option<&Value>) -> Value {
    let mut one = schema.cloned().unwrap_or_else(|| json!({"type": "string"}));
    let mut form = json!({
        "type": "object",
        "properties": {"answers": {"type": "array", "items": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "answer": null},
            "required": ["id", "answer"],
            "additionalProperties": false,
        }}},
        "required": ["answers"],
        "additionalProperties": false,
    });
    for definitions in ["$defs", "definitions"] {
        if let Some(moved) = one.as_object_mut().and_then(|one| one.remove(definitions)) {
            form[definitions] = moved;
        }
    }
    form["properties"]["answers"]["items"]["properties"]["answer"] = one;
    form
}

/// The first keyword of a schema whose meaning depends on its place.
pub(super) fn unmovable(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(fields) => {
            fields.iter().find_map(|(name, value)| match (name.as_str(), value) {
                ("$ref", Value::String(to))
                    if to.starts_with("#/$defs/") || to.starts_with("#/definitions/") =>
                {
                    None
                }
                ("$ref", Value::String(to)) if to.starts_with('#') => {
                    Some(format!("\"$ref\": \"{}\"", to.escape_debug()))
                }
                ("$id", Value::String(_)) => Some(format!("\"{name}\"")),
                _ => unmovable(value),
            })
        }
        Value::Array(values) => values.iter().find_map(unmovable),
        _ => None,
    }
}

/// Matches the answers to the indices of their documents. An id with two answers is ambiguous and
/// gets none. In a cut reply, all whole entries count. If there is a schema, each answer is JSON,
/// texts included.
pub(super) fn match_answers(
    answer: &str,
    salt: u64,
    members: usize,
    json: bool,
) -> BTreeMap<usize, String> {
    let mut answers: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for mut entry in entries(answer) {
        let id = entry.get("id").and_then(Value::as_str);
        let place = (0..members).find(|place| id == Some(&name(salt, *place)));
        let answer = match entry.remove("answer") {
            Some(Value::String(text)) if !json => Some(text).filter(|text| !text.trim().is_empty()),
            Some(Value::Null) | None => None,
            Some(other) => Some(other.to_string()),
        };
        if let Some((place, answer)) = place.zip(answer) {
            answers.entry(place).or_default().push(answer);
        }
    }
    let only = |(place, mut all): (usize, Vec<String>)| {
        if all.len() == 1 { all.pop().map(|one| (place, one)) } else { None }
    };
    answers.into_iter().filter_map(only).collect()
}

/// Returns the whole entries of the list, up to its end or its cut. Models without native JSON
/// output may put a fence around it or a sentence before it.
fn entries(answer: &str) -> Vec<Map<String, Value>> {
    let list = answer.split_once("\"answers\"").and_then(|(_, rest)| rest.split_once('['));
    let (mut rest, mut entries) = (list.map_or("", |(_, list)| list), Vec::new());
    loop {
        let mut next = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        let Some(Ok(entry)) = next.next() else { return entries };
        rest = rest
            .get(next.byte_offset()..)
            .unwrap_or_default()
            .trim_start_matches([',', ' ', '\n', '\r', '\t']);
        entries.push(entry);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;
    use crate::schema::SchemaValidator;

    #[test]
    fn answers_are_matched_by_ids_that_are_known() {
        let answer = "Here you are:\n```json\n{\"answers\":[\
            {\"id\":\"00ff-1\",\"answer\":\"one\"},{\"id\":\"2\",\"answer\":\"guessed\"},{\"id\":\"00ff-3\",\"answer\":{\"n\":3}},\
            {\"id\":\"00ff-4\",\"answer\":\" \"},{\"id\":\"00ff-5\",\"answer\":\"a\"},{\"id\":\"00ff-5\",\"answer\":\"b\"}]}\n```";
        let found = match_answers(answer, 0xff, 5, false);
        assert_eq!(found, BTreeMap::from([(0, "one".to_owned()), (2, "{\"n\":3}".to_owned())]));
        for broken in
            ["", "{", "{\"answers\":[{\"id\":\"00ff-1\",\"answer\":\"on", "[]", "{\"answers\":7}"]
        {
            assert!(match_answers(broken, 0xff, 5, false).is_empty(), "{broken}");
        }
        let cut = "{\"answers\": [ {\"id\":\"00ff-1\",\"answer\":\"one\"},\n {\"id\":\"00ff-2\",\"answer\":\"tw";
        assert_eq!(
            match_answers(cut, 0xff, 5, false),
            BTreeMap::from([(0, "one".to_owned())]),
            "whole entries count"
        );
        assert_eq!(
            match_answers(cut, 0xff, 5, true),
            BTreeMap::from([(0, "\"one\"".to_owned())]),
            "a schema wants JSON"
        );
    }

    #[test]
    fn a_schema_that_depends_on_its_place_is_refused() {
        for (schema, what) in [
            (json!({"$ref": "#"}), Some("\"$ref\": \"#\"")),
            (json!({"anyOf": [{"$ref": "#/properties/a"}]}), Some("\"$ref\": \"#/properties/a\"")),
            (json!({"$id": "https://example.com/a"}), Some("\"$id\"")),
            (json!({"properties": {"id": {"type": "string"}, "of": {"$ref": "#/$defs/a"}}}), None),
        ] {
            assert_eq!(unmovable(&schema).as_deref(), what, "{schema}");
        }
    }

    #[test]
    fn definitions_move_to_the_top() {
        let schema = json!({"type":"object","properties":{"who":{"$ref":"#/$defs/person"}},"$defs":{"person":{"type":"string"}}});
        let form = form(Some(&schema));
        assert_eq!(form["$defs"]["person"]["type"], "string");
        let validator = SchemaValidator::compile(&form).unwrap();
        validator.check(r#"{"answers":[{"id":"1","answer":{"who":"me"}}]}"#).unwrap();
        assert!(validator.check(r#"{"answers":[{"id":"1","answer":{"who":7}}]}"#).is_err());
    }
}
