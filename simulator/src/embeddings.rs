//! Vectors of texts, as OpenAI, those compatible with it, and Gemini hand them out:
//! `POST /v1/embeddings` (Azure: `/openai/deployments/{deployment}/embeddings`) and
//! `POST /v1beta/models/{model}:batchEmbedContents`, each by its vendor's documentation
//! (developers.openai.com/api/reference/resources/embeddings, ai.google.dev/api/embeddings).

use serde_json::{Value, json};

use crate::{
    call::{Call, Prompt},
    problem::Problem,
    texts::{Texts, base64},
    tokens, vendor,
};

/// Texts of a call at most, and all of their tokens.
const OPENAI_TEXTS: usize = 2_048;
const OPENAI_TOKENS: u64 = 300_000;
const GEMINI_TEXTS: usize = 100;

/// A model's dimensions, and the tokens that it takes of a text.
#[derive(Debug, Clone, Copy)]
struct Model {
    dimensions: usize,
    tokens: u64,
    /// Whether fewer dimensions can be asked for.
    shortens: bool,
}

fn model(name: &str) -> Model {
    match name {
        "text-embedding-3-large" => Model { dimensions: 3_072, tokens: 8_192, shortens: true },
        "text-embedding-ada-002" => Model { dimensions: 1_536, tokens: 8_192, shortens: false },
        name if name.contains("gemini-embedding-2") => {
            Model { dimensions: 3_072, tokens: 8_192, shortens: true }
        }
        name if name.contains("gemini-embedding") => {
            Model { dimensions: 3_072, tokens: 2_048, shortens: true }
        }
        _ => Model { dimensions: 1_536, tokens: 8_192, shortens: true },
    }
}

/// A call of OpenAI's form.
pub(crate) fn read_openai(named: Option<&str>, body: &[u8]) -> Result<Call, Problem> {
    const KNOWN: [&str; 5] = ["model", "input", "dimensions", "encoding_format", "user"];
    let body = vendor::json(body)?;
    let name = named.or_else(|| body["model"].as_str()).filter(|model| !model.is_empty());
    let name =
        name.ok_or_else(|| Problem::invalid("you must provide a model parameter", "model"))?;
    if let Some(unknown) =
        body.as_object().and_then(|it| it.keys().find(|key| !KNOWN.contains(&key.as_str())))
    {
        let message = format!("Unrecognized request argument supplied: {unknown}");
        return Err(Problem::Invalid { message, param: None });
    }
    if name.starts_with("gpt-") || name.starts_with("claude") {
        // 403 at the vendor.
        return Err(Problem::NoAccess);
    }
    let bad = || {
        Problem::invalid(
            "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.",
            "input",
        )
    };
    let texts: Vec<String> = match &body["input"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) if (1..=OPENAI_TEXTS).contains(&texts.len()) => {
            let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(bad)?
        }
        _ => return Err(bad()),
    };
    if texts.iter().any(String::is_empty) {
        return Err(bad());
    }
    let known = model(name);
    let mut all = 0;
    for text in &texts {
        let count = tokens::count(text.len());
        if count > known.tokens {
            return Err(Problem::Invalid {
                message: format!(
                    "This model's maximum context length is {} tokens, however you requested {count} tokens ({count} in your prompt; 0 for the completion). Please reduce your prompt; or completion length.",
                    known.tokens
                ),
                param: None,
            });
        }
        all += count;
    }
    if all > OPENAI_TOKENS {
        return Err(Problem::invalid(
            format!("Invalid 'input': maximum request size is {OPENAI_TOKENS} tokens per request."),
            "input",
        ));
    }
    let base64 = match &body["encoding_format"] {
        Value::Null => false,
        format if format == "float" => false,
        format if format == "base64" => true,
        _ => {
            return Err(Problem::invalid(
                "Invalid value for 'encoding_format': expected 'float' or 'base64'.",
                "encoding_format",
            ));
        }
    };
    let dimensions = match &body["dimensions"] {
        Value::Null => known.dimensions,
        _ if !known.shortens => {
            return Err(Problem::invalid(
                "This model does not support specifying dimensions.",
                "dimensions",
            ));
        }
        value => shortened(value, known.dimensions).ok_or_else(|| {
            Problem::invalid(
                format!(
                    "Invalid value for 'dimensions' = {value}. Must be less than or equal to {}.",
                    known.dimensions
                ),
                "dimensions",
            )
        })?,
    };
    Ok(call(name, Texts { each: texts, dimensions, base64 }))
}

