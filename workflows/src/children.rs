//! The shards and groups of shards that a batch or a group has started: each has a part of the
//! window, and gives it back.
//!
//! The window is counted in places, one for each document in flight. A shard takes as many as it
//! has documents, if so many are free; once it has handed out its last one it says now and then how
//! many it still needs, and the next shard starts with what is free. What is free when no shard is
//! left to start goes to those that started with few. So the window is full although no shard waits
//! for another's last document, and never more documents are in flight than it has places.

pub(crate) mod run;

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use temporalio_common::data_converters::RawValue;

use crate::{
    contract::{
        GroupInput, LiveChild, Plan, SHARD_WINDOW, SLEEPING_SHARDS_AT_ONCE, ShardInput,
        ShardReport, Totals,
    },
    payload,
    shard::shard_id,
};

/// Shards that a batch starts itself; those behind them are started by groups, so that no history
/// grows with their number.
pub(crate) const OWN_SHARDS: u32 = 20;

/// Most shards of a group: its run ends with them, because a next one would not know of children
/// that still run.
const GROUP: u32 = 50;

/// Fewer are no group while more are planned.
const LEAST_GROUP: u32 = 20;

/// A shard starts with this part of what it could use, and not with less: many shards with few
/// places each would cost more than the few that are idle.
const LEAST_PART: u32 = 4;

/// The least time between two reports of a batch's shards, and the part of the batch's duration so
/// far that it is: reports of a batch of days grow rarer, as does the use of each.
const REPORT: Duration = Duration::from_secs(10);
const REPORT_PART: u32 = 100;

/// A workflow that was started, by its number among its kind.
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

/// How such a workflow stands.
#[derive(Debug)]
pub(crate) struct Running {
    /// What it last reported.
    totals: Totals,
    /// Places that it has and has not given back.
    places: u32,
    /// Places that it could use beside those: a group any number, until it has no shard to start.
    wants: u32,
    /// It exists. A signal that comes earlier finds no workflow and is lost.
    started: bool,
    /// The paused flag that it was started with, or sent since.
    sent_paused: bool,
}

/// What is told to a child that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Paused(bool),
    Places(u32),
}

/// What one starts with.
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
    /// What each shard begins with, but for its own number, documents and window.
    pub(crate) shard: ShardInput,
    /// [`Plan::shard_size`].
    pub(crate) shard_size: u32,
    /// Documents that are planned, and lie in shards.
    pub(crate) documents: u64,
    /// Places in all.
    pub(crate) window: u32,
    /// The next shard that is started, counted from 0.
    pub(crate) next: u32,
    /// Shards that may be started.
    pub(crate) planned: u32,
    /// No more are planned.
    pub(crate) complete: bool,
    /// From this shard on, groups are started.
    pub(crate) groups_from: u32,
    /// The next group, counted from 0.
    pub(crate) next_group: u32,
    /// What those came to that have ended.
    pub(crate) totals: Totals,
    /// Hand out no documents until `resume`.
    pub(crate) paused: bool,
    /// Start no more in this run: its history is long enough, or it is cancelled.
    pub(crate) draining: bool,
    /// Why one, and so the batch, has failed.
    pub(crate) broken: Option<String>,
    /// All have ended, and none will be started.
    pub(crate) over: bool,
    /// When something was last heard of them: a query has no clock of its own.
    pub(crate) latest: Option<SystemTime>,
    /// When the batch began.
    pub(crate) began: Option<SystemTime>,
    /// Those that have not ended.
    pub(crate) running: BTreeMap<Child, Running>,
}

impl Children {
    /// Those of a batch, whose plan may grow.
    pub(crate) fn of_plan(&mut self, plan: &Plan) {
        self.shard.job.clone_from(&plan.job);
        self.shard.provider_batching = plan.provider_batching;
        self.shard.pack = plan.pack;
        self.shard.heartbeat_seconds = plan.heartbeat_seconds;
        self.shard_size = plan.shard_size.max(1);
    }

    /// So many documents lie in shards so far; whether that is all. Until it is, shards that are not
    /// full are not started.
    pub(crate) fn is_planned(&mut self, documents: u64, complete: bool) {
        let size = u64::from(self.shard_size.max(1));
        let shards = if complete { documents.div_ceil(size) } else { documents / size };
        self.documents = documents;
        self.planned = u32::try_from(shards).unwrap_or(u32::MAX);
        self.complete = complete;
    }

    /// So many documents are in flight at first, divided among the shards that start at once, those of
    /// pages to come included; a call is thought to take so many seconds.
    pub(crate) fn opens_with(&mut self, documents: u32, call_seconds: u32) {
        let planned = if self.complete { self.planned } else { u32::MAX };
        let shards = self.window.div_ceil(self.most_places()).min(planned).max(1);
        self.shard.open = Some(documents.div_ceil(shards));
        self.shard.call_seconds = call_seconds;
    }

    /// Places of a shard that has as many as it can use.
    fn most_places(&self) -> u32 {
        SHARD_WINDOW.min(self.window).min(self.shard_size).max(1)
    }

    /// Every shard has been started.
    pub(crate) fn has_handed_out(&self) -> bool {
        self.complete && self.next >= self.planned
    }

    /// Nothing more is started.
    pub(crate) fn is_at_its_end(&self) -> bool {
        self.draining || self.broken.is_some() || self.has_handed_out()
    }

    /// A group's history is bounded by its shards. A batch goes on in a next run, once its children
    /// have ended, which that one would not know of.
    fn has_long_history(&mut self) {
        self.draining |= self.groups_from != u32::MAX;
    }

