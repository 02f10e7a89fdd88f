//! Text from a provider, made safe to show.
//!
//! Messages end up in logs and in Temporal's history, where neither credentials nor documents
//! belong, and providers echo both: "Incorrect API key provided: sk-…", or a validation error with
//! the whole request in it.

use std::collections::HashMap;

use crate::{call::Request, key::Key};

/// Longest message, in characters.
const MAX_CHARS: usize = 500;

/// So many bytes of letters and digits in a row that are in the request, too, are a quotation, whatever
/// their case and what stands between them. English has few phrases as long that everybody uses; of
/// Chinese it is six characters.
const ECHO: usize = 18;

/// A text of the request that is shorter is known when the message has all of it, from so many on.
const SHORT: usize = 8;

/// What a message must not show.
pub(crate) struct Redactor<'a> {
    key: &'a Key,
    texts: Vec<&'a str>,
}

impl<'a> Redactor<'a> {
    pub(crate) fn new(key: &'a Key, request: &Request<'a>) -> Self {
        let own = [request.document.text(), request.instructions, request.said.text()];
        let turns = request.turns.iter().map(|turn| turn.text.as_str());
        Self { key, texts: own.into_iter().chain(turns).collect() }
    }

    /// For requests that are these texts.
    pub(crate) fn of_texts(key: &'a Key, texts: &[&'a str]) -> Self {
        Self { key, texts: texts.to_vec() }
    }

    /// For requests without a document in them.
    pub(crate) fn of_key(key: &'a Key) -> Self {
        Self { key, texts: Vec::new() }
    }

    /// One line of at most 500 characters, without key, control characters and quotations from the
    /// request.
    pub(crate) fn clean(&self, raw: &str) -> String {
        let mut text = one_line(&self.key.masked(raw))
            .split(' ')
            .map(mask_key_like)
            .collect::<Vec<_>>()
            .join(" ");
        if let Some((end, _)) = text.char_indices().nth(MAX_CHARS - 3) {
            text.truncate(end);
            text.push_str("...");
        }
        if let Some(start) = self.quotation(&text) {
            text.truncate(start);
            text.push_str("[quotes the request]");
            // Only a message of full length with its quotation at the very end can have grown.
            if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
                text.truncate(end);
            }
        }
        text
    }

    /// Where the message begins to quote the request.
    fn quotation(&self, text: &str) -> Option<usize> {
        let (mut places, mut letters) = (Vec::new(), String::new());
        for (place, letter) in folded(text) {
            letters.push(letter);
            places.resize(letters.len(), place);
        }
        let mut pieces = HashMap::new();
        for (place, piece) in letters.as_bytes().windows(ECHO).enumerate() {
            pieces.entry(piece).or_insert(place);
        }
        let starts = self.texts.iter().filter_map(|own| {
            let own: String = folded(own).map(|(_, letter)| letter).collect();
            match own.len() {
                0..SHORT => None,
                SHORT..ECHO => letters.find(&own),
                _ => {
                    let windows = own.as_bytes().windows(ECHO);
                    windows.filter_map(|piece| pieces.get(piece).copied()).min()
                }
            }
        });
        places.get(starts.min()?).copied()
    }
}

/// The letters and digits of a text in small ones, each with its place; JSON's escapes are none.
fn folded(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = ' ';
    let letters = text.char_indices().filter(move |(_, letter)| {
        let is_escaped = std::mem::replace(&mut before, *letter) == '\\';
        letter.is_alphanumeric() && !(is_escaped && matches!(letter, 'n' | 'r' | 't'))
    });
    letters.map(|(place, letter)| (place, letter.to_lowercase().next().unwrap_or(letter)))
}

fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// So the keys of all vendors here begin, and error messages show parts of them: Anthropic's and
/// OpenAI's, Google's, and AWS's bearer tokens and access keys.
const KEYS: [&str; 5] = ["sk-", "AIza", "ABSK", "AKIA", "ASIA"];

fn mask_key_like(word: &str) -> String {
    match KEYS.iter().find_map(|key| word.find(key)) {
        Some(start)
            if word.len() - start > 8 && !word[..start].ends_with(char::is_alphanumeric) =>
        {
            let end = word[start..]
                .find(|c: char| !c.is_ascii_alphanumeric() && !"-_*.".contains(c))
                .map_or(word.len(), |end| start + end);
            format!("{}******{}", &word[..start], &word[end..])
        }
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{call::Document, key::KeySource, secret::Secret};

    fn key(text: &str) -> Key {
        Key::new(Some(Secret::new(text).unwrap()), KeySource::Fixed)
    }

    fn request<'a>(document: &'a str) -> Request<'a> {
        Request {
            instructions: "Summarise.",
            document: Document::Text(document),
            ..crate::testing::REQUEST
        }
    }

    #[test]
    fn keys_whole_or_in_parts_are_masked() {
        let key = key("abcdef-123456");
        let request = request("");
        let redactor = Redactor::new(&key, &request);
        assert_eq!(redactor.clean("bad key 'abcdef-123456'\n at\tx"), "bad key '******' at x");
        assert_eq!(
            redactor.clean("Incorrect API key provided: sk-proj-****wxyz. See"),
            "Incorrect API key provided: ****** See"
        );
        assert_eq!(redactor.clean("key=\"sk-ant-api03-abc\", sk-1"), "key=\"******\", sk-1");
        assert_eq!(redactor.clean("a risk-averse-customer"), "a risk-averse-customer");
    }

    #[test]
    fn a_quotation_from_the_document_is_cut() {
        let document = "The patient, Mrs Example,\nhas been told on Monday.";
        let request = request(document);
        let key = Key::new(None, KeySource::Fixed);
        let redactor = Redactor::new(&key, &request);
        let text = redactor.clean(&format!("field required, input: {document}"));
        assert!(
            text.starts_with("field req")
                && !text.contains("patient")
                && text.ends_with("[quotes the request]"),
            "{text}"
        );
        assert_eq!(redactor.clean("The model is overloaded."), "The model is overloaded.");
        for quoting in ["busy: THE PATIENT, MRS EXAMPLE", "near {ample,\\n has-been TOLD on m"] {
            let text = redactor.clean(quoting);
            assert!(text.ends_with("[quotes the request]") && text.len() < 30, "{text}");
        }
        let chinese = self::request("潮汐在星期一上升，病人已被告知。");
        let told = Redactor::new(&key, &chinese).clean("bad: 星期一上升，病人");
        assert_eq!(told, "bad: [quotes the request]");
        let short = Request { instructions: "TopSecretPrompt", ..request };
        let told = Redactor::new(&key, &short).clean("bad: {\"system\":\"topsecretprompt\"}");
        assert_eq!(told, "bad: {\"system\":\"[quotes the request]");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_and_never_shows_the_key(before in ".{0,600}", after in ".{0,600}", document in ".{0,80}") {
            let key = key("K3Y-K3Y-K3Y");
            let request = request(&document);
            let text = Redactor::new(&key, &request).clean(&format!("{before}K3Y-K3Y-K3Y{after}{document}"));
            prop_assert!(text.chars().count() <= 500 && !text.contains("K3Y-K3Y-K3Y") && !text.contains('\n'));
        }
    }
}
