//! Variant A: what a provider may be, each weighed by what the provider did. Pure, as the other.

use tidegate_quota::{Dimension, PerDimension};

use super::{
    log::{Observation, Reading},
    mechanism::Units,
    numbers::Numbers,
    plan::{Allowance, Plan, Reasoned, Why},
    policy::{Configured, Outcome},
};

const MINUTE: f64 = 60.0;
const DEPTHS: usize = 5;
const RATES: usize = 10;
/// Buckets of each depth, then a window.
const KINDS: usize = DEPTHS + 1;

/// What is known of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Known {
    each: PerDimension<Weighed>,
    at: f64,
    proven: bool,
    since: f64,
    depths: PerDimension<f64>,
}

/// The candidates of one dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Weighed {
    configured: f64,
    /// Whether it is configured as a bucket as deep as a minute.
    is_bucket: bool,
    /// All that was spent when the policy ran last.
    spent: f64,
    /// When a refusal taught something last.
    latest: f64,
    candidates: [[Candidate; RATES]; KINDS],
    /// Least by which readings of a meter were beyond what we know of, and how many those are.
    beyond: (f64, f64),
}

/// One thing that a provider may be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Candidate {
    weight: f64,
    drawn: f64,
}

impl Default for Weighed {
    fn default() -> Self {
        Self {
            configured: 0.0,
            is_bucket: false,
            spent: 0.0,
            latest: 0.0,
            candidates: [[Candidate::default(); RATES]; KINDS],
            beyond: (0.0, 0.0),
        }
    }
}

impl Weighed {
    fn new(configured: f64, is_bucket: bool, spent: f64, numbers: &Numbers) -> Self {
        let mut new = Self { configured, spent, is_bucket, ..Self::default() };
        for kind in 0..KINDS {
            for rate in 0..RATES {
                new.candidates[kind][rate].weight = new.prior(kind, rate, numbers);
            }
        }
        new
    }

    /// What a candidate weighs before anything is seen: less, where another kind is configured, and
    /// where the rate is not the configured one.
    fn prior(&self, kind: usize, rate: usize, numbers: &Numbers) -> f64 {
        let other = self.is_bucket && kind != DEPTHS - 1;
        let kind = if other { numbers.doubt * numbers.credible } else { 1.0 };
        kind * if rate == 0 { 1.0 } else { numbers.doubt }
    }

    /// Candidates move by what was spent, and what is unlikely becomes likelier with time.
    fn advance(&mut self, spent: f64, passed: f64, configured: &Configured, numbers: &Numbers) {
        let more = spent - self.spent;
        self.spent = spent;
        let rate = self.configured / configured.window;
        let forgets = numbers.forget * passed / MINUTE;
        for kind in 0..KINDS {
            for at in 0..RATES {
                let prior = self.prior(kind, at, numbers);
                let candidate = &mut self.candidates[kind][at];
                let refilled = candidate.drawn - passed * rate * part(at);
                candidate.drawn = refilled.max(0.0) + more;
                candidate.weight += (prior - candidate.weight) * forgets;
            }
        }
    }

    /// Each candidate with its capacity.
    fn each(&mut self, numbers: &Numbers, mut work: impl FnMut(usize, &mut Candidate, f64)) {
        let depths = depths(numbers);
        for (kind, row) in self.candidates.iter_mut().enumerate() {
            let depth = self.configured * depths[kind] / MINUTE;
            for candidate in row {
                work(kind, candidate, depth);
            }
        }
    }

    /// The rate that weighs most, and the least depth that is credible there.
    fn best(&self, numbers: &Numbers) -> (usize, usize) {
        let weight = |rate: usize| self.candidates.iter().map(|row| row[rate].weight).sum::<f64>();
        let rate = (0..RATES).max_by(|a, b| weight(*a).total_cmp(&weight(*b))).unwrap_or(0);
        let most = self.candidates.iter().map(|row| row[rate].weight).fold(0.0, f64::max);
        let credible =
            |kind: &usize| self.candidates[*kind][rate].weight >= numbers.credible * most;
        (rate, (0..DEPTHS).find(credible).unwrap_or(DEPTHS - 1))
    }
}

/// The part of the configured rate that a column stands for.
fn part(rate: usize) -> f64 {
    1.0 - rate as f64 / RATES as f64
}

fn depths(numbers: &Numbers) -> [f64; KINDS] {
    let Numbers { depth_1, depth_2, depth_3, depth_4, .. } = *numbers;
    [depth_1, depth_2, depth_3, depth_4, MINUTE, MINUTE]
}

