//! Drawn lines of a page in the frame of a direction of reading. Lines that continue each other are
//! merged.

use super::super::{glyphs::to_reading_frame, rules::Rules};

/// Lines this close to each other are one, in points: cells may have separate frames.
pub(super) const CLOSE: f64 = 3.0;
/// Most lines in one direction; a page with more is a drawing.
const MAX_EDGES: usize = 1_500;

/// A line: its position, and its two ends along its direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Edge {
    pub(super) at: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Edge {
    pub(super) fn covers(&self, place: f64) -> bool {
        (self.from - CLOSE..=self.to + CLOSE).contains(&place)
    }

    pub(super) fn length(&self) -> f64 {
        self.to - self.from
    }
}

/// Lines sorted by position. Lines that continue each other have exactly the same position.
#[derive(Debug, Default)]
pub(super) struct Ruling {
    /// Lines between rows; `at` is their y.
    pub(super) level: Vec<Edge>,
    /// Lines between columns; `at` is their x.
    pub(super) upright: Vec<Edge>,
}

impl Ruling {
    pub(super) fn from_rules(rules: &Rules, turn: u16) -> Self {
        let (mut level, mut upright) = (Vec::new(), Vec::new());
        for (from, to) in rules.all() {
            let (a, b) = (to_reading_frame(*from, turn), to_reading_frame(*to, turn));
            let edge =
                |at: f64, from: f64, to: f64| Edge { at, from: from.min(to), to: from.max(to) };
            if (a.0 - b.0).abs() > (a.1 - b.1).abs() {
                level.push(edge(a.1, a.0, b.0));
            } else {
                upright.push(edge(a.0, a.1, b.1));
            }
        }
        let (level, upright) = (merge_edges(level), merge_edges(upright));
        if level.len().max(upright.len()) > MAX_EDGES {
            return Self::default();
        }
        Self { level, upright }
    }

    /// Whether lines drawn between the baselines `y` span more than 0.6 of the range `x`.
    pub(super) fn divides(&self, y: (f64, f64), x: (f64, f64)) -> bool {
        let first = self.level.partition_point(|edge| edge.at < y.0);
        let between = self.level.iter().skip(first).take_while(|edge| edge.at < y.1);
        // Cells may have separate lines.
        let ruled: f64 = between.map(|edge| (edge.to.min(x.1) - edge.from.max(x.0)).max(0.0)).sum();
        ruled > 0.6 * (x.1 - x.0)
    }
}

fn merge_edges(mut edges: Vec<Edge>) -> Vec<Edge> {
    edges.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut place = f64::NEG_INFINITY;
    for edge in &mut edges {
        if edge.at - place > CLOSE {
            place = edge.at;
        }
        edge.at = place;
    }
    edges.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.from.total_cmp(&b.from)));
    let mut merged: Vec<Edge> = Vec::with_capacity(edges.len());
    for edge in edges {
        match merged.last_mut() {
            Some(last) if last.at.total_cmp(&edge.at).is_eq() && edge.from <= last.to + CLOSE => {
                last.to = last.to.max(edge.to);
            }
            _ => merged.push(edge),
        }
    }
    // Shorter lines are ticks and underlines, which divide no cells.
    merged.retain(|edge| edge.length() > 6.0);
    merged
}
