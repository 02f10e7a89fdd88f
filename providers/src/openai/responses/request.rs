//! The body of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::super::message::{self, Content, Message};
use crate::{
    body,
    call::{Document, Request},
    dialect::Dialect,
    error::Error,
    picture::Picture,
    prompt,
};

/// The smallest `max_output_tokens` that the vendor accepts.
const MIN_OUTPUT: u32 = 16;

/// Without sampling parameters: reasoning models refuse them. `store` is set, because its default
/// is true and the vendor must not keep documents.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Input<'a>,
    max_output_tokens: u32,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Text(Cow<'a, str>),
    Messages(Vec<Message<'a, Part<'a>>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the API's names")]
enum Part<'a> {
    InputFile { filename: &'static str, file_data: String },
    InputImage { image_url: String, detail: &'static str },
    InputText { text: Cow<'a, str> },
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

pub(super) fn body(request: &Request<'_>, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let format = |schema| Format { r#type: "json_schema", name: "answer", strict: true, schema };
    let body = Body {
        model: request.model,
        instructions: request.instructions,
        input: input(request),
        max_output_tokens: request.max_output_tokens.max(MIN_OUTPUT),
        store: false,
        text: request.schema.map(|schema| Text { format: format(schema) }),
    };
    body::written(dialect, &body, request)
}

fn input<'a>(request: &Request<'a>) -> Input<'a> {
    let text = prompt::text(request);
    let content = match request.document {
        Document::Text(_) if request.turns.is_empty() => return Input::Text(text),
        Document::Text(_) => Content::Text(text),
        Document::Pdf(bytes) => {
            let file_data = format!("data:application/pdf;base64,{}", prompt::base64(bytes));
            let file = Part::InputFile { filename: prompt::FILE_NAME, file_data };
            Content::Attached(vec![file, Part::InputText { text }])
        }
        Document::Pictures(_, pictures) => {
            let image = |picture: &Picture| Part::InputImage {
                image_url: prompt::data_url(picture),
                detail: "high",
            };
            let parts = pictures.iter().map(image).chain([Part::InputText { text }]);
            Content::Attached(parts.collect())
        }
    };
    let message = Message { role: "user", content };
    Input::Messages(message::turns(request).chain([message]).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        testing::REQUEST,
        vendor::{Api, Vendor},
    };

    fn written(request: &Request<'_>) -> Value {
        let dialect = Dialect { vendor: Vendor::OPENAI, api: Api::Responses };
        serde_json::from_slice(&body(request, dialect).unwrap()).unwrap()
    }

    #[test]
    fn the_whole_body() {
        let input = "<document>\nText\n</document>";
        assert_eq!(
            written(&REQUEST),
            json!({"model":"asked","instructions":"Sum up.","input":input,"max_output_tokens":100,"store":false})
        );
        let schema = json!({"type":"object"});
        let format =
            json!({"format":{"type":"json_schema","name":"answer","strict":true,"schema":schema}});
        assert_eq!(
            written(&Request {
                schema: Some(&schema),
                instructions: "",
                max_output_tokens: 9,
                ..REQUEST
            }),
            json!({"model":"asked","input":input,"max_output_tokens":16,"store":false,"text":format})
        );
    }

    #[test]
    fn pictures() {
        let pictures = [crate::testing::picture()];
        let document = Document::Pictures("", &pictures);
        let image =
            json!({"type":"input_image","image_url":"data:image/png;base64,AQI=","detail":"high"});
        let text = json!({"type":"input_text","text":"The document is attached."});
        let input = &written(&Request { document, ..REQUEST })["input"];
        assert_eq!(input, &json!([{"role":"user","content":[image, text]}]));
    }

    #[test]
    fn an_attached_file() {
        let attached = written(&Request { document: Document::Pdf(b"%PDF-"), ..REQUEST });
        let file = json!({"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,JVBERi0="});
        let text = json!({"type":"input_text","text":"The document is attached."});
        assert_eq!(attached["input"], json!([{"role":"user","content":[file, text]}]));
    }
}
