//! The measurements of a run.

use std::collections::BTreeMap;

use crate::{
    documents::Document,
    event::{Micros, SECOND},
};

/// Documents above this are big.
const BIG: u64 = 20_000;

/// The plots' step.
pub(crate) const BIN: Micros = 10 * SECOND;

/// Counts of one run; figures are of the steady state, refusals of the whole run.
pub(crate) struct Report {
    steady: Micros,
    end: Micros,
    asks: u64,
    admitted: u64,
    tokens: [f64; 3],
    by_tenant: BTreeMap<u64, u64>,
    waits: Vec<Wait>,
    refusals: Vec<Micros>,
    calls: u64,
    /// Calls of the steady state that the provider accepted.
    taken: usize,
    /// When a call was last accepted, or nothing stood still.
    moved: Micros,
    /// The longest time without an accepted call while a client waited and the provider had room.
    pub(crate) longest_stretch: Micros,
    /// When the last call ended.
    pub(crate) finished: Micros,
    /// When each batch began.
    pub(crate) ended: Vec<Micros>,
    /// Tokens accepted in each [`BIN`], from the start of the run.
    pub(crate) series: Vec<u64>,
}

/// The wait of one document.
struct Wait {
    at: Micros,
    lane: usize,
    big: bool,
    seconds: f64,
}

impl Report {
    pub(crate) fn new(steady: Micros, end: Micros) -> Self {
        Self {
            steady,
            end,
            asks: 0,
            admitted: 0,
            tokens: [0.0; 3],
            by_tenant: BTreeMap::new(),
            waits: Vec::new(),
            refusals: Vec::new(),
            calls: 0,
            taken: 0,
            moved: 0,
            longest_stretch: 0,
            finished: 0,
            ended: Vec::new(),
            series: vec![0; (end / BIN) as usize + 1],
        }
    }

    pub(crate) fn asked(&mut self, now: Micros) {
        self.asks += u64::from(now >= self.steady);
    }

    pub(crate) fn waited(
        &mut self,
        now: Micros,
        lane: usize,
        _tenant: u64,
        document: &Document,
        since: Micros,
    ) {
        let seconds = (now - since) as f64 / SECOND as f64;
        self.waits.push(Wait { at: now, lane, big: document.tokens() > BIG, seconds });
        self.admitted += u64::from(now >= self.steady);
    }

    /// Records whether a client waits now although the provider has room.
    pub(crate) fn watched(&mut self, now: Micros, idle: bool) {
        if idle {
            self.longest_stretch = self.longest_stretch.max(now - self.moved);
        } else {
            self.moved = now;
        }
    }

    pub(crate) fn taken(&mut self, now: Micros, _lane: usize, tenant: u64, document: &Document) {
        self.calls += 1;
        self.moved = now;
        self.series[(now / BIN) as usize] += document.tokens();
        if now >= self.steady {
            self.taken += 1;
            self.tokens[0] += document.input as f64;
            self.tokens[1] += document.output as f64;
            self.tokens[2] += document.tokens() as f64;
            *self.by_tenant.entry(tenant).or_default() += document.tokens();
        }
    }

    pub(crate) fn refused(&mut self, now: Micros) {
        self.calls += 1;
        self.refusals.push(now);
    }

    /// The used part of a limit of tokens a minute.
    pub(crate) fn used(&self, limit: u64) -> f64 {
        self.part(2, limit)
    }

    /// The used part of the tighter of a limit of input and one of output.
    pub(crate) fn used_of(&self, input: u64, output: u64) -> f64 {
        self.part(0, input).max(self.part(1, output))
    }

    fn part(&self, kind: usize, limit: u64) -> f64 {
        let minutes = (self.end - self.steady) as f64 / (60 * SECOND) as f64;
        self.tokens[kind] / minutes / limit as f64
    }

    /// The used part of a limit of input tokens that does not count this many of each call.
    pub(crate) fn used_input(&self, uncounted: u64, limit: u64) -> f64 {
        let minutes = (self.end - self.steady) as f64 / (60 * SECOND) as f64;
        (self.tokens[0] - self.taken as f64 * uncounted as f64) / minutes / limit as f64
    }

    /// Tokens accepted between these times, which are whole [`BIN`]s.
    pub(crate) fn tokens_between(&self, from: Micros, to: Micros) -> u64 {
        self.series[(from / BIN) as usize..(to / BIN) as usize].iter().sum()
    }

    /// In the steady state: refused calls, and all calls.
    pub(crate) fn refused_calls(&self) -> (usize, usize) {
        let refused = self.refusals.iter().filter(|at| **at >= self.steady).count();
        (refused, refused + self.taken)
    }

    pub(crate) fn asks_per_admission(&self) -> f64 {
        self.asks as f64 / self.admitted.max(1) as f64
    }

    pub(crate) fn refusals(&self) -> usize {
        self.refusals.len()
    }

    pub(crate) fn refusals_between(&self, from: Micros, to: Micros) -> usize {
        self.refusals.iter().filter(|at| (from..to).contains(*at)).count()
    }

    /// The part of the calls that the provider refused.
    pub(crate) fn refused_part(&self) -> f64 {
        self.refusals.len() as f64 / self.calls.max(1) as f64
    }

    /// A quantile of the waits, in seconds.
    pub(crate) fn wait(&self, quantile: f64) -> f64 {
        self.quantile(quantile, |_| true)
    }

    pub(crate) fn wait_of_big(&self, quantile: f64) -> f64 {
        self.quantile(quantile, |wait| wait.big)
    }

    pub(crate) fn wait_in(&self, lane: usize, quantile: f64) -> f64 {
        self.quantile(quantile, |wait| wait.lane == lane)
    }

    /// The waits of a lane as points of time and wait, in seconds: the longest of each [`BIN`].
    pub(crate) fn longest_waits(&self, lane: usize) -> Vec<(f64, f64)> {
        let mut longest = vec![0.0_f64; self.series.len()];
        for wait in self.waits.iter().filter(|wait| wait.lane == lane && wait.at < self.end) {
            let bin = &mut longest[(wait.at / BIN) as usize];
            *bin = bin.max(wait.seconds);
        }
        longest.pop();
        longest
            .into_iter()
            .enumerate()
            .map(|(bin, wait)| ((bin as u64 * BIN / SECOND) as f64, wait))
            .collect()
    }

    /// Tokens of each tenant.
    pub(crate) fn tenants(&self) -> &BTreeMap<u64, u64> {
        &self.by_tenant
    }

    fn quantile(&self, quantile: f64, which: impl Fn(&Wait) -> bool) -> f64 {
        let mut seconds: Vec<f64> = self
            .waits
            .iter()
            .filter(|wait| wait.at >= self.steady && which(wait))
            .map(|wait| wait.seconds)
            .collect();
        seconds.sort_by(f64::total_cmp);
        let last = seconds.len().saturating_sub(1);
        seconds.get((last as f64 * quantile).round() as usize).copied().unwrap_or(0.0)
    }
}
