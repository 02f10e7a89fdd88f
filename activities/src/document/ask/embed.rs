//! A document's text as a vector, in a call of its own or together with other documents.
//!
//! Vectors are comparable only within one model, and the vector of a truncated text looks like any
//! other. So a batch has one model, and a text that is too long for it is an error, even where the
//! provider would truncate it silently.

use std::borrow::Cow;

use tidegate_calls::route::Route;
use tidegate_documents::{Reader, tokens};
use tidegate_providers::{Embedded, EmbeddingRequest, embedding::Input};
use tidegate_types::{ModelId, Spend, Usage};
use tidegate_workflows::contract::{FailureType, Job, Taken, Target, Task};

use crate::{
    attempt::Attempt,
    document::ask::{prompt::Content, prompt_builder::DocumentFacts, sandbox, template::Text},
    failure::Failure,
    output::{
        job::{Document, Shard},
        result::{DocumentResult, Given},
        version::Version,
    },
    services::Services,
};

/// Maximum estimated tokens of all texts in a call: OpenAI takes 300,000.
pub(crate) const TOGETHER_TOKENS: u64 = 100_000;

/// Maximum estimated tokens of a text where the model's limit is not known: three quarters of
/// 8,192.
const UNKNOWN_ALONE_TOKENS: u64 = 6_144;

const SIZE_ADVICE: &str =
    "divide it before, for example into the lines of a JSONL file (\"records\": true)";

/// Checks whether a batch can be embedded.
///
/// # Errors
/// `InvalidInput` names the model without vectors, and the models with vectors.
pub(crate) fn check(services: &Services, job: &Job, route: &Route) -> Result<(), Failure> {
    if job.task != Task::Embed {
        return Ok(());
    }
    if let Target::Route(name) = &job.target
        && route.models.len() > 1
    {
        return Err(Failure::invalid_input(format!(
            "route \"{name}\" has several models, and vectors of one mean nothing beside another's; name one of them as model"
        )));
    }
    for model in &route.models {
        // A program's own provider may take anything.
        let Some(dialect) = services.providers.dialect(model) else { continue };
        if dialect.embeds(model.model()).is_none() {
            return Err(Failure::invalid_input(format!(
                "{model} has no embeddings, as far as tidegate knows of its API; choose a model that has, such as openai:text-embedding-3-small, gemini:gemini-embedding-001, or one of a server compatible with OpenAI (ollama, vllm)"
            )));
        }
    }
    if job.template {
        let text = Text { place: "instructions", text: &job.instructions };
        if !text.names().map_err(Failure::invalid_input)?.contains("document") {
            return Err(Failure::invalid_input(
                "instructions say what is embedded, and do not name {{ document }}",
            ));
        }
    }
    Ok(())
}

/// The text of a document that is embedded.
///
/// # Errors
/// `UnreadableDocument` where there is no text; `InvalidInput` where a template cannot be filled.
pub(crate) async fn text<'a>(
    reader: &Reader,
    job: &Job,
    document: &Document,
    content: &'a Content,
) -> Result<Cow<'a, str>, Failure> {
    let unreadable = |why: &str| Failure::never(FailureType::UnreadableDocument, why);
    let Content::Text(own) = content else {
        return Err(unreadable("it is a picture, and text alone is embedded"));
    };
    if own.trim().is_empty() {
        return Err(unreadable("it holds no text that could be embedded"));
    }
    if !job.template {
        return Ok(own.as_str().into());
    }
    let wording = sandbox::build_prompt(reader, job, &DocumentFacts::new(document, own)).await;
    let wording = wording.map_err(|failure| failure.asked_of(&document.uri))?;
    Ok(wording.instructions.into_owned().into())
}

/// Most estimated tokens of a text that may share a call.
pub(crate) fn max_shared_tokens(services: &Services, shard: &Shard) -> u64 {
    let most = input_limits(services, &shard.route).and_then(|(_, input)| input.tokens);
    most.map_or(UNKNOWN_ALONE_TOKENS, |most| u64::from(most) * 3 / 4)
}

/// The model's limits on an input, as far as they are known.
fn input_limits<'a>(services: &Services, route: &'a Route) -> Option<(&'a ModelId, Input)> {
    let model = route.models.first()?;
    Some((model, services.providers.dialect(model)?.embeds(model.model())?))
}

/// Asks once for the vectors of some texts. `estimated` tokens are those of all texts together.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub(crate) async fn ask<'s>(
    services: &Services,
    attempt: &Attempt,
    shard: &'s Shard,
    texts: &[&str],
    tokens: u64,
) -> Result<(&'s ModelId, Embedded), Failure> {
    let Job { dimensions, asked_with, .. } = &shard.job;
    let call = |model: &'s ModelId| EmbeddingRequest {
        model: model.model(),
        texts,
        dimensions: *dimensions,
        fields: asked_with.get(model).map(|with| &with.parameters),
    };
    let (terms, like) = (shard.terms(), (tokens, shard.template));
    services.caller().embed(&attempt.call, terms, &shard.route, like, call).await
}

/// The vector of one document, with its cost.
///
/// # Errors
/// A [`Failure`] with the time of a retry, if any.
pub(crate) async fn embed_document(
    services: &Services,
    attempt: &Attempt,
    shard: &Shard,
    document: Document,
    content: &Content,
    version: Version,
) -> Result<DocumentResult, Failure> {
    let text = text(&services.reader_for(&shard.job.lane), &shard.job, &document, content).await?;
    let tokens = tokens::estimate(&text);
    let known = input_limits(services, &shard.route);
    let most = known.and_then(|(_, input)| input.tokens).map(u64::from);
    let cuts = known.is_some_and(|(_, input)| input.cuts);
    if let Some(((model, _), most)) = known.zip(most) {
        // A provider that refuses long texts counts exactly, so only texts far above its limit are
        // refused here.
        let sure = if cuts { most } else { most + most / 2 };
        if tokens > sure {
            return Err(Failure::exceeds_context(model, tokens, most).with_size_advice(SIZE_ADVICE));
        }
    }
    let embedded = ask(services, attempt, shard, &[&text], tokens).await;
    let (model, embedded) = embedded.map_err(|failure| failure.with_size_advice(SIZE_ADVICE))?;
    let estimate = Usage { uncached_input: tokens, ..Usage::default() };
    let usage = embedded.usage.unwrap_or(estimate);
    let cost_usd = services.cost_usd(model, &usage);
    let own = Spend::of_tokens(&usage, cost_usd);
    if let Some(most) = most.filter(|most| cuts && usage.input() >= *most) {
        attempt.discard(Taken { spend: own, ..Taken::default() });
        return Err(
            Failure::exceeds_context(model, usage.input(), most).with_size_advice(SIZE_ADVICE)
        );
    }
    let vector = embedded.vectors.into_iter().next();
    let vector = vector.ok_or_else(|| Failure::transient("the provider sent no embedding"))?;
    let (asked, given) = ((&shard.job, shard.asks), Given::Vector(vector));
    Ok(DocumentResult::answered(asked, (document, version), model, given)
        .with_usage_unknown(embedded.usage.is_none())
        .with_spend(attempt.spent() + own, cost_usd.is_some()))
}
