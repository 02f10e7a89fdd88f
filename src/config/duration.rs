//! A duration as text: `"250ms"`, `"30s"`, `"5m"`.

use std::{fmt, ops::Deref, str::FromStr, time::Duration};

use super::as_text::read_as_text;

/// The longest duration. The end of one that is much longer is no moment that can be expressed.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// A [`Duration`] that is read and written with its unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(pub Duration);

impl HumanDuration {
    /// A number of seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// A number of milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}

impl Deref for HumanDuration {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match humantime::parse_duration(text) {
            Ok(length) if length <= LONGEST => Ok(Self(length)),
            Ok(_) => Err("write a length of time of at most 100 years".to_owned()),
            Err(_) => {
                Err("write a length of time with its unit, such as \"250ms\", \"30s\" or \"5m\""
                    .to_owned())
            }
        }
    }
}

// The error follows the key's name.
read_as_text!(
    HumanDuration,
    "a length of time with its unit, such as \"250ms\", \"30s\" or \"5m\"",
    |text, why| format!("is \"{}\"; {why}", text.escape_debug())
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_written_and_asked_for() {
        assert_eq!("60s 500ms".parse(), Ok(HumanDuration::millis(60_500)));
        assert_eq!(HumanDuration::millis(60_500).to_string(), "1m 500ms");
        let refused = "10".parse::<HumanDuration>().unwrap_err();
        assert!(refused.starts_with("write a length of time") && refused.contains("\"30s\""));
        assert!("100years".parse::<HumanDuration>().is_ok());
        let refused = "500000000000years".parse::<HumanDuration>().unwrap_err();
        assert!(refused.contains("at most 100 years"), "{refused}");
        let of_a_key = serde_json::from_str::<HumanDuration>("\"10\"").unwrap_err().to_string();
        assert!(of_a_key.starts_with("is \"10\"; write a length of time"), "{of_a_key}");
    }
}
