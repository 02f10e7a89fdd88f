//! Finds the cause that holds a batch back, for `why`, for `status`, and while a batch is followed.

mod waits;

use std::time::{Duration, SystemTime};

use serde_json::Value;
use tidegate_calls::worker_status::{WorkerStatus, worker_statuses};
use tidegate_quota::{
    ModelQuota, Quota, Snapshot, operator_holds::OperatorHolds, snapshot::RATE_LIMITED,
};
use tidegate_types::{Lane, ModelId, Tenant};
use tidegate_workflows::{
    contract::{FailureType, Progress, WaitsFor},
    policy,
};

use crate::{
    config::Config,
    temporal::{Batch, NoProgress},
};

use self::waits::FailingStep;
pub(super) use self::waits::Waits;
use super::{
    advice,
    fleet::Fleet,
    format::{self, count, duration, plural},
    keys,
    snapshot::{binds, unused},
    trouble::Trouble,
};

/// The models, the lane and the tenant of a batch's calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Class {
    /// The batch's model, or the models of its route, in order.
    pub(super) models: Vec<ModelId>,
    /// The model or route that this machine's configuration does not have.
    unknown: Option<String>,
    pub(super) lane: Lane,
    pub(super) tenant: Tenant,
}

/// The reason why a batch stands still, or does not go faster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    /// The main cause in one sentence, with the remedy.
    pub(super) sentence: String,
    /// Whether no document proceeds until the cause is gone, so that the end of the batch is
    /// unknown.
    pub(super) stands: bool,
    /// Whether most documents with workers back off after failures.
    pub(super) fails: bool,
}

impl Cause {
    pub(super) fn stands(sentence: impl Into<String>) -> Self {
        Self { stands: true, ..Self::slows(sentence) }
    }

    pub(super) fn slows(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), stands: false, fails: false }
    }
}

/// The diagnosis of a running batch.
pub(super) struct Diagnosis {
    pub(super) class: Class,
    pub(super) waits: Waits,
    pub(super) progress: Result<Progress, NoProgress>,
    /// The decisive model and its quota.
    pub(super) quota: Option<(ModelQuota, Snapshot)>,
    pub(super) troubles: Vec<Trouble>,
    pub(super) cards: Vec<(String, WorkerStatus)>,
    pub(super) held: OperatorHolds,
    pub(super) cause: Cause,
}

/// Diagnoses a running batch.
pub(super) async fn diagnose(fleet: Fleet<'_>, batch: &Batch) -> anyhow::Result<Diagnosis> {
    let Fleet { config, limiter, temporal } = fleet;
    let class = read_class(&temporal.input(&batch.id).await?, config);
    let pending = temporal.pending(&batch.id).await?;
    // Read after the activities: a worker registers before it takes an activity.
    let cards = worker_statuses(limiter).await;
    let live =
        cards.as_ref().ok().map(|cards| cards.iter().map(|(name, _)| name.as_str()).collect());
    let mut waits = Waits::count(&pending, live.as_ref());
    let task_queue = batch.task_queue.as_str();
    let (versions, pinned) =
        tokio::join!(temporal.versions(task_queue), temporal.pinned(&batch.id));
    let pinned = pinned?;
    // A user who may not describe task queues is told the other causes; `doctor` names the right.
    let versions = versions.ok();
    let idle = versions.and_then(|it| it.idle(task_queue, &batch.id, pinned.as_ref()));
    let progress = temporal.progress(&batch.id).await;
    let no_worker = idle.or_else(|| {
        let live = cards.as_deref().ok();
        matches!(progress, Err(NoProgress::NoWorker))
            .then(|| advice::no_worker_among(temporal, task_queue, live))
    });
    let is_paused = progress.as_ref().is_ok_and(|progress| progress.paused);
    let stopped = no_worker.clone().or_else(|| is_paused.then(|| paused(&waits, &batch.id)));
    let (quota, redis_away) = decisive_quota(limiter, &class).await;
    if quota.as_ref().is_some_and(|(_, seen)| others_wait(seen, &class.lane)) {
        waits.slots_wait_for_quota();
    }
    let held = limiter.operator_holds().await.unwrap_or_default();
    let (cards, queue) = (cards.unwrap_or_default(), temporal.queue_named(task_queue));
    let of_queue: Vec<_> = cards.iter().filter(|(_, card)| card.queue == queue).cloned().collect();
    let troubles: Vec<Trouble> =
        class.models.iter().filter_map(|model| Trouble::from_cards(&of_queue, model)).collect();
    let refused = class.models.first().and_then(|model| keys::why(&cards, &queue, model));
    let (most_failed, away) =
        (waits.are_mostly_refused_keys(), redis_away.map(|error| redis_is_away(&error)));
    let mut cause = match refused {
        // If other workers make calls, returned documents explain nothing else.
        Some(refused) if no_worker.is_none() && most_failed => {
            let stands =
                !of_queue.iter().any(|(_, card)| class.models.iter().any(|it| card.can_ask(it)));
            Cause { stands, fails: true, ..Cause::slows(refused) }
        }
        _ => {
            let quota = quota.as_ref().map(|(model, seen)| (model, seen));
            find_cause(
                &class,
                &waits,
                progress.as_ref().ok(),
                stopped,
                (quota, &held, away, &troubles),
            )
        }
    };
    // It is unknown when a paused model is resumed.
    cause.stands |= quota.as_ref().is_some_and(|(model, _)| held.models.contains_key(&model.id));
    Ok(Diagnosis { class, waits, progress, quota, troubles, cards: of_queue, held, cause })
}

