//! Failed documents, counted by failure type.

use std::{collections::BTreeMap, fmt, ops::AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::FailureType;

/// Name for types that this version does not know: Temporal's own, or a later version's.
const OTHER: &str = "Other";

const KINDS: usize = FailureType::ALL.len();

/// Failed documents by type: `{"Unauthorized": 7}` in every payload. It is as small as the other
/// totals, and `Copy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureCounts {
    /// In the order of [`FailureType::ALL`].
    known: [u64; KINDS],
    /// Failures of all other types.
    other: u64,
}

/// Writes `Unauthorized: 7, TooLarge: 1`, the most frequent first, or `none`.
impl fmt::Display for FailureCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.by_count();
        let counts: Vec<_> = counts.iter().map(|(kind, n)| format!("{kind}: {n}")).collect();
        f.write_str(if counts.is_empty() { "none" } else { "" })?;
        f.write_str(&counts.join(", "))
    }
}

impl FailureCounts {
    /// Counts a failure of the type with this name.
    pub fn add(&mut self, name: &str) {
        *self.of(name) += 1;
    }

    /// Whether there are no failures.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Types with their counts, the most frequent first; types without failures are left out.
    pub fn by_count(&self) -> Vec<(&'static str, u64)> {
        let mut counts: Vec<_> = self.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }

    fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = FailureType::ALL.into_iter().map(FailureType::as_str).chain([OTHER]);
        let counts = self.known.into_iter().chain([self.other]);
        names.zip(counts).filter(|(_, count)| *count > 0)
    }

    fn of(&mut self, name: &str) -> &mut u64 {
        let place = FailureType::ALL.into_iter().position(|kind| kind.as_str() == name);
        place.and_then(|place| self.known.get_mut(place)).unwrap_or(&mut self.other)
    }
}

impl AddAssign for FailureCounts {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.known.iter_mut().zip(other.known) {
            *count += more;
        }
        self.other += other.other;
    }
}

impl Serialize for FailureCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for FailureCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            *counts.of(&name) += count;
        }
        Ok(counts)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_their_names() {
        let mut counts = FailureCounts::default();
        assert!(counts.is_empty() && counts.by_count().is_empty());
        for name in ["Unauthorized", "TooLarge", "Unauthorized", "Timeout", "high tide"] {
            counts.add(name);
        }
        counts += counts;
        assert_eq!(counts.by_count(), [("Unauthorized", 4), ("Other", 4), ("TooLarge", 2)]);
        assert_eq!(counts.to_string(), "Unauthorized: 4, Other: 4, TooLarge: 2");
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(json, r#"{"TooLarge":2,"Unauthorized":4,"Other":4}"#);
        assert_eq!(serde_json::from_str::<FailureCounts>(&json).unwrap(), counts);
        let of_later = serde_json::from_str::<FailureCounts>(r#"{"HighTide":3}"#).unwrap();
        assert_eq!(of_later.by_count(), [("Other", 3)]);
    }
}
