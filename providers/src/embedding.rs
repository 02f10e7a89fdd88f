//! Vectors of texts: one call for several of them, which are answered together or not at all.

use std::fmt;

use serde_json::{Map, Value};
use tidegate_types::Usage;

use crate::{bounds::Caps, observed::Observed, parameters::Table};

/// One call to make.
#[derive(Clone, Copy)]
pub struct EmbeddingRequest<'a> {
    /// The model's name as the provider knows it, without the `provider:` part.
    pub model: &'a str,
    /// What is to be embedded. None of them is empty: vendors refuse the whole call.
    pub texts: &'a [&'a str],
    /// Numbers of each vector; as many as the model likes, if absent.
    pub dimensions: Option<u32>,
    /// Further fields, as [`Dialect::check_embedding`](crate::Dialect::check_embedding) has returned them.
    pub fields: Option<&'a Map<String, Value>>,
}

/// What a call brought.
#[derive(Clone, PartialEq)]
pub struct Embedded {
    /// A vector for each text, in their order; all of the same length.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens used; `None` when the provider did not say.
    pub usage: Option<Usage>,
    /// Limits and remaining quota, as the response's headers state them.
    pub observed: Observed,
}

/// Sizes instead of texts.
impl fmt::Debug for EmbeddingRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddingRequest")
            .field("model", &self.model)
            .field("texts", &self.texts.len())
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}

/// Sizes instead of vectors.
impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("vectors", &self.vectors.len())
            .field("usage", &self.usage)
            .field("observed", &self.observed)
            .finish()
    }
}

/// The vectors of an answer, and what they took.
pub(crate) type Read = (Vec<Vec<f32>>, Option<Usage>);

/// How a vendor is asked for vectors.
pub(crate) struct Embeds {
    /// Appended to the base URL.
    pub(crate) path: &'static [&'static str],
    /// The last segments of the path, for APIs with the model in it.
    pub(crate) segments: Option<fn(&str) -> Vec<String>>,
    pub(crate) body: fn(&EmbeddingRequest<'_>) -> Value,
    /// The vectors in the order of the texts, and what they took; `None` for what is no such answer.
    pub(crate) read: fn(&Value) -> Option<Read>,
    pub(crate) table: &'static Table,
    /// Tokens of a text at most, by the beginnings of models' names.
    pub(crate) inputs: Caps,
    /// A longer text is cut without a word, and not refused.
    pub(crate) cuts: bool,
    /// Texts of a call at most, and tokens of all of them; `None` where that is not known.
    pub(crate) together: (Option<usize>, Option<u64>),
}

impl fmt::Debug for Embeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embeds").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What a model embeds of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// Tokens at most, if that is known.
    pub tokens: Option<u32>,
    /// A longer text is cut without a word, and not refused.
    pub cuts: bool,
    /// Texts of a call at most, if that is known.
    pub texts: Option<usize>,
    /// Tokens of all texts of a call at most, if that is known.
    pub together: Option<u64>,
}

/// A vector out of JSON.
// Vectors have single precision.
pub(crate) fn vector(value: &Value) -> Option<Vec<f32>> {
    let numbers = value.as_array()?.iter();
    let numbers = numbers.map(|number| Some(number.as_f64()? as f32).filter(|it| it.is_finite()));
    numbers.collect::<Option<Vec<f32>>>().filter(|vector| !vector.is_empty())
}
