//! `[storage.hosts."<name>"]`: limits of requests to a host.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};
use tidegate_quota::{BucketLimit, bucket::BucketLimitError};

use super::as_text::read_as_text;

/// How often the whole fleet may ask one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Host {
    /// `10/s`, `600/min`, `1000/h`.
    pub rate: Rate,
    /// How many requests may go at once after a quiet time. Default: one second's, at least 1.
    pub burst: Option<u32>,
}

impl Host {
    /// Converts to the limiter's type.
    ///
    /// # Errors
    /// A rate or burst of 0.
    pub fn limit(&self) -> Result<BucketLimit, BucketLimitError> {
        let Rate { requests, per } = self.rate;
        let seconds = u32::try_from(per.length().as_secs()).unwrap_or(u32::MAX);
        let burst = self.burst.unwrap_or_else(|| (requests / seconds).max(1));
        BucketLimit::new(burst, requests, per.length())
    }
}

/// A number of requests per second, minute or hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests.
    pub requests: u32,
    /// The unit of time.
    pub per: Per,
}

/// The unit of time of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// `s`
    Second,
    /// `min`
    Minute,
    /// `h`
    Hour,
}

impl Per {
    const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
        }
    }

    fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.requests, self.per.name())
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = || {
            let (requests, per) = text.split_once('/')?;
            let per = Per::ALL.into_iter().find(|it| it.name() == per.trim())?;
            let requests = requests.trim().parse().ok().filter(|requests| *requests > 0)?;
            Some(Self { requests, per })
        };
        rate().ok_or_else(|| {
            format!(
                "is \"{}\"; write a number of requests above 0 and a unit, such as \"10/s\", \"600/min\" or \"1000/h\"",
                text.escape_debug()
            )
        })
    }
}

read_as_text!(Rate, "a string", |_, why| why);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_and_written_with_its_unit() {
        for text in ["10/s", "600/min", "1000/h"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for bad in ["10", "0/s", "-1/s", "1.5/s", "10/day", "ten/s", "/s", ""] {
            assert!(bad.parse::<Rate>().unwrap_err().contains("\"600/min\""), "{bad}");
        }
    }

    #[test]
    fn a_burst_is_a_seconds_worth_unless_given() {
        let limit = |rate: &str, burst| Host { rate: rate.parse().unwrap(), burst }.limit();
        assert_eq!(limit("10/s", None), BucketLimit::new(10, 10, Duration::from_secs(1)));
        assert_eq!(limit("90/min", None), BucketLimit::new(1, 90, Duration::from_secs(60)));
        assert_eq!(limit("90/min", Some(9)), BucketLimit::new(9, 90, Duration::from_secs(60)));
        assert!(limit("10/s", Some(0)).is_err());
    }
}
