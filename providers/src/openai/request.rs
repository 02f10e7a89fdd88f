//! The body of a request.

use serde::Serialize;
use serde_json::Value;

use crate::{
    error::{Error, Kind},
    prompt,
    provider::Request,
    settings::OutputCap,
};

/// No sampling parameters: reasoning models refuse them.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

/// The role is `system` and not the newer `developer`, which compatible servers do not know and OpenAI reads as the same.
#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
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

pub(super) fn body(request: &Request<'_>, cap: OutputCap) -> Result<Vec<u8>, Error> {
    let document = prompt::wrap(request.document);
    let mut messages = Vec::with_capacity(2);
    if !request.instructions.is_empty() {
        messages.push(Message { role: "system", content: request.instructions });
    }
    messages.push(Message { role: "user", content: &document });
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
    serde_json::to_vec(&body).map_err(|_| Error::unsent(Kind::InvalidRequest, "the request cannot be written as JSON"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_whole_body() {
        let schema = json!({"type":"object"});
        let plain = Request { model: "gpt", instructions: "Sum up.", document: "Text", max_output_tokens: 9, schema: None };
        let written = |request: &Request<'_>, cap| serde_json::from_slice::<Value>(&body(request, cap).unwrap()).unwrap();
        let user = json!({"role":"user","content":"<document>\nText\n</document>"});
        let both = json!([{"role":"system","content":"Sum up."}, user]);
        assert_eq!(
            written(&plain, OutputCap::MaxCompletionTokens),
            json!({"model":"gpt","messages":both,"max_completion_tokens":9})
        );
        let format = json!({"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":schema}});
        assert_eq!(
            written(&Request { schema: Some(&schema), instructions: "", ..plain }, OutputCap::MaxTokens),
            json!({"model":"gpt","messages":[user],"max_tokens":9,"response_format":format})
        );
    }
}
