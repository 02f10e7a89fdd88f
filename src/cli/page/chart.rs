//! Draws a value's last hour as a line in SVG, without a script or a library.

use std::fmt::Write as _;

use maud::{Markup, html};
use tidegate_quota::usage_history::{Point, SLOT_SECONDS};

use crate::cli::format;

const SLOTS: u64 = 120;
const HEIGHT: f64 = 40.0;

/// The scale and the style of a chart.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) value: fn(&Point) -> f64,
    pub(super) shown: fn(f64) -> String,
    /// The scale's minimum upper end.
    pub(super) top: f64,
    /// The class in the style sheet.
    pub(super) class: &'static str,
}

impl Chart {
    /// Draws the points up to `now`, in seconds since 1970. Missing points count as 0.
    pub(super) fn draw(&self, points: &[Point], now: u64) -> Markup {
        let last = now / SLOT_SECONDS;
        let mut values = [0.0_f64; SLOTS as usize];
        for point in points {
            let ago = last.saturating_sub(point.at / SLOT_SECONDS);
            let place = SLOTS.checked_sub(ago + 1).and_then(|at| usize::try_from(at).ok());
            if let Some(value) = place.and_then(|place| values.get_mut(place)) {
                *value = (self.value)(point);
            }
        }
        let most = values.iter().copied().fold(0.0, f64::max);
        let latest = values.last().copied().unwrap_or_default();
        let (most_shown, latest_shown) = ((self.shown)(most), (self.shown)(latest));
        let path = path(&values, most.max(self.top));
        let label =
            format!("{}, the last hour: now {latest_shown}, at most {most_shown}", self.title);
        html! {
            figure .chart {
                figcaption {
                    span { (self.title) }
                    span .faint { b { (latest_shown) } " now, " (most_shown) " at most" }
                }
                svg viewBox=(format!("0 0 {SLOTS} {HEIGHT}")) preserveAspectRatio="none"
                    role="img" aria-label=(label) {
                    path .area.(self.class) d=(format!("{path} V{HEIGHT} H0 Z")) {}
                    path .line.(self.class) d=(path) {}
                }
                div .axis { span { "1 h ago" } span { "now" } }
            }
        }
    }
}

fn path(values: &[f64], top: f64) -> String {
    let mut path = String::new();
    for (slot, value) in values.iter().enumerate() {
        let (x, y) = (slot, HEIGHT - 1.0 - (value / top).min(1.0) * (HEIGHT - 2.0));
        // A step line: each point holds for its half minute.
        let _ = if slot == 0 {
            write!(path, "M0 {y:.1} H1")
        } else {
            write!(path, " V{y:.1} H{}", x + 1)
        };
    }
    path
}

pub(super) const CHARTS: [Chart; 4] = [
    Chart {
        title: "fullest limit",
        value: |point| point.used,
        shown: format::percent,
        top: 1.0,
        class: "use",
    },
    Chart {
        title: "calls in flight",
        value: |point| format::ratio(point.in_flight, 1),
        shown: whole,
        top: 4.0,
        class: "flight",
    },
    Chart {
        title: "longest wait",
        value: |point| point.queue_seconds,
        shown: |seconds| format::duration(format::seconds(seconds)),
        top: 10.0,
        class: "wait",
    },
    Chart {
        title: "refused or failed",
        value: |point| format::ratio(point.calls.rate_limited + point.calls.failed, 1),
        shown: whole,
        top: 4.0,
        class: "refused",
    },
];

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_stands_in_its_half_minute_and_what_nobody_saw_is_nothing() {
        let now = 36_000;
        let at = |seconds_ago: u64, used| Point { at: now - seconds_ago, used, ..Point::default() };
        let points = [at(3_600 + 60, 1.0), at(3_570, 0.5), at(0, 0.25)];
        let text = CHARTS[0].draw(&points, now).into_string();
        assert!(text.contains("the last hour: now 25.0 %, at most 50.0 %"), "{text}");
        // The first slot is half full, the second empty, the last a quarter.
        assert!(text.contains("d=\"M0 20.0 H1 V39.0 H2"), "{text}");
        assert!(text.contains("V29.5 H120\""), "{text}");
    }
}
