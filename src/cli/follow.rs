//! Follows a batch until it ends or the user detaches. Progress goes to stderr: as a bar on a terminal,
//! otherwise as a line from time to time.

use std::{
    future::Future,
    io::{self, IsTerminal},
    time::{Duration, Instant, SystemTime},
};

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_workflows::contract::{Job, Progress, Totals};

use crate::{
    config::Config,
    signal,
    temporal::{Away, Ending, NoProgress, Temporal},
};

use super::{
    advice, diagnosis, eta::EtaTracker, exit::Outcome, fleet::Fleet, format, output, sample_report,
    summary,
};

/// The interval of progress queries: at first, and for a long batch. Each query is an action, which
/// Temporal Cloud charges for.
const ASK_EVERY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// The number of unanswered queries after which the reason is shown.
const PATIENCE: u32 = 4;

/// Time after which a server that is away is given up.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(600);

/// Time without an ended document after which the cause is looked up; also the interval of further
/// look-ups.
const STANDS_AFTER: Duration = Duration::from_secs(10);

/// Follow a batch until it ends; Ctrl-C detaches and ends with 0, and the batch goes on
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The batch, as `tidegate status` lists it [default: the newest]
    workflow_id: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let (limiter, temporal) = (&config.quota()?, &Temporal::open(config).await?);
    let id = match args.workflow_id {
        Some(id) => id,
        None => temporal.newest().await?.id,
    };
    let wanted = EndDisplay { as_json: args.json, ..EndDisplay::default() };
    follow_to_end(Fleet { config, limiter, temporal }, &id, wanted, |_| None).await
}

/// The way in which a batch's end is shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EndDisplay<'a> {
    pub(super) as_json: bool,
    /// The job of a sample, if the batch is one.
    pub(super) sample: Option<&'a Job>,
    /// The fraction of answers that must agree with the truth.
    pub(super) at_least: Option<f64>,
}

