//! The body of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::message::{self, Content, Message};
use crate::{
    body,
    call::{Document, Request},
    dialect::Dialect,
    error::Error,
    picture::Picture,
    prompt,
    vendor::OutputCap,
};

/// Without sampling parameters: reasoning models refuse them.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a, Part<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    File { file: File },
    ImageUrl { image_url: ImageUrl },
    Text { text: Cow<'a, str> },
}

/// `high`: by default this year's models take large pictures whole, for many times the tokens.
#[derive(Serialize)]
struct ImageUrl {
    url: String,
    detail: &'static str,
}

#[derive(Serialize)]
struct File {
    filename: &'static str,
    file_data: String,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

pub(super) fn body(
    request: &Request<'_>,
    dialect: Dialect,
    cap: OutputCap,
) -> Result<Vec<u8>, Error> {
    let mut messages = Vec::with_capacity(request.turns.len() + 2);
    if !request.instructions.is_empty() {
        // `system` and not the newer `developer`: compatible servers do not know the latter, and
        // OpenAI treats both alike.
        messages
            .push(Message { role: "system", content: Content::Text(request.instructions.into()) });
    }
    messages.extend(message::turns(request));
    messages.push(Message { role: "user", content: content(request) });
    let tokens = |field| (cap == field).then_some(request.max_output_tokens);
    let body = Body {
        model: request.model,
        messages,
        max_completion_tokens: tokens(OutputCap::MaxCompletionTokens),
        max_tokens: tokens(OutputCap::MaxTokens),
        response_format: request.schema.map(|schema| ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema { name: "answer", strict: true, schema },
        }),
    };
    body::written(dialect, &body, request)
}

fn content<'a>(request: &Request<'a>) -> Content<'a, Part<'a>> {
    let text = prompt::text(request);
    match request.document {
        Document::Text(_) => Content::Text(text),
        Document::Pdf(bytes) => {
            let file_data = format!("data:application/pdf;base64,{}", prompt::base64(bytes));
            let file = File { filename: prompt::FILE_NAME, file_data };
            Content::Attached(vec![Part::File { file }, Part::Text { text }])
        }
        Document::Pictures(_, pictures) => {
            let image = |picture: &Picture| Part::ImageUrl {
                image_url: ImageUrl { url: prompt::data_url(picture), detail: "high" },
            };
            let parts = pictures.iter().map(image).chain([Part::Text { text }]);
            Content::Attached(parts.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        testing::REQUEST,
        vendor::{Api, Vendor},
    };

    const DIALECT: Dialect = Dialect { vendor: Vendor::OPENAI, api: Api::ChatCompletions };

    #[test]
    fn an_attached_file() {
        let request = Request { document: Document::Pdf(b"%PDF-"), instructions: "", ..REQUEST };
        let written: Value =
            serde_json::from_slice(&body(&request, DIALECT, OutputCap::MaxTokens).unwrap())
                .unwrap();
        let file = json!({"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,JVBERi0="}});
        assert_eq!(
            written["messages"][0]["content"],
            json!([file, {"type":"text","text":"The document is attached."}])
        );
    }

    #[test]
    fn pictures() {
        let pictures = [crate::testing::picture()];
        let document = Document::Pictures("", &pictures);
        let request = Request { document, instructions: "", ..REQUEST };
        let written: Value =
            serde_json::from_slice(&body(&request, DIALECT, OutputCap::MaxTokens).unwrap())
                .unwrap();
        let image = json!({"type":"image_url","image_url":{"url":"data:image/png;base64,AQI=","detail":"high"}});
        let text = json!({"type":"text","text":"The document is attached."});
        assert_eq!(written["messages"][0]["content"], json!([image, text]));
    }

    #[test]
    fn the_whole_body() {
        let schema = json!({"type":"object"});
        let plain = Request { model: "gpt", max_output_tokens: 9, ..REQUEST };
        let written = |request: &Request<'_>, cap| {
            serde_json::from_slice::<Value>(&body(request, DIALECT, cap).unwrap()).unwrap()
        };
        let user = json!({"role":"user","content":"<document>\nText\n</document>"});
        let both = json!([{"role":"system","content":"Sum up."}, user]);
        assert_eq!(
            written(&plain, OutputCap::MaxCompletionTokens),
            json!({"model":"gpt","messages":both,"max_completion_tokens":9})
        );
        let format = json!({"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":schema}});
        assert_eq!(
            written(
                &Request { schema: Some(&schema), instructions: "", ..plain },
                OutputCap::MaxTokens
            ),
            json!({"model":"gpt","messages":[user],"max_tokens":9,"response_format":format})
        );
    }
}
