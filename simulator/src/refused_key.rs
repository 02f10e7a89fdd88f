//! Keys that the provider does not accept.

use std::time::Duration;

use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::{
    problem::Problem,
    value::{self, ConfigError},
};

/// A key that is refused: `[[refused-keys]]`. Of several that would strike, the first in the file
/// does.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RefusedKey {
    /// The key, as it stands in the header behind `Bearer `.
    pub key: String,
    /// Only for these models: the key is good, and has no access to them (403). Without any the
    /// key itself is not accepted (401; at gemini 400, at bedrock 403).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Only from this long after the start. Default: from the start.
    #[serde(default, with = "value::optional", skip_serializing_if = "Option::is_none")]
    pub from: Option<Duration>,
    /// Only until this long after the start. Default: without end.
    #[serde(default, with = "value::optional", skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
}

/// Keys are no less keys for being refused.
impl std::fmt::Debug for RefusedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RefusedKey").field("models", &self.models).finish_non_exhaustive()
    }
}

impl RefusedKey {
    pub(crate) fn check(&self, section: &str) -> Result<(), ConfigError> {
        if self.key.is_empty() {
            return Err(ConfigError::invalid(format!("{section}.key"), "a key is not empty"));
        }
        Ok(())
    }

    /// The fault of a call with these headers, if its key is refused.
    pub(crate) fn refuses(
        &self,
        headers: &HeaderMap,
        model: &str,
        now: Duration,
    ) -> Option<Problem> {
        let in_time = self.from.is_none_or(|from| now >= from) && self.to.is_none_or(|to| now < to);
        if !in_time || sent(headers) != Some(&self.key) {
            return None;
        }
        match self.models.as_slice() {
            [] => Some(Problem::WrongKey),
            models => models.iter().any(|it| it == model).then_some(Problem::NoAccess),
        }
    }
}

/// The key of a call, in any of the headers that vendors take it in.
fn sent(headers: &HeaderMap) -> Option<&str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    header("x-api-key").or_else(|| header("x-goog-api-key")).or(bearer).map(str::trim)
}
