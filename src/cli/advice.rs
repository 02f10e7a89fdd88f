//! Advice on failures, by type.

use tidegate_types::ModelId;
use tidegate_workflows::contract::FailureType;

use super::{format, keys};
pub(super) use crate::config::provider::setting;
use crate::temporal::ANSWER_WITHIN;

/// Advice for a batch that was asked to stop and still runs.
pub(super) const CANCELLED: &str =
    "the batch was asked to stop: a worker ends what is under way and writes the report";

/// Advice for a batch's task queue that no worker polls.
pub(super) fn no_worker(task_queue: &str) -> String {
    format!(
        "no worker answers on the task queue \"{task_queue}\" within {}; start one with `tidegate worker`; if some run, they are too busy",
        format::duration(ANSWER_WITHIN)
    )
}

/// Advice on a call's fault. `status` is the answer's, if one came.
pub(super) fn after(kind: &str, status: Option<u16>, model: &ModelId) -> String {
    let base_url = setting(model.provider(), "base-url");
    match (FailureType::parse(kind), status) {
        (Some(FailureType::Transient), Some(200..=299)) => format!(
            "an answer comes, but is incomplete or of another API: check {base_url}, and any gateway or proxy on the way; until then `tidegate pause {model}` stops the documents from using up their retries"
        ),
        (Some(FailureType::Transient), Some(_)) => next("Overloaded", Some(model)),
        _ => next(kind, Some(model)),
    }
}

/// General advice on a failure type.
pub fn failure_advice(kind: FailureType) -> String {
    next(kind.as_str(), None)
}

/// Advice on a failure type; general advice without a model.
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
            "the gate opens by itself; if refusals go on, compare the limits of {} with the account's (`tidegate limits set`), and look for other programs that use the account",
            model.map_or("the model", ModelId::as_str)
        ),
        Some(FailureType::QuotaWait) => "wait, or raise the limit (`tidegate limits set`)".to_owned(),
        Some(FailureType::Overloaded) => format!(
            "wait until the provider recovers; until then {pause} stops the documents from using up their retries, and {resume} lets them go on"
        ),
        Some(FailureType::Transient) => format!(
            "check that the workers reach {} (`tidegate doctor` on their machine); after a time-out, raise {}; until then {pause} stops the documents from using up their retries",
            of_provider("base-url"),
            of_provider("request-timeout")
        ),
        Some(FailureType::QuotaExhausted) => format!(
            "pay, or raise the account's limit (or the configured one, if the message names it); then {resume} if the provider refused, and run the batch again for the failed documents"
        ),
        Some(FailureType::BudgetExceeded) => {
            "raise the budget that the message names: the tenant's daily-budget-usd, the batch's --budget-usd, or --retry-budget once the calls no longer fail (see `tidegate quota` and the workers' logs); then run the batch again for the failed documents".to_owned()
        }
        Some(FailureType::Unauthorized) => format!(
            "{}; then run the batch again for the failed documents",
            keys::remedy(model.map(ModelId::provider))
        ),
        Some(FailureType::TooLarge) => {
            let limit = model.map_or_else(String::new, |model| {
                format!("; if the message names a limit that an operator set, `tidegate limits clear {model}`")
            });
            format!(
                "read long documents in parts (--long map_reduce), or choose a model with a larger context; for a file with too many bytes, raise documents.max-size of the workers{limit}"
            )
        }
        Some(FailureType::Truncated) => {
            "raise --max-output-tokens if the model can write more, ask for less, or keep such answers (--on-cut keep)".to_owned()
        }
        Some(FailureType::InvalidOutput) => {
            "simplify the schema, or choose another model".to_owned()
        }
        Some(FailureType::CheckFailed) => {
            "read the answer (\"kept\" in failures.jsonl), then correct the check, choose a better model, or ask the next model of a route (--escalate)".to_owned()
        }
        Some(FailureType::ContentRefused) => {
            "look at these documents, or choose another model for them".to_owned()
        }
        Some(FailureType::InvalidRequest) => {
            "the message says what the provider refuses: the model's name (`tidegate doctor` compares it with the provider's list), a parameter, or the document".to_owned()
        }
        Some(FailureType::InvalidInput | FailureType::UnreadableDocument) => {
            "correct what the message names, and run the batch again".to_owned()
        }
        Some(FailureType::Expired) => {
            "send the requests without an answer in another batch, with a longer completion_window".to_owned()
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
        assert!(broken.contains("any gateway or proxy") && !broken.contains("reach"), "{broken}");
        assert!(after("Transient", Some(500), &model).contains("until the provider recovers"));
        assert!(after("Transient", None, &model).contains("reach providers.a.base-url"));
        assert!(next("Timeout", None).contains("failures.jsonl"));
        assert!(no_worker("other").contains("the task queue \"other\""), "the batch's own");
        let member: ModelId = "a/eu:b".parse().unwrap();
        let of_member = next("Transient", Some(&member));
        assert!(of_member.contains("base-url of \"eu\" in [[providers.a.pool]]"), "{of_member}");
    }
}
