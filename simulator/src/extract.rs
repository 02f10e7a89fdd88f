//! Sentences out of a document.

/// The text between `<document>` tags, else all of it.
pub(crate) fn document(message: &str) -> &str {
    let inner = || {
        let tag = message.find("<document")?;
        let from = tag + message[tag..].find('>')? + 1;
        let to = message.rfind("</document>").filter(|to| *to > from)?;
        Some(message[from..to].trim())
    };
    inner().filter(|text| !text.is_empty()).unwrap_or(message)
}

/// The parts of a text that have names, `<item id="name">text</item>`, whatever their tags are
/// called; the first 1,000.
pub(crate) fn named(text: &str) -> Vec<(String, &str)> {
    let starts: Vec<usize> = text.match_indices(" id=\"").map(|(at, _)| at).take(1_000).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let part = |(start, end): (&usize, usize)| {
        let (name, rest) = text.get(start + 5..end)?.split_once('"')?;
        let (_, own) = rest.split_once('>')?;
        let own = own.rfind("</").map_or(own, |close| &own[..close]);
        Some((name.to_owned(), own.trim()))
    };
    starts.iter().zip(ends).filter_map(part).collect()
}

/// A longer sentence is cut after a word.
const MAX_SENTENCE_BYTES: usize = 400;

/// The first sentences of about so many paragraphs, spread over the text; then all others, in
/// order.
pub(crate) fn sentences(text: &str, paragraphs: usize) -> Vec<String> {
    let all: Vec<Vec<String>> = text
        .split("\n\n")
        .map(|paragraph| of_paragraph(paragraph, 20))
        .filter(|paragraph| !paragraph.is_empty())
        .take(2_000)
        .collect();
    let step = (all.len() / paragraphs.max(1)).max(1);
    let is_chosen = |p: usize, s: usize, text: &str| {
        s == 0 && p.is_multiple_of(step) && text.split(' ').next_back().is_some_and(ends)
    };
    let pick = |chosen: bool| {
        let numbered = all.iter().enumerate().flat_map(|(p, sentences)| {
            sentences.iter().enumerate().map(move |(s, text)| (p, s, text))
        });
        numbered
            .filter(move |(p, s, text)| is_chosen(*p, *s, text) == chosen)
            .map(|(_, _, text)| text.clone())
    };
    pick(true).chain(pick(false)).collect()
}

/// Whether a sentence ends with this word; `3.` numbers a paragraph.
fn ends(word: &str) -> bool {
    word.strip_suffix(['.', '!', '?'])
        .is_some_and(|word| !word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The sentences of a paragraph without its headings; what follows the last of them is one too.
fn of_paragraph(paragraph: &str, most: usize) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut sentence = String::new();
    let lines = paragraph.lines().filter(|line| !line.starts_with('#'));
    for word in lines.flat_map(str::split_whitespace) {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        if ends(word) || sentence.len() >= MAX_SENTENCE_BYTES {
            sentences.push(std::mem::take(&mut sentence));
            if sentences.len() == most {
                return sentences;
            }
        }
    }
    sentences.extend(Some(sentence).filter(|rest| !rest.is_empty()));
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_what_the_tags_enclose() {
        assert_eq!(document("Do this.\n<document>\nText.\n</document>\nNow."), "Text.");
        assert_eq!(document("<document name=\"a\">Text.</document>"), "Text.");
        assert_eq!(document("No tags"), "No tags");
        assert_eq!(document("</document><document>"), "</document><document>");
    }

    #[test]
    fn first_sentences_come_first() {
        let text = "One. Two.\n\nThree! Four?\nFive\n\n\n\nSix.";
        assert_eq!(sentences(text, 3), ["One.", "Three!", "Six.", "Two.", "Four?", "Five"]);
        assert_eq!(sentences(text, 1), ["One.", "Two.", "Three!", "Four?", "Five", "Six."]);
    }

    #[test]
    fn headings_and_numbers_are_no_sentences() {
        assert_eq!(
            sentences("# Title\n\n## 1. Purpose\n3. It binds. So be it.\n\nSigned", 9),
            ["3. It binds.", "So be it.", "Signed"]
        );
    }
}
