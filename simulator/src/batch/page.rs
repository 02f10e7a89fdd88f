//! Lists of batches, page by page.

/// Which part of a list is asked for.
pub(super) struct Page<'a> {
    /// How many: what its caller asks for, else 20.
    pub(super) most: usize,
    /// The last one of the page before.
    pub(super) after: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// `after` is the vendor's name for that.
    pub(super) fn asked(query: &'a str, after: &str) -> Self {
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let most = value("limit").and_then(|limit| limit.parse().ok()).unwrap_or(20_usize);
        Self { most: most.clamp(1, 100), after: value(after) }
    }
}
