//! Masks secrets in what is shown.

/// Replaces a secret.
pub(super) const MASK: &str = "******";

/// The URL without its password and without the values in its query.
pub fn url(text: &str) -> String {
    let (rest, query) = match text.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (text, None),
    };
    let mut shown = match rest.split_once("://") {
        Some((scheme, rest)) => {
            // A password may hold slashes, so everything up to the last @ counts as user information.
            match rest.rsplit_once('@') {
                Some((user, rest)) => {
                    let user = user
                        .split_once(':')
                        .map_or_else(|| user.to_owned(), |(name, _)| format!("{name}:{MASK}"));
                    format!("{scheme}://{user}@{rest}")
                }
                None => format!("{scheme}://{rest}"),
            }
        }
        None => rest
            .rsplit_once('@')
            .map_or_else(|| rest.to_owned(), |(_, rest)| format!("{MASK}@{rest}")),
    };
    if let Some(query) = query {
        let parts = query.split('&').map(|part| {
            part.split_once('=')
                .map_or_else(|| MASK.to_owned(), |(name, _)| format!("{name}={MASK}"))
        });
        shown = format!("{shown}?{}", parts.collect::<Vec<_>>().join("&"));
    }
    shown
}

#[cfg(test)]
mod tests {
    #[test]
    fn passwords_and_queries_are_masked() {
        let cases = [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://:hush@host:1/0", "redis://:******@host:1/0"),
            ("rediss://me:h/u@s:h@host", "rediss://me:******@host"),
            ("redis+sentinel://a:p@h:1,h:2/main", "redis+sentinel://a:******@h:1,h:2/main"),
            (
                "https://gate/v1?api-version=3&key=hush",
                "https://gate/v1?api-version=******&key=******",
            ),
            ("me:hush@host", "******@host"),
        ];
        for (given, expected) in cases {
            assert_eq!(super::url(given), expected);
        }
    }
}
