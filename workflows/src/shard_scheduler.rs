//! Starts the shards and groups of shards of a batch or a group, and divides the window among them.
//!
//! The window is counted in documents; a place is room for one in flight. A shard takes as many as
//! it has documents, if so many are free. Once it has handed out its last document, it reports now
//! and then the places that it still needs, and the next shard starts with the free ones. When no
//! shard is left to start, free places go to shards that started with few. So the window stays full
//! without a wait for each shard's last document, and never has more documents in flight than
//! places.

pub(crate) mod run;

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use temporalio_common::{SignalDefinition, UntypedWorkflow, data_converters::RawValue};

use crate::{
    contract::{
        GroupInput, LiveChild, Plan, SHARD_WINDOW, SLEEPING_SHARDS_AT_ONCE, ShardInput,
        ShardReport, Totals,
    },
    payload,
    shard::shard_id,
};

/// Shards that a batch starts itself. Groups start further ones, so that no history grows with the
/// number of shards.
pub(crate) const OWN_SHARDS: u32 = 20;

/// Most shards of a group. Its run ends with them: a continued run would not know the children that
/// still run.
const GROUP: u32 = 50;

/// While more shards are planned, fewer than this start no group.
const LEAST_GROUP: u32 = 20;

/// A shard starts with at least this fraction of the places that it could use: many shards with few
/// places would cost more than a few idle places.
const LEAST_PART: u32 = 4;

/// Shortest time between two reports of a batch's shards, and the fraction of the batch's duration
/// so far between them: reports of a batch of days are rarer, because each is less useful.
const REPORT: Duration = Duration::from_secs(10);
const REPORT_PART: u32 = 100;

/// A started workflow, by its number among its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Child {
    /// A shard.
    Shard(u32),
    /// A group of shards.
    Group(u32),
}

impl Child {
    fn is_group(self) -> bool {
        matches!(self, Self::Group(_))
    }
}

/// The state of a running child.
#[derive(Debug)]
pub(crate) struct Running {
    /// Its last report.
    totals: Totals,
    /// Places that it holds.
    places: u32,
    /// Additional places that it could use. A group can use any number while it has shards to
    /// start.
    wants: u32,
    /// Whether its workflow exists. A signal sent before that finds no workflow and is lost.
    started: bool,
    /// The paused flag at its start, or in the last signal.
    sent_paused: bool,
}

/// A signal for a running child, shard or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Paused(bool),
    Places(u32),
}

impl SignalDefinition for News {
    type Workflow = UntypedWorkflow;
    type Input = RawValue;

    fn name(&self) -> &str {
        match self {
            Self::Paused(true) => "pause",
            Self::Paused(false) => "resume",
            Self::Places(_) => "places",
        }
    }
}

/// The input of a new child.
#[derive(Debug)]
pub(crate) enum Start {
    Shard(ShardInput),
    Group(GroupInput),
}

/// The children of a workflow.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// The batch's workflow id.
    pub(crate) batch: String,
    /// The input of each shard, without its number, documents and window.
    pub(crate) shard: ShardInput,
    /// [`Plan::shard_size`].
    pub(crate) shard_size: u32,
    /// Planned documents that lie in shards.
    pub(crate) documents: u64,
    /// All places of the window.
    pub(crate) window: u32,
    /// Places that the window may grow to.
    pub(crate) most: u32,
    /// The next shard to start, counted from 0.
    pub(crate) next: u32,
    /// Shards that may be started.
    pub(crate) planned: u32,
    /// Whether the plan is complete.
    pub(crate) complete: bool,
    /// The first shard that a group starts; `None` in a group, which starts no groups.
    pub(crate) groups_from: Option<u32>,
    /// The next group, counted from 0.
    pub(crate) next_group: u32,
    /// Totals of the children that have ended.
    pub(crate) totals: Totals,
    /// Whether no documents are handed out until `resume`.
    pub(crate) paused: bool,
    /// Whether no more children start in this run, because its history is long enough or it is
    /// cancelled.
    pub(crate) draining: bool,
    /// The reason why a child failed; the batch fails with it.
    pub(crate) broken: Option<String>,
    /// Whether all children have ended, and none will start.
    pub(crate) over: bool,
    /// The time of the last report of a child; a query has no clock of its own.
    pub(crate) latest: Option<SystemTime>,
    /// The time when the batch began.
    pub(crate) began: Option<SystemTime>,
    /// Children that have not ended.
    pub(crate) running: BTreeMap<Child, Running>,
}

