//! `tidegate.call` with a body in the vendor's own form, which is sent unchanged, tools and pictures
//! included.

use tidegate_calls::{
    caller::Terms,
    dialect::account_fields::{check_background, is_off},
};
use tidegate_providers::Fields;
use tidegate_types::Spend;
use tidegate_workflows::{
    contract::{CallOutcome, Target},
    input::call::CallInput,
};

use super::call_context::CallContext;
use crate::{failure::Failure, metrics, output::job::route_of};

/// Stands for details of a reply that is not parsed.
const UNKNOWN: &str = "unknown";

/// Sends the body. Waits in place if the caller allows no further attempt.
///
/// # Errors
/// `InvalidInput` states the remedy; otherwise the failures of the guard and the provider.
pub(super) async fn ask(
    asked: CallContext<'_>,
    call: CallInput,
    body: Fields,
) -> Result<CallOutcome, Failure> {
    let CallContext { services, lane, .. } = asked;
    let (model, tenant) = call.into_body().map_err(Failure::invalid_input)?;
    check_answer_comes_whole(&body).map_err(Failure::invalid_input)?;
    let route = &route_of(&Target::Model(model), &services.routes)?;
    let terms = Terms { lane, tenant: &tenant, batch_usd: None, retries: None };
    let body = &body;
    let answered = asked.ask(route, |attempt| async move {
        services.caller().send(&attempt.call, terms, route, None, body).await
    });
    let (model, whole) = answered.await?;
    let usage = whole.facts.usage;
    let cost_usd = usage
        .and_then(|usage| services.prices.cost_usd(model, &usage, chrono::Utc::now().date_naive()));
    metrics::count_answer(model, cost_usd, &tenant);
    let own = Spend::of_tokens(&usage.unwrap_or_default(), cost_usd);
    let spend = asked.attempt.spent() + own;
    Ok(CallOutcome {
        answer: None,
        value: None,
        reply: Some(whole.body),
        answer_uri: None,
        finish: UNKNOWN.to_owned(),
        model: model.clone(),
        input_tokens: spend.input_tokens,
        cached_input_tokens: spend.cached_input_tokens,
        output_tokens: spend.output_tokens,
        usage_unknown: usage.is_none(),
        cost_usd: cost_usd.map(|_| spend.cost_usd),
        provider_calls: spend.provider_calls,
    })
}

/// Refuses a body whose answer does not come whole.
///
/// # Errors
/// The reason.
fn check_answer_comes_whole(body: &Fields) -> Result<(), String> {
    if !is_off(body.get("stream").as_ref()) {
        return Err("body.stream must be false: an activity returns the answer whole".to_owned());
    }
    check_background(body).map_err(|refused| format!("body.{refused}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_whose_answer_does_not_come_whole_is_refused_by_the_fields_name() {
        for (body, names) in [
            (r#"{"stream":true}"#, Some("body.stream")),
            (r#"{"stream":"true"}"#, Some("body.stream")),
            (r#"{"background":true}"#, Some("body.background")),
            (r#"{"background":1}"#, Some("body.background")),
            (r#"{"stream":false,"background":null,"previous_response_id":"r"}"#, None),
        ] {
            let checked = check_answer_comes_whole(&Fields::read(body.as_bytes()).unwrap());
            match (checked, names) {
                (Err(why), Some(name)) => assert!(why.starts_with(name), "{why}"),
                (checked, names) => assert_eq!((checked, names), (Ok(()), None), "{body}"),
            }
        }
    }
}
