//! The body of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::{
    body,
    call::{Document, Request},
    dialect::Dialect,
    error::Error,
    picture::Picture,
    prompt,
    turn::Role,
};

/// Without sampling parameters: the vendor advises to use the models' defaults.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: Vec<Content<'a>>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Part<'a> {
    Text(Cow<'a, str>),
    InlineData(Inline<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    mime_type: Cow<'a, str>,
    data: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
}

pub(super) fn body<'a>(request: &Request<'a>, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let text = |text| Part::Text(Cow::Borrowed(text));
    let own = Part::Text(prompt::text(request));
    let parts = match request.document {
        Document::Text(_) => vec![own],
        Document::Pdf(bytes) => {
            vec![
                Part::InlineData(Inline {
                    mime_type: "application/pdf".into(),
                    data: prompt::base64(bytes),
                }),
                own,
            ]
        }
        Document::Pictures(_, pictures) => {
            let image = |picture: &'a Picture| {
                Part::InlineData(Inline {
                    mime_type: picture.media_type.as_str().into(),
                    data: prompt::base64(&picture.bytes),
                })
            };
            pictures.iter().map(image).chain([own]).collect()
        }
    };
    let before = request.turns.iter().map(|turn| Content {
        role: Some(match turn.role {
            Role::User => "user",
            Role::Assistant => "model",
        }),
        parts: vec![text(turn.text.as_str())],
    });
    let instructions = Some(request.instructions).filter(|text| !text.is_empty());
    let body = Body {
        system_instruction: instructions
            .map(|instructions| Content { role: None, parts: vec![text(instructions)] }),
        contents: before.chain([Content { role: Some("user"), parts }]).collect(),
        generation_config: GenerationConfig {
            max_output_tokens: request.max_output_tokens,
            response_mime_type: request.schema.map(|_| "application/json"),
            response_json_schema: request.schema,
        },
    };
    body::written(dialect, &body, request)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        testing::{self, REQUEST},
        vendor::Vendor,
    };

    fn written(request: &Request<'_>) -> Value {
        let dialect = testing::dialect(Vendor::GEMINI);
        serde_json::from_slice(&body(request, dialect).unwrap()).unwrap()
    }

    #[test]
    fn the_whole_body() {
        let schema = json!({"type":"object"});
        let user = json!([{"role":"user","parts":[{"text":"<document>\nText\n</document>"}]}]);
        let system = json!({"parts":[{"text":"Sum up."}]});
        assert_eq!(
            written(&REQUEST),
            json!({"systemInstruction":system,"contents":user,"generationConfig":{"maxOutputTokens":100}})
        );
        let config = json!({"maxOutputTokens":100,"responseMimeType":"application/json","responseJsonSchema":schema});
        assert_eq!(
            written(&Request { schema: Some(&schema), instructions: "", ..REQUEST }),
            json!({"contents":user,"generationConfig":config})
        );
    }

    #[test]
    fn pictures() {
        let pictures = [crate::testing::picture()];
        let document = Document::Pictures("", &pictures);
        let image = json!({"inlineData":{"mimeType":"image/png","data":"AQI="}});
        let parts = &written(&Request { document, ..REQUEST })["contents"][0]["parts"];
        assert_eq!(parts, &json!([image, {"text":"The document is attached."}]));
    }

    #[test]
    fn an_attached_file() {
        let attached = written(&Request { document: Document::Pdf(b"%PDF-"), ..REQUEST });
        let file = json!({"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="}});
        assert_eq!(
            attached["contents"][0]["parts"],
            json!([file, {"text":"The document is attached."}])
        );
    }
}
