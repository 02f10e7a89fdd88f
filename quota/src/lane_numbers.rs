//! Numbers of lanes in Redis. A lane keeps its number, with any other lanes of a program.

use tidegate_types::Lane;

use crate::{
    conversions::whole,
    error::Error,
    lanes::{Lanes, Share},
};

/// Seconds after which an unnamed lane is forgotten: as long as operators' settings.
const LIFE: &str = "2592000";

/// The script's largest number.
const MOST: usize = 200;

/// All known lanes, of this program and of others, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct LaneNumbers(Vec<Option<(Lane, Share)>>);

impl LaneNumbers {
    /// The number of a lane, counted from 1.
    pub(crate) fn number(&self, lane: &Lane) -> Option<u64> {
        let at = self.0.iter().position(|known| known.as_ref().is_some_and(|it| it.0 == *lane))?;
        u64::try_from(at + 1).ok()
    }

    /// The share of each number's lane: from this program's own configuration, or else from other
    /// programs, or else with nothing guaranteed.
    pub(crate) fn shares(&self, own: &Lanes) -> impl Iterator<Item = Share> {
        self.0.iter().map(|known| {
            let Some((lane, said)) = known else { return Share::BORROWED };
            own.share(lane).unwrap_or(*said)
        })
    }

    /// Lanes in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<&(Lane, Share)>> {
        self.0.iter().map(Option::as_ref)
    }

    pub(crate) fn has_all(&self, lanes: &Lanes) -> bool {
        lanes.iter().all(|(lane, _)| self.number(lane).is_some())
    }

    /// The script's arguments. Where Redis has lost the numbers, it gets those of this process.
    pub(crate) fn arguments(&self, lanes: &Lanes) -> Vec<Vec<u8>> {
        let each = lanes.iter().flat_map(|(lane, share)| {
            let Share { guaranteed, ceiling } = share;
            let number = self.number(lane).unwrap_or_default();
            [lane.to_string(), guaranteed.to_string(), ceiling.to_string(), number.to_string()]
        });
        std::iter::once(LIFE.to_owned()).chain(each).map(String::into_bytes).collect()
    }

    pub(crate) fn from_pairs(pairs: Vec<(String, String)>) -> Result<Self, Error> {
        let mut numbered = Vec::new();
        for (name, kept) in pairs {
            let mut words = kept.split(' ');
            let mut next = || words.next()?.parse::<f64>().ok();
            let read = (next(), next(), next(), Lane::new(name.clone()).ok());
            let (Some(number), Some(guaranteed), Some(ceiling), Some(lane)) = read else {
                return Err(Error::Protocol(format!("lane {name:?} is kept as {kept:?}")));
            };
            let at = usize::try_from(whole(number)).unwrap_or(usize::MAX);
            let Some(at) = at.checked_sub(1).filter(|at| *at < MOST) else {
                return Err(Error::Protocol(format!("lane {name:?} has the number {number}")));
            };
            if numbered.len() <= at {
                numbered.resize_with(at + 1, || None);
            }
            numbered[at] = Some((lane, Share { guaranteed, ceiling }));
        }
        Ok(Self(numbered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_allowed_and_malformed_pairs_are_refused() {
        let pair = |name: &str, kept: &str| (name.to_owned(), kept.to_owned());
        let numbered =
            LaneNumbers::from_pairs(vec![pair("vip", "3 0.2 1"), pair("batch", "1 0.1 0.5")])
                .unwrap();
        let lane = |name: &str| Lane::new(name).unwrap();
        assert_eq!(numbered.number(&lane("vip")), Some(3));
        assert_eq!(numbered.number(&lane("other")), None);
        let shares: Vec<f64> = numbered.shares(&Lanes::single()).map(|it| it.guaranteed).collect();
        assert_eq!(shares, [1.0, 0.0, 0.2], "the program's own configuration goes first");
        for kept in ["", "0 1 1", "x 1 1", "9999 1 1", "1 1"] {
            assert!(LaneNumbers::from_pairs(vec![pair("batch", kept)]).is_err(), "{kept}");
        }
    }
}
