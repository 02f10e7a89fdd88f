//! Checks prefixes that are read from or written to.

use url::Url;

use super::Faults;
use crate::config::{mask, sections::Calls};

impl Faults<'_> {
    pub(super) fn check_storage(&mut self) {
        self.check_trusted(&["storage", "answers"], self.config.storage.answers.as_ref());
        self.check_trusted(&["storage", "state"], self.config.storage.state.as_ref());
        for root in &self.config.storage.roots {
            self.check_read(&["storage", "roots"], root);
        }
        let web = |root: &String| {
            let url = root.parse::<Url>().ok();
            url.filter(|url| matches!(url.scheme(), "http" | "https"))?
                .host_str()
                .map(str::to_owned)
        };
        let web: Vec<String> = self.config.storage.roots.iter().filter_map(web).collect();
        for (name, host) in &self.config.storage.hosts {
            if !web.contains(name) {
                let what = "is the host of no http:// or https:// root; write the name alone, such as \
                    \"files.example.com\", and add https://files.example.com to roots";
                self.add(&["storage", "hosts", name], what);
            }
            if host.limit().is_err() {
                self.add(&["storage", "hosts", name, "burst"], "is 0; write at least 1");
            }
        }
    }

    /// Checks a prefix whose content workers trust: no batch may write there.
    fn check_trusted(&mut self, key: &[&str], prefix: Option<&String>) {
        self.check_written(key, prefix);
        let Some(prefix) = prefix else { return };
        if let Some(root) = self.config.roots().find(|root| lies_under(prefix, root)) {
            let what = format!(
                "is \"{}\", where batches may read and write, because it lies under {}; write a folder or a bucket that is under no root",
                mask::url(prefix),
                mask::url(root)
            );
            self.add(key, what);
        }
    }

    /// Checks a prefix that is written to.
    pub(super) fn check_written(&mut self, key: &[&str], prefix: Option<&String>) {
        let usable = |prefix: &&String| {
            prefix.parse::<Url>().is_ok_and(|url| match url.scheme() {
                "file" => url.to_file_path().is_ok(),
                "s3" | "gs" | "az" => url.has_host(),
                _ => false,
            })
        };
        if let Some(prefix) = prefix.filter(|prefix| !usable(prefix)) {
            let what = format!(
                "is \"{}\"; write file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
                mask::url(prefix)
            );
            self.add(key, what);
        }
    }

    /// Checks a prefix that is read from.
    fn check_read(&mut self, key: &[&str], root: &str) {
        let usable = root.parse::<Url>().is_ok_and(|url| match url.scheme() {
            "file" => url.to_file_path().is_ok(),
            "s3" | "gs" | "az" | "http" | "https" => url.has_host(),
            _ => false,
        });
        if !usable {
            let what = format!(
                "holds \"{}\"; write file:///folder, s3://bucket/prefix, gs://bucket, az://container, or https://host to read from",
                mask::url(root)
            );
            self.add(key, what);
        }
    }

    pub(super) fn check_calls(&mut self) {
        let calls = &self.config.calls;
        self.check_written(&["calls", "answers"], calls.answers.as_ref());
        for prefix in &calls.inputs {
            self.check_read(&["calls", "inputs"], prefix);
        }
        if calls.inline > Calls::MAX_INLINE {
            let what = format!(
                "is {}; Temporal holds no payload of more than 2 MiB: write at most {}",
                calls.inline,
                Calls::MAX_INLINE
            );
            self.add(&["calls", "inline"], what);
        }
    }
}

/// Whether batches that may use `root` may use `prefix`, too.
fn lies_under(prefix: &str, root: &str) -> bool {
    let (Ok(prefix), Ok(root)) = (prefix.parse::<Url>(), root.parse::<Url>()) else { return false };
    let store = |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned));
    let folder = |url: &Url| format!("{}/", url.path().trim_end_matches('/'));
    store(&prefix) == store(&root) && folder(&prefix).starts_with(&folder(&root))
}