/// The decisive model of this class and its quota, or the reason why it cannot be read.
pub(super) async fn decisive_quota(
    limiter: &Quota,
    class: &Class,
) -> (Option<(ModelQuota, Snapshot)>, Option<String>) {
    let (mut quota, mut redis_away) = (None, None);
    for id in &class.models {
        let Some(model) = limiter.models().find(|model| model.id == *id) else { continue };
        match limiter.inspect(id).await {
            // In a route, the first model with an open gate is decisive.
            Ok(seen) if quota.is_none() || seen.pause.is_zero() => {
                let is_open = seen.pause.is_zero();
                quota = Some((model.clone(), seen));
                if is_open {
                    break;
                }
            }
            Ok(_) => {}
            Err(error) => redis_away = Some(error.to_string()),
        }
    }
    (quota, redis_away)
}

/// Whether documents of the lane wait for quota. Then workers take only documents that are admitted soon,
/// and the others stay in the task queue.
fn others_wait(seen: &Snapshot, lane: &Lane) -> bool {
    let of_lane = seen.lanes.iter().find(|seen| seen.lane == *lane);
    !seen.pause.is_zero() || of_lane.is_some_and(|lane| lane.waiting > 0)
}

/// The consequence of an unreachable Redis.
fn redis_is_away(error: &str) -> String {
    format!(
        "{error}; until it is back each worker keeps to its share of the limits, and documents with a budget wait; next: start it, or correct redis.url; run `tidegate doctor`"
    )
}

/// Reads a batch's input, as typed or as an earlier run passed it on.
pub(super) fn read_class(input: &Value, config: &Config) -> Class {
    let input = input.pointer("/continued/job").unwrap_or(input);
    let text = |field: &str| input[field].as_str().unwrap_or_default();
    let (model, route) = (text("model").parse::<ModelId>().ok(), text("route"));
    let of_route = || {
        let routes = config.routes().unwrap_or_default();
        routes.get(route).map(|route| route.models.clone()).unwrap_or_default()
    };
    // A pool's name stands for its members.
    let of_model = |model: ModelId| {
        let members = config.pool_members(model.as_str()).iter();
        let members: Vec<ModelId> = members.filter_map(|member| member.parse().ok()).collect();
        if members.is_empty() { vec![model] } else { members }
    };
    let models = model.map_or_else(of_route, of_model);
    let unknown = models.is_empty().then(|| format!("the route \"{route}\""));
    Class {
        unknown: unknown.filter(|_| !route.is_empty()),
        models,
        lane: Lane::try_from(text("lane").to_owned()).unwrap_or_default(),
        tenant: Tenant::try_from(text("tenant").to_owned()).unwrap_or_default(),
    }
}

type Seen<'a> =
    (Option<(&'a ModelQuota, &'a Snapshot)>, &'a OperatorHolds, Option<String>, &'a [Trouble]);

