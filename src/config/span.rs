//! A length of time as people write it: `"250ms"`, `"30s"`, `"5m"`.

use std::{fmt, ops::Deref, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A [`Duration`] that is read and written with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// So many seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}

impl Deref for Span {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).map(Self).map_err(|_| {
            "write a length of time with its unit, such as \"250ms\", \"30s\" or \"5m\"".to_owned()
        })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time with its unit, such as \"250ms\", \"30s\" or \"5m\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                // The key's name stands before it.
                let is = |why| E::custom(format!("is \"{}\"; {why}", text.escape_debug()));
                text.parse().map_err(is)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_written_and_asked_for() {
        assert_eq!("60s 500ms".parse(), Ok(Span::millis(60_500)));
        assert_eq!(Span::millis(60_500).to_string(), "1m 500ms");
        let refused = "10".parse::<Span>().unwrap_err();
        assert!(refused.starts_with("write a length of time") && refused.contains("\"30s\""));
        let of_a_key = serde_json::from_str::<Span>("\"10\"").unwrap_err().to_string();
        assert!(of_a_key.starts_with("is \"10\"; write a length of time"), "{of_a_key}");
    }
}
