//! The last known state of a quota in Redis.

use crate::{
    plan::{Plan, Units},
    policy::Known,
};

/// A process's last knowledge of a quota in Redis, used while Redis is away.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remembered {
    pub(crate) known: Known,
    pub(crate) plan: Plan,
    pub(crate) drawn: Units,
    /// Use in the window.
    pub(crate) total: Units,
}

impl Remembered {
    /// The drawn amounts, if the content of the window counts as drawn: the window itself is
    /// forgotten.
    pub(crate) fn levels(&self) -> Units {
        Units::from_fn(|it| {
            let limit = self.plan.limits[it];
            limit.map_or(0.0, |limit| limit.level(self.drawn[it], self.total[it]))
        })
    }
}
