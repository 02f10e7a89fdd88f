//! A batch's documents, counted by what they wait for.

use std::{collections::BTreeMap, time::SystemTime};

use tidegate_workflows::contract::{FailureType, WaitsFor};

use crate::temporal::{LastFailure, Pending};

/// The activities of documents begin so: whole ones, parts, and several in a call.
const DOCUMENTS: &str = "tidegate.process_";

/// Those of the provider's batches end so.
const BATCHES: [&str; 2] = ["_batch", "_batches"];

/// Documents by what they wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli) struct Waits {
    /// With a worker: calling, or waiting in place for a turn that is near.
    pub(in crate::cli) working: u64,
    /// For their turn.
    pub(in crate::cli) turn: u64,
    /// After a failure, by its type.
    pub(in crate::cli) backing_off: BTreeMap<String, u64>,
    /// What one of them said, by type.
    pub(in crate::cli) words: BTreeMap<String, String>,
    /// For their batch to be resumed.
    pub(in crate::cli) paused: u64,
    /// Of these, until what was bought can be written.
    pub(in crate::cli) unwritten: u64,
    /// For a worker's slot.
    pub(in crate::cli) slot: u64,
    /// What bound most of those that wait for their turn. That others come first says nothing of
    /// what the first of them waits for, and counts where nothing else is known.
    pub(in crate::cli) binding: Option<WaitsFor>,
    /// Why one that waits for its budget does, in its own sentence.
    pub(in crate::cli) money: Option<String>,
    /// When the first and the last of those that wait are tried again.
    pub(in crate::cli) next: Option<(SystemTime, SystemTime)>,
    /// A step of the batch itself that has failed and is tried again.
    pub(in crate::cli) step: Option<FailingStep>,
}

/// A step that is nobody's document: of the plan, of a shard's seal, of the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct FailingStep {
    /// What the batch does by it.
    pub(in crate::cli) what: &'static str,
    /// Why it failed last: the type and its sentence.
    pub(in crate::cli) why: String,
    /// When it is tried again, if that is not now.
    pub(in crate::cli) next: Option<SystemTime>,
}

impl FailingStep {
    fn of(step: &Pending) -> Option<Self> {
        let what = match step.activity.as_str() {
            "tidegate.plan" | "tidegate.plan_more" => "it cannot be planned",
            "tidegate.seal_shard" => "results of a shard cannot be put together",
            "tidegate.finish" => "its results cannot be put together",
            _ => return None,
        };
        let LastFailure { kind, message, .. } = step.failure.as_ref()?;
        let colon = if kind.is_empty() || message.is_empty() { "" } else { ": " };
        Some(Self { what, why: format!("{kind}{colon}{message}"), next: step.next })
    }
}

impl Waits {
    /// Whether refused keys are what most of those that cannot go on have met.
    pub(in crate::cli) fn of_keys(&self) -> bool {
        let most = self.backing_off.iter().max_by_key(|(_, documents)| **documents);
        most.is_some_and(|(kind, _)| kind == FailureType::Unauthorized.as_str())
    }

    pub(in crate::cli) fn of(pending: &[Pending]) -> Self {
        let (mut waits, mut bindings) = (Self::default(), BTreeMap::<WaitsFor, u64>::new());
        waits.step = pending.iter().find_map(FailingStep::of);
        for step in pending.iter().filter(|step| is_of_documents(step)) {
            if step.started {
                waits.working += 1;
                continue;
            }
            let Some(next) = step.next else {
                waits.slot += 1;
                continue;
            };
            let (first, last) = waits.next.unwrap_or((next, next));
            waits.next = Some((first.min(next), last.max(next)));
            match &step.failure {
                Some(failure) if failure.details.waits_for == Some(WaitsFor::Paused) => {
                    waits.paused += 1;
                }
                Some(failure) if failure.kind == FailureType::QuotaWait.as_str() => {
                    waits.turn += 1;
                    if let Some(binding) = failure.details.waits_for {
                        *bindings.entry(binding).or_default() += 1;
                        if binding == WaitsFor::Budget {
                            waits.money = Some(failure.message.clone());
                        }
                    }
                }
                failure => {
                    let waits_for = failure.as_ref().and_then(|failure| failure.details.waits_for);
                    waits.unwritten += u64::from(waits_for == Some(WaitsFor::Unwritten));
                    let kind = failure.as_ref().map_or("a lost worker", |failure| &failure.kind);
                    *waits.backing_off.entry(kind.to_owned()).or_default() += 1;
                    let words = failure.as_ref().map(|failure| failure.message.clone());
                    let words = words.filter(|words| !words.is_empty());
                    if let Some(words) = words {
                        waits.words.entry(kind.to_owned()).or_insert(words);
                    }
                }
            }
        }
        waits.binding = bindings
            .into_iter()
            .max_by_key(|(binding, documents)| (*binding != WaitsFor::Turn, *documents))
            .map(|(binding, _)| binding);
        waits
    }
}

