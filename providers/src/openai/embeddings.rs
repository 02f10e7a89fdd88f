//! Embeddings, `POST {base-url}/embeddings`, of OpenAI and compatible servers:
//! developers.openai.com/api/reference/resources/embeddings, read in November 2026. A call takes
//! 2,048 texts and 300,000 tokens; a text that is too long is refused together with all others.

use serde_json::{Value, json};
use tidegate_types::{Effort, Usage};

use crate::{
    bounds::Caps,
    embedding::{EmbeddingRequest, Embeds, Read, vector},
    json::count,
    parameters::{Row, Table, Takes},
};

/// developers.openai.com/api/docs/guides/embeddings: 8,192 tokens, for all of its models. Mistral:
/// docs.mistral.ai/capabilities/embeddings.
const INPUTS: Caps =
    &[("text-embedding", 8_192), ("mistral-embed", 8_192), ("codestral-embed", 8_192)];

const OWN: &[&str] =
    &["model", "input", "dimensions", "output_dimension", "encoding_format", "output_dtype"];

const PLAIN: Table = Table {
    rows: &[],
    own: OWN,
    unknown: &[],
    effort: no_effort,
    refuses: |_| None,
    sources: &["https://developers.openai.com/api/reference/resources/embeddings"],
};

static TABLE: Table = Table { rows: &[Row::new("user", Takes::Text, &["user"])], ..PLAIN };

static TABLE_OF_COMPATIBLE: Table = PLAIN;

pub(crate) fn no_effort(_: &str, _: Effort, _: u32) -> Result<Value, String> {
    Err("models that embed do not think".to_owned())
}

const OF_OPENAI: Embeds = Embeds {
    path: &["embeddings"],
    segments: None,
    body: |request| body(request, "dimensions", &TABLE),
    read,
    table: &TABLE,
    inputs: INPUTS,
    cuts: false,
    together: (Some(2_048), Some(300_000)),
};

pub(crate) static OPENAI: Embeds = OF_OPENAI;

/// Azure's deployments: the path holds the deployment's name.
pub(crate) static AZURE: Embeds = Embeds {
    path: &["openai", "deployments"],
    segments: Some(|model| vec![model.to_owned(), "embeddings".to_owned()]),
    ..OF_OPENAI
};

pub(crate) static COMPATIBLE: Embeds = Embeds {
    body: |request| body(request, "dimensions", &TABLE_OF_COMPATIBLE),
    table: &TABLE_OF_COMPATIBLE,
    together: (None, None),
    ..OF_OPENAI
};

/// docs.mistral.ai/api, embeddings: the number of dimensions has another name.
pub(crate) static MISTRAL: Embeds = Embeds {
    body: |request| body(request, "output_dimension", &TABLE_OF_COMPATIBLE),
    table: &TABLE_OF_COMPATIBLE,
    together: (None, None),
    ..OF_OPENAI
};

fn body(request: &EmbeddingRequest<'_>, dimensions: &str, table: &Table) -> Value {
    let mut body = json!({"model": request.model, "input": request.texts});
    if let Some(wanted) = request.dimensions {
        body[dimensions] = wanted.into();
    }
    for (name, value) in request.fields.into_iter().flatten() {
        table.place(&mut body, name, value);
    }
    body
}

fn read(body: &Value) -> Option<Read> {
    let data = body.get("data")?.as_array()?;
    let mut vectors = Vec::with_capacity(data.len());
    for (place, one) in data.iter().enumerate() {
        let index = match one.get("index").and_then(Value::as_u64) {
            Some(index) => usize::try_from(index).ok()?,
            None => place,
        };
        vectors.push((index, vector(one.get("embedding")?)?));
    }
    vectors.sort_by_key(|(index, _)| *index);
    let whole = vectors.iter().enumerate().all(|(place, (index, _))| place == *index);
    // Voyage states only the total, which is the same.
    let names = ["prompt_tokens", "total_tokens"];
    let input = names.iter().find_map(|name| count(body, &["usage", name]));
    let usage = input.map(|input| Usage { uncached_input: input, ..Usage::default() });
    whole.then(|| (vectors.into_iter().map(|(_, vector)| vector).collect(), usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_body() {
        let plain =
            EmbeddingRequest { model: "m", texts: &["a", "b"], dimensions: None, fields: None };
        assert_eq!((OPENAI.body)(&plain), json!({"model": "m", "input": ["a", "b"]}));
        let fields = json!({"user": "u"});
        let request =
            EmbeddingRequest { dimensions: Some(256), fields: fields.as_object(), ..plain };
        assert_eq!(
            (OPENAI.body)(&request),
            json!({"model": "m", "input": ["a", "b"], "dimensions": 256, "user": "u"})
        );
        assert_eq!((MISTRAL.body)(&request)["output_dimension"], 256);
    }

    #[test]
    fn vectors_stand_in_the_order_of_the_texts() {
        let body = json!({"object": "list", "data": [
            {"object": "embedding", "index": 1, "embedding": [0.5, -0.25]},
            {"object": "embedding", "index": 0, "embedding": [1, 0]},
        ], "usage": {"prompt_tokens": 7, "total_tokens": 7}});
        let (vectors, usage) = read(&body).unwrap();
        assert_eq!(vectors, [[1.0, 0.0], [0.5, -0.25]]);
        assert_eq!(usage, Some(Usage { uncached_input: 7, ..Usage::default() }));
        let voyage = json!({"data": [{"embedding": [0.5]}], "usage": {"total_tokens": 7}});
        assert_eq!(read(&voyage).unwrap().1, usage);
        for broken in [
            json!({"data": [{"index": 1, "embedding": [1.0]}]}),
            json!({"data": [{"index": 0, "embedding": []}]}),
            json!({"data": [{"index": 0, "embedding": "AACAPw=="}]}),
            json!({"data": [{"index": 0, "embedding": [1e300]}]}),
            json!({"choices": []}),
        ] {
            assert_eq!(read(&broken), None, "{broken}");
        }
    }
}
