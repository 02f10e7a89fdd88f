//! Answers: an extract of the document, of a length that follows from its content.

use crate::{call::Call, config::Config, extract, known, rng, schema, tokens};

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) output: u64,
    /// `max_tokens` cut it off.
    pub(crate) cut_off: bool,
}

/// The text that follows when the document has no more sentences.
const FILLERS: [&str; 3] = [
    "The document says nothing further on this point.",
    "No other part of it bears on the question.",
    "The remainder repeats what has been said above.",
];

impl Answer {
    pub(crate) fn write(call: &Call, config: &Config) -> Self {
        if call.texts.is_some() {
            return Self { text: String::new(), output: 0, cut_off: false };
        }
        let wanted = length(config, call.hash);
        let bytes = tokens::bytes(wanted);
        let sentences = extract::sentences(call.document(), bytes / 120 + 1);
        let text = match &call.schema {
            Some(schema) => known::answer(call, schema, config).unwrap_or_else(|| {
                schema::fill(schema, &sentences, parts(call, config).as_deref(), call.hash)
                    .to_string()
            }),
            None => summary(&sentences, bytes),
        };
        let cut_off = tokens::count(text.len()) > call.max_tokens;
        let end = if cut_off {
            text.floor_char_boundary(tokens::bytes(call.max_tokens))
        } else {
            text.len()
        };
        let text = text[..end].to_owned();
        Self { output: tokens::count(text.len()).max(1), text, cut_off }
    }
}

/// The document's named parts, if it has any, but for those that are forgotten.
fn parts(call: &Call, config: &Config) -> Option<Vec<(String, Vec<String>)>> {
    let kept = |(number, (name, text)): (u64, (String, &str))| {
        let forgotten =
            rng::uniform(rng::draw(&[config.seed, call.hash, number, 0xf0])) < config.forget_rate;
        (!forgotten).then(|| (name, extract::sentences(text, 3)))
    };
    let named = extract::named(call.document());
    (!named.is_empty()).then(|| (0..).zip(named).filter_map(kept).collect())
}

/// Tokens, lognormally distributed around the configured mean.
// A float is cut off at the ends of u64.
fn length(config: &Config, hash: u64) -> u64 {
    let spread = config.output_spread;
    let centre = f64::from(config.mean_output_tokens).ln() - spread * spread / 2.0;
    let exponent = spread.mul_add(rng::normal(rng::draw(&[config.seed, hash])), centre);
    exponent.exp().round().max(1.0) as u64
}

/// Sentences, until the next one would lead further from the wanted length than to it.
fn summary(sentences: &[String], bytes: usize) -> String {
    let mut text = String::new();
    for sentence in sentences.iter().map(String::as_str).chain(FILLERS.into_iter().cycle()) {
        let longer = text.len() + sentence.len() + 1;
        if !text.is_empty() && longer.abs_diff(bytes) >= text.len().abs_diff(bytes) {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(sentence);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Prompt;

    fn call(document: &str, max_tokens: u64) -> Call {
        let mut prompt = Prompt::default();
        prompt.text("user", &format!("<document>{document}</document>"));
        Call::new("m", max_tokens, None, prompt)
    }

    #[test]
    fn lengths_lie_around_the_mean() {
        let config = Config { mean_output_tokens: 200, ..Config::default() };
        let lengths: Vec<u64> = (0..500)
            .map(|n| {
                Answer::write(&call(&format!("Item {n} is here. ").repeat(99), 4_096), &config)
                    .output
            })
            .collect();
        let mean = lengths.iter().sum::<u64>() / 500;
        assert!((185..=215).contains(&mean), "{mean}");
        assert!(lengths.iter().max() > Some(&300) && lengths.iter().min() < Some(&130));
    }

    #[test]
    fn an_answer_is_never_longer_than_max_tokens() {
        let answer =
            Answer::write(&call("Größe und Länge. Und noch etwas.", 7), &Config::default());
        assert!(answer.cut_off);
        assert!(answer.output <= 7);
    }

    #[test]
    fn each_of_several_documents_has_its_answer() {
        let mut prompt = Prompt::default();
        prompt.text(
            "user",
            "<document>\n<item id=\"x-1\">\nHigh tide.\n</item>\n\n<item id=\"x-2\">\nLow tide.\n</item>\n</document>",
        );
        let item = serde_json::json!({"properties": {"id": {"type": "string"}, "answer": {"type": "string"}}});
        let schema = serde_json::json!({"properties": {"answers": {"items": item}}});
        let call = Call::new("m", 500, Some(schema), prompt);
        let answer = Answer::write(&call, &Config::default()).text;
        assert_eq!(
            answer,
            r#"{"answers":[{"answer":"High tide.","id":"x-1"},{"answer":"Low tide.","id":"x-2"}]}"#
        );
        let forgetful = Config { forget_rate: 1.0, ..Config::default() };
        assert_eq!(Answer::write(&call, &forgetful).text, r#"{"answers":[]}"#);
    }

    #[test]
    fn the_same_document_has_the_same_answer() {
        let config = Config::default();
        assert_eq!(
            Answer::write(&call("A. B.", 100), &config).text,
            Answer::write(&call("A. B.", 100), &config).text
        );
    }
}
