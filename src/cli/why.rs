//! `tidegate why`: the resource that a batch waits for.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tidegate_types::ModelId;

use crate::{
    config::Config,
    temporal::{Batch, Ending, Temporal, status_name},
};

use super::{
    advice::CANCELLED,
    diagnosis::{self, Diagnosis},
    eta,
    exit::Outcome,
    failed,
    fleet::Fleet,
    format::{self, count, duration},
    keys, output,
    snapshot::{ModelView, Sources},
    trouble::Trouble,
    webhook,
};

/// Show what a batch waits for, and what to do
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The batch, as `tidegate status` lists it [default: the newest]
    workflow_id: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let temporal = Temporal::open(config).await?;
    let batch = match &args.workflow_id {
        Some(id) => temporal.describe(id).await?,
        None => temporal.newest().await?,
    };
    if !batch.is_running() {
        show_ended(config, &temporal, &batch, args.json).await?;
        return Ok(Outcome::Done);
    }
    let fleet = Fleet { config, limiter: &config.quota()?, temporal: &temporal };
    let look = diagnosis::diagnose(fleet, &batch).await?;
    let left = eta::time_left(fleet, &batch.id, &look).await;
    if args.json {
        let mut value = value(&batch, &look);
        value["eta"] = left.map(|left| format::rfc3339(SystemTime::now() + left)).into();
        value["refused_keys"] = keys::value(&look.cards, &temporal.queue_named(&batch.task_queue));
        output::print_json(&value)?;
    } else {
        output::print_data(&text(&batch, &look, left))?;
    }
    Ok(Outcome::Done)
}

async fn show_ended(
    config: &Config,
    temporal: &Temporal,
    batch: &Batch,
    as_json: bool,
) -> anyhow::Result<()> {
    let at = batch.closed.map(|time| format!(" at {}", format::rfc3339(time))).unwrap_or_default();
    let (failures, words) = match temporal.ending_of(batch).await? {
        Ending::Completed(progress) => {
            let failed = failed::by_type(config, &progress).await;
            let said = failed::sentence(&failed).map(|said| format!("; failed: {said}"));
            (failed, said.unwrap_or_default())
        }
        Ending::Cancelled(_) => (Vec::new(), "; it was cancelled".to_owned()),
        Ending::Broken(why) => (Vec::new(), format!("; {why}")),
    };
    let webhook = webhook::sentence(temporal, batch).await;
    let told = webhook.as_ref().map_or_else(String::new, |told| format!("; webhook: {told}"));
    let sentence = format!(
        "it waits for nothing: it ended{at} ({}){words}; `tidegate status {}` tells how{told}",
        status_name(batch.status),
        batch.id
    );
    if as_json {
        return output::print_json(&json!({
            "workflow_id": batch.id,
            "status": status_name(batch.status),
            "why": sentence,
            "webhook": webhook,
            "failures": failed::value(&failures, None),
        }));
    }
    output::print_data(&format!("{}: {sentence}\n", batch.id))
}

fn text(batch: &Batch, look: &Diagnosis, left: Option<Duration>) -> String {
    let Diagnosis { class, waits, .. } = look;
    let mut rows = vec![("batch", batch.id.clone()), ("why", look.cause.sentence.clone())];
    if batch.cancel_requested {
        rows.push(("cancelled", CANCELLED.to_owned()));
    }
    rows.push(("ETA", left.map_or_else(|| "unknown".to_owned(), duration)));
    let models: Vec<&str> = class.models.iter().map(ModelId::as_str).collect();
    let models = if models.is_empty() { "-".to_owned() } else { models.join(", ") };
    rows.push(("calls", format!("{models}, lane {}, tenant {}", class.lane, class.tenant)));
    rows.push(("with a worker", format!("{} (calling, or a moment before)", count(waits.working))));
    if waits.gone > 0 {
        rows.push(("with a dead one", diagnosis::with_the_gone(waits)));
    }
    let reasons =
        [("for resume", waits.paused), ("for their turn", waits.turn), ("for a slot", waits.slot)];
    rows.extend(
        reasons
            .into_iter()
            .filter(|(_, documents)| *documents > 0)
            .map(|(name, documents)| (name, count(documents))),
    );
    for (kind, documents) in &waits.backing_off {
        let words = waits.words.get(kind).map_or_else(String::new, |words| format!(": {words}"));
        rows.push(("backing off", format!("{} after {kind}{words}", count(*documents))));
    }
    rows.extend(look.troubles.iter().map(|trouble| ("last fault", trouble.sentence())));
    if let Some(progress) =
        look.progress.as_ref().ok().filter(|progress| progress.totals.failed > 0)
    {
        let counts = progress.totals.failures.by_count();
        let counts: Vec<_> =
            counts.iter().map(|(kind, n)| format!("{} × {kind}", count(*n))).collect();
        rows.push((
            "given up",
            format!("{} ({})", count(progress.totals.failed), counts.join(", ")),
        ));
    }
    if let Some(lane) = look
        .quota
        .as_ref()
        .and_then(|(_, seen)| seen.lanes.iter().find(|lane| lane.lane == class.lane))
    {
        let (waiting, queue) = (count(lane.waiting), duration(lane.queue));
        rows.push(("its lane", format!("about {waiting} wait; the queue is {queue} long")));
    }
    rows.extend(waits.next.map(|next| ("tried again", diagnosis::again(next))));
    output::pairs(&rows)
}

fn value(batch: &Batch, look: &Diagnosis) -> Value {
    let Diagnosis { class, waits, .. } = look;
    json!({
        "workflow_id": batch.id,
        "status": status_name(batch.status),
        "why": look.cause.sentence,
        "stands": look.cause.stands,
        "cancel_requested": batch.cancel_requested,
        "model": class.models.first(),
        "models": class.models,
        "lane": class.lane,
        "tenant": class.tenant,
        "working": waits.working,
        "with_gone_workers": waits.gone,
        "waiting_for_turn": waits.turn,
        "waiting_for_slot": waits.slot,
        "backing_off": waits.backing_off,
        "backing_off_messages": waits.words,
        "waiting_for_writes": waits.unwritten,
        "waiting_for_resume": waits.paused,
        "binding": waits.binding,
        "next_attempt": waits.next.map(|(first, _)| format::rfc3339(first)),
        "last_attempt": waits.next.map(|(_, last)| format::rfc3339(last)),
        "faults": look.troubles.iter().map(Trouble::value).collect::<Vec<_>>(),
        "failures": look.progress.as_ref().ok().map(|progress| progress.totals.failures),
        "quota": look.quota.as_ref().map(|(model, seen)| {
            ModelView::new(model, seen, Sources { cards: &look.cards, held: &look.held })
        }),
    })
}