impl Children {
    /// Takes over a batch's plan, which may grow: until it is complete, all its shards are full.
    pub(crate) fn take_plan(&mut self, plan: &Plan) {
        self.shard.job.clone_from(&plan.job);
        self.shard.provider_batching = plan.provider_batching;
        self.shard.pack = plan.pack;
        self.shard.heartbeat_seconds = plan.heartbeat_seconds;
        self.shard_size = plan.shard_size.max(1);
        self.documents = plan.asked();
        self.planned = plan.shards();
        self.complete = !plan.more;
    }

    /// Limits the window to the whole shards that the fleet's slots need at first, because each shard
    /// has a workflow and a manifest in a worker's memory.
    pub(crate) fn limit_window(&mut self, ready: u32) {
        let places = self.most_places();
        self.window = ready.div_ceil(places).saturating_mul(places).min(self.most);
    }

    /// Limits the documents in flight at first: `documents` are divided among the shards that start
    /// at once, including those of pages still to be planned; a call is expected to take
    /// `call_seconds`.
    pub(crate) fn limit_opening(&mut self, documents: u32, call_seconds: u32) {
        let planned = if self.complete { self.planned } else { u32::MAX };
        let shards = self.window.div_ceil(self.most_places()).min(planned).max(1);
        self.shard.open = Some(documents.div_ceil(shards));
        self.shard.call_seconds = call_seconds;
    }

    /// Maximum number of places that a shard can use.
    fn most_places(&self) -> u32 {
        SHARD_WINDOW.min(self.most.max(self.window)).min(self.shard_size).max(1)
    }

    /// Whether every shard has been started.
    pub(crate) fn has_handed_out(&self) -> bool {
        self.complete && self.next >= self.planned
    }

    /// Whether no more children will start.
    pub(crate) fn is_at_its_end(&self) -> bool {
        self.draining || self.broken.is_some() || self.has_handed_out()
    }

    fn is_group(&self) -> bool {
        self.groups_from.is_none()
    }

    /// Starts no more children because the history is long. A batch continues in a new run once its
    /// children have ended, because that run would not know them. A group continues: its shards
    /// bound its history.
    fn end_long_run(&mut self) {
        self.draining |= !self.is_group();
    }

    /// Whether the next child is a shard, not a group.
    fn is_shard_next(&self) -> bool {
        self.groups_from.is_none_or(|from| self.next < from)
    }

    /// Places that are in use.
    pub(crate) fn places(&self) -> u32 {
        self.running.values().fold(0, |sum, running| sum.saturating_add(running.places))
    }

