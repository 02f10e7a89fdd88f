//! Fingerprints of questions and of contents: equal in every version, on every worker and in every
//! batch.

use std::{collections::HashSet, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tidegate_types::fnv1a;

/// A SHA-256; as text, its 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of bytes as they are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The fingerprint of several pieces, including their borders; of one piece it equals
    /// [`Self::of_bytes`].
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut parts = parts.into_iter();
        let first = Self::of_bytes(parts.next().unwrap_or_default());
        parts.fold(first, |before, part| {
            let mut both = before.0.to_vec();
            both.extend_from_slice(&Self::of_bytes(part).0);
            Self::of_bytes(&both)
        })
    }

    /// The fingerprint of a JSON value, independent of the order of its fields.
    pub fn of_json(value: &Value) -> Self {
        let mut text = String::new();
        canonical(value, &mut text);
        Self::of_bytes(text.as_bytes())
    }
}

/// Writes fields in the order of their names, without spaces between tokens.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(values) => {
            text.push('[');
            for (place, value) in values.iter().enumerate() {
                text.push_str(if place == 0 { "" } else { "," });
                canonical(value, text);
            }
            text.push(']');
        }
        // The map's own order depends on a feature that any crate can enable.
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (place, (name, value)) in fields.into_iter().enumerate() {
                text.push_str(if place == 0 { "" } else { "," });
                canonical(&Value::from(name.as_str()), text);
                text.push(':');
                canonical(value, text);
            }
            text.push('}');
        }
        one => text.push_str(&one.to_string()),
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

/// The text is not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 64 hex digits")]
pub struct NoFingerprint;

impl TryFrom<String> for Fingerprint {
    type Error = NoFingerprint;

    fn try_from(text: String) -> Result<Self, NoFingerprint> {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        let digits: Option<Vec<u8>> = text.as_bytes().iter().map(digit).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or(NoFingerprint)?;
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        bytes.try_into().map(Self).map_err(|_| NoFingerprint)
    }
}

/// FNV-1a of all pieces, concatenated.
pub(crate) fn hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    fnv1a(pieces.into_iter().flatten().copied())
}

/// Hash that stands for a text. Among a million texts, two share a key with a probability of less
/// than one in ten million.
pub type Key = u64;

/// The key of a text, equal on every worker.
pub(crate) fn key(text: &str) -> Key {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    digest[..8].iter().fold(0, |key, byte| key << 8 | Key::from(*byte))
}

/// A set of documents.
#[derive(Debug, Default)]
pub(crate) struct Ids(HashSet<Key>);

impl Ids {
    pub(crate) fn insert(&mut self, id: &str) {
        self.0.insert(key(id));
    }

    /// Removes an id. Returns whether it was there.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.0.remove(&key(id))
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.contains(key(id))
    }

    pub(crate) fn contains(&self, key: Key) -> bool {
        self.0.contains(&key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::json;

    use super::*;

    /// Results outlive the version that wrote them, so these digits must never change.
    #[test]
    fn the_same_in_every_version() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Fingerprint::of_bytes(b"").to_string(), empty);
        let text = r#"{"b": [1, {"d": null, "c": "ü\n"}], "a": 0.5}"#;
        let one = serde_json::from_str(text).unwrap();
        let canonical = "{\"a\":0.5,\"b\":[1,{\"c\":\"ü\\n\",\"d\":null}]}";
        assert_eq!(Fingerprint::of_json(&one), Fingerprint::of_bytes(canonical.as_bytes()));
    }

    #[test]
    fn as_text_and_back() {
        let fingerprint = Fingerprint::of_bytes(b"tide");
        let json = serde_json::to_value(fingerprint).unwrap();
        assert_eq!(json.as_str().unwrap().len(), 64);
        assert_eq!(serde_json::from_value::<Fingerprint>(json.clone()).unwrap(), fingerprint);
        let text = json.as_str().unwrap();
        for wrong in ["", "0", &text[1..], &format!("{text}0"), &text.replace(&text[..1], "g")] {
            assert!(serde_json::from_value::<Fingerprint>(json!(wrong)).is_err(), "{wrong}");
        }
    }
}
