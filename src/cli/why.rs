//! `tidegate why`.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tidegate_quota::{ModelQuota, Snapshot};
use tidegate_types::{Lane, ModelId, Tenant};
use tidegate_workflows::contract::{FailureType, Progress};

use crate::{
    config::Config,
    temporal::{Batch, NoProgress, Pending, Temporal},
};

use super::{
    exit::Outcome,
    figures::{self, count, span},
    follow, output, quota,
};

/// What a batch waits for, and when it goes on
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which batch, as `tidegate status` lists them
    workflow_id: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The class of a batch's calls.
#[derive(Debug, Clone)]
struct Class {
    model: Option<ModelId>,
    lane: Lane,
    tenant: Tenant,
}

/// Documents by what they wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Waits {
    /// With a worker: calling, or waiting in place for a turn that is near.
    working: u64,
    /// For their turn.
    turn: u64,
    /// After a failure, by its type.
    backing_off: BTreeMap<String, u64>,
    /// For a worker's slot.
    slot: u64,
    /// What bound those that wait for their turn: the most frequent limit, or that others come
    /// first.
    binding: Option<String>,
    /// When the first and the last of those that wait are tried again.
    next: Option<(SystemTime, SystemTime)>,
}

/// What binds those that others come before. It says nothing of what the first of them waits for.
const TURN: &str = "turn";

/// So begin the activities of documents: whole ones, parts, and several in a call.
const DOCUMENTS: &str = "tidegate.process_";

/// So end those of the provider's batches.
const BATCHES: [&str; 2] = ["_batch", "_batches"];

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let temporal = Temporal::open(config).await?;
    let batch = temporal.describe(&args.workflow_id).await?;
    if !batch.is_running() {
        ended(&batch, args.json)?;
        return Ok(Outcome::Done);
    }
    let class = class(&temporal.input(&batch.id).await?);
    let waits = waits(&temporal.pending(&batch.id).await?);
    let asked = temporal.progress(&batch.id).await;
    let limiter = config.quota()?;
    let model = class.model.as_ref().and_then(|id| limiter.models().find(|model| model.id == *id));
    let seen = match model {
        Some(model) => Some((model, limiter.inspect(&model.id).await?)),
        None => None,
    };
    let seen = seen.as_ref().map(|(model, snapshot)| (*model, snapshot));
    let no_worker =
        matches!(asked, Err(NoProgress::NoWorker)).then(|| follow::no_worker(&temporal));
    let progress = asked.ok();
    let answer = answer(&class, &waits, progress.as_ref(), no_worker, seen);
    if args.json {
        output::json(&value(&batch, &class, &waits, &answer, seen))?;
    } else {
        output::data(&text(&batch, &class, &waits, &answer, seen))?;
    }
    Ok(Outcome::Done)
}

fn ended(batch: &Batch, as_json: bool) -> anyhow::Result<()> {
    let ended =
        batch.closed.map(|time| format!(" at {}", figures::stamp(time))).unwrap_or_default();
    let sentence = format!(
        "it waits for nothing: it ended{ended} ({}); `tidegate status {}` tells how",
        batch.status.as_str(),
        batch.id
    );
    if as_json {
        return output::json(
            &json!({ "workflow_id": batch.id, "status": batch.status.as_str(), "why": sentence }),
        );
    }
    output::data(&format!("{}: {sentence}\n", batch.id))
}

/// From what was typed, or from what an earlier run passed on.
fn class(input: &Value) -> Class {
    let input = input.pointer("/continued/job").unwrap_or(input);
    let text = |field: &str| input[field].as_str().unwrap_or_default();
    Class {
        model: text("model").parse().ok(),
        lane: Lane::try_from(text("lane").to_owned()).unwrap_or_default(),
        tenant: Tenant::try_from(text("tenant").to_owned()).unwrap_or_default(),
    }
}

fn waits(pending: &[Pending]) -> Waits {
    let (mut waits, mut bindings) = (Waits::default(), BTreeMap::<String, u64>::new());
    let backs_off = |step: &&Pending| {
        BATCHES.iter().any(|end| step.activity.ends_with(end)) && step.next.is_some()
    };
    let documents =
        pending.iter().filter(|step| step.activity.starts_with(DOCUMENTS) || backs_off(step));
    for document in documents {
        if document.started {
            waits.working += 1;
            continue;
        }
        let Some(next) = document.next else {
            waits.slot += 1;
            continue;
        };
        waits.next = Some(
            waits.next.map_or((next, next), |(first, last)| (first.min(next), last.max(next))),
        );
        match &document.failure {
            Some((kind, message)) if kind == FailureType::QuotaWait.as_str() => {
                waits.turn += 1;
                *bindings.entry(binding(message)).or_default() += 1;
            }
            failure => {
                let kind = failure.as_ref().map_or("a lost worker", |(kind, _)| kind);
                *waits.backing_off.entry(kind.to_owned()).or_default() += 1;
            }
        }
    }
    waits.binding = bindings
        .into_iter()
        .max_by_key(|(binding, documents)| (*binding != TURN, *documents))
        .map(|(binding, _)| binding);
    waits
}

