//! Advice on failures, by type.

use tidegate_calls::worker_status::{WorkerStatus, worker_statuses};
use tidegate_quota::Limited;
use tidegate_types::ModelId;
use tidegate_workflows::contract::FailureType;

use super::{fleet::Fleet, format, keys};
pub(super) use crate::config::provider::setting;
use crate::{
    serve,
    temporal::{ANSWER_WITHIN, Temporal},
};

/// Advice for a batch that was asked to stop and still runs.
pub(super) const CANCELLED: &str =
    "the batch was asked to stop: a worker ends what is under way and writes the report";

/// Advice where no worker polls the task queue.
pub(super) const START_WORKER: &str = "start one with `tidegate worker`; if one runs, check that it has this temporal.task-queue and namespace";

/// Advice for a batch's task queue on which no worker answers.
pub(super) async fn no_worker(fleet: Fleet<'_>, task_queue: &str) -> String {
    let cards = worker_statuses(fleet.limiter).await.ok();
    no_worker_among(fleet.temporal, task_queue, cards.as_deref())
}

/// Like [`no_worker`]. `cards` are the live workers, if they could be read.
pub(super) fn no_worker_among(
    temporal: &Temporal,
    task_queue: &str,
    cards: Option<&[(String, WorkerStatus)]>,
) -> String {
    format!(
        "no worker answers on the task queue \"{task_queue}\" of the namespace {} within {}; {}",
        temporal.namespace(),
        format::duration(ANSWER_WITHIN),
        start_worker(&temporal.queue_named(task_queue), cards)
    )
}

