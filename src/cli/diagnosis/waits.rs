//! Counts a batch's documents by the resource that they wait for.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use tidegate_types::Spend;
use tidegate_workflows::contract::{FailureType, WaitsFor};

use crate::temporal::{HeldBy, LastFailure, Pending};

/// The prefix of activities for documents: single ones, parts, and several in a call.
const DOCUMENTS: &str = "tidegate.process_";

/// The suffixes of activities for a provider's batches.
const BATCHES: [&str; 2] = ["_batch", "_batches"];

/// Documents by the resource that they wait for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::cli) struct Waits {
    /// With a worker: calling, or waiting in place for a near turn.
    pub(in crate::cli) working: u64,
    /// Of those, with a worker that is missing in the registry, and not yet surely lost.
    pub(in crate::cli) unheard: u64,
    /// When the server gives up the last of these workers, if it is lost.
    pub(in crate::cli) unheard_until: Option<SystemTime>,
    /// With a lost worker: they begin again when the server gives that worker up.
    pub(in crate::cli) gone: u64,
    /// When the server gives up the last lost worker.
    pub(in crate::cli) given_up: Option<SystemTime>,
    /// Waiting for their turn.
    pub(in crate::cli) turn: u64,
    /// Waiting after a failure, by its type.
    pub(in crate::cli) backing_off: BTreeMap<String, u64>,
    /// When the first of them is retried, by type.
    pub(in crate::cli) again: BTreeMap<String, SystemTime>,
    /// A failure message, by type.
    pub(in crate::cli) words: BTreeMap<String, String>,
    /// Waiting for their batch to be resumed.
    pub(in crate::cli) paused: u64,
    /// Waiting until paid answers can be written.
    pub(in crate::cli) unwritten: u64,
    /// Waiting for a worker's slot.
    pub(in crate::cli) slot: u64,
    /// The resource that most documents in turn wait for. "Others come first" does not name the
    /// resource that the others wait for, so it counts only if nothing else is known.
    pub(in crate::cli) binding: Option<WaitsFor>,
    /// The message of a document that waits for its budget.
    pub(in crate::cli) money: Option<String>,
    /// When the first and the last waiting document are retried.
    pub(in crate::cli) next: Option<(SystemTime, SystemTime)>,
    /// Use of their attempts so far; the batch adds it when they end.
    pub(in crate::cli) spent: Spend,
    /// A failing step of the batch itself, which is retried.
    pub(in crate::cli) step: Option<FailingStep>,
}

/// A step without a document: of the plan, of a shard's seal, or of the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct FailingStep {
    /// The purpose of the step.
    pub(in crate::cli) what: &'static str,
    /// The type and the message of the last failure.
    pub(in crate::cli) why: String,
    /// When it is retried, if that is in the future.
    pub(in crate::cli) next: Option<SystemTime>,
}

