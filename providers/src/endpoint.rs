//! From a base URL to the URL that is called.

use url::{Host, Url};

use crate::settings::Vendor;

/// Appends `path` to a base URL and keeps its query, or says what is wrong with the base URL.
pub(crate) fn join(vendor: Vendor, base: &Url, path: &[&str]) -> Result<Url, &'static str> {
    if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
        return Err("must begin with https:// or http:// and name a host");
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err("must not hold credentials; set api-key-env or api-key-file instead");
    }
    let last = base.path().trim_end_matches('/').rsplit('/').next();
    match (vendor, last) {
        (Vendor::Anthropic | Vendor::Bedrock, Some("v1")) => {
            return Err("names the host alone for this kind; leave out /v1");
        }
        (Vendor::Gemini, Some("v1" | "v1beta")) => {
            return Err("names the host alone for this kind; leave out the version");
        }
        _ => {}
    }
    if vendor == Vendor::OpenAi && is_official(vendor, base) && last != Some("v1") {
        return Err("ends in /v1 for this kind");
    }
    let mut url = base.clone();
    url.set_fragment(None);
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(path),
        Err(()) => return Err("cannot hold a path"),
    };
    Ok(url)
}

/// The URL one segment further on.
pub(crate) fn below(url: &Url, segment: &str) -> Url {
    let mut url = url.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push(segment);
    }
    url
}

/// Whether this is the vendor's own host, and not a server compatible with it.
pub(crate) fn is_official(vendor: Vendor, url: &Url) -> bool {
    match vendor {
        Vendor::Bedrock => url.host_str().is_some_and(|host| host.ends_with(".amazonaws.com")),
        _ => Url::parse(vendor.default_base_url()).is_ok_and(|own| own.host() == url.host()),
    }
}

/// The region in the name of one of Bedrock's hosts: `bedrock-runtime.eu-central-1.amazonaws.com`.
#[cfg(feature = "bedrock")]
pub(crate) fn region(url: &Url) -> Option<&str> {
    url.host_str()?.strip_suffix(".amazonaws.com")?.split('.').nth(1)
}

/// Whether this is one of Azure's hosts of OpenAI models, which share OpenAI's habits.
pub(crate) fn is_azure(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        host.ends_with(".openai.azure.com") || host.ends_with(".services.ai.azure.com")
    })
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

/// The URL without what may be secret in it.
pub(crate) fn printable(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs without a host, which hold no user information.
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
    fn joins() {
        #[rustfmt::skip]
        let cases = [
            (Vendor::Anthropic, "https://api.anthropic.com",           Ok("https://api.anthropic.com/v1/messages")),
            (Vendor::Anthropic, "http://127.0.0.1:9000/",              Ok("http://127.0.0.1:9000/v1/messages")),
            (Vendor::Anthropic, "https://gateway.example/anthropic/",  Ok("https://gateway.example/anthropic/v1/messages")),
            (Vendor::Anthropic, "https://api.anthropic.com/v1",        Err("leave out /v1")),
            (Vendor::Anthropic, "https://me:pw@api.anthropic.com",     Err("credentials")),
            (Vendor::Anthropic, "ftp://api.anthropic.com",             Err("https://")),
            (Vendor::Gemini,    "https://gateway.example/v1beta",      Err("leave out the version")),
            (Vendor::OpenAi,    "https://api.openai.com/v1",           Ok("https://api.openai.com/v1/chat/completions")),
            (Vendor::OpenAi,    "https://api.openai.com",              Err("/v1")),
            (Vendor::OpenAi,    "http://localhost:11434/v1/",          Ok("http://localhost:11434/v1/chat/completions")),
            (Vendor::OpenAi,    "https://x.openai.azure.com/openai/v1/?api-version=preview",
                Ok("https://x.openai.azure.com/openai/v1/chat/completions?api-version=preview")),
        ];
        for (vendor, base, expected) in cases {
            let path: &[&str] = if vendor == Vendor::OpenAi {
                &["chat", "completions"]
            } else {
                &["v1", "messages"]
            };
            match (join(vendor, &Url::parse(base).unwrap(), path), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.as_str(), expected),
                (Err(reason), Err(expected)) => {
                    assert!(reason.contains(expected), "{base}: {reason}")
                }
                (result, _) => panic!("{base}: {result:?}"),
            }
        }
    }

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
