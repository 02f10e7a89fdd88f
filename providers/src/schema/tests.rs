use serde_json::json;

use super::*;
use crate::{
    dialect::Dialect,
    testing::REQUEST,
    vendor::{Api, Vendor},
};

const fn dialect(vendor: Vendor) -> Dialect {
    Dialect { vendor, api: Api::ChatCompletions }
}

const OPENAI: Dialect = dialect(Vendor::OPENAI);
const ANTHROPIC: Dialect = dialect(Vendor::ANTHROPIC);

fn sent_schema(dialect: Dialect, schema: &Value) -> (Value, bool) {
    match dialect.schema("model", schema) {
        Form::Kept { schema, wrapped } => (schema, wrapped),
        other => panic!("{schema}: {other:?}"),
    }
}

fn reason_for_words(dialect: Dialect, schema: &Value) -> String {
    match dialect.schema("model", schema) {
        Form::Told { why } => why,
        other => panic!("{other:?}"),
    }
}

/// An invoice's schema as people write it.
fn invoice() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Invoice",
        "type": "object",
        "properties": {
            "number": {"type": "string", "minLength": 1, "description": "As printed."},
            "total": {"type": "number", "minimum": 0},
            "currency": {"const": "EUR"},
            "due": {"type": ["string", "null"], "format": "date"},
            "note": {"type": "string", "default": ""},
            "lines": {"type": "array", "minItems": 2, "items": {"$ref": "#/definitions/line"}},
        },
        "required": ["number", "total", "lines"],
        "definitions": {"line": {
            "type": "object",
            "properties": {"what": {"type": "string"}, "price": {"type": "number"}},
            "required": ["what"],
        }},
    })
}

#[test]
fn an_ordinary_schema_is_converted_to_a_strict_one() {
    let nothing = json!({"type": "null"});
    let (schema, wrapped) = sent_schema(OPENAI, &invoice());
    assert!(!wrapped);
    let line = json!({
        "type": "object",
        "properties": {
            "what": {"type": "string"},
            "price": {"anyOf": [{"type": "number"}, nothing]},
        },
        "required": ["price", "what"],
        "additionalProperties": false,
    });
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "title": "Invoice",
            "properties": {
                "number": {"type": "string", "description": "As printed.\n\n{minLength: 1}"},
                "total": {"type": "number", "minimum": 0},
                "currency": {"anyOf": [{"enum": ["EUR"]}, nothing]},
                "due": {"anyOf": [{"type": "string", "format": "date"}, nothing]},
                "note": {"anyOf": [{"type": "string"}, nothing]},
                "lines": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/line"}},
            },
            "required": ["currency", "due", "lines", "note", "number", "total"],
            "additionalProperties": false,
            "$defs": {"line": line},
        })
    );
    let (schema, _) = sent_schema(ANTHROPIC, &invoice());
    assert_eq!(schema["required"], json!(["lines", "number", "total"]));
    assert_eq!(
        schema["properties"]["total"],
        json!({"type": "number", "description": "{minimum: 0}"})
    );
    assert_eq!(schema["properties"]["lines"]["description"], "{minItems: 2}");
    let (schema, _) = sent_schema(dialect(Vendor::GEMINI), &invoice());
    assert_eq!(schema["properties"]["total"], json!({"type": "number", "minimum": 0}));
    assert!(schema.get("additionalProperties").is_none());
}

#[test]
fn additions_of_the_vendors_form_are_removed() {
    let answer = json!({"number": "7", "total": 3, "currency": null, "due": null, "note": null,
        "lines": [{"what": "a", "price": null}, {"what": "b", "price": 2}]});
    let restored = OPENAI.restored("model", &invoice(), answer.to_string());
    let expected = json!({"number": "7", "total": 3, "due": null,
        "lines": [{"what": "a"}, {"what": "b", "price": 2}]});
    assert_eq!(serde_json::from_str::<Value>(&restored).unwrap(), expected);
    let whole = answer.to_string();
    assert_eq!(ANTHROPIC.restored("model", &invoice(), whole.clone()), whole, "as it came");
    for broken in ["no JSON", "{\"number\":", ""] {
        assert_eq!(OPENAI.restored("model", &invoice(), broken.to_owned()), broken);
    }
}

