//! Learns from a refusal. A refusal deeper than anything that went well is evidence against the
//! depth, any other one against the rate.

use super::{Configured, Known, KnownDimension};
use crate::{mechanism::log::Observation, numbers::Numbers, plan::Units};

/// A refusal, as seen by its dimension.
struct Refusal {
    at: f64,
    admitted: f64,
    retry: f64,
    probe: bool,
    need: f64,
    drawn: f64,
    spent: f64,
}

impl Known {
    pub(super) fn learn_refusal(
        &mut self,
        observation: &Observation,
        drawn: &Units,
        configured: &Configured,
        numbers: &Numbers,
        change: &mut Units,
    ) {
        let Observation::Refused { at, admitted, retry, probe, each } = *observation else {
            return;
        };
        // The dimension with the largest part drawn.
        let limited = each.iter().filter_map(|(it, seen)| {
            let (seen, most) = ((*seen)?, self.each[it].configured);
            (most > 0.0).then(|| (it, seen, (seen.drawn + seen.need) / most))
        });
        let Some((it, seen, _)) = limited.max_by(|a, b| a.2.total_cmp(&b.2)) else { return };
        let (need, spent) = (seen.need, seen.spent);
        let refusal = Refusal { at, admitted, retry, probe, need, drawn: seen.drawn, spent };
        let one = &mut self.each[it];
        let was_even = one.is_even(numbers);
        one.learn_refusal(&refusal, configured, numbers);
        let capacity = one.capacity(it, self.proven, configured, numbers).value;
        // When the gate opens there is room for this call, and no more than part of a unit besides.
        let room = (capacity - need - drawn[it]).floor();
        change[it] = if was_even && !one.is_even(numbers) { room } else { change[it].max(room) };
    }
}

impl KnownDimension {
    fn learn_refusal(&mut self, refusal: &Refusal, configured: &Configured, numbers: &Numbers) {
        // A call sent before another refusal was known repeats that refusal.
        if refusal.admitted <= self.last_refusal {
            return;
        }
        self.last_refusal = refusal.at;
        // The rate was restored a moment ago because the meter showed room, but there is none: the
        // meter counts something else. It is no longer trusted, and the rate is lowered as before.
        if let Some((at, lowered)) = self.restored.take()
            && refusal.at - at < numbers.episode
        {
            (self.even_readings, self.lowered) = (f64::MIN, lowered);
        }
        self.last_look = (refusal.at, 0.0);
        // A probe shows only whether the gate may open.
        if refusal.probe {
            return;
        }
        // If nothing was drawn, depth is not the reason.
        let depth = refusal.drawn + refusal.need;
        if refusal.drawn > 0.0 && depth > self.safe_depth * (1.0 + numbers.close) {
            self.refused_depth = Some(self.refused_depth.unwrap_or(depth).min(depth));
            return;
        }
        let here = (refusal.at, refusal.spent);
        let fresh = |[_, last]: &[(f64, f64); 2]| refusal.at - last.0 < numbers.episode;
        let [first, _] = self.refusal_episode.filter(fresh).unwrap_or([here, here]);
        let rate = self.rate(configured, numbers);
        self.refusal_episode = Some([first, here]);
        // At both refusals the provider had no room left. So the amount that it let through between
        // them, divided by the time between them, is its own rate. This does not hold while it asks
        // for a wait in which many calls would fit: then it lets nothing through for a while.
        let mut lowered = rate - numbers.yields * self.configured / configured.window;
        let time = refusal.at - first.0;
        let refills = time >= numbers.measured * numbers.quiet
            && refusal.retry * rate <= numbers.measured * refusal.need;
        if refills || time >= configured.window + refusal.retry {
            let measured = (refusal.spent - first.1 + refusal.need) / time;
            lowered = lowered.min(measured);
        }
        lowered = lowered.max(rate / numbers.grow);
        self.lowered = 1.0 - (1.0 - self.lowered) * lowered / rate;
    }
}
