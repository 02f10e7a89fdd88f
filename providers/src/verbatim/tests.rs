use serde_json::json;

use super::*;

#[test]
fn fields_stay_as_they_were_written() {
    let body = r#"{"z": 1.50, "model":"theirs","big":123456789012345678901234567890,"a":{"y": 1, "x": [ ]},"e":"\u00e9"}"#;
    let mut fields = Fields::read(body.as_bytes()).unwrap();
    fields.set("model", &json!("ours")).unwrap();
    fields.set("new", &json!(true)).unwrap();
    let expected = r#"{"z":1.50,"model":"ours","big":123456789012345678901234567890,"a":{"y": 1, "x": [ ]},"e":"\u00e9","new":true}"#;
    assert_eq!(String::from_utf8(fields.to_vec()).unwrap(), expected);
    assert_eq!(fields.get("a"), Some(json!({"y": 1, "x": []})));
    assert_eq!(fields.get("none"), None);
}

/// The limiter and the vendor would read different values.
#[test]
fn a_field_twice_is_refused_and_no_value_is_quoted() {
    for body in
        [r#"{"max_tokens":1,"secretword":2,"max_tokens":3}"#, r#"["secretword"]"#, "secretword"]
    {
        let error = Fields::read(body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("the body is not one JSON object"), "{error}");
        assert!(!error.contains("secretword"), "{error}");
    }
}

/// As values, these 4 MB would take 400.
#[test]
fn a_body_of_more_values_than_any_request_is_refused() {
    let messages = "{\"\":0},".repeat(600_000);
    let body = format!(r#"{{"model":"m","messages":[{messages}0]}}"#);
    let error = Fields::read(body.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("more values than any request"), "{error}");
}

#[test]
fn what_cannot_be_read_is_named_with_its_own_reason() {
    let unreadable = |messages: &str| {
        let body = format!(r#"{{"model":"m","messages":{messages}}}"#);
        let fields = Fields::read(body.as_bytes()).unwrap();
        fields.unreadable().map(|(name, why)| format!("{name}: {why}"))
    };
    assert_eq!(unreadable(r#"["\ud83d\ude00"]"#), None);
    let half = unreadable(r#"["secretword \ud800"]"#).unwrap();
    assert!(half.starts_with("messages: ") && !half.contains("recursion"), "{half}");
    assert!(half.contains("hex escape") && !half.contains("secretword"), "{half}");
    let deep = unreadable(&format!("{}{}", "[".repeat(200), "]".repeat(200))).unwrap();
    assert!(deep.contains("recursion limit"), "{deep}");
    let large = unreadable("[1e999]").unwrap();
    assert!(large.contains("number out of range"), "{large}");
}

#[test]
fn operations_are_found_by_their_paths() {
    for operation in Operation::ALL {
        assert_eq!(Operation::at(operation.path()), Some(operation));
    }
    assert_eq!(Operation::at("/v1/messages/batches"), None);
    assert_eq!(Operation::at("/v2/messages"), None);
}

#[test]
fn texts_are_distinguished_from_names() {
    let body = json!({
        "model": "a-name-that-is-quite-long-for-a-model",
        "tool_choice": "required",
        "messages": [{"role": "assistant", "content": "short"}, {"content": [{"type": "input_text", "text": "x"}]}],
        "metadata": {"mine": "two words"},
    });
    assert_eq!(words(body.to_string().as_bytes()), ["short", "x", "two words"]);
    assert_eq!(words(b"no JSON"), Vec::<String>::new());
}