/// Follows a batch and shows its end. `hint` returns the remedy for a batch that broke.
pub(super) async fn follow_to_end(
    fleet: Fleet<'_>,
    id: &str,
    EndDisplay { as_json, sample, at_least }: EndDisplay<'_>,
    hint: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Outcome> {
    let Some(progress) = completed(fleet, id, signal::stop(), hint).await? else {
        output::print_message(&format!(
            "detached; the batch goes on. Follow it again with: tidegate follow {id}"
        ));
        return Ok(Outcome::Done);
    };
    let shown = async {
        let closed = fleet.temporal.describe(id).await.ok().and_then(|batch| batch.closed);
        let took = summary::time_taken(&progress, closed);
        let outcome =
            summary::show_completed(fleet.config, id, &progress, as_json, at_least, took).await?;
        if let Some(job) = sample.filter(|_| !as_json) {
            sample_report::show(fleet.config, job).await?;
        }
        Ok(outcome)
    };
    tokio::select! {
        outcome = shown => outcome,
        () = signal::stop() => {
            let told = format!("interrupted; the batch has ended. Show it with: tidegate status {id}");
            output::print_message(&told);
            Ok(Outcome::Done)
        }
    }
}

/// Follows a batch until it has completed; `None` if the user detached, and the batch continues.
///
/// # Errors
/// It ended otherwise; `hint` returns the remedy for the reason.
pub(super) async fn completed(
    fleet: Fleet<'_>,
    id: &str,
    detach: impl Future<Output = ()>,
    hint: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<Progress>> {
    let why = match follow(fleet, id, detach).await? {
        None => return Ok(None),
        Some(Ending::Completed(progress)) => return Ok(Some(*progress)),
        Some(Ending::Cancelled(progress)) => {
            let Totals { succeeded, failed, skipped, .. } = progress.totals;
            format!(
                "it was cancelled: of {} documents {succeeded} had succeeded, {failed} failed, and {skipped} were done before",
                progress.documents
            )
        }
        Some(Ending::Broken(why)) => why,
    };
    let hint = hint(&why).unwrap_or_default();
    Err(anyhow!("{why}{hint}").context(format!("the batch {id} has not been finished")))
}

/// Shows a batch's progress on stderr until it ends; `None` if the user detached.
async fn follow(
    fleet: Fleet<'_>,
    id: &str,
    detach: impl Future<Output = ()>,
) -> anyhow::Result<Option<Ending>> {
    let mut bar = Bar::new();
    let followed = tokio::select! {
        ending = wait_for_end(fleet.temporal, id) => ending.map(Some),
        () = detach => Ok(None),
        never = show_progress(fleet, id, &mut bar) => match never {},
    };
    bar.end();
    followed
}

/// Waits for a batch's end, even if the server is away for a while.
async fn wait_for_end(temporal: &Temporal, id: &str) -> anyhow::Result<Ending> {
    let mut away_since = None;
    loop {
        let asked = Instant::now();
        let error = match temporal.ending(id).await {
            Err(error) if error.is::<Away>() => error,
            ended => return ended,
        };
        // The server was there before, so the count starts anew.
        if asked.elapsed() > GIVEN_UP_AFTER {
            away_since = None;
        }
        if away_since.get_or_insert(asked).elapsed() > GIVEN_UP_AFTER {
            return Err(error.context(format!(
                "the batch {id} goes on when the server is back; follow it again with: tidegate follow {id}"
            )));
        }
        tokio::time::sleep(ASK_EVERY.1).await;
    }
}

async fn show_progress(fleet: Fleet<'_>, id: &str, bar: &mut Bar) -> std::convert::Infallible {
    let temporal = fleet.temporal;
    let (mut unanswered, mut ended, mut since) = (0, 0, Instant::now());
    let began = Instant::now();
    let (mut stands, mut ahead) = (None, EtaTracker::new(fleet, id));
    loop {
        match temporal.progress(id).await {
            Ok(mut progress) => {
                unanswered = 0;
                if progress.totals.ended() != ended {
                    (ended, since, stands) = (progress.totals.ended(), Instant::now(), None);
                } else if since.elapsed() >= STANDS_AFTER {
                    since = Instant::now();
                    stands = find_cause(fleet, id).await;
                }
                let left = ahead.time_left(&progress).await;
                progress.totals.spend += ahead.under_way();
                let stands = stands.as_deref().or_else(|| ahead.held());
                bar.show(&progress, left, stands, ahead.gate_closed());
            }
            // The failed query took seconds already, so it counts at once.
            Err(NoProgress::NoWorker) => {
                // A batch that has ended needs no worker.
                if let Ok(batch) = temporal.describe(id).await
                    && batch.is_running()
                {
                    bar.note(&advice::no_worker(fleet, &batch.task_queue).await);
                }
            }
            // A batch that has just started cannot answer yet.
            Err(NoProgress::Unknown) => unanswered += 1,
            Err(NoProgress::Failed(error)) if error.is::<Away>() => {
                bar.note(&format!("{error}; the batch goes on when one answers"));
            }
            Err(NoProgress::Failed(error)) => {
                unanswered += 1;
                if unanswered >= PATIENCE {
                    bar.note(&format!("the progress cannot be read: {error:#}"));
                }
            }
        }
        tokio::time::sleep((began.elapsed() / 100).clamp(ASK_EVERY.0, ASK_EVERY.1)).await;
    }
}

/// The cause, if the batch stands still.
async fn find_cause(fleet: Fleet<'_>, id: &str) -> Option<String> {
    let batch = fleet.temporal.describe(id).await.ok()?;
    let cause = diagnosis::diagnose(fleet, &batch).await.ok()?.cause;
    cause.stands.then_some(cause.sentence)
}

/// The interval of lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Stands on the bar for a sentence above it: a narrow terminal cuts the bar.
const ABOVE: &str = "see above";

/// The progress display of a running batch.
#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    /// On a terminal: the sentences above the bar, without their figures.
    told: Vec<String>,
    /// Without a terminal: when the last line was written, and its text.
    lines: Option<(Option<Instant>, String)>,
}

impl Bar {
    fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let form = "{spinner} [{bar:12}] {pos}/{len} documents  {wide_msg}";
        bar.set_style(
            ProgressStyle::with_template(form)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self { bar, told: Vec::new(), lines: (!terminal).then(|| (None, String::new())) }
    }

    fn show(
        &mut self,
        progress: &Progress,
        left: Option<Duration>,
        stands: Option<&str>,
        gate: Option<Duration>,
    ) {
        let stands = stands.map(|cause| self.place(cause));
        let words = progress_text(progress, SystemTime::now(), left, stands, gate);
        self.set(progress.totals.ended(), progress.documents, &words);
    }

    /// Sets the number of finished documents, their total, and a text.
    fn set(&mut self, done: u64, documents: u64, words: &str) {
        self.bar.set_length(documents);
        self.bar.set_position(done);
        self.bar.set_message(words.to_owned());
        self.line(&format!("{done}/{documents} documents  {words}"));
    }

    /// Shows a sentence in place of the figures.
    fn note(&mut self, text: &str) {
        let shown = self.place(text);
        self.bar.set_message(shown.to_owned());
        self.line(text);
    }

    /// The text for a sentence in the display. On a terminal the sentence itself is printed above the
    /// bar, once for all its figures and times.
    fn place<'a>(&mut self, sentence: &'a str) -> &'a str {
        if self.lines.is_some() {
            return sentence;
        }
        let is_figure =
            |word: &&str| word.trim_start_matches('(').starts_with(|it: char| it.is_ascii_digit());
        let form: Vec<&str> = sentence.split(' ').filter(|word| !is_figure(word)).collect();
        let form = form.join(" ");
        if !self.told.contains(&form) {
            self.bar.println(sentence);
            self.told.push(form);
        }
        ABOVE
    }

    fn end(self) {
        self.bar.finish_and_clear();
    }

    fn line(&mut self, text: &str) {
        let Some((last, said)) = &mut self.lines else { return };
        if text != said && last.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            output::print_message(text);
            (*last, *said) = (Some(Instant::now()), text.to_owned());
        }
    }
}

