//! Asks about a document's content once.

use std::borrow::Cow;

use tidegate_calls::route::Route;
use tidegate_documents::Reader;
use tidegate_workflows::contract::{Attach, Job};

use crate::{
    attempt::Attempt,
    document::ask::{
        evidence::{self, QuoteSource},
        inquiry::{self, Inquiry},
        prompt::{Content, Question},
        prompt_builder::DocumentFacts,
        sandbox,
    },
    failure::Failure,
    output::{
        job::{Document, Shard},
        result::DocumentResult,
        version::Version,
    },
    services::Services,
    storage::Location,
};

/// The question about one document of a shard.
///
/// # Errors
/// `InvalidInput` where a template cannot be filled.
pub(crate) async fn question<'a>(
    reader: &Reader,
    shard: &'a Shard,
    document: &Document,
    content: &'a Content,
) -> Result<Question<'a>, Failure> {
    let about = DocumentFacts::new(document, content.text());
    let wording = sandbox::build_prompt(reader, &shard.job, &about).await;
    let wording = wording.map_err(|failure| failure.asked_of(&document.uri))?;
    let question = Question::for_document(&shard.job, shard.template, wording, content);
    let question = match shard.job.evidence {
        true => question
            .with_note(evidence::NOTE)
            .with_schema(evidence::schema_with_evidence(&shard.job)),
        false => question,
    };
    let asked_once = shard.documents.len() == 1 && shard.job.long.is_none();
    Ok(if asked_once { question.without_cache() } else { question })
}

/// A question about one content.
#[derive(Debug)]
pub(crate) struct ContentQuestion<'a> {
    /// The content that is sent.
    pub(crate) content: &'a Content,
    /// The version of the document that it comes from.
    pub(crate) version: Version,
    /// A note after the batch's instructions.
    pub(crate) note: Option<&'a str>,
    /// The fault of the answer before.
    pub(crate) correction: Option<&'a str>,
    /// The models that are asked.
    pub(crate) route: &'a Route,
    /// The text in which quotes of evidence are searched.
    pub(crate) sought: QuoteSource<'a>,
}

/// Asks about a content; returns the answer with its cost. An answer that is not accepted is stored
/// at `refused`.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub(crate) async fn answer(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    document: Document,
    ContentQuestion { content, version, note, correction, route, sought }: ContentQuestion<'_>,
    refused: &Location,
) -> Result<DocumentResult, Failure> {
    let reader = services.reader_for(&shard.job.lane);
    let mut question = question(&reader, shard, &document, content).await?;
    if let Some(note) = note {
        question = question.with_note(note).without_cache();
    }
    let size_advice = size_advice(&shard.job);
    let about =
        inquiry::AnswerSubject { document, version, refused, correction, size_advice, sought };
    let inquiry = Inquiry { route, ..Inquiry::for_shard(shard) };
    inquiry::answer(services, attempt, inquiry, question, about).await
}

/// Advice for the batch's author on a document that is too large for a call.
pub(crate) fn size_advice(job: &Job) -> Cow<'static, str> {
    match job.long {
        None if job.attach != Attach::Text => {
            "let its text be read in parts: \"attach\": \"text\" and \"long\": \"map_reduce\""
                .into()
        }
        None => "let it be read in parts: \"long\": \"map_reduce\"".into(),
        Some(long) => {
            format!("make the parts smaller: chunk_tokens, which is {}", long.chunk_tokens).into()
        }
    }
}
