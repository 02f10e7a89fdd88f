//! Values of the configuration: durations (`"250ms"`, `"30s"`, `"5m"`), and why a value is refused.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*span))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|error| {
        de::Error::custom(format!("{text:?} is no duration such as \"30s\": {error}"))
    })
}

/// An optional duration.
pub(crate) mod optional {
    use std::time::Duration;

    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => super::serialize(span, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No TOML, an unknown key, or a value of the wrong type.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A value that cannot be meant.
    #[error("{key}: {message}")]
    Invalid {
        /// Where it stands.
        key: String,
        /// The fault.
        message: &'static str,
    },
}

impl ConfigError {
    pub(crate) const fn invalid(key: String, message: &'static str) -> Self {
        Self::Invalid { key, message }
    }
}