#[test]
fn a_list_at_the_top_goes_in_an_object_and_comes_out_of_it() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let (schema, wrapped) = sent_schema(OPENAI, &list);
    assert!(wrapped && schema["properties"]["answer"] == list, "{schema}");
    assert_eq!(OPENAI.restored("model", &list, "{\"answer\":[\"a\"]}".to_owned()), "[\"a\"]");
    assert!(!sent_schema(ANTHROPIC, &list).1);
    let choice = json!({"anyOf": [{"type": "integer"}, {"type": "string"}]});
    assert!(sent_schema(OPENAI, &choice).1);
    let referred = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object",
        "properties": {"x": {"type": "string"}}, "required": ["x"]}}});
    assert!(!sent_schema(OPENAI, &referred).1, "an object all the same");
}

#[test]
fn parts_and_conditions_are_put_together_or_left_out() {
    let schema = json!({
        "allOf": [
            {"$ref": "#/$defs/base"},
            {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
        ],
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "not": {"required": ["c"]},
        "$defs": {"base": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
    });
    let (said, _) = sent_schema(OPENAI, &schema);
    assert_eq!(said["required"], json!(["a", "b"]));
    assert!(said["description"].as_str().unwrap().contains("not: "), "{said}");
    let one = json!({"type": "object", "required": ["x"],
        "properties": {"x": {"oneOf": [{"type": "string"}, {"type": "object",
            "properties": {"y": {"type": "string"}}}]}}});
    let (said, _) = sent_schema(OPENAI, &one);
    assert_eq!(said["properties"]["x"]["anyOf"][1]["required"], json!(["y"]));
    let restored = OPENAI.restored("model", &one, "{\"x\":{\"y\":null}}".to_owned());
    assert_eq!(restored, "{\"x\":{}}");
}

#[test]
fn what_stands_beside_variants_is_in_each_of_them() {
    let schema = json!({
        "type": "object",
        "description": "A payment.",
        "properties": {
            "id": {"type": "string"},
            "kind": {"type": "string"},
            "note": {"type": "string"},
        },
        "required": ["id", "kind"],
        "oneOf": [
            {"properties": {"kind": {"const": "card"}, "card": {"type": "string"}}, "required": ["card"]},
            {"$ref": "#/$defs/transfer"},
        ],
        "$defs": {"transfer": {"type": "object", "required": ["iban"],
            "properties": {"kind": {"const": "transfer"}, "iban": {"type": "string"}}}},
    });
    let (said, wrapped) = sent_schema(OPENAI, &schema);
    assert!(wrapped);
    let said = &said["properties"]["answer"];
    assert_eq!(said["description"], "A payment.");
    for (variant, own) in [(0, "card"), (1, "iban")] {
        let variant = &said["anyOf"][variant];
        let properties = variant["properties"].as_object().unwrap();
        let mut names = vec!["id", "kind", "note", own];
        names.sort_unstable();
        assert_eq!(properties.keys().collect::<Vec<_>>(), names);
        assert_eq!(variant["required"], json!(names));
        assert_eq!(variant["additionalProperties"], false);
        assert!(properties["kind"]["enum"].is_array(), "the narrower of the two");
    }
    let answer = r#"{"answer":{"id":"1","kind":"card","note":null,"card":"4"}}"#;
    let restored = OPENAI.restored("model", &schema, answer.to_owned());
    let restored: Value = serde_json::from_str(&restored).unwrap();
    assert_eq!(restored, json!({"id": "1", "kind": "card", "card": "4"}));
    let vague = json!({"type": "object", "required": ["id"],
        "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"id": {"type": "string"}}}]});
    assert!(reason_for_words(ANTHROPIC, &vague).contains("requires id"));
}

#[test]
fn nulls_of_optional_fields_are_removed_from_every_part() {
    let schema = json!({"allOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"b": {"type": "string"}}},
    ]});
    let restored = OPENAI.restored("model", &schema, r#"{"a":"x","b":null}"#.to_owned());
    assert_eq!(restored, r#"{"a":"x"}"#);
}

/// A definition that leads to itself, without a step into the answer.
#[test]
fn an_answer_is_restored_in_bounded_time_whatever_its_schema() {
    let variants = |count: usize| {
        let mut variants = vec![json!({"$ref": "#/$defs/d"}); count];
        variants.push(json!({"type": "string"}));
        variants
    };
    for count in [1, 20] {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/d"}},
            "$defs": {"d": {"anyOf": variants(count)}},
        });
        sent_schema(OPENAI, &schema);
        for answer in [r#"{"a":null}"#, r#"{"a":[]}"#, r#"{"a":{}}"#] {
            assert_eq!(OPENAI.restored("model", &schema, answer.to_owned()), answer);
        }
    }
    let list = json!({"$ref": "#/$defs/list"});
    let list = json!({"type": "array", "items": {"anyOf": vec![list; 3]}});
    let schema = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/list"}},
        "$defs": {"list": list},
    });
    sent_schema(OPENAI, &schema);
    let answer = format!("{{\"a\":{}{}}}", "[".repeat(120), "]".repeat(120));
    assert_eq!(OPENAI.restored("model", &schema, answer.clone()), answer);

    // Each visit looks at a thousand fields.
    let names: Vec<String> = (0..1_000).map(|at| format!("f{at}")).collect();
    let nullable = |name: &String| (name.clone(), json!({"type": ["string", "null"]}));
    let properties: serde_json::Map<_, _> = names.iter().map(nullable).collect();
    let schema = json!({
        "type": "object", "properties": properties, "required": names,
        "anyOf": vec![json!({"$ref": "#"}); 20],
    });
    let nulls: serde_json::Map<_, _> = names.iter().map(|it| (it.clone(), Value::Null)).collect();
    let answer = Value::Object(nulls).to_string();
    assert_eq!(OPENAI.restored("model", &schema, answer.clone()), answer);
}

/// What is large stands beside many variants, and would be copied into each of them.
#[test]
fn a_schema_whose_texts_multiply_is_told_in_words() {
    let long = "x".repeat(100_000);
    let names: Vec<_> = (0..10_000).map(|at| json!(format!("name {at}"))).collect();
    for field in [json!({"type": "string", "description": long}), json!({"enum": names})] {
        let schema = json!({
            "type": "object",
            "properties": {"a": field},
            "anyOf": vec![json!({"type": "object"}); 1_000],
        });
        assert!(reason_for_words(OPENAI, &schema).contains("made of more than"));
    }
}

#[test]
fn a_schema_that_cannot_be_reduced_has_a_reason() {
    let object = |property: Value| json!({"type": "object", "properties": {"x": property}});
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}});
    let mut deep = json!({"type": "string"});
    for _ in 0..12 {
        deep = object(deep);
    }
    let wide: serde_json::Map<String, Value> =
        (0..30).map(|number| (format!("p{number}"), json!({"type": "string"}))).collect();
    #[rustfmt::skip]
    let cases = [
        (OPENAI, object(json!({"type":"object","additionalProperties":{"type":"string"}})), "/properties/x is an object with any names"),
        (OPENAI, json!({"type":"object"}), "at its top is an object with any names"),
        (OPENAI, object(json!({})), "/properties/x does not say its type"),
        (OPENAI, object(json!(true)), "/properties/x takes anything"),
        (OPENAI, object(json!({"type":"array"})), "a list that does not say of what"),
        (OPENAI, object(json!({"type":"array","prefixItems":[{"type":"string"}]})), "a type for each place"),
        (OPENAI, deep, "nests more than 10 objects"),
        (OPENAI, object(json!({"enum":[{"a":1}]})), "values that are no plain ones"),
        (OPENAI, object(json!({"$ref":"#/$defs/none"})), "which is not there"),
        (ANTHROPIC, tree.clone(), "it refers to itself"),
        (ANTHROPIC, json!({"type":"object","properties":wide}), "more than 24 properties that are not required"),
        (dialect(Vendor::DEEPSEEK), invoice(), "keeps to no schema"),
    ];
    for (dialect, schema, expected) in cases {
        let why = reason_for_words(dialect, &schema);
        assert!(why.contains(expected), "{schema}: {why}");
    }
    sent_schema(OPENAI, &tree);
    let open = object(json!({"type":"object","additionalProperties":{"type":"string"}}));
    sent_schema(dialect(Vendor::GEMINI), &open);
    assert!(matches!(ANTHROPIC.schema("claude-2.1", &invoice()), Form::Told { .. }));
    assert!(matches!(OPENAI.schema("gpt-4-turbo", &invoice()), Form::Told { .. }));
}

