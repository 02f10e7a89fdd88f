//! A stable name for a document, safe as an object name on every store.

use std::{borrow::Borrow, fmt};

use serde::{Deserialize, Serialize};

use crate::fnv1a;

/// Longest part of the path that stays readable; file systems limit a name to 255 bytes, and
/// `.json` is added to it.
const MAX_READABLE_BYTES: usize = 160;

/// The document's path relative to its source, flattened and made safe.
///
/// `letters/2024/a.md` becomes `letters__2024__a.md`. If that loses information (characters other
/// than letters, digits, `.`, `_` and `-`, a name that contains `__`, a very long path), eight hex
/// digits of the whole path's hash follow, so that two documents never share a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DocumentId(String);

impl DocumentId {
    /// Derives the id from a relative path with `/` between its parts.
    pub fn from_relative_path(path: &str) -> Self {
        let path = path.trim_matches('/');
        let mut exact = !path.is_empty() && !path.contains("__") && !path.starts_with('.');
        let mut text = String::with_capacity(path.len() + 8);
        for c in path.chars() {
            match c {
                '/' => text.push_str("__"),
                'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => text.push(c),
                _ => {
                    exact = false;
                    text.push('_');
                }
            }
        }
        // A leading dot would hide the result, and "__" next to a single "_" would be ambiguous.
        if text.starts_with('.') {
            text.replace_range(..1, "_");
        }
        exact &= !text.contains("___");
        if text.len() > MAX_READABLE_BYTES {
            exact = false;
            text.truncate(MAX_READABLE_BYTES);
        }
        if !exact {
            text.push_str(&format!("-{:08x}", folded(fnv1a(path.bytes()))));
        }
        Self(text)
    }

    /// The id of a later document with the same name; the second gets number 2. No path has such an
    /// id, because `~` never stays in an id made from a path.
    pub fn numbered(&self, number: u64) -> Self {
        Self(format!("{}~{number}", self.0))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for DocumentId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// 64 bits folded to 32.
fn folded(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(path: &str) -> String {
        DocumentId::from_relative_path(path).as_str().to_owned()
    }

    #[test]
    fn plain_paths_stay_readable() {
        assert_eq!(id("a.md"), "a.md");
        assert_eq!(id("letters/2024/a.md"), "letters__2024__a.md");
    }

    #[test]
    fn paths_that_would_collide_do_not() {
        let paths =
            ["a/b", "a__b", "a/_b", "a_/b", "a b", "a\tb", "ä", "ö", ".a", "_a", "", "a\u{0}"];
        let ids: std::collections::BTreeSet<String> = paths.iter().map(|path| id(path)).collect();
        assert_eq!(ids.len(), paths.len(), "{ids:?}");
    }

    #[test]
    fn a_numbered_id_is_no_paths_own() {
        let second = DocumentId::from_relative_path("a.md").numbered(2);
        assert_eq!(second.as_str(), "a.md~2");
        assert_ne!(id("a.md~2"), "a.md~2");
    }

    #[test]
    fn every_id_is_a_safe_object_name() {
        for path in ["../../etc/passwd", "a/../b", "con\u{7}trol", "%2e%2e/x", &"long/".repeat(200)]
        {
            let id = id(path);
            assert!(id.len() < 200 && !id.contains('/') && !id.starts_with('.'), "{id}");
            assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)), "{id}");
        }
    }
}
