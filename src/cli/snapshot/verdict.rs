//! One sentence about the fleet: the most serious fact first.

use super::{
    batch::BatchView,
    model::{BINDS, ModelView},
};
use crate::cli::{
    failed,
    format::{count, duration, percent},
};

pub(super) fn summarize(
    models: &[ModelView],
    batches: &[BatchView],
    workers: usize,
    away: &[String],
) -> String {
    if let Some(away) = away.first() {
        return away.clone();
    }
    let running: Vec<&BatchView> =
        batches.iter().filter(|batch| batch.batch.is_running()).collect();
    if let Some(trouble) = grave(models, &running, workers) {
        return trouble;
    }
    let workers = workers_of(workers);
    if running.is_empty() {
        return format!("nothing runs; {workers}");
    }
    let paused = running.iter().filter(|batch| batch.is_paused()).count();
    if paused == running.len() {
        return format!("{} paused", batches_of(paused));
    }
    if let Some(failing) = running.iter().find_map(|batch| failing(batch)) {
        return failing;
    }
    let etas: Vec<_> = running.iter().filter(|batch| !batch.is_paused()).map(|b| b.eta()).collect();
    let stands = running.iter().filter(|batch| !batch.is_paused()).find_map(|batch| {
        let cause = batch.cause.as_ref().filter(|cause| cause.stands)?;
        Some(format!("; {}: {}", batch.batch.id, cause.sentence))
    });
    let done = if etas.iter().any(Option::is_none) {
        format!("{}; nobody knows yet when they are done", stands.unwrap_or_default())
    } else {
        etas.into_iter()
            .max()
            .flatten()
            .map_or_else(String::new, |left| format!("; done in {}", duration(left)))
    };
    let fullest = models
        .iter()
        .filter_map(|model| Some((model, model.fullest()?)))
        .max_by(|(_, a), (_, b)| a.part().total_cmp(&b.part()));
    let waiting: u64 = models.iter().map(ModelView::waiting).sum();
    match fullest {
        Some((model, limit)) if limit.part() >= BINDS || waiting > 0 => {
            let (part, name) = (percent(limit.part()), limit.limited.title());
            format!("running at {part} of {}; {name} bind{done}", model.model)
        }
        Some((model, limit)) => {
            let part = percent(limit.part());
            format!("running at {part} of {}; no limit binds{done}", model.model)
        }
        None => format!("{} running{done}", batches_of(running.len())),
    }
}

/// The fault that prevents all work, if there is work.
fn grave(models: &[ModelView], running: &[&BatchView], workers: usize) -> Option<String> {
    if workers == 0 && !running.is_empty() {
        let batches = batches_of(running.len());
        return Some(format!(
            "{batches} waiting: no worker is alive on the task queue; next: start one with `tidegate worker`"
        ));
    }
    if let Some(down) = models.iter().find(|model| model.is_down) {
        return down.trouble.clone();
    }
    let closed = models.iter().find(|model| model.is_closed())?;
    Some(format!("{} is {}", closed.model, closed.gate()))
}

/// The failures of a batch whose documents fail, or back off after failures, more than they succeed.
fn failing(batch: &BatchView) -> Option<String> {
    let id = batch.id();
    if let Some(cause) = batch.cause.as_ref().filter(|cause| cause.fails) {
        return Some(format!("{id}: {}", cause.sentence));
    }
    let totals = &batch.progress().filter(|progress| !progress.paused)?.totals;
    if totals.failed <= totals.succeeded {
        return None;
    }
    let failures = failed::sentence(&batch.failed)?;
    Some(format!("{id}: most documents fail: {failures}"))
}

fn batches_of(number: usize) -> String {
    let number = number as u64;
    if number == 1 { "1 batch is".to_owned() } else { format!("{} batches are", count(number)) }
}

fn workers_of(number: usize) -> String {
    match number {
        0 => "no worker is ready".to_owned(),
        1 => "1 worker is ready".to_owned(),
        _ => format!("{} workers are ready", count(number as u64)),
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::{
        diagnosis::Cause,
        snapshot::{Known, busy},
    };

    #[test]
    fn one_sentence_says_how_it_goes_the_gravest_thing_first() {
        let mut seen = busy();
        let said = |seen: &crate::cli::snapshot::Snapshot| {
            super::summarize(&seen.models, &seen.batches, seen.workers.len(), &seen.away)
        };
        let fine = said(&seen);
        assert!(
            fine.starts_with(
                "running at 97.0 % of openai:gpt-4.1-mini; tokens bind; done in 15m 3"
            ),
            "{fine}"
        );
        let waits = &mut seen.batches[0].cause.as_mut().unwrap().stands;
        *waits = true;
        assert!(said(&seen).ends_with("; nobody knows yet when they are done"), "{}", said(&seen));
        let stands = "; contracts-20261120-184530-03f9a: it waits for quota: tokens: 97.0";
        assert!(said(&seen).contains(stands), "{}", said(&seen));
        let Known::Progress(progress) = &mut seen.batches[0].known else { unreachable!() };
        let succeeded = std::mem::replace(&mut progress.totals.succeeded, 2);
        let fails = "contracts-20261120-184530-03f9a: most documents fail: 3 × TooLarge: the document is too long; next: ";
        assert!(said(&seen).starts_with(fails), "{}", said(&seen));
        let Known::Progress(progress) = &mut seen.batches[0].known else { unreachable!() };
        progress.totals.succeeded = succeeded;
        let cause = Cause::slows("9 documents back off after Transient");
        seen.batches[0].cause = Some(Cause { fails: true, ..cause });
        assert!(said(&seen).ends_with("03f9a: 9 documents back off after Transient"));
        seen.models[0].paused_seconds = 30.0;
        seen.models[0].pause_reason = Some("rate_limited".to_owned());
        assert_eq!(said(&seen), "openai:gpt-4.1-mini is paused for 30s: rate_limited");
        (seen.models[0].is_down, seen.models[0].trouble) =
            (true, Some("openai does not answer, for 1m 0s".to_owned()));
        assert_eq!(said(&seen), "openai does not answer, for 1m 0s");
        seen.workers.clear();
        assert!(said(&seen).starts_with("1 batch is waiting: no worker is alive"));
        seen.batches.remove(0);
        seen.models.clear();
        assert_eq!(said(&seen), "nothing runs; no worker is ready");
        seen.away.push("Redis is away".to_owned());
        assert_eq!(said(&seen), "Redis is away");
    }
}
