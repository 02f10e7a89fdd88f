//! Sentences about keys that workers report as refused.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tidegate_calls::worker_status::{RefusedKey, WorkerStatus};
use tidegate_providers::Vendor;
use tidegate_types::ModelId;

use super::format::duration;
use crate::config::provider::setting;

/// The remedy, for this provider or for the provider that the message names.
pub(super) fn remedy(provider: Option<&str>) -> String {
    let Some(provider) = provider else {
        return "put a valid key where the workers read it: they read the file of api-key-file again within seconds, a variable when they start".to_owned();
    };
    let file = setting(provider, "api-key-file");
    let named = setting(provider, "api-key-env");
    let vendor = provider.split_once('/').map_or(provider, |(pool, _)| pool).parse::<Vendor>();
    let variable = match vendor.map(Vendor::key_variable) {
        Ok(usual) if !usual.is_empty() => format!("{usual}, unless {named} names another"),
        _ => format!("that of {named}"),
    };
    format!(
        "put a valid key for {provider} where the workers read it: they read the file of {file} again within seconds, a variable ({variable}) when they start"
    )
}

/// The remedy for a refused key. If the worker has told the key's place, [`sentence`] names it.
pub(super) fn remedy_for(key: &RefusedKey) -> String {
    match key.place.as_str() {
        "" => remedy(Some(&key.provider)),
        _ => format!(
            "put a valid key for {} there: the workers read a file again within seconds, a variable when they start",
            key.provider
        ),
    }
}

/// One worker's refused key.
pub(super) fn sentence(worker: &str, key: &RefusedKey) -> String {
    let status = key.status.map_or_else(String::new, |status| format!(" ({status})"));
    let what = key.model.as_ref().map_or_else(
        || "does not accept its key".to_owned(),
        |model| format!("does not accept its key for {model}"),
    );
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(key.since);
    let since = duration(since.elapsed().unwrap_or_default());
    let place = if key.place.is_empty() { String::new() } else { format!("; key: {}", key.place) };
    format!("{worker}: {} {what}{status}, for {since}{place}", key.provider)
}

/// The reason why documents for `model` do not proceed, if refused keys are the cause.
pub(super) fn why(
    cards: &[(String, WorkerStatus)],
    queue: &str,
    model: &ModelId,
) -> Option<String> {
    let of_queue = || cards.iter().filter(|(_, card)| card.queue == queue);
    let (good, bad): (Vec<_>, Vec<_>) = of_queue().partition(|(_, card)| card.can_ask(model));
    let refusals: Vec<(&String, &RefusedKey)> = bad
        .iter()
        .flat_map(|(worker, card)| card.refused.iter().map(move |key| (worker, key)))
        .filter(|(_, key)| {
            key.provider == model.provider() && key.model.as_ref().is_none_or(|it| it == model)
        })
        .collect();
    let ((worker, key), more) = (refusals.first()?, refusals.len() - 1);
    let (first, remedy) = (sentence(worker, key), remedy_for(key));
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some(match good.len() {
        0 => format!("no worker has a key that is accepted: {first}{more}; {remedy}"),
        1 => format!("{first}{more}; 1 other goes on; {remedy}"),
        good => format!("{first}{more}; {good} others go on; {remedy}"),
    })
}

/// The reason why no live worker can ask any of these models; `None` if no worker is known.
pub(super) fn unable(
    cards: &[(String, WorkerStatus)],
    queue: &str,
    models: &[ModelId],
) -> Option<String> {
    let mut workers = cards.iter().filter(|(_, card)| card.queue == queue).peekable();
    workers.peek()?;
    if workers.any(|(_, card)| models.iter().any(|model| card.can_ask(model))) {
        return None;
    }
    let refused = models.iter().find_map(|model| why(cards, queue, model));
    refused.or_else(|| {
        let provider = models.first()?.provider();
        Some(format!(
            "no worker has a provider \"{provider}\"; add a [providers.{provider}] section with its key to the workers' configuration"
        ))
    })
}

/// All refused keys of the queue, as JSON.
pub(super) fn value(cards: &[(String, WorkerStatus)], queue: &str) -> Value {
    let refusals = cards.iter().filter(|(_, card)| card.queue == queue).flat_map(|(worker, card)| {
        let value = move |key: &RefusedKey| {
            json!({ "worker": worker, "provider": key.provider, "model": key.model, "status": key.status, "since": key.since })
        };
        card.refused.iter().map(value)
    });
    Value::Array(refusals.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(queue: &str, refused: &[(&str, Option<&str>)]) -> WorkerStatus {
        let refused = refused.iter().map(|(provider, model)| RefusedKey {
            provider: (*provider).to_owned(),
            model: model.map(|model| model.parse().unwrap()),
            status: Some(if model.is_some() { 403 } else { 401 }),
            since: 0,
            place: "A_KEY is not set".to_owned(),
        });
        let providers = ["a", "c"].map(str::to_owned).into();
        let queue = queue.to_owned();
        WorkerStatus { queue, providers, refused: refused.collect(), ..WorkerStatus::default() }
    }

    #[test]
    fn workers_with_a_refused_key_are_named() {
        let cards = |refused: [&[(&str, Option<&str>)]; 2]| {
            let [one, two] = refused.map(|refused| card("q", refused));
            [("one".to_owned(), one), ("two".to_owned(), two), ("x".to_owned(), card("other", &[]))]
        };
        let model = "a:b".parse().unwrap();
        assert_eq!(why(&cards([&[], &[]]), "q", &model), None);
        assert_eq!(why(&cards([&[("c", None)], &[("a", Some("a:d"))]]), "q", &model), None);
        let half = why(&cards([&[("a", None)], &[]]), "q", &model).unwrap();
        assert!(half.starts_with("one: a does not accept its key (401), for"), "{half}");
        assert!(
            half.contains("; 1 other goes on") && half.contains("a valid key for a there"),
            "{half}"
        );
        assert!(half.contains("; key: A_KEY is not set"), "{half}");
        let none = why(&cards([&[("a", None)], &[("a", Some("a:b"))]]), "q", &model).unwrap();
        assert!(none.starts_with("no worker has a key that is accepted: one: a"), "{none}");
        assert_eq!(value(&cards([&[("a", None)], &[]]), "q")[0]["worker"], "one");
    }

    #[test]
    fn a_model_that_no_worker_can_ask_is_told() {
        let cards = |refused| [("one".to_owned(), card("q", refused))];
        let models = ["a:b", "d:e"].map(|model| model.parse().unwrap());
        assert_eq!(unable(&[], "q", &models), None);
        assert_eq!(unable(&cards(&[]), "q", &models), None);
        assert_eq!(unable(&cards(&[("a", None)]), "other", &models), None);
        let refused = unable(&cards(&[("a", None)]), "q", &models).unwrap();
        assert!(refused.contains("does not accept its key"), "{refused}");
        let unknown = unable(&cards(&[]), "q", &models[1..]).unwrap();
        assert!(unknown.starts_with("no worker has a provider \"d\""), "{unknown}");
    }
}
