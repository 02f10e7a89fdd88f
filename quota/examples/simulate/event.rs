//! Virtual time and its events.

use std::{cmp::Ordering, collections::BinaryHeap};

/// Virtual microseconds since the simulation's start.
pub(crate) type Micros = u64;

/// A second of virtual time.
pub(crate) const SECOND: Micros = 1_000_000;

/// Events in the order of their times; events of equal times in the order in which they were
/// planned.
pub(crate) struct Events<E> {
    heap: BinaryHeap<Planned<E>>,
    planned: u64,
}

struct Planned<E> {
    at: Micros,
    order: u64,
    event: E,
}

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }

    pub(crate) fn plan(&mut self, at: Micros, event: E) {
        self.heap.push(Planned { at, order: self.planned, event });
        self.planned += 1;
    }

    pub(crate) fn next_before(&mut self, end: Micros) -> Option<(Micros, E)> {
        self.heap.pop().filter(|next| next.at < end).map(|next| (next.at, next.event))
    }
}

impl<E> Ord for Planned<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Planned<E> {}