impl FailingStep {
    fn from_activity(step: &Pending) -> Option<Self> {
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
    /// Whether refused keys are the failure of most waiting documents.
    pub(in crate::cli) fn are_mostly_refused_keys(&self) -> bool {
        let most = self.backing_off.iter().max_by_key(|(_, documents)| **documents);
        most.is_some_and(|(kind, _)| kind == FailureType::Unauthorized.as_str())
    }

    /// Counts documents in the task queue as waiting for quota: for lack of quota, no worker takes them.
    pub(in crate::cli) fn slots_wait_for_quota(&mut self) {
        self.turn += std::mem::take(&mut self.slot);
    }

    /// Whether most documents were with a lost worker.
    pub(in crate::cli) fn most_are_gone(&self) -> bool {
        let backing_off = self.backing_off.values().sum();
        let others = [self.working, self.turn, self.slot, self.paused, backing_off];
        others.into_iter().all(|documents| documents < self.gone)
    }

    /// Counts the pending activities. `live` are the names in the registry of workers, if it can be read.
    pub(in crate::cli) fn count(pending: &[Pending], live: Option<&BTreeSet<&str>>) -> Self {
        let (mut waits, mut bindings) = (Self::default(), BTreeMap::<WaitsFor, u64>::new());
        waits.step = pending.iter().find_map(FailingStep::from_activity);
        for step in pending.iter().filter(|step| is_of_documents(step)) {
            if let Some(LastFailure { details, .. }) = &step.failure {
                waits.spent += Spend::from(details.counts) + details.discarded.spend;
            }
            if let Some(held) = step.held.as_ref().filter(|held| is_gone(held, live)) {
                waits.gone += 1;
                waits.given_up = waits.given_up.max(Some(held.heard + held.patience));
                continue;
            }
            if step.started {
                waits.working += 1;
                if let Some(held) = step.held.as_ref().filter(|held| is_missing(held, live)) {
                    waits.unheard += 1;
                    waits.unheard_until = waits.unheard_until.max(Some(held.heard + held.patience));
                }
                waits.unwritten += u64::from(step.unwritten);
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
                    let again = waits.again.entry(kind.to_owned()).or_insert(next);
                    *again = next.min(*again);
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

/// Whether a worker is lost: it is missing in the registry, and its heartbeat is older than half of
/// the server's time-out. A live worker is in the registry and sends heartbeats in less than that.
/// One sign alone may mean a lost Redis or a late heartbeat.
fn is_gone(held: &HeldBy, live: Option<&BTreeSet<&str>>) -> bool {
    let silent = SystemTime::now().duration_since(held.heard).unwrap_or_default();
    is_missing(held, live) && silent > held.patience / 2
}

/// Whether a worker is missing in the registry, where a live one writes every few seconds.
fn is_missing(held: &HeldBy, live: Option<&BTreeSet<&str>>) -> bool {
    live.is_some_and(|live| !live.contains(held.worker.as_str()))
}

/// Whether documents wait for this step. Activities of provider batches count only if they fail: they are
/// few, and otherwise the provider is working.
fn is_of_documents(step: &Pending) -> bool {
    let of_batch = BATCHES.iter().any(|end| step.activity.ends_with(end));
    step.activity.starts_with(DOCUMENTS) || (of_batch && step.next.is_some())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_workflows::contract::{CallCounts, FailureDetails};

    use super::*;

    fn failed(next: u64, kind: &str, waits_for: Option<WaitsFor>) -> Pending {
        let counts = CallCounts { provider_calls: 2, rate_limited: 1, deferrals: 0 };
        let details = FailureDetails { waits_for, counts, ..FailureDetails::default() };
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
        let seen = Waits::count(
            &[
                failed(20, "QuotaWait", Some(WaitsFor::Tokens)),
                failed(40, "QuotaWait", Some(WaitsFor::Tokens)),
                failed(30, "QuotaWait", Some(WaitsFor::Gate)),
                failed(90, "QuotaWait", Some(WaitsFor::Paused)),
                failed(5, "RateLimited", None),
                failed(9, "Transient", Some(WaitsFor::Unwritten)),
                Pending { started: true, ..bare.clone() },
                Pending { started: true, unwritten: true, ..bare.clone() },
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
            ],
            None,
        );
        assert_eq!(
            (seen.working, seen.turn, seen.slot, seen.backing_off["RateLimited"]),
            (2, 3, 1, 1)
        );
        assert_eq!((seen.unwritten, seen.paused), (2, 1), "one failed, one holds its answer");
        assert_eq!((seen.spent.provider_calls, seen.spent.rate_limited), (14, 7), "of seven");
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
    fn only_a_worker_that_is_silent_and_in_no_registry_is_gone() {
        let heard = |ago| SystemTime::now() - Duration::from_secs(ago);
        let with = |worker: &str, ago| {
            let (worker, patience) = (worker.to_owned(), Duration::from_secs(40));
            let held = Some(HeldBy { worker, heard: heard(ago), patience });
            let activity = "tidegate.process_document".to_owned();
            Pending { activity, started: true, held, ..Pending::default() }
        };
        let pending = [with("dead", 25), with("dead", 30), with("dead", 5), with("alive", 30)];
        let live = BTreeSet::from(["alive"]);
        let seen = Waits::count(&pending, Some(&live));
        assert_eq!((seen.gone, seen.working), (2, 2), "one of the dead was heard of just now");
        assert_eq!(seen.unheard, 1);
        let left = seen.unheard_until.unwrap().duration_since(SystemTime::now()).unwrap();
        assert!((33..=35).contains(&left.as_secs()), "{left:?}");
        let left = seen.given_up.unwrap().duration_since(SystemTime::now()).unwrap();
        assert!((13..=15).contains(&left.as_secs()), "the last of them: {left:?}");
        assert!(!seen.most_are_gone());
        assert!(Waits::count(&pending[..2], Some(&live)).most_are_gone());
        let unknown = Waits::count(&pending, None);
        assert_eq!(
            (unknown.gone, unknown.unheard, unknown.working),
            (0, 0, 4),
            "Redis is away: nobody knows"
        );
    }

    #[test]
    fn a_failing_step_of_the_batch_itself_is_kept_with_its_words() {
        let of = |activity: &str| {
            let activity = activity.to_owned();
            Waits::count(&[Pending { activity, ..failed(9, "Transient", None) }], None)
        };
        let step = of("tidegate.finish").step.unwrap();
        assert_eq!(
            (step.what, step.why.as_str()),
            ("its results cannot be put together", "Transient: why")
        );
        assert!(step.next.is_some());
        assert_eq!(of("tidegate.process_document").step, None);
        let untried = Pending { activity: "tidegate.plan".to_owned(), ..Pending::default() };
        assert_eq!(Waits::count(&[untried], None), Waits::default());
    }

    #[test]
    fn what_is_said_of_a_budget_is_kept() {
        let waits = Waits::count(&[failed(2, "QuotaWait", Some(WaitsFor::Budget))], None);
        assert_eq!(waits.money.as_deref(), Some("why"));
        let waits = Waits::count(&[failed(2, "QuotaWait", Some(WaitsFor::Gate))], None);
        assert_eq!(waits.money, None);
    }

    #[test]
    fn a_limit_says_more_than_the_turns_behind_it() {
        let turn = || failed(20, "QuotaWait", Some(WaitsFor::Turn));
        let tokens = failed(20, "QuotaWait", Some(WaitsFor::Tokens));
        assert_eq!(Waits::count(&[turn(), turn()], None).binding, Some(WaitsFor::Turn));
        assert_eq!(Waits::count(&[turn(), tokens, turn()], None).binding, Some(WaitsFor::Tokens));
        let of_an_earlier_version = Waits::count(&[failed(20, "QuotaWait", None)], None);
        assert_eq!((of_an_earlier_version.turn, of_an_earlier_version.binding), (1, None));
    }
}