/// What a `QuotaWait` says of itself: `no quota for … for …: tokens binds`, or that the gate is
/// closed.
fn binding(message: &str) -> String {
    let named = message.strip_suffix(" binds").and_then(|rest| rest.rsplit_once(": "));
    named.map_or("the gate", |(_, name)| name).to_owned()
}

/// The one sentence that matters, the gravest cause first.
fn answer(
    class: &Class,
    waits: &Waits,
    progress: Option<&Progress>,
    no_worker: Option<String>,
    seen: Option<(&ModelQuota, &Snapshot)>,
) -> String {
    if let Some(no_worker) = no_worker {
        return no_worker;
    }
    if progress.is_some_and(|progress| progress.paused) {
        return "it is paused; send it the signal resume".to_owned();
    }
    let in_flight = progress.map_or(0, |progress| progress.totals.in_flight);
    if *waits == Waits::default() && in_flight > 0 {
        return format!(
            "the provider works on {} documents in its batch API; it is asked for them every ten minutes at least, and has a day",
            count(in_flight)
        );
    }
    let Some((model, snapshot)) = seen else {
        return class.model.as_ref().map_or_else(
            || "its input names no model".to_owned(),
            |model| {
                format!("no limits are configured here for {model}; use the workers' tidegate.toml")
            },
        );
    };
    if snapshot.exhausted || !snapshot.pause.is_zero() {
        let binds = quota::binds(model, snapshot).unwrap_or_default();
        return format!("it waits for {binds}; `tidegate resume {}` opens it now", model.id);
    }
    if waits.turn > 0 {
        let named = || waits.binding.clone().unwrap_or_default();
        return format!(
            "it waits for quota: {}",
            quota::binds(model, snapshot).unwrap_or_else(named)
        );
    }
    if let Some((kind, documents)) =
        waits.backing_off.iter().max_by_key(|(_, documents)| **documents)
    {
        return format!("{} documents back off after {kind}", count(*documents));
    }
    if waits.slot > 0 {
        return "its documents wait for a free slot: start more workers, or raise worker.max-concurrent-documents".to_owned();
    }
    match quota::binds(model, snapshot) {
        Some(binds) => format!("it goes on as fast as the quota allows: {binds}"),
        None if waits.working > 0 => {
            "it waits for the provider's answers, and for no quota".to_owned()
        }
        None => "it waits for no quota; it plans or gathers its results".to_owned(),
    }
}

fn text(
    batch: &Batch,
    class: &Class,
    waits: &Waits,
    answer: &str,
    seen: Option<(&ModelQuota, &Snapshot)>,
) -> String {
    let mut rows = vec![("batch", batch.id.clone()), ("why", answer.to_owned())];
    let model = class.model.as_ref().map_or("-", ModelId::as_str);
    rows.push(("calls", format!("{model}, lane {}, tenant {}", class.lane, class.tenant)));
    rows.push(("with a worker", format!("{} (calling, or a moment before)", count(waits.working))));
    let reasons = [("for their turn", waits.turn), ("for a slot", waits.slot)];
    rows.extend(
        reasons
            .into_iter()
            .filter(|(_, documents)| *documents > 0)
            .map(|(name, documents)| (name, count(documents))),
    );
    for (kind, documents) in &waits.backing_off {
        rows.push(("backing off", format!("{} after {kind}", count(*documents))));
    }
    if let Some(lane) =
        seen.and_then(|(_, snapshot)| snapshot.lanes.iter().find(|lane| lane.lane == class.lane))
    {
        let (waiting, queue) = (count(lane.waiting), span(lane.queue));
        rows.push((
            "its lane",
            format!(
                "about {waiting} wait; the queue is {queue} long; next grant in {}",
                span(lane.next)
            ),
        ));
    }
    if let Some((first, last)) = waits.next {
        let until = |time| span(figures::until(time).unwrap_or(Duration::ZERO));
        rows.push((
            "tried again",
            format!("the first in {}, the last in {}", until(first), until(last)),
        ));
    }
    output::pairs(&rows)
}

