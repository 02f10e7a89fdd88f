//! What to do about a failure, by its type.

use tidegate_types::ModelId;
use tidegate_workflows::contract::FailureType;

use super::{figures, keys};
use crate::temporal::{ANSWER_WITHIN, Temporal};

/// Nobody works.
pub(super) fn no_worker(temporal: &Temporal) -> String {
    format!(
        "no worker answers on the task queue \"{}\"; start one with `tidegate worker`; where some run, they are too busy to answer within {}",
        temporal.task_queue(),
        figures::span(ANSWER_WITHIN)
    )
}

/// Where a key of a provider stands: that of a pool's member `openai/eu` beside the member's name.
pub(super) fn setting(provider: &str, key: &str) -> String {
    match provider.split_once('/') {
        Some((pool, member)) => format!("{key} of \"{member}\" in [[providers.{pool}.pool]]"),
        None => format!("providers.{provider}.{key}"),
    }
}

/// The next thing to do. Without a model, in general words.
pub(super) fn next(kind: &str, model: Option<&ModelId>) -> String {
    let name = model.map_or("MODEL", ModelId::as_str);
    let base_url = setting(model.map_or("NAME", ModelId::provider), "base-url");
    match FailureType::parse(kind) {
        Some(FailureType::RateLimited) => format!(
            "the gate opens by itself; where this goes on, hold the limits of {name} against the account's (`tidegate limits set`), and see who else uses it"
        ),
        Some(FailureType::QuotaWait) => "more quota, or patience".to_owned(),
        Some(FailureType::Overloaded) => format!(
            "the provider has to recover; `tidegate pause {name}` spares the documents their tries meanwhile, and `tidegate resume {name}` lets them go on"
        ),
        Some(FailureType::Transient) => format!(
            "see whether the workers reach {base_url} (`tidegate doctor` on their machine); `tidegate pause {name}` spares the documents their tries meanwhile"
        ),
        Some(FailureType::QuotaExhausted) => format!(
            "pay, or raise the account's limit (or the configured one, where that is named); then `tidegate resume {name}` if the provider had refused, and run the batch again for what has failed"
        ),
        Some(FailureType::BudgetExceeded) => {
            "raise the budget that is named: the tenant's daily-budget-usd, the batch's --budget-usd, or --retry-budget once what made calls fail is mended (`tidegate quota` and the workers' logs say what); then run it again for what has failed".to_owned()
        }
        Some(FailureType::Unauthorized) => format!("{}; then run the batch again for what has failed", keys::REMEDY),
        Some(FailureType::TooLarge) => {
            "read long documents in parts (--long map_reduce), or choose a model with more room".to_owned()
        }
        Some(FailureType::Truncated) => {
            "raise --max-output-tokens, or take such answers (--on-cut keep)".to_owned()
        }
        Some(FailureType::InvalidOutput) => {
            "make the schema easier to meet, or name another model".to_owned()
        }
        Some(FailureType::ContentRefused) => {
            "look at these documents, or name another model for them".to_owned()
        }
        Some(FailureType::InvalidRequest) => {
            "the provider's words say what it does not take: the model's name, a parameter, or the document".to_owned()
        }
        Some(FailureType::InvalidInput | FailureType::UnreadableDocument) => {
            "see to these documents, and run the batch again for them".to_owned()
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
        assert!(next("Timeout", None).contains("failures.jsonl"));
        let member: ModelId = "a/eu:b".parse().unwrap();
        let of_member = next("Transient", Some(&member));
        assert!(of_member.contains("base-url of \"eu\" in [[providers.a.pool]]"), "{of_member}");
    }
}