#[test]
fn a_schema_in_words_asks_for_json() {
    let schema = json!({"type": "object"});
    let request = Request { schema: Some(&schema), ..REQUEST };
    let prepared = OPENAI.prepared(&request);
    let sent = prepared.request();
    assert!(sent.schema.is_none() && sent.instructions.starts_with("Sum up.\n\nAnswer with JSON"));
    assert!(sent.instructions.ends_with("{\"type\":\"object\"}"));
    assert_eq!(prepared.json_mode, Some(json!({"response_format": {"type": "json_object"}})));
    assert_eq!(ANTHROPIC.prepared(&request).json_mode, None);
    let fenced = "```json\n{\"a\": 1}\n```";
    assert_eq!(ANTHROPIC.restored("model", &schema, fenced.to_owned()), "{\"a\": 1}");
    // A server that is asked to follow a schema may not do so.
    let kept =
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    assert!(matches!(OPENAI.schema("gpt-6", &kept), Form::Kept { .. }));
    assert_eq!(OPENAI.restored("gpt-6", &kept, fenced.to_owned()), "{\"a\": 1}");
    let with_words = format!("Here it is:\n\n{fenced}\n\nAnything else?");
    assert_eq!(OPENAI.restored("gpt-6", &kept, with_words), "{\"a\": 1}");
    for as_it_is in [
        "{\"a\": \"```\\n1\\n```\"}".to_owned(),
        format!("One:\n{fenced}\nor two:\n{fenced}"),
        "See:\n```\nno JSON\n```".to_owned(),
        "```".to_owned(),
    ] {
        assert_eq!(OPENAI.restored("gpt-6", &kept, as_it_is.clone()), as_it_is);
    }
}