fn value(
    batch: &Batch,
    class: &Class,
    waits: &Waits,
    answer: &str,
    seen: Option<(&ModelQuota, &Snapshot)>,
) -> Value {
    json!({
        "workflow_id": batch.id,
        "status": batch.status.as_str(),
        "why": answer,
        "model": class.model,
        "lane": class.lane,
        "tenant": class.tenant,
        "working": waits.working,
        "waiting_for_turn": waits.turn,
        "waiting_for_slot": waits.slot,
        "backing_off": waits.backing_off,
        "binding": waits.binding,
        "next_attempt": waits.next.map(|(first, _)| figures::stamp(first)),
        "last_attempt": waits.next.map(|(_, last)| figures::stamp(last)),
        "quota": seen.map(|(model, snapshot)| quota::value(model, snapshot)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_quota::{Charge, Lanes, Limits};
    use tidegate_workflows::contract::Totals;

    use super::*;

    fn document(next: u64, kind: &str, message: &str) -> Pending {
        Pending {
            activity: "tidegate.process_document".to_owned(),
            next: Some(SystemTime::now() + Duration::from_secs(next)),
            failure: Some((kind.to_owned(), message.to_owned())),
            ..Pending::default()
        }
    }

    #[test]
    fn documents_are_counted_by_what_they_wait_for() {
        let bare =
            Pending { activity: "tidegate.process_document".to_owned(), ..Pending::default() };
        let seen = waits(&[
            document(20, "QuotaWait", "no quota for a:b for 20s: tokens binds"),
            document(40, "QuotaWait", "no quota for a:b for 40s: tokens binds"),
            document(30, "QuotaWait", "a:b is paused for 30s"),
            document(5, "RateLimited", "429"),
            Pending { started: true, ..bare.clone() },
            bare,
            Pending {
                activity: "tidegate.check_batches".to_owned(),
                started: true,
                ..Pending::default()
            },
            Pending {
                activity: "tidegate.submit_batch".to_owned(),
                ..document(9, "Transient", "500")
            },
            Pending { activity: "tidegate.plan".to_owned(), ..Pending::default() },
        ]);
        assert_eq!(
            (seen.working, seen.turn, seen.slot, seen.backing_off["RateLimited"]),
            (1, 3, 1, 1)
        );
        assert_eq!(
            seen.backing_off["Transient"], 1,
            "steps of the provider's batches count where they fail"
        );
        assert_eq!(seen.binding.as_deref(), Some("tokens"));
        let (first, last) = seen.next.unwrap();
        assert!((34..=36).contains(&last.duration_since(first).unwrap().as_secs()));
    }

    #[test]
    fn the_gravest_cause_is_told() {
        let limits = Limits { combined: Some(1_000), ..Limits::default() };
        let model = ModelQuota::new(
            "a:b".parse().unwrap(),
            limits,
            Charge::default(),
            Arc::new(Lanes::single()),
        )
        .unwrap();
        let class = class(&json!({ "model": "a:b", "lane": "interactive" }));
        assert_eq!(class.lane.as_str(), "interactive");
        let turn = Waits { turn: 7, binding: Some("tokens".into()), ..Waits::default() };
        let mut snapshot = Snapshot { factor: 1.0, ..Snapshot::default() };
        let answered = |waits: &Waits, snapshot: &Snapshot| {
            answer(&class, waits, None, None, Some((&model, snapshot)))
        };
        assert_eq!(answered(&turn, &snapshot), "it waits for quota: tokens");
        let slot = Waits { slot: 3, ..Waits::default() };
        assert!(answered(&slot, &snapshot).contains("raise worker.max-concurrent-documents"));
        (snapshot.pause, snapshot.reason) = (Duration::from_secs(60), "holiday".to_owned());
        assert_eq!(
            answered(&turn, &snapshot),
            "it waits for the gate: paused for 1m 0s: holiday; `tidegate resume a:b` opens it now"
        );
        let totals = Totals { in_flight: 40, ..Totals::default() };
        let progress = Progress { totals, ..Progress::default() };
        let waiting =
            |waits: &Waits| answer(&class, waits, Some(&progress), None, Some((&model, &snapshot)));
        assert!(
            waiting(&Waits::default())
                .starts_with("the provider works on 40 documents in its batch API")
        );
        assert!(waiting(&turn).contains("it waits for the gate"), "not while documents wait here");
        assert_eq!(
            answer(&class, &turn, None, Some("no worker".into()), Some((&model, &snapshot))),
            "no worker"
        );
    }

    #[test]
    fn a_run_that_continued_as_new_has_its_class_too() {
        let class = class(
            &json!({ "continued": { "job": { "model": "a:b", "lane": "standard", "tenant": "x" } } }),
        );
        assert_eq!(
            (class.model.unwrap().as_str(), class.lane.as_str(), class.tenant.as_str()),
            ("a:b", "standard", "x")
        );
    }
}