    /// Totals of all children; running ones count with their last report.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.totals;
        totals += self.reported_totals();
        totals
    }

    /// Totals that running children have reported.
    pub(crate) fn reported_totals(&self) -> Totals {
        self.running.values().fold(Totals::default(), |mut sum, running| {
            sum += running.totals;
            sum
        })
    }

    /// The running children, for the `live` query.
    pub(crate) fn live(&self) -> Vec<LiveChild> {
        let live = |(child, running): (&Child, &Running)| LiveChild {
            id: self.id(*child),
            is_group: child.is_group(),
            totals: running.totals,
        };
        self.running.iter().map(live).collect()
    }

    fn id(&self, child: Child) -> String {
        match child {
            Child::Shard(shard) => shard_id(&self.batch, shard),
            Child::Group(group) => group_id(&self.batch, group),
        }
    }

    /// Number of documents in a shard, counted from 0.
    pub(crate) fn shard_documents(&self, shard: u32) -> u32 {
        let before = u64::from(shard) * u64::from(self.shard_size);
        let left = self.documents.saturating_sub(before);
        u32::try_from(left.min(self.shard_size.into())).unwrap_or(u32::MAX)
    }

    fn free(&self) -> u32 {
        self.window.saturating_sub(self.places())
    }

    /// The least and the most places with which the next shard starts.
    fn shard_window(&self) -> (u32, u32) {
        if self.shard.provider_batching.is_some() {
            // Sleeping shards run in large numbers at once; returned places are divided evenly.
            let at_once = self.planned.clamp(1, SLEEPING_SHARDS_AT_ONCE);
            let places = (self.window / at_once).max(1);
            return (places, places);
        }
        let most = SHARD_WINDOW.min(self.window).max(1);
        let wanted = most.min(self.shard_documents(self.next)).max(1);
        (wanted.min((most / LEAST_PART).max(1)), wanted)
    }

    fn can_start(&self) -> bool {
        if self.is_at_its_end() || self.next >= self.planned {
            return false;
        }
        if self.is_shard_next() {
            return self.free() >= self.shard_window().0;
        }
        // One group at a time: places that become free while it has shards to start go to it.
        let planned = self.planned - self.next;
        !self.has_open_group()
            && self.free() >= (self.window / LEAST_PART).max(1)
            && (self.complete || planned >= LEAST_GROUP)
    }

    /// Whether a group still has shards to start.
    fn has_open_group(&self) -> bool {
        self.running.iter().any(|(child, running)| child.is_group() && running.wants > 0)
    }

    /// The next child to start, if there are places for it.
    fn take(&mut self, now: Option<SystemTime>) -> Option<(Child, Start)> {
        if !self.can_start() {
            return None;
        }
        self.shard.report_seconds = self.report_seconds(now);
        self.shard.paused = self.paused;
        if self.is_shard_next() {
            let shard = self.next;
            let (documents, (_, wanted)) = (self.shard_documents(shard), self.shard_window());
            let window = wanted.min(self.free());
            self.next += 1;
            let input = ShardInput {
                shard,
                documents,
                window,
                returns_places: self.places_are_wanted() && self.shard.provider_batching.is_none(),
                ..self.shard.clone()
            };
            self.record_start(Child::Shard(shard), window, documents);
            return Some((Child::Shard(shard), Start::Shard(input)));
        }
        let (group, from, window) = (self.next_group, self.next, self.free());
        let to = self.planned.min(from.saturating_add(GROUP));
        let documents = self.documents.min(u64::from(to) * u64::from(self.shard_size));
        self.next_group += 1;
        self.next = to;
        let input = GroupInput {
            group,
            batch: self.batch.clone(),
            from,
            to,
            shard_size: self.shard_size,
            documents,
            window,
            paused: self.paused,
            shard: self.shard.clone(),
        };
        self.record_start(Child::Group(group), window, window);
        Some((Child::Group(group), Start::Group(input)))
    }

    /// Records a started child. Until it reports, as many documents count as in flight as its
    /// places allow.
    pub(crate) fn record_start(&mut self, child: Child, places: u32, documents: u32) {
        let in_flight = if self.paused { 0 } else { places.min(documents).into() };
        let wants = match child {
            Child::Group(_) => u32::MAX,
            // These shards sleep.
            Child::Shard(_) if self.shard.provider_batching.is_some() => 0,
            Child::Shard(_) => documents.min(SHARD_WINDOW).saturating_sub(places),
        };
        let running = Running {
            totals: Totals { in_flight, ..Totals::default() },
            places,
            wants,
            started: false,
            sent_paused: self.paused,
        };
        self.running.insert(child, running);
    }

    /// Seconds between two reports of a shard, so that all shards together report about once in
    /// [`REPORT`].
    fn report_seconds(&self, now: Option<SystemTime>) -> u32 {
        let lasting = self.began.zip(now).and_then(|(began, now)| now.duration_since(began).ok());
        let every = REPORT.max(lasting.unwrap_or_default() / REPORT_PART);
        let at_once = u64::from((self.window / self.most_places()).min(self.planned).max(1));
        u32::try_from(every.as_secs().saturating_mul(at_once)).unwrap_or(u32::MAX)
    }

    fn mark_started(&mut self, child: Child) {
        if let Some(running) = self.running.get_mut(&child) {
            running.started = true;
        }
    }

    /// Takes a child's report. A report that comes after the child's end is ignored.
    pub(crate) fn take_report(&mut self, report: &RawValue, now: Option<SystemTime>) {
        let Some(report) = payload::decode::<ShardReport>(report) else { return };
        let child =
            if report.is_group { Child::Group(report.shard) } else { Child::Shard(report.shard) };
        if let Some(running) = self.running.get_mut(&child) {
            running.totals = report.totals;
            self.shard.open = report.open;
            self.shard.call_seconds = 0;
            if report.open.is_none() {
                // Workers take all that it hands out: the window doubles when each child has reported so.
                let grown = self.window.saturating_add(running.places);
                self.window = grown.min(self.most.max(self.window));
            }
            if let Some(places) = report.places {
                running.wants = 0;
                // Places that it has received since are free too: it cannot use them.
                running.places = running.places.min(places);
            }
        }
        self.latest = now;
    }

    /// Records a child's end. A child that was cancelled with the batch has reported its last
    /// totals; any other end without a result breaks the batch.
    fn record(&mut self, child: Child, ended: Result<Totals, String>) {
        let reported =
            self.running.remove(&child).map(|running| running.totals).unwrap_or_default();
        let totals = match (ended, child) {
            (Ok(totals), _) => totals,
            (Err(message), Child::Shard(shard)) => {
                self.broken.get_or_insert_with(|| format!("shard {shard}: {message}"));
                reported
            }
            // The group's message names the shard already.
            (Err(message), Child::Group(_)) => {
                self.broken.get_or_insert(message);
                reported
            }
        };
        self.totals += Totals { in_flight: 0, ..totals };
    }

    /// The next signal that is due.
    fn news(&self) -> Option<(Child, News)> {
        let paused = self.paused;
        let free = self.free();
        let enough = free >= (self.window / (4 * LEAST_PART)).max(1);
        let to_shards = self.is_at_its_end();
        self.running.iter().filter(|(_, running)| running.started).find_map(|(child, running)| {
            if running.sent_paused != paused {
                return Some((*child, News::Paused(paused)));
            }
            let gives = enough && running.wants > 0 && (child.is_group() || to_shards);
            gives.then_some((*child, News::Places(free.min(running.wants))))
        })
    }

    /// Whether a shard that started with few places could use more.
    pub(crate) fn wants_places(&self) -> bool {
        self.running.values().any(|running| running.wants > 0)
    }

    /// Whether returned places are useful: to shards not yet started, to running shards, or to the
    /// batch's other children.
    fn places_are_wanted(&self) -> bool {
        !self.has_handed_out() || self.wants_places() || self.is_group()
    }

    /// The workflow id of the next child to signal, and the signal.
    fn next_news(&mut self) -> Option<(String, News)> {
        let (child, news) = self.news()?;
        let running = self.running.get_mut(&child)?;
        match news {
            News::Paused(paused) => running.sent_paused = paused,
            News::Places(places) => {
                running.places = running.places.saturating_add(places);
                // A group takes any number of places as long as it takes any.
                if !child.is_group() {
                    running.wants = running.wants.saturating_sub(places);
                }
            }
        }
        Some((self.id(child), news))
    }
}

fn group_id(batch: &str, group: u32) -> String {
    format!("{batch}/group-{group:04}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_has_few_shards_until_workers_take_all_that_they_hand_out() {
        let plan = Plan { documents: 20_000, shard_size: 500, ..Plan::default() };
        let mut children = Children { most: 20_000, ..Children::default() };
        children.take_plan(&plan);
        children.limit_window(800);
        children.limit_opening(400, 5);
        assert_eq!((children.window, children.shard.open), (1_000, Some(200)));
        let report = |open| {
            let report = ShardReport { open, ..ShardReport::default() };
            payload::encode(&report).expect("a report is JSON")
        };
        children.record_start(Child::Shard(0), 500, 500);
        children.take_report(&report(Some(90)), None);
        assert_eq!((children.window, children.shard.open), (1_000, Some(90)));
        for window in [1_500, 2_000] {
            children.take_report(&report(None), None);
            assert_eq!(children.window, window, "a child adds as many places as it has");
        }
        children.record_start(Child::Group(0), 19_500, 19_500);
        let report = ShardReport { is_group: true, ..ShardReport::default() };
        children.take_report(&payload::encode(&report).expect("a report is JSON"), None);
        assert_eq!(children.window, 20_000);
    }
}
