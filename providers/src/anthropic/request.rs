//! The body of a request.

use serde_json::{Value, json};

use crate::{
    body,
    call::{Document, Request},
    dialect::Dialect,
    error::{Error, Kind},
    prompt,
    schema::{TOOL_IS, TOOL_NAME},
};

/// The vendor's limit. Its front end refuses a longer body, and often drops the connection early,
/// which looks like a fault to retry.
const MAX_BODY_BYTES: usize = 32_000_000;

/// We set no sampling parameters: from version 2026-10-21 on, and for newer models in any version,
/// they are refused.
pub(super) fn body(request: &Request<'_>, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let mut body = json!({"model": request.model, "max_tokens": request.max_output_tokens});
    body["messages"] = body::messages(request, content(request)).into();
    if !request.instructions.is_empty() {
        body["system"] = system(request);
    }
    match request.schema {
        // The tool's arguments are the answer.
        Some(schema) if dialect.has_tool(request.model) => {
            body["tools"] =
                json!([{"name": TOOL_NAME, "description": TOOL_IS, "input_schema": schema}]);
            body["tool_choice"] =
                json!({"type": "tool", "name": TOOL_NAME, "disable_parallel_tool_use": true});
        }
        Some(schema) => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
        None => {}
    }
    let body = body::written(dialect, body, request)?;
    if body.len() > MAX_BODY_BYTES {
        let text = format!(
            "the request has {} bytes; anthropic takes at most {MAX_BODY_BYTES}",
            body.len()
        );
        return Err(Error::unsent(Kind::TooLarge, &text));
    }
    Ok(body)
}

/// A plain text if nothing is cached: some compatible servers accept nothing else.
fn system(request: &Request<'_>) -> Value {
    let text = request.instructions;
    if request.cache_instructions {
        // Five minutes from the last read: the vendor's default, and the cheapest to write.
        json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}])
    } else {
        text.into()
    }
}

fn content(request: &Request<'_>) -> Value {
    let text = prompt::text(request);
    let file = |kind: &str, media_type: &str, bytes: &[u8]| {
        let mut block =
            json!({"type": kind, "source": {"type": "base64", "media_type": media_type}});
        block["source"]["data"] = prompt::base64(bytes).into();
        block
    };
    let mut blocks: Vec<Value> = match request.document {
        Document::Text(_) => return text.into(),
        Document::Pdf(bytes) => vec![file("document", "application/pdf", bytes)],
        // The vendor advises to put pictures before the text.
        Document::Pictures(_, pictures) => {
            pictures.iter().map(|it| file("image", &it.media_type, &it.bytes)).collect()
        }
    };
    blocks.push(json!({"type": "text", "text": text}));
    blocks.into()
}

#[cfg(test)]
mod tests {
    use tidegate_types::Effort;

    use super::*;
    use crate::{
        error::Charged,
        parameters::Parameters,
        testing::{self, REQUEST},
        vendor::Vendor,
    };

    fn written(request: &Request<'_>) -> Value {
        let dialect = testing::dialect(Vendor::ANTHROPIC);
        serde_json::from_slice(&body(request, dialect).unwrap()).unwrap()
    }

    #[test]
    fn the_whole_body() {
        let schema = json!({"type":"object"});
        let plain = Request { model: "claude", max_output_tokens: 9, ..REQUEST };
        let user = json!([{"role":"user","content":"<document>\nText\n</document>"}]);
        assert_eq!(
            written(&plain),
            json!({"model":"claude","max_tokens":9,"system":"Sum up.","messages":user})
        );
        let format = json!({"format":{"type":"json_schema","schema":schema}});
        assert_eq!(
            written(&Request { schema: Some(&schema), instructions: "", ..plain }),
            json!({"model":"claude","max_tokens":9,"messages":user,"output_config":format})
        );
    }

    #[test]
    fn cached_instructions_and_attached_files() {
        let cached = written(&Request { cache_instructions: true, ..REQUEST });
        assert_eq!(
            cached["system"],
            json!([{"type":"text","text":"Sum up.","cache_control":{"type":"ephemeral"}}])
        );
        let attached = written(&Request { document: Document::Pdf(b"%PDF-"), ..REQUEST });
        let file = json!({"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}});
        assert_eq!(
            attached["messages"][0]["content"],
            json!([file, {"type":"text","text":"The document is attached."}])
        );
    }

    #[test]
    fn pictures() {
        let pictures = [crate::testing::picture()];
        let document = Document::Pictures("Ebb", &pictures);
        let image = json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQI="}});
        let text = json!({"type":"text","text":"<document>\nEbb\n</document>"});
        let content = &written(&Request { document, ..REQUEST })["messages"][0]["content"];
        assert_eq!(content, &json!([image, text]));
        let document = Document::Pictures("", &pictures);
        let alone = &written(&Request { document, ..REQUEST })["messages"][0]["content"];
        assert_eq!(alone[1], json!({"type":"text","text":"The document is attached."}));
    }

    #[test]
    fn a_body_over_the_vendors_limit_is_not_sent() {
        let document = "x".repeat(MAX_BODY_BYTES);
        let request = Request { document: Document::Text(&document), ..REQUEST };
        let error = body(&request, testing::dialect(Vendor::ANTHROPIC)).unwrap_err();
        assert_eq!((error.kind, error.charged), (Kind::TooLarge, Charged::No));
    }

    /// A model without schemas is forced to call a tool; one that thinks gets the schema in words.
    #[test]
    fn a_schema_as_a_tool() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let dialect = testing::dialect(Vendor::ANTHROPIC);
        let sent = |parameters: Parameters<'_>| -> Value {
            let model = "claude-3-7-sonnet-20250219";
            let request = Request {
                model,
                schema: Some(&schema),
                max_output_tokens: 9_000,
                parameters,
                ..REQUEST
            };
            let prepared = dialect.prepared(&request);
            serde_json::from_slice(&body(&prepared.request(), dialect).unwrap()).unwrap()
        };
        let plain = sent(Parameters::default());
        assert_eq!(plain["tools"][0]["name"], "answer");
        assert_eq!(plain["tools"][0]["input_schema"]["properties"], schema["properties"]);
        let choice = json!({"type": "tool", "name": "answer", "disable_parallel_tool_use": true});
        assert_eq!((&plain["tool_choice"], &plain["output_config"]), (&choice, &Value::Null));
        let thinks = sent(Parameters { effort: Some(Effort::Low), fields: None });
        assert_eq!((&thinks["tools"], &thinks["tool_choice"]), (&Value::Null, &Value::Null));
        assert!(thinks["system"].as_str().unwrap().contains("JSON Schema"), "{thinks}");
    }
}