/// Whether documents wait for this step. Those of the provider's batches count where they fail:
/// they are few, and else the provider works.
fn is_of_documents(step: &Pending) -> bool {
    let of_batch = BATCHES.iter().any(|end| step.activity.ends_with(end));
    step.activity.starts_with(DOCUMENTS) || (of_batch && step.next.is_some())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_workflows::contract::FailureDetails;

    use super::*;

    fn failed(next: u64, kind: &str, waits_for: Option<WaitsFor>) -> Pending {
        let details = FailureDetails { waits_for, ..FailureDetails::default() };
        Pending {
            activity: "tidegate.process_document".to_owned(),
            next: Some(SystemTime::now() + Duration::from_secs(next)),
            failure: Some(LastFailure {
                kind: kind.to_owned(),
                message: "why".to_owned(),
                details,
            }),
            ..Pending::default()
        }
    }

    #[test]
    fn documents_are_counted_by_what_they_wait_for() {
        let bare =
            Pending { activity: "tidegate.process_document".to_owned(), ..Pending::default() };
        let seen = Waits::of(&[
            failed(20, "QuotaWait", Some(WaitsFor::Tokens)),
            failed(40, "QuotaWait", Some(WaitsFor::Tokens)),
            failed(30, "QuotaWait", Some(WaitsFor::Gate)),
            failed(90, "QuotaWait", Some(WaitsFor::Paused)),
            failed(5, "RateLimited", None),
            failed(9, "Transient", Some(WaitsFor::Unwritten)),
            Pending { started: true, ..bare.clone() },
            bare,
            Pending {
                activity: "tidegate.check_batches".to_owned(),
                started: true,
                ..Pending::default()
            },
            Pending {
                activity: "tidegate.submit_batch".to_owned(),
                ..failed(9, "Transient", None)
            },
            Pending { activity: "tidegate.plan".to_owned(), ..Pending::default() },
        ]);
        assert_eq!(
            (seen.working, seen.turn, seen.slot, seen.backing_off["RateLimited"]),
            (1, 3, 1, 1)
        );
        assert_eq!((seen.unwritten, seen.paused), (1, 1));
        assert_eq!(seen.words["RateLimited"], "why");
        assert_eq!(
            seen.backing_off["Transient"], 2,
            "steps of the provider's batches count where they fail"
        );
        assert_eq!(seen.binding, Some(WaitsFor::Tokens));
        let (first, last) = seen.next.unwrap();
        assert!((84..=86).contains(&last.duration_since(first).unwrap().as_secs()));
    }

    #[test]
    fn a_failing_step_of_the_batch_itself_is_kept_with_its_words() {
        let of = |activity: &str| {
            let activity = activity.to_owned();
            Waits::of(&[Pending { activity, ..failed(9, "Transient", None) }])
        };
        let step = of("tidegate.finish").step.unwrap();
        assert_eq!(
            (step.what, step.why.as_str()),
            ("its results cannot be put together", "Transient: why")
        );
        assert!(step.next.is_some());
        assert_eq!(of("tidegate.process_document").step, None);
        let untried = Pending { activity: "tidegate.plan".to_owned(), ..Pending::default() };
        assert_eq!(Waits::of(&[untried]), Waits::default());
    }

    #[test]
    fn what_is_said_of_a_budget_is_kept() {
        let waits = Waits::of(&[failed(2, "QuotaWait", Some(WaitsFor::Budget))]);
        assert_eq!(waits.money.as_deref(), Some("why"));
        let waits = Waits::of(&[failed(2, "QuotaWait", Some(WaitsFor::Gate))]);
        assert_eq!(waits.money, None);
    }

    #[test]
    fn a_limit_says_more_than_the_turns_behind_it() {
        let turn = || failed(20, "QuotaWait", Some(WaitsFor::Turn));
        let tokens = failed(20, "QuotaWait", Some(WaitsFor::Tokens));
        assert_eq!(Waits::of(&[turn(), turn()]).binding, Some(WaitsFor::Turn));
        assert_eq!(Waits::of(&[turn(), tokens, turn()]).binding, Some(WaitsFor::Tokens));
        let of_an_earlier_version = Waits::of(&[failed(20, "QuotaWait", None)]);
        assert_eq!((of_an_earlier_version.turn, of_an_earlier_version.binding), (1, None));
    }
}
