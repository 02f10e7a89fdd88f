//! `data:` addresses in text: pictures and fonts in base64.

use std::borrow::Cow;

use crate::left_out::{Kind, Tally};

/// Longest base64 data, in characters, that stays in the text.
const MAX_KEPT_CHARACTERS: usize = 100;

/// Replaces long `data:` addresses by `[image]` or `[data]`.
pub(crate) fn replace_data_uris<'t>(text: Cow<'t, str>, tally: &Tally) -> Cow<'t, str> {
    const MARK: &str = ";base64,";
    if !text.contains(MARK) {
        return text;
    }
    let (mut kept, mut rest, mut count) = (String::with_capacity(text.len()), &*text, 0);
    while let Some(at) = rest.find(MARK) {
        let (before, behind) = (&rest[..at], &rest[at + MARK.len()..]);
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=_-%\\".contains(c);
        let length = behind.find(|c| !is_base64(c)).unwrap_or(behind.len());
        // The media type has fewer than 200 bytes.
        let start = before.rfind("data:").filter(|start| at - start < 200);
        match start {
            Some(start) if length > MAX_KEPT_CHARACTERS => {
                let kind = &before[start + "data:".len()..];
                kept.push_str(&before[..start]);
                kept.push_str(if kind.starts_with("image/") { "[image]" } else { "[data]" });
                count += 1;
            }
            _ => kept.push_str(&rest[..at + MARK.len() + length]),
        }
        rest = &behind[length..];
    }
    kept.push_str(rest);
    tally.add(Kind::Pictures, count);
    if count == 0 { text } else { Cow::Owned(kept) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_out_is_named() {
        let (tally, long) = (Tally::default(), "QUJD".repeat(50));
        let text = format!(
            "![a](data:image/png;base64,{long}) and {{\"f\":\"data:font/woff2;charset=x;base64,{long}==\"}}"
        );
        assert_eq!(replace_data_uris(text.into(), &tally), "![a]([image]) and {\"f\":\"[data]\"}");
        assert_eq!(tally.into_left_out().count(Kind::Pictures), 2);
        for text in ["data:text/plain;base64,QUJD", "no address;base64,".to_owned().as_str()] {
            assert_eq!(replace_data_uris(text.into(), &Tally::default()), text);
        }
    }
}
