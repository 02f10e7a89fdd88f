//! Makes text from a provider safe to show.
//!
//! Messages end up in logs and in Temporal's history, which must contain neither credentials nor
//! documents, and providers echo both: "Incorrect API key provided: sk-…", or a validation error
//! with the whole request in it.

use std::collections::HashMap;

use crate::{call::Request, key::Key};

/// Longest message, in characters.
const MAX_CHARS: usize = 500;

/// Number of bytes of consecutive letters and digits, shared with the request, that count as a
/// quotation; case and characters between them are ignored. Few common English phrases are that
/// long; in Chinese it is six characters.
const ECHO: usize = 18;

/// Length in bytes of a shorter text of the request that counts as quoted if the message contains
/// all of it.
const SHORT: usize = 8;

/// Number of consecutive letters and digits of a key that count as part of it.
const OF_A_KEY: usize = 10;

/// Removes secrets and quotations from messages.
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

    /// Creates a redactor for requests made of these texts.
    pub(crate) fn of_texts(key: &'a Key, texts: &[&'a str]) -> Self {
        Self { key, texts: texts.to_vec() }
    }

    /// Creates a redactor for requests without a document.
    pub(crate) fn of_key(key: &'a Key) -> Self {
        Self { key, texts: Vec::new() }
    }

    /// One line of at most 500 characters, without the key, control characters and quotations from
    /// the request.
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
        let quoted = self.key_in(&text).map(|at| (at, "[quotes the key]"));
        let quoted = quoted.or_else(|| Some((self.quotation(&text)?, "[quotes the request]")));
        if let Some((start, what)) = quoted {
            text.truncate(start);
            text.push_str(what);
            // Only a message of full length with a quotation at its very end can have grown.
            if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
                text.truncate(end);
            }
        }
        text
    }

    /// The position at which the message begins to quote a part of the key.
    fn key_in(&self, text: &str) -> Option<usize> {
        let letters = Letters::read(text);
        let keys = self.key.quoted();
        let pieces = letters.pieces(OF_A_KEY);
        let starts = keys.iter().filter_map(|key| {
            let key: String = folded(key).map(|(_, letter)| letter).collect();
            let windows = key.as_bytes().windows(OF_A_KEY);
            windows.filter_map(|piece| pieces.get(piece).copied()).min()
        });
        letters.place(starts.min()?)
    }

    /// The position at which the message begins to quote the request, forwards or backwards.
    fn quotation(&self, text: &str) -> Option<usize> {
        let letters = Letters::read(text);
        let pieces = letters.pieces(ECHO);
        let starts = self.texts.iter().filter_map(|own| {
            let by_words = own.split_whitespace().rev().flat_map(folded);
            let by_words: String = by_words.map(|(_, letter)| letter).collect();
            let own: String = folded(own).map(|(_, letter)| letter).collect();
            let backwards: String = own.chars().rev().collect();
            let start = |own: &str| match own.len() {
                0..SHORT => None,
                SHORT..ECHO => letters.folded.find(own),
                _ => {
                    let windows = own.as_bytes().windows(ECHO);
                    windows.filter_map(|piece| pieces.get(piece).copied()).min()
                }
            };
            [own, by_words, backwards].iter().filter_map(|own| start(own)).min()
        });
        letters.place(starts.min()?)
    }
}

/// The letters and digits of a message, with the position of each of their bytes.
struct Letters {
    folded: String,
    places: Vec<usize>,
}

impl Letters {
    fn read(text: &str) -> Self {
        let (mut places, mut folded) = (Vec::new(), String::new());
        for (place, letter) in self::folded(text) {
            folded.push(letter);
            places.resize(folded.len(), place);
        }
        Self { folded, places }
    }

    /// The first position of each piece of this many bytes.
    fn pieces(&self, length: usize) -> HashMap<&[u8], usize> {
        let mut pieces = HashMap::new();
        for (place, piece) in self.folded.as_bytes().windows(length).enumerate() {
            pieces.entry(piece).or_insert(place);
        }
        pieces
    }

    fn place(&self, byte: usize) -> Option<usize> {
        self.places.get(byte).copied()
    }
}

/// The letters and digits of a text in lower case, with their positions; JSON's escapes are left
/// out.
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

/// Prefixes of all vendors' keys, parts of which error messages show: Anthropic's and OpenAI's,
/// Google's, and AWS's bearer tokens and access keys.
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
    fn a_part_of_the_key_is_cut_however_it_is_written() {
        let key = key("Zx81-tide-Quay-4711-harbour");
        let redactor = Redactor::of_key(&key);
        for quoting in [
            "first half Zx81-tide-Quay",
            "and then 4711-harbour",
            "Zx81 tide Quay 4711",
            "Wng4MS10aWRlLVF1YXk=",
            "Basic QmVhcmVyIFp4ODEtdGlkZS1RdWF5LTQ3MTEtaGFyYm91cg==",
            "ruobrah-1174-yauQ",
            "5a7838312d746964652d51756179",
        ] {
            let told = redactor.clean(&format!("bad: {quoting}"));
            assert!(told.ends_with("[quotes the key]"), "{told}");
            assert!(!told.contains("Quay") && !told.contains("4711"), "{told}");
        }
        assert_eq!(redactor.clean("no such key in the harbour"), "no such key in the harbour");
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
        for quoting in ["x: Monday on told been has", "x: yadnoM no dlot neeb sah"] {
            assert_eq!(redactor.clean(quoting), "x: [quotes the request]");
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