/// The most serious cause. `stopped` is the reason if no document proceeds: no worker, or a pause.
fn find_cause(
    class: &Class,
    waits: &Waits,
    progress: Option<&Progress>,
    stopped: Option<String>,
    (quota, held, redis_away, troubles): Seen<'_>,
) -> Cause {
    if let Some(stopped) = stopped {
        return Cause::stands(stopped);
    }
    if let Some(away) = redis_away {
        return Cause { stands: waits.working == 0, ..Cause::slows(away) };
    }
    let in_flight = progress.map_or(0, |progress| progress.totals.in_flight);
    if *waits == Waits::default() && in_flight > 0 {
        return Cause::slows(format!(
            "the provider works on {} in its batch API; it is asked for them every ten minutes at least, and has a day",
            plural(in_flight, "document")
        ));
    }
    if waits.unwritten > 0 {
        return Cause::stands(format!(
            "results cannot be written; until they can, nothing more is bought and {}; repair the store of the batch's output, and start stopped workers that have answers in their spool",
            documents(waits.unwritten, "waits", "wait")
        ));
    }
    if let Some(step) = &waits.step {
        let stands = waits.working == 0 && waits.turn == 0;
        return Cause { stands, ..Cause::slows(failing(step)) };
    }
    let Some((model, snapshot)) = quota else {
        return Cause::slows(match (class.models.first(), &class.unknown) {
            (Some(named), _) => not_configured(named.as_str()),
            (None, Some(route)) => not_configured(route),
            (None, None) => "its input names no model".to_owned(),
        });
    };
    let down = troubles.iter().filter(|trouble| trouble.is_down()).count();
    if down > 0 && down == class.models.len() {
        let all: Vec<String> = troubles.iter().map(Trouble::with_advice).collect();
        return Cause::stands(all.join("; "));
    }
    if snapshot.exhausted || !snapshot.pause.is_zero() {
        return gate(model, snapshot, held, troubles);
    }
    if let Some(money) = waits.money.as_ref().filter(|_| waits.binding == Some(WaitsFor::Budget)) {
        return Cause::stands(format!("it waits for money: {money}"));
    }
    if waits.most_are_gone() {
        return Cause::slows(with_the_gone(waits));
    }
    if let Some((kind, documents)) =
        waits.backing_off.iter().max_by_key(|(_, documents)| **documents)
        && waits.turn < *documents
    {
        let fails = waits.working < *documents;
        return Cause { fails, ..Cause::slows(backs_off(waits, kind, *documents, &model.id)) };
    }
    if waits.binding == Some(WaitsFor::Gate)
        && let Some(next) = waits.next
    {
        return Cause::slows(format!("the gate is open; its documents come back {}", again(next)));
    }
    if waits.turn > 0 {
        let bound = binds(model, snapshot, held)
            .or_else(|| waits.binding.map(|binding| binding.to_string()));
        let bound = bound.map_or_else(String::new, |binding| format!(": {binding}"));
        return Cause::slows(format!(
            "it waits for quota{bound}{}",
            unused_output_note(model, snapshot)
        ));
    }
    if waits.unheard > 0 && waits.unheard == waits.working {
        return Cause::slows(with_the_unheard(waits));
    }
    if waits.slot > 0 {
        return Cause::slows(
            "its documents wait for a free slot: start more workers, or raise worker.max-concurrent-documents",
        );
    }
    Cause::slows(match binds(model, snapshot, held) {
        Some(binds) => {
            let counts = unused_output_note(model, snapshot);
            format!("it goes on as fast as the quota allows: {binds}{counts}")
        }
        None if waits.working > 0 => {
            "it waits for the provider's answers, and for no quota".to_owned()
        }
        None => "it waits for no quota; it plans or gathers its results".to_owned(),
    })
}

/// A note if the limit on output takes part of the quota; otherwise empty.
fn unused_output_note(model: &ModelQuota, snapshot: &Snapshot) -> String {
    unused(model, snapshot).map_or_else(String::new, |unused| format!("; {unused}"))
}

fn not_configured(what: &str) -> String {
    format!("no limits are configured here for {what}; use the workers' tidegate.toml")
}

fn paused(waits: &Waits, batch: &str) -> String {
    let held = waits.paused + waits.turn + waits.slot + waits.backing_off.values().sum::<u64>();
    let calls = match waits.working {
        1 => "1 call is under way and ends".to_owned(),
        calls => format!("{} calls are under way and end", count(calls)),
    };
    let held = documents(held, "is handed out and waits", "are handed out and wait");
    format!(
        "it is paused: {calls}, {held}; `temporal workflow signal --workflow-id {batch} --name resume` lets it go on"
    )
}