impl Known {
    /// A process's part of it.
    pub(crate) fn part(&self, part: f64) -> Self {
        let each = self.each.map(|mut weighed| {
            weighed.configured *= part;
            weighed.spent = 0.0;
            for candidate in weighed.candidates.iter_mut().flatten() {
                candidate.drawn *= part;
            }
            weighed
        });
        Self { each, ..*self }
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
        let weighed = &mut known.each[it];
        if weighed.configured != most {
            let raised = if weighed.configured > 0.0 { most - weighed.configured } else { 0.0 };
            change[it] = raised.max(0.0) * (1.0 - numbers.reserve);
            *weighed = Weighed::new(most, configured.bucket, reading.spent[it], numbers);
        }
        weighed.advance(reading.spent[it], passed, configured, numbers);
        let refused = |log: &&Observation| matches!(log, Observation::Refused { .. });
        let quiet = !reading.log.observations.iter().any(|log| refused(&log));
        if quiet && reading.now - weighed.latest > numbers.quiet && reading.peak[it] > 0.0 {
            // Who foresaw a refusal where there was none was wrong.
            weighed.each(numbers, |_, candidate, depth| {
                if candidate.drawn > depth * (1.0 + numbers.close) {
                    candidate.weight *= numbers.miss;
                    candidate.drawn = depth;
                }
            });
        }
        for observation in &reading.log.observations {
            let seen = learn(weighed, observation, it, reading.now, numbers);
            let capacity = allowance(weighed, most, known.proven, configured, numbers).capacity;
            change[it] = change[it].max(match seen {
                Seen::Nothing => 0.0,
                Seen::Beyond(more) => more,
                Seen::Refused { need } => capacity.value - need - reading.drawn[it],
            });
        }
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
    let horizon = numbers.horizon.max(reading.now - known.since);
    Outcome { knowledge: known, plan: Plan { version: reading.version, horizon, limits }, change }
}

/// What an observation comes to for what is drawn.
enum Seen {
    Nothing,
    Beyond(f64),
    Refused { need: f64 },
}

fn learn(
    weighed: &mut Weighed,
    observation: &Observation,
    it: Dimension,
    now: f64,
    numbers: &Numbers,
) -> Seen {
    match observation {
        Observation::Refused { admitted, need, probe, .. } => {
            let need = need[it];
            if *admitted > weighed.latest && !probe {
                weighed.latest = now;
                // Who had room for the call was wrong, and has as little as was shown.
                weighed.each(numbers, |_, candidate, depth| {
                    if candidate.drawn + need.min(depth) <= depth {
                        candidate.weight *= numbers.miss;
                        candidate.drawn = (depth - need).max(0.0);
                    }
                });
            }
            Seen::Refused { need }
        }
        Observation::Told { used, reset, drawn, in_window } => {
            let Some(used) = used[it] else { return Seen::Nothing };
            let most = weighed.configured;
            if let Some(reset) = reset[it].filter(|_| used > 0.0 && used < numbers.telling * most) {
                let evenly = (reset - used / most * MINUTE).abs() <= numbers.close * MINUTE;
                weighed.each(numbers, |kind, candidate, _| {
                    let is_bucket = kind == DEPTHS - 1;
                    if is_bucket != evenly {
                        candidate.weight *= numbers.miss;
                    }
                });
            }
            let strict = weighed.candidates[DEPTHS][0].weight > numbers.credible;
            let own = if strict { in_window[it] } else { drawn[it] };
            let (least, readings) = weighed.beyond;
            let least = if readings > 0.0 { least.min(used - own) } else { used - own };
            weighed.beyond = (least, readings + 1.0);
            if readings + 1.0 < numbers.even {
                return Seen::Nothing;
            }
            weighed.beyond = (0.0, 0.0);
            Seen::Beyond(if least > numbers.close * most { least } else { 0.0 })
        }
    }
}

fn allowance(
    weighed: &Weighed,
    most: f64,
    proven: bool,
    configured: &Configured,
    numbers: &Numbers,
) -> Allowance {
    let (rate, depth) = weighed.best(numbers);
    let window_weight = weighed.candidates[DEPTHS][rate].weight;
    let bucket_weight = weighed.candidates[DEPTHS - 1][rate].weight;
    let is_bucket = window_weight < numbers.credible * bucket_weight;
    let explored = depths(numbers)[(depth + 1).min(DEPTHS - 1)] * most / MINUTE;
    let deepest = if is_bucket { 1.0 - numbers.reserve } else { numbers.unknown };
    let mut capacity = match configured.burst {
        Some(burst) => Reasoned::new(burst * most / configured.window, Why::Configured),
        None => {
            Reasoned::new(explored, Why::Explored).min(Reasoned::new(most * deepest, Why::Full))
        }
    };
    if !proven {
        capacity = capacity.min(Reasoned::new(most * numbers.unproven, Why::Unproven));
    }
    let why = if rate == 0 { Why::Configured } else { Why::Refused };
    Allowance {
        rate: Reasoned::new(most * part(rate) / configured.window, why),
        capacity,
        window: if is_bucket {
            Reasoned::new(f64::INFINITY, Why::Even)
        } else {
            Reasoned::new(most, Why::Strict)
        },
        most,
    }
}
