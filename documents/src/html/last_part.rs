//! The last part of a selector, which an element itself must match.

use super::css::find_outside;

/// The last part of a selector: `li.a:hover` of `ul > li.a:hover`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastPart<'s>(&'s str);

impl<'s> LastPart<'s> {
    pub(super) fn of_selector(selector: &'s str) -> Self {
        let mut last = selector.trim();
        while let Some(at) = find_outside(last, &[' ', '\n', '\t', '\r', '>', '+', '~']) {
            last = last[at + 1..].trim_start();
        }
        Self(last)
    }

    /// Returns a class or id that it requires.
    pub(super) fn name(self) -> Option<String> {
        // Behind a bracket may be names of other elements; a name with an escape is not compared.
        let plain = &self.0[..self.0.find(['(', '[', '\\']).unwrap_or(self.0.len())];
        if self.0[plain.len()..].starts_with('\\') {
            return None;
        }
        let (_, name) = plain.split_once(['.', '#'])?;
        let end = name.find(['.', '#', ':']).unwrap_or(name.len());
        Some(name[..end].to_owned()).filter(|name| !name.is_empty())
    }

    /// Returns the tag that it requires.
    pub(super) fn tag(self) -> Option<String> {
        let is_of_tag = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
        let end = self.0.find(|sign| !is_of_tag(sign)).unwrap_or(self.0.len());
        let (tag, behind) = self.0.split_at(end);
        let is_whole = behind.is_empty() || behind.starts_with(['.', '#', ':', '[']);
        let is_tag = tag.starts_with(|sign: char| sign.is_ascii_alphabetic()) && is_whole;
        is_tag.then(|| tag.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_and_name_of_the_last_part_are_found() {
        for (selector, tag, name) in [
            ("ul > LI.a:hover", Some("li"), Some("a")),
            ("tr:nth-child(even)", Some("tr"), None),
            ("p ~ .a.b", None, Some("a")),
            (".a:has(.b)", None, Some("a")),
            ("p:not(.a)", Some("p"), None),
            ("p[x='.a'].b", Some("p"), None),
            ("#a[href]", None, Some("a")),
            (".a\\:b", None, None),
            ("svg|text", None, None),
            ("é", None, None),
            ("*", None, None),
        ] {
            let last = LastPart::of_selector(selector);
            assert_eq!(last.tag().as_deref(), tag, "{selector}");
            assert_eq!(last.name().as_deref(), name, "{selector}");
        }
    }
}
