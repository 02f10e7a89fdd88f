//! Variant B: one level with a confidence. Pure: from what was known and what was logged to what is
//! known, what may go, and by how much levels change.

use tidegate_quota::{Dimension, PerDimension};

use super::{
    log::{Observation, Reading},
    mechanism::Units,
    numbers::Numbers,
    plan::{Allowance, Plan, Reasoned, Why},
    policy::{Configured, Outcome},
};

/// What is known of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Known {
    each: PerDimension<One>,
    /// When the policy ran last.
    at: f64,
    /// Whether an answer has told what estimates are worth.
    proven: bool,
    /// Since when the capacities are such parts of the limits.
    since: f64,
    depths: PerDimension<f64>,
}

/// The same of one dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct One {
    /// The limit that this was learned of: another one begins anew.
    configured: f64,
    /// By how much of it the rate is lowered.
    lowered: f64,
    lowered_at: f64,
    /// Most that was drawn without a refusal.
    went_well: f64,
    /// Drawn when the policy looked, and when that was: it went well if nothing is refused soon.
    looked: (f64, f64),
    /// Least that was drawn when a call was refused as too deep.
    too_deep: Option<f64>,
    /// When a refusal taught something last.
    latest: f64,
    /// First and last refusal of an episode, and what was spent then.
    refused: Option<[(f64, f64); 2]>,
    /// Readings of a meter that came back evenly; below zero once one did not.
    even: f64,
    /// By how much the latest readings were beyond what we know of.
    beyond: Beyond,
    /// When a lowered rate was restored because the meter showed room.
    believed: f64,
}

impl Known {
    /// A process's part of it.
    pub(crate) fn part(&self, part: f64) -> Self {
        let each = self.each.map(|one| One {
            configured: one.configured * part,
            went_well: one.went_well * part,
            looked: (one.looked.0, one.looked.1 * part),
            too_deep: one.too_deep.map(|depth| depth * part),
            refused: None,
            ..one
        });
        Self { each, ..*self }
    }
}

/// Readings of a meter, as differences from what we know of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Beyond {
    least: f64,
    most: f64,
    readings: f64,
}

impl Beyond {
    fn add(&mut self, beyond: f64) {
        let first = self.readings <= 0.0;
        self.least = if first { beyond } else { self.least.min(beyond) };
        self.most = if first { beyond } else { self.most.max(beyond) };
        self.readings += 1.0;
    }
}

/// One run of the policy.
pub(crate) fn run(
    mut known: Known,
    reading: &Reading,
    configured: &Configured,
    numbers: &Numbers,
) -> Outcome<Known> {
    let passed = if known.at > 0.0 { reading.now - known.at } else { 0.0 };
    known.at = reading.now;
    known.proven |= reading.log.answers > 0;
    let mut change = Units::default();
    for it in Dimension::ALL {
        let Some(most) = configured.most[it] else { continue };
        let one = &mut known.each[it];
        if one.configured != most {
            let raised = if one.configured > 0.0 { most - one.configured } else { 0.0 };
            // A deeper bucket is not fuller.
            change[it] = raised.max(0.0) * (1.0 - numbers.reserve);
            *one = One { configured: most, even: one.even, ..One::default() };
        }
        one.lowered = (one.lowered - numbers.recover * passed / MINUTE).max(0.0);
    }
    for observation in &reading.log.observations {
        match observation {
            Observation::Refused { at, admitted, need, retry, drawn, spent, probe } => {
                if let Some(it) = binding(&known, drawn, need, configured) {
                    let view = Refusal {
                        at: *at,
                        admitted: *admitted,
                        need: need[it],
                        retry: *retry,
                        drawn: drawn[it],
                        spent: spent[it],
                        probe: *probe,
                    };
                    let capacity = capacity(&known.each[it], known.proven, configured, numbers);
                    let one = &mut known.each[it];
                    refused(one, &view, configured, numbers);
                    // When the gate opens there is room for this call, and no more.
                    let short = capacity.value - view.need - reading.drawn[it];
                    change[it] = change[it].max(short);
                }
            }
            Observation::Told { used, reset, drawn, in_window, .. } => {
                for it in Dimension::ALL {
                    if let (Some(used), Some(most)) = (used[it], configured.most[it]) {
                        let own = (drawn[it], in_window[it]);
                        let more = told(
                            &mut known.each[it],
                            used,
                            reset[it],
                            own,
                            reading.now,
                            most,
                            numbers,
                        );
                        change[it] = change[it].max(more);
                    }
                }
            }
        }
    }
    for it in Dimension::ALL {
        known.each[it].look(reading.peak[it], reading.now, numbers);
    }
    let limits = PerDimension::from_fn(|it| {
        configured.most[it]
            .map(|most| allowance(&known.each[it], most, known.proven, configured, numbers))
    });
    let depths = limits.map(|limit: Option<Allowance>| {
        limit.map_or(0.0, |limit| limit.capacity.value / limit.most)
    });
    let differs = |it| (depths[it] - known.depths[it]).abs() > numbers.close;
    if Dimension::ALL.into_iter().any(differs) {
        (known.since, known.depths) = (reading.now, depths);
    }
    // No wait is told that is longer than what it is reckoned by has been true.
    let horizon = numbers.horizon.max(reading.now - known.since);
    Outcome { knowledge: known, plan: Plan { version: reading.version, horizon, limits }, change }
}