/// The text of the progress. `left` is the time until the batch is done, if a better estimate
/// exists than the pace so far; `stands` is the cause if no document proceeds, so that the end is
/// unknown; `gate` is the time for which the model's gate is closed, if it is.
fn progress_text(
    progress: &Progress,
    now: SystemTime,
    left: Option<Duration>,
    stands: Option<&str>,
    gate: Option<Duration>,
) -> String {
    if progress.documents == 0 {
        return stands.unwrap_or("listing the source").to_owned();
    }
    let totals = &progress.totals;
    let elapsed = format::parse_time(progress.started_at.as_deref())
        .and_then(|start| now.duration_since(start).ok());
    let mut words = Vec::new();
    if progress.paused {
        words.push("paused".to_owned());
    }
    // The end comes first: a narrow terminal cuts the line.
    let by_pace =
        || format::parse_time(progress.eta.as_deref()).and_then(|eta| eta.duration_since(now).ok());
    let left = left.or_else(by_pace).filter(|_| !progress.paused && stands.is_none());
    words.extend(left.map(|left| format!("ETA {}", format::duration(left))));
    words.extend(stands.map(|why| format!("ETA unknown: {why}")));
    let gate = gate.filter(|_| stands.is_none());
    words.extend(gate.map(|left| format!("gate closed for {}", format::duration(left))));
    words.extend(elapsed.and_then(|elapsed| format::rate(totals.worked(), elapsed)));
    words.push(format!("{} in flight", totals.in_flight));
    words.push(format!("{} × 429", totals.spend.rate_limited));
    if totals.failed > 0 {
        words.push(format!("{} failed", totals.failed));
    }
    words.join(" · ")
}

#[cfg(test)]
mod tests {
    use tidegate_workflows::contract::Totals;

    use super::*;

    #[test]
    fn a_terminal_shows_each_cause_once_above_a_short_bar() {
        let mut bar = Bar { bar: ProgressBar::hidden(), told: Vec::new(), lines: None };
        let progress = Progress { documents: 10, ..Progress::default() };
        for cause in
            ["a answers with errors, for 11s (500)", "a answers with errors, for 1m 21s (503)"]
        {
            bar.show(&progress, None, Some(cause), None);
            assert_eq!(bar.bar.message(), "ETA unknown: see above · 0 in flight · 0 × 429");
        }
        assert_eq!(bar.told, ["a answers with errors, for"]);
        bar.note("no worker answers");
        assert_eq!((bar.bar.message().as_str(), bar.told.len()), ("see above", 2));
        let lines = Some((None, String::new()));
        let mut bar = Bar { bar: ProgressBar::hidden(), told: Vec::new(), lines };
        assert_eq!(bar.place("no worker answers"), "no worker answers", "a line is not cut");
    }

    #[test]
    fn the_figures_of_a_running_batch() {
        let mut progress =
            Progress { started_at: Some("2026-11-20T10:00:00Z".to_owned()), ..Progress::default() };
        let now = format::parse_time(Some("2026-11-20T10:00:20Z")).unwrap();
        assert_eq!(progress_text(&progress, now, None, None, None), "listing the source");
        assert_eq!(progress_text(&progress, now, None, Some("no room"), None), "no room");
        progress.documents = 100;
        progress.eta = Some("2026-11-20T10:01:30Z".to_owned());
        progress.totals = Totals { succeeded: 40, in_flight: 12, ..Totals::default() };
        progress.totals.spend.rate_limited = 1;
        assert_eq!(
            progress_text(&progress, now, None, None, None),
            "ETA 1m 10s · 2.0/s · 12 in flight · 1 × 429"
        );
        let left = Some(Duration::from_secs(220));
        let burst = progress_text(&progress, now, left, None, None);
        assert_eq!(burst, "ETA 3m 40s · 2.0/s · 12 in flight · 1 × 429");
        let closed = progress_text(&progress, now, left, None, Some(Duration::from_secs(38)));
        assert!(closed.starts_with("ETA 3m 40s · gate closed for 38s · 2.0/s"), "{closed}");
        let stands = progress_text(&progress, now, left, Some("the provider is down"), None);
        assert!(stands.starts_with("ETA unknown: the provider is down · 2.0/s"), "{stands}");
        progress.paused = true;
        progress.totals.failed = 2;
        assert_eq!(
            progress_text(&progress, now, None, None, None),
            "paused · 2.1/s · 12 in flight · 1 × 429 · 2 failed"
        );
        assert_eq!(progress.totals.ended(), 42);
    }
}
