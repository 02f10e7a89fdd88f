//! How an answer ended: each vendor's own words, in one table a vendor, made into what they mean.
//!
//! A vendor's table stands in its `response.rs`, and each row names its source. Gateways pass the
//! words of other vendors on, so that a word is looked for in all tables. A word that is in no table is kept as it is ([`StopReason::Other`]): it says nothing about the answer.

use crate::{
    anthropic::response as anthropic,
    call::StopReason,
    error::{Charged, Error, Kind},
    exchange::Reply,
    gemini::response as gemini,
    openai::response as openai,
    refusal::Context,
};

/// What a vendor's word for the end of an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The answer is whole.
    Complete,
    /// The same, because a stop sequence was met.
    Sequence,
    /// The answer ends where `max_output_tokens` does.
    Cut,
    /// The model or the provider withheld it.
    Refused,
    /// The model asked for a tool, and no request of ours offers one.
    ToolUse,
    /// There is no answer, for another reason; a retry would bring this.
    Failed(Kind),
}

/// A vendor's word, what it means, and where the vendor says so.
pub(crate) type Row = (&'static str, Ending, &'static str);

fn ending(table: &[Row], word: &str) -> Option<Ending> {
    table.iter().find_map(|(known, ending, _)| (*known == word).then_some(*ending))
}

/// Zhipu's words, and those of gateways that put their own into OpenAI's field.
const ELSEWHERE: &[Row] = &[
    ("sensitive", Ending::Refused, "https://docs.bigmodel.cn/api-reference"),
    ("network_error", Ending::Failed(Kind::Transient), "https://docs.bigmodel.cn/api-reference"),
    (
        "content_filtered",
        Ending::Refused,
        "https://docs.aws.amazon.com/bedrock/latest/APIReference",
    ),
];

/// A word of another dialect, which a gateway has passed on, in any case of its letters.
fn shared(word: &str) -> Option<Ending> {
    let tables = [ELSEWHERE, openai::ENDINGS, anthropic::ENDINGS, gemini::ENDINGS];
    let is = |known: &str| known.eq_ignore_ascii_case(word);
    tables.into_iter().flatten().find_map(|(known, ending, _)| is(known).then_some(*ending))
}

/// Why the model stopped, where that leaves an answer.
///
/// # Errors
/// The vendor says that there is none: refused, a tool's turn, or failed.
pub(crate) fn read<'c>(
    table: &[Row],
    word: Option<&str>,
    reply: &Reply,
    context: Context<'c>,
    charged: Charged,
) -> Result<(StopReason, Context<'c>), Error> {
    let known = |word| ending(table, word).or_else(|| shared(word));
    let Some((word, ending)) = word.and_then(|word| Some((word, known(word)?))) else {
        return Ok((StopReason::other(word), context));
    };
    let (kind, text) = match ending {
        Ending::Complete => return Ok((StopReason::EndTurn, context)),
        Ending::Sequence => return Ok((StopReason::StopSequence, context)),
        Ending::Cut => return Ok((StopReason::MaxTokens, context)),
        Ending::Refused => (
            Kind::ContentRefused,
            format!("the provider or the model withheld the answer ({word})"),
        ),
        // Nothing in the request leads to it: another attempt may do better.
        Ending::ToolUse => {
            (Kind::Transient, format!("the model asked for a tool, and there is none ({word})"))
        }
        Ending::Failed(Kind::TooLarge) => (
            Kind::TooLarge,
            format!("the document and its answer do not fit into the model's context ({word})"),
        ),
        Ending::Failed(kind) => (kind, format!("the model broke off ({word})")),
    };
    Err(context.no_answer(reply, kind, &text, charged))
}

/// Every row of a table, fed to what reads it; and a word that no vendor has.
#[cfg(test)]
pub(crate) fn check_table(
    table: &[Row],
    answer: impl Fn(&str) -> Result<crate::call::Completion, Error>,
) {
    use crate::call::Finish;

    for (word, ending, source) in table {
        assert!(source.starts_with("https://"), "{word}: where does the vendor say so?");
        assert_eq!(table.iter().filter(|row| row.0 == *word).count(), 1, "{word} stands twice");
        let came = answer(word)
            .map(|completion| (completion.stop_reason.finish(), completion.stop_reason));
        let failed = |kind| {
            came.as_ref().is_err_and(|error| error.kind == kind && error.message.contains(word))
        };
        match ending {
            Ending::Complete => {
                assert_eq!(came, Ok((Finish::Complete, StopReason::EndTurn)), "{word}")
            }
            Ending::Sequence => {
                assert_eq!(came, Ok((Finish::Complete, StopReason::StopSequence)), "{word}")
            }
            Ending::Cut => assert_eq!(came, Ok((Finish::Cut, StopReason::MaxTokens)), "{word}"),
            Ending::Refused => assert!(failed(Kind::ContentRefused), "{word}: {came:?}"),
            Ending::ToolUse => assert!(failed(Kind::Transient), "{word}: {came:?}"),
            Ending::Failed(kind) => assert!(failed(*kind), "{word}: {came:?}"),
        }
    }
    let unheard_of = answer("tide_out").unwrap();
    assert_eq!(unheard_of.stop_reason, StopReason::Other("tide_out".to_owned()));
    assert_eq!(unheard_of.stop_reason.finish(), Finish::Unknown);
}
