//! Names for batches.

use chrono::{DateTime, Utc};

/// No longer than this before the time, so that ids fit into a table.
const MAX_PREFIX_CHARS: usize = 40;

/// The source's own name and the time: `contracts-20261120-184530`.
pub(super) fn of(source: &str, now: DateTime<Utc>) -> String {
    format!("{}-{}", name(source), now.format("%Y%m%d-%H%M%S"))
}

/// The last part of the path that is no pattern; for a bucket alone, its name.
fn name(source: &str) -> String {
    let path = source.split_once("://").map_or(source, |(_, path)| path);
    let mut parts =
        path.split('/').filter(|part| !part.is_empty() && !part.contains(['*', '?', '[']));
    let last = parts.next_back().unwrap_or_default();
    let plain: String = last
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let mut name = words.join("-");
    name.truncate(MAX_PREFIX_CHARS);
    if name.is_empty() { "batch".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_the_source_and_the_time() {
        let now = "2026-11-20T18:45:30Z".parse().unwrap();
        let cases = [
            ("file:///data/Contracts%202026/", "contracts-202026-20261120-184530"),
            ("file:///data/contracts/*.md", "contracts-20261120-184530"),
            ("s3://bucket", "bucket-20261120-184530"),
            ("file:///", "batch-20261120-184530"),
            ("file:///data/a.b_c/", "a-b-c-20261120-184530"),
        ];
        for (source, expected) in cases {
            assert_eq!(of(source, now), expected, "{source}");
        }
        assert!(of(&format!("file:///{}", "x".repeat(300)), now).len() < 60);
    }
}