const MINUTE: f64 = 60.0;

/// A refusal as one dimension sees it.
struct Refusal {
    at: f64,
    admitted: f64,
    need: f64,
    retry: f64,
    drawn: f64,
    spent: f64,
    probe: bool,
}

/// The dimension that a refusal is about: of which most was drawn.
fn binding(
    known: &Known,
    drawn: &Units,
    need: &Units,
    configured: &Configured,
) -> Option<Dimension> {
    let part = |it: &Dimension| (drawn[*it] + need[*it]) / known.each[*it].configured;
    let limited = Dimension::ALL.into_iter().filter(|it| configured.most[*it].is_some());
    limited.max_by(|a, b| part(a).total_cmp(&part(b)))
}

/// A refusal deeper than anything that went well speaks against the depth, any other one against
/// the rate.
fn refused(one: &mut One, refusal: &Refusal, configured: &Configured, numbers: &Numbers) {
    // What was sent before another refusal was known says the same once more.
    if refusal.admitted <= one.latest {
        return;
    }
    one.latest = refusal.at;
    // A meter that showed room which is not there tells of something else.
    if refusal.at - one.believed < numbers.episode && one.believed > 0.0 {
        one.even = f64::NEG_INFINITY;
    }
    let depth = refusal.drawn + refusal.need;
    one.looked = (refusal.at, 0.0);
    if depth > one.went_well * (1.0 + numbers.close) {
        one.too_deep = Some(one.too_deep.unwrap_or(depth).min(depth));
        return;
    }
    // One that goes first says whether the gate may open, and nothing of a rate.
    if refusal.probe {
        return;
    }
    let here = (refusal.at, refusal.spent);
    let fresh = |[_, last]: &[(f64, f64); 2]| refusal.at - last.0 < numbers.episode;
    let [first, _] = one.refused.filter(fresh).unwrap_or([here, here]);
    let rate = one.rate(configured, numbers);
    one.refused = Some([first, here]);
    // The provider had nothing left both times, and so let through what it has by its own rate; but
    // one that wants a wait of many calls has no rate now.
    let mut lowered = rate - (1.0 - numbers.yield_) * one.configured / configured.window;
    let seconds = refusal.at - first.0;
    if seconds >= numbers.measured * numbers.quiet
        && refusal.retry * rate <= numbers.measured * refusal.need
    {
        let measured = (refusal.spent - first.1 + refusal.need) / seconds;
        lowered = lowered.min(measured);
    }
    lowered = lowered.max(rate / numbers.grow);
    one.lowered_at = refusal.at;
    one.lowered = 1.0 - (1.0 - one.lowered) * lowered / rate;
}

