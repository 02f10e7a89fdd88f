//! The body of a request.

use serde_json::{Value, json};

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
pub(super) fn body(
    request: &Request<'_>,
    dialect: Dialect,
    cap: OutputCap,
) -> Result<Vec<u8>, Error> {
    let mut messages = body::messages(request, content(request));
    if !request.instructions.is_empty() {
        // `system` and not the newer `developer`: compatible servers do not know the latter, and
        // OpenAI treats both alike.
        messages.insert(0, json!({"role": "system", "content": request.instructions}));
    }
    let cap = match cap {
        OutputCap::MaxCompletionTokens => "max_completion_tokens",
        OutputCap::MaxTokens => "max_tokens",
    };
    let mut body = json!({"model": request.model, cap: request.max_output_tokens});
    body["messages"] = messages.into();
    if let Some(schema) = request.schema {
        let format = json!({"name": "answer", "strict": true, "schema": schema});
        body["response_format"] = json!({"type": "json_schema", "json_schema": format});
    }
    body::written(dialect, body, request)
}

fn content(request: &Request<'_>) -> Value {
    let text = prompt::text(request);
    let mut parts: Vec<Value> = match request.document {
        Document::Text(_) => return text.into(),
        Document::Pdf(bytes) => {
            let mut file = json!({"type": "file", "file": {"filename": prompt::FILE_NAME}});
            file["file"]["file_data"] = prompt::data_url("application/pdf", bytes).into();
            vec![file]
        }
        Document::Pictures(_, pictures) => {
            // `high`: by default this year's models take large pictures whole, for many times the
            // tokens.
            let image = |picture: &Picture| {
                let mut image = json!({"type": "image_url", "image_url": {"detail": "high"}});
                image["image_url"]["url"] =
                    prompt::data_url(&picture.media_type, &picture.bytes).into();
                image
            };
            pictures.iter().map(image).collect()
        }
    };
    parts.push(json!({"type": "text", "text": text}));
    parts.into()
}

#[cfg(test)]
mod tests {
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
