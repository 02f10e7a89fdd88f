//! The body of a request.

use serde_json::{Value, json};

use crate::{
    body,
    call::{Document, Request},
    dialect::Dialect,
    error::Error,
    prompt,
    turn::Role,
};

/// Without sampling parameters: the vendor advises to use the models' defaults.
pub(super) fn body(request: &Request<'_>, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let turns = request.turns.iter().map(|turn| {
        let role = match turn.role {
            Role::User => "user",
            Role::Assistant => "model",
        };
        json!({"role": role, "parts": [{"text": turn.text}]})
    });
    let mut own = json!({"role": "user"});
    own["parts"] = parts(request).into();
    let mut body = json!({"generationConfig": {"maxOutputTokens": request.max_output_tokens}});
    body["contents"] = turns.chain([own]).collect();
    if !request.instructions.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": request.instructions}]});
    }
    if let Some(schema) = request.schema {
        body["generationConfig"]["responseMimeType"] = "application/json".into();
        body["generationConfig"]["responseJsonSchema"] = schema.clone();
    }
    body::written(dialect, body, request)
}

fn parts(request: &Request<'_>) -> Vec<Value> {
    let file = |media_type: &str, bytes: &[u8]| {
        let mut part = json!({"inlineData": {"mimeType": media_type}});
        part["inlineData"]["data"] = prompt::base64(bytes).into();
        part
    };
    let mut parts: Vec<Value> = match request.document {
        Document::Text(_) => Vec::new(),
        Document::Pdf(bytes) => vec![file("application/pdf", bytes)],
        Document::Pictures(_, pictures) => {
            pictures.iter().map(|it| file(&it.media_type, &it.bytes)).collect()
        }
    };
    parts.push(json!({"text": prompt::text(request)}));
    parts
}

#[cfg(test)]
mod tests {
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
