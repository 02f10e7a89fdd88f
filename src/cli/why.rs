//! `tidegate why`: what a batch waits for.

mod waits;

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_activities::call::keys::cards;
use tidegate_quota::{ModelQuota, Snapshot};
use tidegate_types::{Lane, ModelId, Tenant};
use tidegate_workflows::contract::{Progress, WaitsFor};

use crate::{
    config::Config,
    temporal::{Batch, NoProgress, Temporal},
};

use self::waits::Waits;
use super::{
    exit::Outcome,
    figures::{self, count, span},
    follow, keys, output, quota,
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

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let temporal = Temporal::open(config).await?;
    let batch = temporal.describe(&args.workflow_id).await?;
    if !batch.is_running() {
        ended(&batch, args.json)?;
        return Ok(Outcome::Done);
    }
    let class = class(&temporal.input(&batch.id).await?);
    let waits = Waits::of(&temporal.pending(&batch.id).await?);
    let (versions, pinned) = tokio::try_join!(temporal.versions(), temporal.pinned(&batch.id))?;
    let idle = versions.idle(temporal.task_queue(), &batch.id, pinned.as_ref());
    let progress = temporal.progress(&batch.id).await;
    let limiter = config.quota()?;
    let model = class.model.as_ref().and_then(|id| limiter.models().find(|model| model.id == *id));
    let seen = match model {
        Some(model) => Some((model, limiter.inspect(&model.id).await?)),
        None => None,
    };
    let seen = seen.as_ref().map(|(model, snapshot)| (*model, snapshot));
    let (cards, queue) = (cards(&limiter).await.unwrap_or_default(), temporal.queue());
    let refused = class.model.as_ref().and_then(|model| keys::why(&cards, &queue, model));
    let no_worker = idle.or_else(|| {
        matches!(progress, Err(NoProgress::NoWorker)).then(|| follow::no_worker(&temporal))
    });
    let progress = progress.ok();
    let answer = match refused {
        // Where others go on, documents that are handed back are the cause of nothing else.
        Some(refused) if no_worker.is_none() && waits.of_keys() => refused,
        _ => answer(&class, &waits, progress.as_ref(), no_worker, seen),
    };
    if args.json {
        let mut value = value(&batch, &class, &waits, &answer, seen);
        value["refused_keys"] = keys::value(&cards, &queue);
        output::json(&value)?;
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
    if waits.unwritten > 0 {
        return format!(
            "results cannot be written: nothing more is bought until they can, and {} documents wait for that; mend the store of the batch's output, and start workers that have stopped and have something in their spool",
            count(waits.unwritten)
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
    if let Some(money) = waits.money.as_ref().filter(|_| waits.binding == Some(WaitsFor::Budget)) {
        return format!("it waits for money: {money}");
    }
    if waits.turn > 0 {
        let bound = quota::binds(model, snapshot)
            .or_else(|| waits.binding.map(|binding| binding.to_string()));
        return bound.map_or_else(
            || "it waits for quota".to_owned(),
            |binding| format!("it waits for quota: {binding}"),
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
        "waiting_for_writes": waits.unwritten,
        "binding": waits.binding.map(WaitsFor::as_str),
        "next_attempt": waits.next.map(|(first, _)| figures::stamp(first)),
        "last_attempt": waits.next.map(|(_, last)| figures::stamp(last)),
        "quota": seen.map(|(model, snapshot)| quota::value(model, snapshot)),
    })
}

#[cfg(test)]
mod tests;