mod random {
    use proptest::prelude::*;

    use super::*;

    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string", "minLength": 1})),
            Just(json!({"type": ["integer", "null"], "minimum": 3})),
            Just(json!({"enum": ["a", 1, null]})),
            Just(json!({"$ref": "#/$defs/d"})),
            Just(json!({"$ref": "#"})),
            Just(json!({})),
            Just(json!(false)),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|properties| {
                    let names = ["a", "b", "c", "d"].into_iter().map(str::to_owned);
                    let properties: serde_json::Map<String, Value> =
                        names.zip(properties).collect();
                    json!({"type": "object", "properties": properties, "required": ["a"],
                        "$defs": {"d": {"type": "boolean"}}})
                }),
                inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
                prop::collection::vec(inner.clone(), 0..3).prop_map(|any| json!({"anyOf": any})),
                prop::collection::vec(inner, 0..3).prop_map(|all| json!({"allOf": all})),
            ]
        })
    }

    proptest! {
        /// Every schema has a form, and every answer comes back.
        #[test]
        fn no_schema_makes_it_panic(schema in schemas(), answer in schemas()) {
            for vendor in Vendor::OWN {
                let _ = dialect(vendor).schema("model", &schema);
                let _ = dialect(vendor).restored("model", &schema, answer.to_string());
            }
        }
    }
}

/// A reference with a keyword beside it is written out, so that each step doubles the schema.
#[test]
fn a_schema_that_doubles_at_each_step_is_told_in_words() {
    let link = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1), "minLength": 1});
        (format!("d{at}"), json!({"anyOf": [next, next]}))
    };
    let mut definitions: serde_json::Map<_, _> = (0..30).map(link).collect();
    definitions.insert("d30".to_owned(), json!({"type": "string"}));
    let schema = json!({
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/d0"}},
        "required": ["first"],
        "$defs": definitions,
    });
    assert!(reason_for_words(OPENAI, &schema).contains("made of more than"));
}
