//! Converts paths of documents and results to `file://` URLs, leaves URLs unchanged, and makes a batch's
//! id from its source.

use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use chrono::{DateTime, Utc};
use tidegate_workflows::contract::LONGEST_BATCH_ID;
use url::Url;

use crate::{config::Config, devstack::stack};

use super::exit::usage;

/// The URL of documents, from a URL or a path to a folder, a file or a glob.
pub(super) fn source_url(text: &str) -> anyhow::Result<String> {
    if is_url(text) {
        return Ok(text.to_owned());
    }
    let wildcard = text.find(['*', '?', '[']);
    // A name may contain a bracket, too.
    if wildcard.is_none() || Path::new(text).exists() {
        let path = absolute(text)?;
        return if path.is_dir() || text.ends_with('/') {
            folder_url(&path)
        } else {
            file_url(&path)
        };
    }
    let slash = text[..wildcard.unwrap_or_default()].rfind('/').map_or(0, |slash| slash + 1);
    let (folder, pattern) = text.split_at(slash);
    // The pattern is compared with unescaped names, so it is not escaped.
    Ok(format!(
        "{}{pattern}",
        folder_url(&absolute(if folder.is_empty() { "." } else { folder })?)?
    ))
}

/// The URL of results, from a URL or a path to a folder that need not exist.
pub(super) fn output_url(text: &str) -> anyhow::Result<String> {
    if is_url(text) { Ok(text.to_owned()) } else { folder_url(&absolute(text)?) }
}

/// A folder as a URL.
pub(super) fn folder_url(path: &Path) -> anyhow::Result<String> {
    stack::folder_url(path).map_err(|error| usage(error.to_string()))
}

/// A URL for people: the path, if it is a file URL.
pub(super) fn display_url(url: &str) -> String {
    let path = url
        .parse::<Url>()
        .ok()
        .filter(|url| url.scheme() == "file")
        .and_then(|url| url.to_file_path().ok());
    path.map_or_else(|| url.to_owned(), |path| path.display().to_string())
}

fn file_url(path: &Path) -> anyhow::Result<String> {
    Url::from_file_path(path)
        .map(String::from)
        .map_err(|()| usage(format!("{} is no absolute path", path.display())))
}

pub(super) fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// An absolute path without `..`, which workers refuse. Links are not resolved.
fn absolute(text: &str) -> anyhow::Result<PathBuf> {
    if text.is_empty() {
        return Err(usage("an empty path names no place; write . for the current folder"));
    }
    let path = std::path::absolute(text).with_context(|| format!("finding out where {text} is"))?;
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    Ok(plain)
}

/// Maximum length of a batch's id before the time, so that ids fit into a table.
const MAX_PREFIX_CHARS: usize = 40;

/// A batch's id, from its source's name and the time; the chance of two equal ids in one second is one in
/// a million: `contracts-20261120-184530-03f9a`.
pub(super) fn batch_id(source: &str, now: DateTime<Utc>, chance: u32) -> String {
    let chance = chance & 0x000f_ffff;
    format!("{}-{}-{chance:05x}", last_name(source), now.format("%Y%m%d-%H%M%S"))
}

/// Reads the id of a batch or a call from the command line.
pub(super) fn parse_id(text: &str) -> Result<String, String> {
    match text.len() {
        1..=LONGEST_BATCH_ID => Ok(text.to_owned()),
        _ => Err(format!("write an id of 1 to {LONGEST_BATCH_ID} bytes")),
    }
}

