//! The body of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::{
    body,
    call::{Document, Request},
    dialect::Dialect,
    error::{Error, Kind},
    picture::Picture,
    prompt,
    schema::{TOOL_IS, TOOL_NAME},
};

/// The vendor's limit. Its front end refuses a longer body, and often drops the connection early,
/// which looks like a fault to retry.
const MAX_BODY_BYTES: usize = 32_000_000;

/// We set no sampling parameters: from version 2026-10-21 on, and for newer models in any version,
/// they are refused.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<System<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tool<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
}

/// The tool whose arguments are the answer.
#[derive(Serialize)]
struct Tool<'a> {
    name: &'static str,
    description: &'static str,
    input_schema: &'a Value,
}

/// Forces one call of the tool.
#[derive(Serialize)]
struct ToolChoice {
    r#type: &'static str,
    name: &'static str,
    disable_parallel_tool_use: bool,
}

/// A plain text if nothing is cached: some compatible servers accept nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum System<'a> {
    Text(&'a str),
    Cached([CachedText<'a>; 1]),
}

#[derive(Serialize)]
struct CachedText<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

/// Five minutes from the last read: the vendor's default, and the cheapest to write.
#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Attached(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Document { source: FileSource },
    Image { source: FileSource },
    Text { text: Cow<'a, str> },
}

#[derive(Serialize)]
struct FileSource {
    r#type: &'static str,
    media_type: String,
    data: String,
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

pub(super) fn body(request: &Request<'_>, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let as_tool = dialect.has_tool(request.model);
    let body = Body {
        model: request.model,
        max_tokens: request.max_output_tokens,
        system: system(request),
        messages: messages(request),
        output_config: request
            .schema
            .filter(|_| !as_tool)
            .map(|schema| OutputConfig { format: Format { r#type: "json_schema", schema } }),
        tools: request
            .schema
            .filter(|_| as_tool)
            .map(|input_schema| [Tool { name: TOOL_NAME, description: TOOL_IS, input_schema }]),
        tool_choice: request.schema.filter(|_| as_tool).map(|_| ToolChoice {
            r#type: "tool",
            name: TOOL_NAME,
            disable_parallel_tool_use: true,
        }),
    };
    let body = body::written(dialect, &body, request)?;
    if body.len() > MAX_BODY_BYTES {
        let text = format!(
            "the request has {} bytes; anthropic takes at most {MAX_BODY_BYTES}",
            body.len()
        );
        return Err(Error::unsent(Kind::TooLarge, &text));
    }
    Ok(body)
}

fn system<'a>(request: &Request<'a>) -> Option<System<'a>> {
    let text = request.instructions;
    if text.is_empty() {
        return None;
    }
    let cache_control = CacheControl { r#type: "ephemeral" };
    Some(if request.cache_instructions {
        System::Cached([CachedText { r#type: "text", text, cache_control }])
    } else {
        System::Text(text)
    })
}

fn messages<'a>(request: &Request<'a>) -> Vec<Message<'a>> {
    let before = request.turns.iter().map(|turn| Message {
        role: turn.role.as_str(),
        content: Content::Text(turn.text.as_str().into()),
    });
    before.chain([Message { role: "user", content: content(request) }]).collect()
}

fn content<'a>(request: &Request<'a>) -> Content<'a> {
    let text = prompt::text(request);
    match request.document {
        Document::Text(_) => Content::Text(text),
        Document::Pdf(bytes) => {
            let source = FileSource {
                r#type: "base64",
                media_type: "application/pdf".to_owned(),
                data: prompt::base64(bytes),
            };
            Content::Attached(vec![Block::Document { source }, Block::Text { text }])
        }
        // The vendor advises to put pictures before the text.
        Document::Pictures(_, pictures) => {
            let image = |picture: &Picture| Block::Image {
                source: FileSource {
                    r#type: "base64",
                    media_type: picture.media_type.clone(),
                    data: prompt::base64(&picture.bytes),
                },
            };
            let blocks = pictures.iter().map(image).chain([Block::Text { text }]);
            Content::Attached(blocks.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
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
