//! Builds the URL of a call from the base URL.

use url::{Host, Url};

/// Checks a base URL of any vendor; the error states the fault.
pub(crate) fn check(base: &Url) -> Result<(), &'static str> {
    if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
        return Err("must begin with https:// or http:// and name a host");
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err("must not hold credentials; set api-key-env or api-key-file instead");
    }
    Ok(())
}

/// The last segment of a base URL's path.
pub(crate) fn last_segment(base: &Url) -> Option<&str> {
    base.path().trim_end_matches('/').rsplit('/').next().filter(|segment| !segment.is_empty())
}

/// Appends `path` to a base URL and keeps its query.
pub(crate) fn join(base: &Url, path: &[&str]) -> Result<Url, &'static str> {
    let mut url = base.clone();
    url.set_fragment(None);
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(path),
        Err(()) => return Err("cannot hold a path"),
    };
    Ok(url)
}

/// The URL with one more path segment.
pub(crate) fn below(url: &Url, segment: &str) -> Url {
    let mut url = url.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push(segment);
    }
    url
}

/// Whether the host is this machine. Such a server is never reached through a proxy.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The URL without parts that may be secret.
pub(crate) fn printable(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs without a host, which have no user information.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_in_the_path() {
        let base = Url::parse("https://h/v1beta/models?key=x").unwrap();
        assert_eq!(
            below(&base, "gemini-3.8-flash:generateContent").as_str(),
            "https://h/v1beta/models/gemini-3.8-flash:generateContent?key=x"
        );
        assert_eq!(
            below(&base, "a/../b?c").as_str(),
            "https://h/v1beta/models/a%2F..%2Fb%3Fc?key=x"
        );
    }

    #[test]
    fn loopback_and_masking() {
        for (url, expected) in [
            ("http://127.8.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
        assert_eq!(printable(&Url::parse("https://a:b@h/p?key=c#d").unwrap()), "https://h/p");
    }
}