/// The folder's name, without a wildcard; for a bucket alone, its name. Never a file's name: the
/// batch's id is part of keys in Redis, where no document's name may be stored.
fn last_name(source: &str) -> String {
    let source = display_url(source);
    let path = source.split_once("://").map_or(source.as_str(), |(_, path)| path);
    let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
    let mut parts =
        folder.split('/').filter(|part| !part.is_empty() && !part.contains(['*', '?', '[']));
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

/// Advice on the workers' configuration, if they refuse one of a batch's places because of their
/// roots; `None` if this machine's configuration has all of them already.
pub(super) fn roots_hint(why: &str, config: &Config, places: &[&str]) -> Option<String> {
    if !why.contains("outside the allowed roots") {
        return None;
    }
    let covered = |place: &str| {
        config.storage.roots.iter().any(|root| {
            format!("{place}/").starts_with(&format!("{}/", root.trim_end_matches('/')))
        })
    };
    let folder = |place: &str| {
        let parent =
            place.trim_end_matches('/').rsplit_once('/').map_or(place, |(parent, _)| parent);
        // For a folder directly below the root: not the root itself.
        let is_root = parent.ends_with("//") || parent.ends_with(':');
        (if is_root || place.ends_with('/') { place.trim_end_matches('/') } else { parent })
            .to_owned()
    };
    let mut roots = config.storage.roots.clone();
    for place in places {
        let folder = folder(place.split(['*', '?', '[']).next().unwrap_or(place));
        let is_missing = why.contains(place) || !covered(place);
        if is_missing && !roots.contains(&folder) {
            roots.push(folder);
        }
    }
    if roots.len() == config.storage.roots.len() {
        return None;
    }
    let list = roots.iter().map(|root| format!("\"{root}\"")).collect::<Vec<_>>().join(", ");
    Some(format!(
        "\n  in the workers' tidegate.toml:\n    [storage]\n    roots = [{list}]\n  then start them anew"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute_urls_and_urls_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my docs");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("a[1].md"), "").unwrap();
        let (path, root) = (path.to_str().unwrap(), folder_url(folder.path()).unwrap());
        assert_eq!(source_url(path).unwrap(), format!("{root}my%20docs/"));
        assert_eq!(
            source_url(&format!("{path}/../my docs/./b.md")).unwrap(),
            format!("{root}my%20docs/b.md")
        );
        assert_eq!(
            source_url(&format!("{path}/a[1].md")).unwrap(),
            format!("{root}my%20docs/a[1].md")
        );
        assert_eq!(
            source_url(&format!("{path}/**/x y*.md")).unwrap(),
            format!("{root}my%20docs/**/x y*.md")
        );
        assert_eq!(output_url(&format!("{path}/out")).unwrap(), format!("{root}my%20docs/out/"));
        assert_eq!(source_url("s3://b/p/*.md").unwrap(), "s3://b/p/*.md");
        assert!(source_url("*.md").unwrap().starts_with("file:///"));
        assert!(source_url("").is_err());
        assert_eq!(display_url("file:///a%20b/c/"), "/a b/c/");
        assert_eq!(display_url("s3://b/p"), "s3://b/p");
    }

    #[test]
    fn ids_tell_the_source_and_the_time() {
        let now = "2026-11-20T18:45:30Z".parse().unwrap();
        let cases = [
            ("file:///data/Contracts%202026/", "contracts-2026-20261120-184530-0002a"),
            ("file:///data/B%C3%BCcher%20alt/", "b-cher-alt-20261120-184530-0002a"),
            ("file:///data/contracts/*.md", "contracts-20261120-184530-0002a"),
            ("file:///data/one/secret-contract.txt", "one-20261120-184530-0002a"),
            ("file:///data/in/**/one/secret.txt", "one-20261120-184530-0002a"),
            ("file:///secret.txt", "batch-20261120-184530-0002a"),
            ("s3://bucket/secret.txt", "bucket-20261120-184530-0002a"),
            ("s3://bucket", "bucket-20261120-184530-0002a"),
            ("file:///", "batch-20261120-184530-0002a"),
            ("file:///data/a.b_c/", "a-b-c-20261120-184530-0002a"),
        ];
        for (source, expected) in cases {
            assert_eq!(batch_id(source, now, 42), expected, "{source}");
        }
        assert!(batch_id(&format!("file:///{}/", "x".repeat(300)), now, u32::MAX).len() < 64);
    }

    #[test]
    fn an_id_is_checked() {
        assert_eq!(parse_id("a b"), Ok("a b".to_owned()));
        assert!(parse_id(&"x".repeat(LONGEST_BATCH_ID)).is_ok());
        for wrong in ["".to_owned(), "x".repeat(LONGEST_BATCH_ID + 1), "ä".repeat(501)] {
            assert_eq!(parse_id(&wrong), Err("write an id of 1 to 900 bytes".to_owned()));
        }
    }

    #[test]
    fn a_refused_root_is_answered_with_the_lines_to_write() {
        let config = Config::default();
        let why = "source \"file:///home/me/docs/\" lies outside the allowed roots (file:///data/); choose …";
        let hint =
            roots_hint(why, &config, &["file:///home/me/docs/", "file:///data/out/"]).unwrap();
        assert!(hint.contains("roots = [\"file:///data\", \"file:///home/me/docs\"]"), "{hint}");
        let why = "source \"file:///nope\" lies outside the allowed roots (file:///data/)";
        let hint = roots_hint(why, &config, &["file:///nope", "file:///data/out/"]).unwrap();
        assert!(hint.contains("roots = [\"file:///data\", \"file:///nope\"]"), "{hint}");
        let truth = "file:///home/me/truth.csv";
        let why = format!("truth \"{truth}\" lies outside the allowed roots (file:///data/)");
        let (source, output) = ("file:///data/in/", "file:///data/out/");
        let hint = roots_hint(&why, &config, &[source, output, truth]).unwrap();
        assert!(hint.contains("roots = [\"file:///data\", \"file:///home/me\"]"), "{hint}");
        assert_eq!(roots_hint(&why, &config, &[source, output]), None, "nothing would change");
        assert_eq!(roots_hint("no such folder", &config, &["a", "b"]), None);
    }
}