/// What a reading of the provider's meter says, and by how much it is beyond what we know of.
fn told(
    one: &mut One,
    used: f64,
    reset: Option<f64>,
    (drawn, in_window): (f64, f64),
    at: f64,
    most: f64,
    numbers: &Numbers,
) -> f64 {
    if let Some(reset) = reset.filter(|_| used > 0.0 && used < numbers.telling * most) {
        let evenly = used / most * MINUTE;
        let evenly = (reset - evenly).abs() <= numbers.close * MINUTE;
        // By chance others agree now and then, and a bucket hardly ever differs.
        let step = if evenly { 1.0 } else { -numbers.even * numbers.even };
        one.even = (one.even + step).min(numbers.even);
    }
    let own = if one.even >= numbers.even { drawn } else { in_window };
    // Calls overtake each other on their way: what is true shows in all readings.
    one.beyond.add(used - own);
    if one.beyond.readings < numbers.even {
        return 0.0;
    }
    let beyond = std::mem::take(&mut one.beyond);
    if beyond.most < -numbers.close * most && one.lowered > 0.0 && one.even >= numbers.even {
        one.lowered = 0.0;
        one.believed = at;
    }
    if beyond.least > numbers.close * most { beyond.least } else { 0.0 }
}

impl One {
    /// Units a second; what is kept back for windows and skew is not where there is a bucket.
    fn rate(&self, configured: &Configured, numbers: &Numbers) -> f64 {
        let kept = if self.even >= numbers.even { configured.kept } else { 1.0 };
        self.configured * (1.0 - self.lowered) / configured.window / kept
    }

    /// What was drawn a while ago went well, for nothing was refused since.
    fn look(&mut self, peak: f64, now: f64, numbers: &Numbers) {
        let (at, seen) = self.looked;
        if now >= at + numbers.quiet {
            self.went_well = self.went_well.max(seen);
            self.looked = (now, peak);
        } else if at == 0.0 {
            self.looked = (now, peak);
        }
    }
}

fn capacity(one: &One, proven: bool, configured: &Configured, numbers: &Numbers) -> Reasoned {
    let most = one.configured;
    let is_bucket = configured.bucket || one.even >= numbers.even;
    let deepest = if is_bucket { 1.0 - numbers.reserve } else { numbers.unknown };
    let full = Reasoned::new(most * deepest, Why::Full);
    let mut capacity = if let Some(burst) = configured.burst {
        Reasoned::new(burst * most / configured.window, Why::Configured)
    } else if is_bucket {
        full
    } else {
        let first = numbers.first * most / configured.window;
        let explored = numbers.grow * one.went_well;
        let step = if explored > first {
            Reasoned::new(explored, Why::Explored)
        } else {
            Reasoned::new(first, Why::First)
        };
        step.min(full)
    };
    if let Some(too_deep) = one.too_deep {
        let safe = one.went_well.max(too_deep / numbers.grow).min(too_deep);
        capacity = capacity.min(Reasoned::new(safe, Why::TooDeep));
    }
    if !proven {
        capacity = capacity.min(Reasoned::new(most * numbers.unproven, Why::Unproven));
    }
    capacity
}

fn allowance(
    one: &One,
    most: f64,
    proven: bool,
    configured: &Configured,
    numbers: &Numbers,
) -> Allowance {
    let lowered = if one.refused.is_some() { Why::Refused } else { Why::Configured };
    let rate = Reasoned::new(one.rate(configured, numbers), lowered);
    let is_even = configured.bucket && one.too_deep.is_none() || one.even >= numbers.even;
    let window = if is_even {
        Reasoned::new(f64::INFINITY, Why::Even)
    } else {
        Reasoned::new(most, Why::Strict)
    };
    Allowance { rate, capacity: capacity(one, proven, configured, numbers), window, most }
}