/// The remedy for a queue, named as on the cards, on which no worker answers.
fn start_worker(queue: &str, cards: Option<&[(String, WorkerStatus)]>) -> String {
    let Some(cards) = cards else { return START_WORKER.to_owned() };
    let of_queue = cards.iter().find(|(_, card)| card.queue == queue);
    let worker = cards.iter().find(|(_, card)| card.queue != serve::QUEUE);
    match (of_queue, worker) {
        (Some((name, _)), _) => {
            format!("{name} is alive there, and too busy: start more with `tidegate worker`")
        }
        (None, Some((name, other))) => {
            format!("{name} is alive, but serves {}: {START_WORKER}", other.queue)
        }
        (None, None) => format!("no worker is alive: {START_WORKER}"),
    }
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

/// Advice on a failure with this message, which may name the limit or the budget to raise.
pub(super) fn after_message(kind: &str, message: &str, model: Option<&ModelId>) -> String {
    let named = match FailureType::parse(kind) {
        Some(FailureType::TooLarge) => limit_of(message),
        Some(FailureType::BudgetExceeded) => budget_of(message),
        _ => None,
    };
    named.unwrap_or_else(|| next(kind, model))
}

/// How to raise the limit that a message of [`FailureType::TooLarge`] names.
fn limit_of(message: &str) -> Option<String> {
    if let Some((_, rest)) = message.split_once("are read (documents.") {
        let key = rest.split(')').next()?;
        return Some(format!("split these documents, or raise documents.{key} of the workers"));
    }
    let (needed, _) = message.split_once(", of which ")?;
    let (amount, model) = needed.strip_prefix("the call needs ")?.split_once(" of ")?;
    let (_, dimension) = amount.split_once(' ')?;
    let key = Limited::ALL.into_iter().find(|it| it.name() == dimension)?.key();
    Some(if message.contains("an operator has set") {
        format!(
            "raise {key} of {model} (`tidegate limits set`), or `tidegate limits clear {model}`"
        )
    } else {
        format!(
            "raise {key} of {model} in the workers' configuration if the account has more, or the share of the batch's lane; else read long documents in parts (--long map_reduce)"
        )
    })
}

/// How to raise the budget that a message of [`FailureType::BudgetExceeded`] names.
fn budget_of(message: &str) -> Option<String> {
    let budget = if let Some(rest) = message.strip_prefix("tenant \"") {
        let key = format!("[tenants.{}] daily-budget-usd", rest.split('"').next()?);
        format!("raise {key} in the workers' configuration, or wait for the next day")
    } else if message.starts_with("batch \"") || message.starts_with("the batch would cost") {
        "raise the batch's --budget-usd".to_owned()
    } else if message.starts_with("the batch's retry budget") {
        "raise --retry-budget once the calls no longer fail (see the workers' logs)".to_owned()
    } else {
        return None;
    };
    Some(format!("{budget}; then run the batch again for the failed documents"))
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
        Some(FailureType::QuotaWait) => "`tidegate why` says what it waits for; a limit can be raised (`tidegate limits set`)".to_owned(),
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
        Some(FailureType::UnknownModel) => {
            "name a model of `GET /v1/models` in these requests, and send them in another batch".to_owned()
        }
        Some(FailureType::Expired) => {
            "send the requests without an answer in another batch, with a longer completion_window".to_owned()
        }
        None => "see failures.jsonl, and the workers' logs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_quota::{
        Dimension, Refused,
        budget::{BudgetRefused, Payer},
    };

    use super::*;

    #[test]
    fn a_limit_or_a_budget_that_the_message_names_is_the_one_to_raise() {
        let fits = |set| {
            let model: ModelId = "a:b".parse().unwrap();
            let dimension = Dimension::Combined;
            Refused::NeverFits { model, dimension, asked: 900, capacity: 60, set }.to_string()
        };
        let too_large = |message: &str| after_message("TooLarge", message, None);
        assert!(too_large(&fits(None)).starts_with("raise tpm of a:b in the workers'"));
        let set = too_large(&fits(Some(60)));
        assert!(set.contains("raise tpm of a:b") && set.contains("limits clear a:b`"), "{set}");
        let file = "the file has 9 bytes; at most 8 are read (documents.max-size)";
        assert!(too_large(file).ends_with("or raise documents.max-size of the workers"));
        let context = "the call has some 9 input tokens; a:b takes 8";
        assert_eq!(too_large(context), next("TooLarge", None));

        let spent = |payer, reset| {
            let (budget_usd, left_usd, needed_usd, returning_usd) = (1.0, 0.1, 0.2, 0.0);
            let refused =
                BudgetRefused { payer, budget_usd, left_usd, needed_usd, returning_usd, reset };
            after_message("BudgetExceeded", &refused.to_string(), None)
        };
        let tenant = Payer::Tenant("acme".to_owned().try_into().unwrap());
        let tenant = spent(tenant, Some(std::time::Duration::from_secs(60)));
        assert!(tenant.starts_with("raise [tenants.acme] daily-budget-usd"), "{tenant}");
        let batch = spent(Payer::Batch("night".to_owned()), None);
        assert!(batch.starts_with("raise the batch's --budget-usd; then run"), "{batch}");
        let retries = "the batch's retry budget of 9 provider calls beyond the first is spent";
        let retries = after_message("BudgetExceeded", retries, None);
        assert!(retries.starts_with("raise --retry-budget"), "{retries}");
    }

    #[test]
    fn without_an_answer_the_live_workers_say_what_to_do() {
        let of = |queue: &str| {
            let card = WorkerStatus { queue: queue.to_owned(), ..WorkerStatus::default() };
            ("w1".to_owned(), card)
        };
        assert_eq!(start_worker("default/night", None), START_WORKER);
        let none = start_worker("default/night", Some(&[]));
        assert!(none.starts_with("no worker is alive: start one"), "{none}");
        assert_eq!(start_worker("default/night", Some(&[of(serve::QUEUE)])), none, "a door");
        let other = start_worker("default/night", Some(&[of("default/day")]));
        assert!(other.starts_with("w1 is alive, but serves default/day: start one"), "{other}");
        let busy = start_worker("default/night", Some(&[of("default/day"), of("default/night")]));
        assert!(busy.starts_with("w1 is alive there, and too busy"), "{busy}");
    }

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
        let member: ModelId = "a/eu:b".parse().unwrap();
        let of_member = next("Transient", Some(&member));
        assert!(of_member.contains("base-url of \"eu\" in [[providers.a.pool]]"), "{of_member}");
    }
}
