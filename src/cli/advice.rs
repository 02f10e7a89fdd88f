//! What to do about a failure, by its type.

use tidegate_types::ModelId;
use tidegate_workflows::contract::FailureType;

use super::{format, keys};
pub(super) use crate::config::provider::setting;
use crate::temporal::{ANSWER_WITHIN, Temporal};

/// For a batch that was asked to stop and still runs.
pub(super) const CANCELLED: &str =
    "it was asked to stop: a worker ends what is under way and writes the report";

/// For a task queue that no worker polls.
pub(super) fn no_worker(temporal: &Temporal) -> String {
    format!(
        "no worker answers on the task queue \"{}\"; start one with `tidegate worker`; where some run, they are too busy to answer within {}",
        temporal.task_queue(),
        format::duration(ANSWER_WITHIN)
    )
}

/// What to do about a call's fault. `status` is the answer's, if one came.
pub(super) fn after(kind: &str, status: Option<u16>, model: &ModelId) -> String {
    let base_url = setting(model.provider(), "base-url");
    match (FailureType::parse(kind), status) {
        (Some(FailureType::Transient), Some(200..=299)) => format!(
            "an answer comes, and is not whole or not this API's: see that {base_url} names it, and what a gateway or proxy on the way makes of answers; `tidegate pause {model}` spares the documents their tries meanwhile"
        ),
        (Some(FailureType::Transient), Some(_)) => next("Overloaded", Some(model)),
        _ => next(kind, Some(model)),
    }
}

/// The next thing to do; in general words without a model.
pub(super) fn next(kind: &str, model: Option<&ModelId>) -> String {
    let command = |verb: &str| {
        model.map_or_else(
            || format!("`tidegate {verb}` with the model's name"),
            |model| format!("`tidegate {verb} {model}`"),
        )
    };
    let of_provider = |key: &str| {
        model.map_or_else(|| format!("its provider's {key}"), |it| setting(it.provider(), key))
    };
    let (pause, resume) = (command("pause"), command("resume"));
    match FailureType::parse(kind) {
        Some(FailureType::RateLimited) => format!(
            "the gate opens by itself; where this goes on, hold {} against the account's limits (`tidegate limits set`), and see who else uses it",
            model.map_or_else(|| "the model's".to_owned(), |model| format!("those of {model}"))
        ),
        Some(FailureType::QuotaWait) => "more quota, or patience".to_owned(),
        Some(FailureType::Overloaded) => format!(
            "the provider has to recover; {pause} spares the documents their tries meanwhile, and {resume} lets them go on"
        ),
        Some(FailureType::Transient) => format!(
            "see whether the workers reach {} (`tidegate doctor` on their machine), and where request-timeout has run out, raise {}; {pause} spares the documents their tries meanwhile",
            of_provider("base-url"),
            of_provider("request-timeout")
        ),
        Some(FailureType::QuotaExhausted) => format!(
            "pay, or raise the account's limit (or the configured one, where that is named); then {resume} if the provider had refused, and run the batch again for what has failed"
        ),
        Some(FailureType::BudgetExceeded) => {
            "raise the budget that is named: the tenant's daily-budget-usd, the batch's --budget-usd, or --retry-budget once what made calls fail is mended (`tidegate quota` and the workers' logs say what); then run it again for what has failed".to_owned()
        }
        Some(FailureType::Unauthorized) => format!(
            "{}; then run the batch again for what has failed",
            keys::remedy(model.map(ModelId::provider))
        ),
        Some(FailureType::TooLarge) => {
            let limit = model.map_or_else(String::new, |model| {
                format!("; where an operator's limit is named, `tidegate limits clear {model}`")
            });
            format!(
                "read long documents in parts (--long map_reduce), or choose a model with more room; of a file with too many bytes, raise documents.max-size at the workers{limit}"
            )
        }
        Some(FailureType::Truncated) => {
            "raise --max-output-tokens if the model writes more, ask for less, or take such answers (--on-cut keep)".to_owned()
        }
        Some(FailureType::InvalidOutput) => {
            "make the schema easier to meet, or name another model".to_owned()
        }
        Some(FailureType::CheckFailed) => {
            "read what came (\"kept\" in failures.jsonl), then correct the check, name a better model, or let the next of a route be asked (--escalate)".to_owned()
        }
        Some(FailureType::ContentRefused) => {
            "look at these documents, or name another model for them".to_owned()
        }
        Some(FailureType::InvalidRequest) => {
            "the provider's words say what it does not take: the model's name (`tidegate doctor` compares it with the provider's list), a parameter, or the document".to_owned()
        }
        Some(FailureType::InvalidInput | FailureType::UnreadableDocument) => {
            "see to these documents, and run the batch again for them".to_owned()
        }
        Some(FailureType::Expired) => {
            "send the requests that have no answer in another batch, with a longer completion_window".to_owned()
        }
        None => "see failures.jsonl, and the workers' logs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_next_thing_to_do() {
        let model: ModelId = "a:b".parse().unwrap();
        for kind in FailureType::ALL {
            assert!(next(kind.as_str(), Some(&model)).len() > 10, "{kind}");
        }
        assert!(next("QuotaExhausted", Some(&model)).contains("`tidegate resume a:b`"));
        assert!(next("Transient", Some(&model)).contains("providers.a.base-url"));
        let key = next("Unauthorized", Some(&"anthropic:b".parse().unwrap()));
        for part in ["ANTHROPIC_API_KEY", "providers.anthropic.api-key-file"] {
            assert!(key.contains(part), "{key}");
        }
        for kind in FailureType::ALL {
            let general = next(kind.as_str(), None);
            assert!(!general.contains("MODEL") && !general.contains("NAME"), "{general}");
        }
        assert!(next("Transient", Some(&model)).contains("providers.a.request-timeout"));
        assert!(next("TooLarge", Some(&model)).contains("`tidegate limits clear a:b`"));
        let broken = after("Transient", Some(200), &model);
        assert!(broken.contains("a gateway or proxy") && !broken.contains("reach"), "{broken}");
        assert!(after("Transient", Some(500), &model).contains("has to recover"));
        assert!(after("Transient", None, &model).contains("reach providers.a.base-url"));
        assert!(next("Timeout", None).contains("failures.jsonl"));
        let member: ModelId = "a/eu:b".parse().unwrap();
        let of_member = next("Transient", Some(&member));
        assert!(of_member.contains("base-url of \"eu\" in [[providers.a.pool]]"), "{of_member}");
    }
}
