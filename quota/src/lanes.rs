//! Lanes: classes of traffic, each with its share of every limit.

use std::collections::BTreeMap;

use tidegate_types::Lane;

use crate::limits::LimitError;

/// A lane's share of each limit and of a worker's slots, as parts of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The guaranteed part, with any use by other lanes.
    pub guaranteed: f64,
    /// The maximum part that it may borrow when the others are idle.
    pub ceiling: f64,
}

impl Share {
    /// The whole.
    pub const ALL: Self = Self { guaranteed: 1.0, ceiling: 1.0 };

    /// Nothing guaranteed, everything may be borrowed: for a lane that is not configured.
    pub(crate) const BORROWED: Self = Self { guaranteed: 0.0, ceiling: 1.0 };

    /// The most of a limit that the lane may have; one call at least.
    pub(crate) fn most_of(&self, limit: f64) -> f64 {
        (limit * self.ceiling).max(1.0)
    }
}

/// The lanes of all models, ordered by name. In Redis each has a number of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes(Vec<(Lane, Share)>);

impl Lanes {
    /// Checks shares and ceilings.
    ///
    /// # Errors
    /// [`LimitError`] when there is no lane, a part lies outside 0..=1, a ceiling is 0 or below the
    /// share, or the shares exceed 1 together.
    pub fn new(lanes: BTreeMap<Lane, Share>) -> Result<Self, LimitError> {
        if lanes.is_empty() {
            return Err(LimitError::NoLane);
        }
        for (lane, share) in &lanes {
            for (what, value) in [("share", share.guaranteed), ("burst", share.ceiling)] {
                if !(0.0..=1.0).contains(&value) {
                    return Err(LimitError::Share { lane: lane.clone(), what, value });
                }
            }
            if share.ceiling <= 0.0 || share.ceiling < share.guaranteed {
                let Share { guaranteed: share, ceiling: burst } = *share;
                return Err(LimitError::Ceiling { lane: lane.clone(), share, burst });
            }
        }
        let sum: f64 = lanes.values().map(|share| share.guaranteed).sum();
        if sum > 1.0 + 1e-9 {
            return Err(LimitError::Sum(sum));
        }
        Ok(Self(lanes.into_iter().collect()))
    }

    /// The whole of every limit for one lane, named `batch`.
    pub fn single() -> Self {
        Self(vec![(Lane::default(), Share::ALL)])
    }

    /// The lane's index, counted from 0.
    pub fn index(&self, lane: &Lane) -> Option<usize> {
        self.0.iter().position(|(name, _)| name == lane)
    }

    /// A lane's share, if it is configured.
    pub fn share(&self, lane: &Lane) -> Option<Share> {
        self.index(lane).map(|index| self.at(index))
    }

    /// The share of the lane with this index, counted from 0.
    pub(crate) fn at(&self, index: usize) -> Share {
        self.0.get(index).map_or(Share::BORROWED, |(_, share)| *share)
    }

    /// Names and shares in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &(Lane, Share)> {
        self.0.iter()
    }
}
