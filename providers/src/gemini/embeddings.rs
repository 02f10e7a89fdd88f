//! Embeddings: `POST {base-url}/v1beta/models/{model}:batchEmbedContents`, with up to a hundred
//! texts a call: ai.google.dev/api/embeddings and gemini-api/docs/embeddings, read in November
//! 2026.
//!
//! The API neither refuses a text that is too long nor reports that it was cut (`truncated` is "not
//! supported in Gemini API", google-genai 3.4.0).

use serde_json::{Value, json};
use tidegate_types::Usage;

use crate::{
    embedding::{EmbeddingRequest, Embeds, Read, vector},
    json::count,
    openai,
    parameters::{Row, Table, Takes},
};

const TASKS: &[&str] = &[
    "SEMANTIC_SIMILARITY",
    "CLASSIFICATION",
    "CLUSTERING",
    "RETRIEVAL_DOCUMENT",
    "RETRIEVAL_QUERY",
    "QUESTION_ANSWERING",
    "FACT_VERIFICATION",
    "CODE_RETRIEVAL_QUERY",
];

static TABLE: Table = Table {
    rows: &[Row::new("task_type", Takes::Word(TASKS), &["taskType"])],
    own: &["model", "content", "requests", "outputDimensionality", "title"],
    unknown: &[],
    effort: openai::no_effort,
    refuses: |_| None,
    sources: &["https://ai.google.dev/api/embeddings"],
};

pub(crate) static EMBEDS: Embeds = Embeds {
    path: &["v1beta", "models"],
    segments: Some(|model| vec![format!("{model}:batchEmbedContents")]),
    body,
    read,
    table: &TABLE,
    inputs: &[
        ("gemini-embedding", 2_048),
        ("gemini-embedding-2", 8_192),
        ("text-embedding", 2_048),
    ],
    cuts: true,
    together: (Some(100), None),
};

fn body(request: &EmbeddingRequest<'_>) -> Value {
    let one = |text: &&str| {
        let mut one = json!({
            "model": format!("models/{}", request.model),
            "content": {"parts": [{"text": text}]},
        });
        if let Some(wanted) = request.dimensions {
            one["outputDimensionality"] = wanted.into();
        }
        for (name, value) in request.fields.into_iter().flatten() {
            TABLE.place(&mut one, name, value);
        }
        one
    };
    json!({"requests": request.texts.iter().map(one).collect::<Vec<_>>()})
}

fn read(body: &Value) -> Option<Read> {
    let embeddings = body.get("embeddings")?.as_array()?.iter();
    let vectors = embeddings.map(|one| vector(one.get("values")?)).collect::<Option<Vec<_>>>()?;
    let input = count(body, &["usageMetadata", "promptTokenCount"]);
    Some((vectors, input.map(|input| Usage { uncached_input: input, ..Usage::default() })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_a_request_of_its_own() {
        let fields = json!({"task_type": "CLUSTERING"});
        let request = EmbeddingRequest {
            model: "gemini-embedding-001",
            texts: &["a", "b"],
            dimensions: Some(768),
            fields: fields.as_object(),
        };
        let one = |text: &str| {
            json!({"model": "models/gemini-embedding-001", "content": {"parts": [{"text": text}]},
            "outputDimensionality": 768, "taskType": "CLUSTERING"})
        };
        assert_eq!(body(&request), json!({"requests": [one("a"), one("b")]}));
    }

    #[test]
    fn usage_may_be_missing() {
        let answer = json!({"embeddings": [{"values": [0.5]}, {"values": [-1.0]}]});
        assert_eq!(read(&answer), Some((vec![vec![0.5], vec![-1.0]], None)));
        let counted = json!({"embeddings": [], "usageMetadata": {"promptTokenCount": 9}});
        assert_eq!(read(&counted).unwrap().1.unwrap().input(), 9);
        assert_eq!(read(&json!({"embedding": {"values": [1.0]}})), None);
    }
}
