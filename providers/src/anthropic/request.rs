//! The body of a request.

use serde::Serialize;
use serde_json::Value;

use crate::{
    error::{Error, Kind},
    prompt,
    provider::Request,
};

/// The vendor's limit. A longer body is refused by its front door, which often drops the connection under way, and a
/// dropped connection looks like something to retry.
const MAX_BODY_BYTES: usize = 32_000_000;

/// No sampling parameters: from version 2026-10-21 on, and for newer models in any version, they are refused.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    system: &'a str,
    messages: [Message; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: String,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

pub(super) fn body(request: &Request<'_>) -> Result<Vec<u8>, Error> {
    let body = Body {
        model: request.model,
        max_tokens: request.max_output_tokens,
        system: request.instructions,
        messages: [Message { role: "user", content: prompt::wrap(request.document) }],
        output_config: request.schema.map(|schema| OutputConfig { format: Format { r#type: "json_schema", schema } }),
    };
    let body =
        serde_json::to_vec(&body).map_err(|_| Error::unsent(Kind::InvalidRequest, "the request cannot be written as JSON"))?;
    if body.len() > MAX_BODY_BYTES {
        let text = format!("the request has {} bytes; anthropic takes at most {MAX_BODY_BYTES}", body.len());
        return Err(Error::unsent(Kind::TooLarge, &text));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Charged;

    fn written(request: &Request<'_>) -> Value {
        serde_json::from_slice(&body(request).unwrap()).unwrap()
    }

    #[test]
    fn the_whole_body() {
        let schema = json!({"type":"object"});
        let plain = Request { model: "claude", instructions: "Sum up.", document: "Text", max_output_tokens: 9, schema: None };
        let user = json!([{"role":"user","content":"<document>\nText\n</document>"}]);
        assert_eq!(written(&plain), json!({"model":"claude","max_tokens":9,"system":"Sum up.","messages":user}));
        let format = json!({"format":{"type":"json_schema","schema":schema}});
        assert_eq!(
            written(&Request { schema: Some(&schema), instructions: "", ..plain }),
            json!({"model":"claude","max_tokens":9,"messages":user,"output_config":format})
        );
    }

    #[test]
    fn what_the_front_door_would_drop_is_not_sent() {
        let document = "x".repeat(MAX_BODY_BYTES);
        let request = Request { model: "claude", instructions: "", document: &document, max_output_tokens: 9, schema: None };
        let error = body(&request).unwrap_err();
        assert_eq!((error.kind, error.charged), (Kind::TooLarge, Charged::No));
    }
}
