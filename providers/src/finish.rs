//! The end of an answer, by the vendor's [word](crate::endings) for it.
//!
//! Gateways pass on the words of other vendors, so a word is looked up in all tables. An unknown
//! word is kept ([`StopReason::Other`]): its meaning is unknown.

use crate::{
    call::StopReason,
    endings::{self, Ending, Row},
    error::{Charged, Error, Kind},
    exchange::Reply,
    refusal::Context,
};

fn ending(table: &[Row], word: &str) -> Option<Ending> {
    table.iter().find_map(|(known, ending, _)| (*known == word).then_some(*ending))
}

/// A word of another dialect that a gateway has passed on; case is ignored, and `-` is `_`.
fn shared(word: &str) -> Option<Ending> {
    let word = &word.replace('-', "_");
    let is = |known: &str| known.eq_ignore_ascii_case(word);
    endings::SHARED
        .into_iter()
        .flatten()
        .find_map(|(known, ending, _)| is(known).then_some(*ending))
}

/// Returns the reason why the model stopped, if there is an answer.
///
/// # Errors
/// There is no answer: refused, a tool call, or failed.
pub(crate) fn read<'c>(
    table: &[Row],
    word: Option<&str>,
    reply: &Reply,
    context: Context<'c>,
    charged: Charged,
) -> Result<(StopReason, Context<'c>), Error> {
    // Gemini behind OpenAI's dialect: `content_filter: RECITATION`.
    let detail = |word: &'_ str| word.split_once(": ").map(|(_, detail)| shared(detail));
    let known = |word| ending(table, word).or_else(|| shared(word)).or_else(|| detail(word)?);
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
        // Nothing in the request causes it: another attempt may succeed.
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

/// Tests that `read` gives each row's meaning, and keeps an unknown word.
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
