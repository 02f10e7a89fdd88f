//! `tidegate.embed`: the vectors of some texts, as many as fit one request of the vendor.

use tidegate_calls::{caller::Terms, route::Route};
use tidegate_documents::tokens;
use tidegate_providers::{EmbeddingRequest, embedding::Input};
use tidegate_types::{ModelId, Spend, Usage};
use tidegate_workflows::{
    contract::{EmbedOutcome, FailureType, Job},
    input,
};

use crate::{
    batch::model_parameters,
    document::ask::embed,
    door::{call_context::CallContext, input::ResolvedInput},
    failure::Failure,
    fingerprint::hash,
    metrics,
    output::job::route_of,
    services::Services,
};

/// Asks. Waits in place if the caller allows no further attempt.
///
/// # Errors
/// `InvalidInput` and `TooLarge` state the remedy; otherwise the failures of the guard and the
/// provider.
pub(super) async fn ask(
    asked: CallContext<'_>,
    given: ResolvedInput,
) -> Result<EmbedOutcome, Failure> {
    let call = input::call::embed(given.value).map_err(Failure::invalid_input)?;
    let CallContext { services, lane, .. } = asked;
    let (job, inputs) = call.job().map_err(Failure::invalid_input)?;
    let route = route_of(&job.target, &services.routes)?;
    embed::check(services, &job, &route)?;
    let job =
        Job { lane: lane.clone(), ..model_parameters::with_parameters(services, &job, &route)? };
    let texts: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let each: Vec<u64> = texts.iter().map(|text| tokens::estimate(text)).collect();
    check_size(services, &route, &each)?;
    let tokens = each.iter().sum();
    let terms = Terms { lane, tenant: &job.tenant, batch_usd: None, retries: None };
    let like = (tokens, hash([&b"embed"[..]]));
    let request = |model| EmbeddingRequest {
        model: ModelId::model(model),
        texts: &texts,
        dimensions: job.dimensions,
        fields: job.asked_with.get(model).map(|with| &with.parameters),
    };
    let (route, request) = (&route, &request);
    let answered = asked.ask(route, |attempt| async move {
        services.caller().embed(&attempt.call, terms, route, like, request).await
    });
    let (model, embedded) = answered.await?;
    let estimate = Usage { uncached_input: tokens, ..Usage::default() };
    let usage = embedded.usage.unwrap_or(estimate);
    let cost_usd = services.cost_usd(model, &usage);
    metrics::count_answer(model, cost_usd, &job.tenant);
    let spend = asked.attempt.spent() + Spend::of_tokens(&usage, cost_usd);
    Ok(EmbedOutcome {
        vectors: Some(embedded.vectors),
        answer_uri: None,
        model: model.clone(),
        input_tokens: spend.input_tokens,
        usage_unknown: embedded.usage.is_none(),
        cost_usd: cost_usd.map(|_| spend.cost_usd),
        provider_calls: spend.provider_calls,
    })
}

/// Checks that the texts, with these estimated tokens each, fit into one request.
fn check_size(services: &Services, route: &Route, each: &[u64]) -> Result<(), Failure> {
    let Some(model) = route.models.first() else { return Ok(()) };
    let input = services.providers.dialect(model).and_then(|it| it.embeds(model.model()));
    input.map_or(Ok(()), |input| fit(model, input, each))
}

fn fit(model: &ModelId, input: Input, each: &[u64]) -> Result<(), Failure> {
    let too_large = |why| Err(Failure::never(FailureType::TooLarge, why));
    if let Some(most) = input.tokens.map(u64::from) {
        // A provider that refuses long texts counts exactly, so only texts far above its limit are
        // refused here.
        let sure = if input.cuts { most } else { most + most / 2 };
        if let Some(place) = each.iter().position(|tokens| *tokens > sure) {
            return too_large(format!(
                "inputs[{place}] has about {} tokens, and {model} takes {most}; divide it",
                each[place]
            ));
        }
    }
    let mut sum = 0;
    let within = |tokens: &&u64| {
        sum += **tokens;
        input.together.is_none_or(|most| sum <= most)
    };
    let fitting = each.iter().take(input.texts.unwrap_or(usize::MAX)).take_while(within).count();
    if fitting < each.len() {
        return too_large(format!(
            "{} inputs are more than one request to {model} takes: the first {fitting} fit; call tidegate.embed for each {fitting} of them",
            each.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_a_request_is_refused_with_what_fits() {
        let model: ModelId = "openai:text-embedding-3-small".parse().unwrap();
        let input = Input { tokens: Some(100), cuts: false, texts: Some(3), together: Some(250) };
        fit(&model, input, &[100, 100, 50]).unwrap();
        for (each, says) in [
            (&[100, 100, 100][..], "the first 2 fit"),
            (&[1, 1, 1, 1], "the first 3 fit"),
            (&[1, 200], "inputs[1] has about 200 tokens"),
        ] {
            let failure = fit(&model, input, each).unwrap_err();
            assert!(failure.message.contains(says) && !failure.is_retried(), "{failure}");
        }
        let unknown = Input { tokens: None, cuts: false, texts: None, together: None };
        fit(&model, unknown, &[1_000_000; 3]).unwrap();
    }
}
