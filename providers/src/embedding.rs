//! Embeddings: vectors for several texts in one call, which succeeds or fails as a whole.

use std::fmt;

use serde_json::{Map, Value};
use tidegate_types::Usage;

use crate::{bounds::Caps, observed::Observed, parameters::Table};

/// One call to make.
#[derive(Clone, Copy)]
pub struct EmbeddingRequest<'a> {
    /// The model's name as the provider knows it, without the `provider:` part.
    pub model: &'a str,
    /// The texts. None may be empty: vendors then refuse the whole call.
    pub texts: &'a [&'a str],
    /// Dimensions of each vector; the model's default if absent.
    pub dimensions: Option<u32>,
    /// Further fields, as [`Dialect::check_embedding`](crate::Dialect::check_embedding) has returned them.
    pub fields: Option<&'a Map<String, Value>>,
}

/// The reply to a call.
#[derive(Clone, PartialEq)]
pub struct Embedded {
    /// A vector for each text, in their order; all of the same length.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens used; `None` if the provider did not report them.
    pub usage: Option<Usage>,
    /// Limits and remaining quota, as the response's headers state them.
    pub observed: Observed,
}

/// Shows sizes instead of texts.
impl fmt::Debug for EmbeddingRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddingRequest")
            .field("model", &self.model)
            .field("texts", &self.texts.len())
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}

/// Shows sizes instead of vectors.
impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("vectors", &self.vectors.len())
            .field("usage", &self.usage)
            .field("observed", &self.observed)
            .finish()
    }
}

/// The vectors of an answer, and their usage.
pub(crate) type Read = (Vec<Vec<f32>>, Option<Usage>);

/// A vendor's API for embeddings.
pub(crate) struct Embeds {
    /// Appended to the base URL.
    pub(crate) path: &'static [&'static str],
    /// The last segments of the path, for APIs with the model in it.
    pub(crate) segments: Option<fn(&str) -> Vec<String>>,
    pub(crate) body: fn(&EmbeddingRequest<'_>) -> Value,
    /// Reads the vectors in the order of the texts, and the usage; `None` if the value is no such
    /// answer.
    pub(crate) read: fn(&Value) -> Option<Read>,
    pub(crate) table: &'static Table,
    /// Maximum tokens of a text, by prefix of the model's name.
    pub(crate) inputs: Caps,
    /// Whether a longer text is truncated silently instead of refused.
    pub(crate) cuts: bool,
    /// Maximum number of texts in a call, and of tokens of all of them; `None` if unknown.
    pub(crate) together: (Option<usize>, Option<u64>),
}

impl fmt::Debug for Embeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embeds").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The limits of a text that a model embeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// Maximum tokens, if known.
    pub tokens: Option<u32>,
    /// Whether a longer text is truncated silently instead of refused.
    pub cuts: bool,
    /// Maximum number of texts in a call, if known.
    pub texts: Option<usize>,
    /// Maximum tokens of all texts in a call, if known.
    pub together: Option<u64>,
}

/// Reads a vector from JSON.
// Vectors have single precision.
pub(crate) fn vector(value: &Value) -> Option<Vec<f32>> {
    let numbers = value.as_array()?.iter();
    let numbers = numbers.map(|number| Some(number.as_f64()? as f32).filter(|it| it.is_finite()));
    numbers.collect::<Option<Vec<f32>>>().filter(|vector| !vector.is_empty())
}
