//! The body of a request.

use serde_json::{Value, json};

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
pub(super) fn body(request: &Request<'_>, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let bound = request.max_output_tokens.max(MIN_OUTPUT);
    let mut body = json!({"model": request.model, "max_output_tokens": bound, "store": false});
    body["input"] = input(request);
    if !request.instructions.is_empty() {
        body["instructions"] = request.instructions.into();
    }
    if let Some(schema) = request.schema {
        let kind = "json_schema";
        let format = json!({"type": kind, "name": "answer", "strict": true, "schema": schema});
        body["text"] = json!({"format": format});
    }
    body::written(dialect, body, request)
}

fn input(request: &Request<'_>) -> Value {
    let text = prompt::text(request);
    let mut parts: Vec<Value> = match request.document {
        Document::Text(_) if request.turns.is_empty() => return text.into(),
        Document::Text(_) => return body::messages(request, text.into()).into(),
        Document::Pdf(bytes) => {
            let mut file = json!({"type": "input_file", "filename": prompt::FILE_NAME});
            file["file_data"] = prompt::data_url("application/pdf", bytes).into();
            vec![file]
        }
        Document::Pictures(_, pictures) => {
            let image = |picture: &Picture| {
                let mut image = json!({"type": "input_image", "detail": "high"});
                image["image_url"] = prompt::data_url(&picture.media_type, &picture.bytes).into();
                image
            };
            pictures.iter().map(image).collect()
        }
    };
    parts.push(json!({"type": "input_text", "text": text}));
    body::messages(request, parts.into()).into()
}

#[cfg(test)]
mod tests {
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
