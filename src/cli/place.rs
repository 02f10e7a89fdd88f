//! Places of documents and results: URLs as they are, paths made into `file://` URLs.

use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use url::Url;

use super::exit::usage;

/// Where documents are: a URL, or a path to a folder, a file or a glob.
pub(super) fn source(text: &str) -> anyhow::Result<String> {
    if is_url(text) {
        return Ok(text.to_owned());
    }
    let wildcard = text.find(['*', '?', '[']);
    // A name may hold a bracket, too.
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
    // The pattern is compared with names as they are, so nothing in it is escaped.
    Ok(format!(
        "{}{pattern}",
        folder_url(&absolute(if folder.is_empty() { "." } else { folder })?)?
    ))
}

/// Where results go: a URL, or a path to a folder that may not be there yet.
pub(super) fn output(text: &str) -> anyhow::Result<String> {
    if is_url(text) { Ok(text.to_owned()) } else { folder_url(&absolute(text)?) }
}

/// A folder as a URL.
pub(super) fn folder_url(path: &Path) -> anyhow::Result<String> {
    Url::from_directory_path(path)
        .map(String::from)
        .map_err(|()| usage(format!("{} is no absolute path", path.display())))
}

/// A URL as people would write it: the path, where it is a file's or folder's.
pub(super) fn shown(url: &str) -> String {
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

fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// Absolute and without `..`, which workers refuse. Links stay as they are.
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
        assert_eq!(source(path).unwrap(), format!("{root}my%20docs/"));
        assert_eq!(
            source(&format!("{path}/../my docs/./b.md")).unwrap(),
            format!("{root}my%20docs/b.md")
        );
        assert_eq!(source(&format!("{path}/a[1].md")).unwrap(), format!("{root}my%20docs/a[1].md"));
        assert_eq!(
            source(&format!("{path}/**/x y*.md")).unwrap(),
            format!("{root}my%20docs/**/x y*.md")
        );
        assert_eq!(output(&format!("{path}/out")).unwrap(), format!("{root}my%20docs/out/"));
        assert_eq!(source("s3://b/p/*.md").unwrap(), "s3://b/p/*.md");
        assert!(source("*.md").unwrap().starts_with("file:///"));
        assert!(source("").is_err());
        assert_eq!(shown("file:///a%20b/c/"), "/a b/c/");
        assert_eq!(shown("s3://b/p"), "s3://b/p");
    }
}