    /// Places that have not been given back.
    pub(crate) fn places(&self) -> u32 {
        self.running.values().fold(0, |sum, running| sum.saturating_add(running.places))
    }

    /// What they came to, those that run included, as far as they have reported.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.totals;
        totals += self.reported_totals();
        totals
    }

    /// What those have reported that run.
    pub(crate) fn reported_totals(&self) -> Totals {
        self.running.values().fold(Totals::default(), |mut sum, running| {
            sum += running.totals;
            sum
        })
    }

    /// Those that run, for whoever asks them.
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

    /// How many documents a shard holds, counted from 0.
    pub(crate) fn shard_documents(&self, shard: u32) -> u32 {
        let before = u64::from(shard) * u64::from(self.shard_size);
        let left = self.documents.saturating_sub(before);
        u32::try_from(left.min(self.shard_size.into())).unwrap_or(u32::MAX)
    }

    fn free(&self) -> u32 {
        self.window.saturating_sub(self.places())
    }

    /// The least and the most places that the next shard starts with.
    fn shard_window(&self) -> (u32, u32) {
        if self.shard.provider_batching.is_some() {
            // They sleep, and so many do it at once; what comes back is divided evenly.
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
        if self.next < self.groups_from {
            return self.free() >= self.shard_window().0;
        }
        // One group at a time: what becomes free while it has shards to start is given to it.
        let planned = self.planned - self.next;
        !self.has_open_group()
            && self.free() >= (self.window / LEAST_PART).max(1)
            && (self.complete || planned >= LEAST_GROUP)
    }

    /// A group has shards to start yet.
    fn has_open_group(&self) -> bool {
        self.running.iter().any(|(child, running)| child.is_group() && running.wants > 0)
    }

    /// The next child, if there are places for one.
    fn take(&mut self, now: Option<SystemTime>) -> Option<(Child, Start)> {
        if !self.can_start() {
            return None;
        }
        self.shard.report_seconds = self.report_seconds(now);
        self.shard.paused = self.paused;
        if self.next < self.groups_from {
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
            self.has_taken(Child::Shard(shard), window, documents);
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
        self.has_taken(Child::Group(group), window, window);
        Some((Child::Group(group), Start::Group(input)))
    }

    /// Until it reports, as much is taken to be in flight as may be.
    pub(crate) fn has_taken(&mut self, child: Child, places: u32, documents: u32) {
        let in_flight = if self.paused { 0 } else { places.min(documents).into() };
        let wants = match child {
            Child::Group(_) => u32::MAX,
            // They sleep.
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

    /// How often each shard reports, so that all of them together do it once in a while.
    fn report_seconds(&self, now: Option<SystemTime>) -> u32 {
        let lasting = self.began.zip(now).and_then(|(began, now)| now.duration_since(began).ok());
        let every = REPORT.max(lasting.unwrap_or_default() / REPORT_PART);
        let at_once = u64::from((self.window / self.most_places()).min(self.planned).max(1));
        u32::try_from(every.as_secs().saturating_mul(at_once)).unwrap_or(u32::MAX)
    }

    fn has_started(&mut self, child: Child) {
        if let Some(running) = self.running.get_mut(&child) {
            running.started = true;
        }
    }

    /// A child tells how far it is. A report that comes after its end is not counted.
    pub(crate) fn reported(&mut self, report: &RawValue, now: Option<SystemTime>) {
        let Some(report) = payload::decode::<ShardReport>(report) else { return };
        let child =
            if report.is_group { Child::Group(report.shard) } else { Child::Shard(report.shard) };
        if let Some(running) = self.running.get_mut(&child) {
            running.totals = report.totals;
            self.shard.open = report.open;
            self.shard.call_seconds = 0;
            if let Some(places) = report.places {
                running.wants = 0;
                // What it was given meanwhile comes back, too: it has nothing to use it for.
                running.places = running.places.min(places);
            }
        }
        self.latest = now;
    }

    /// One that was cancelled with the batch has reported its last numbers; any other end without a
    /// result breaks the batch.
    fn record(&mut self, child: Child, ended: Result<Totals, String>) {
        let reported =
            self.running.remove(&child).map(|running| running.totals).unwrap_or_default();
        let totals = match (ended, child) {
            (Ok(totals), _) => totals,
            (Err(message), Child::Shard(shard)) => {
                self.broken.get_or_insert_with(|| format!("shard {shard}: {message}"));
                reported
            }
            // It has said already which of its shards it was.
            (Err(message), Child::Group(_)) => {
                self.broken.get_or_insert(message);
                reported
            }
        };
        self.totals += Totals { in_flight: 0, ..totals };
    }

    /// What a child is to be told.
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

    /// A shard that started with few places could use more.
    pub(crate) fn wants_places(&self) -> bool {
        self.running.values().any(|running| running.wants > 0)
    }

    /// What a shard does not need any more is of use: to shards behind it, beside it, or in the groups
    /// behind its own.
    fn places_are_wanted(&self) -> bool {
        !self.has_handed_out() || self.wants_places() || self.groups_from == u32::MAX
    }

    /// The child that is told next, and what.
    fn next_news(&mut self) -> Option<(String, Child, News)> {
        let (child, news) = self.news()?;
        let running = self.running.get_mut(&child)?;
        match news {
            News::Paused(paused) => running.sent_paused = paused,
            News::Places(places) => {
                running.places = running.places.saturating_add(places);
                // A group wants any number as long as it wants any.
                if !child.is_group() {
                    running.wants = running.wants.saturating_sub(places);
                }
            }
        }
        Some((self.id(child), child, news))
    }
}

fn group_id(batch: &str, group: u32) -> String {
    format!("{batch}/group-{group:04}")
}