/// `1 document waits`, `2 documents wait`.
fn documents(number: u64, does: &str, many_do: &str) -> String {
    let verb = if number == 1 { does } else { many_do };
    format!("{} {verb}", plural(number, "document"))
}

/// The time until the first and the last of the waiting documents are tried again.
pub(super) fn again((first, last): (SystemTime, SystemTime)) -> String {
    let [first, last] =
        [first, last].map(|time| duration(format::time_until(time).unwrap_or(Duration::ZERO)));
    if first == last {
        format!("in {first}")
    } else {
        format!("the first in {first}, the last in {last}")
    }
}

/// The documents of a lost worker.
pub(super) fn with_the_gone(waits: &Waits) -> String {
    // After the retry's delay, the server gives a lost activity to another worker.
    let left =
        waits.given_up.and_then(format::time_until).unwrap_or(Duration::ZERO) + policy::FIRST_RETRY;
    let (were, they) = if waits.gone == 1 { ("was", "it begins") } else { ("were", "they begin") };
    let documents = plural(waits.gone, "document");
    format!("{documents} {were} with a worker that is gone; {they} again within {}", duration(left))
}

/// Documents with workers whose entries in the registry have expired.
fn with_the_unheard(waits: &Waits) -> String {
    let left = waits.unheard_until.and_then(format::time_until).unwrap_or(Duration::ZERO)
        + policy::FIRST_RETRY;
    let (are, they) = if waits.unheard == 1 { ("is", "it starts") } else { ("are", "they start") };
    let documents = plural(waits.unheard, "document");
    format!(
        "{documents} {are} with a worker that reports no more; {they} elsewhere within {}, if it is gone",
        duration(left)
    )
}

/// Documents that are retried after a failure.
fn backs_off(waits: &Waits, kind: &str, number: u64, model: &ModelId) -> String {
    let words = waits.words.get(kind).map_or_else(String::new, |words| format!(": {words}"));
    let documents = documents(number, "backs off", "back off");
    // A failure of Temporal's own, or of another program, has no remedy here.
    let next = FailureType::parse(kind).map_or_else(
        || {
            let until = waits.again.get(kind).copied().and_then(format::time_until);
            let first = if number == 1 { "it is tried again" } else { "the first is tried again" };
            format!(
                "{first} in {}; the workers' logs say more",
                duration(until.unwrap_or_default())
            )
        },
        |_| {
            let words = waits.words.get(kind).map_or("", String::as_str);
            format!("next: {}", advice::after_message(kind, words, Some(model)))
        },
    );
    format!("{documents} after {kind}{words}; {next}")
}

/// A failing step of the batch itself, which is retried and which the reader must repair.
fn failing(step: &FailingStep) -> String {
    let again = step.next.and_then(format::time_until).filter(|left| !left.is_zero());
    let again =
        again.map_or_else(|| "now".to_owned(), |left| format!("in {}", format::duration(left)));
    format!(
        "{}: {}; it is tried again {again}; next: repair what it names (room, rights and keys of the batch's source and output, or Redis)",
        step.what, step.why
    )
}

/// The cause, if an operator has paused the model until it is resumed.
pub(super) fn held(
    model: &ModelQuota,
    snapshot: &Snapshot,
    held: &OperatorHolds,
) -> Option<String> {
    let is_held = !snapshot.pause.is_zero() && held.models.contains_key(&model.id);
    is_held.then(|| gate(model, snapshot, held, &[]).sentence)
}

/// A closed gate, with the provider's message.
fn gate(
    model: &ModelQuota,
    snapshot: &Snapshot,
    held: &OperatorHolds,
    troubles: &[Trouble],
) -> Cause {
    let binds = binds(model, snapshot, held).unwrap_or_default();
    let opens = format!("`tidegate resume {}` opens it now", model.id);
    if snapshot.exhausted {
        let next = advice::next("QuotaExhausted", Some(&model.id));
        return Cause::stands(format!("it waits for {binds}; next: {next}"));
    }
    // An operator's pause has nothing to do with an earlier refusal.
    let is_refused = snapshot.reason == RATE_LIMITED;
    let refused = troubles.iter().find(|trouble| is_refused && trouble.kind() == "RateLimited");
    let said = refused.map_or_else(String::new, |trouble| format!("; {}", trouble.with_advice()));
    Cause::slows(format!("it waits for {binds}{said}; {opens}"))
}

#[cfg(test)]
mod tests;