fn shortened(value: &Value, most: usize) -> Option<usize> {
    let wanted = usize::try_from(value.as_u64()?).ok()?;
    (1..=most).contains(&wanted).then_some(wanted)
}

/// A call of Gemini's form. A text that is too long is cut without a word.
pub(crate) fn read_gemini(name: &str, body: &[u8]) -> Result<Call, Problem> {
    const KNOWN: [&str; 5] = ["model", "content", "taskType", "title", "outputDimensionality"];
    if !name.contains("embedding") {
        return Err(Problem::NotFound {
            message: format!(
                "models/{name} is not found for API version v1beta, or is not supported for embedContent."
            ),
            code: None,
        });
    }
    let body = vendor::json(body)?;
    let requests = body["requests"].as_array().filter(|requests| !requests.is_empty());
    let requests = requests.ok_or_else(|| {
        Problem::invalid("* BatchEmbedContentsRequest.requests: requests is empty", "requests")
    })?;
    if requests.len() > GEMINI_TEXTS {
        let message = format!(
            "* BatchEmbedContentsRequest.requests: at most {GEMINI_TEXTS} requests can be in one batch"
        );
        return Err(Problem::invalid(message, "requests"));
    }
    let known = model(name);
    let (mut texts, mut dimensions) = (Vec::new(), known.dimensions);
    for (at, request) in requests.iter().enumerate() {
        if let Some(unknown) =
            request.as_object().and_then(|it| it.keys().find(|key| !KNOWN.contains(&key.as_str())))
        {
            return Err(Problem::invalid(
                format!(
                    "Invalid JSON payload received. Unknown name \"{unknown}\" at 'requests[{at}]': Cannot find field."
                ),
                "body",
            ));
        }
        if request["model"] != format!("models/{name}") {
            return Err(Problem::invalid(
                format!(
                    "* BatchEmbedContentsRequest.requests[{at}].model: must match the model in the URL"
                ),
                "model",
            ));
        }
        let parts = request["content"]["parts"].as_array();
        let text: String =
            parts.into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
        if text.is_empty() {
            return Err(Problem::invalid(
                format!("* BatchEmbedContentsRequest.requests[{at}].content: content is empty"),
                "content",
            ));
        }
        if !request["outputDimensionality"].is_null() {
            dimensions =
                shortened(&request["outputDimensionality"], known.dimensions).ok_or_else(|| {
                    Problem::invalid(
                        "* EmbedContentRequest.output_dimensionality: out of range",
                        "outputDimensionality",
                    )
                })?;
        }
        let most = text.floor_char_boundary(tokens::bytes(known.tokens).min(text.len()));
        texts.push(text[..most].to_owned());
    }
    Ok(call(name, Texts { each: texts, dimensions, base64: false }))
}

fn call(name: &str, texts: Texts) -> Call {
    let mut prompt = Prompt::default();
    texts.each.iter().for_each(|text| prompt.text("user", text));
    let input = texts.each.iter().map(|text| tokens::count(text.len())).sum();
    let mut call = Call::new(name, 0, None, prompt);
    (call.input, call.texts) = (input, Some(texts));
    call
}

/// OpenAI's answer.
pub(crate) fn openai(call: &Call, texts: &Texts) -> Value {
    let one = |(index, vector): (usize, Vec<f32>)| {
        let embedding = if texts.base64 { base64(&vector).into() } else { json!(vector) };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    };
    let data: Vec<Value> = texts.vectors().enumerate().map(one).collect();
    json!({
        "object": "list",
        "data": data,
        "model": call.model,
        "usage": {"prompt_tokens": call.input, "total_tokens": call.input},
    })
}

/// Gemini's.
pub(crate) fn gemini(call: &Call, texts: &Texts) -> Value {
    let embeddings: Vec<Value> = texts.vectors().map(|vector| json!({"values": vector})).collect();
    json!({"embeddings": embeddings, "usageMetadata": {"promptTokenCount": call.input}})
}
