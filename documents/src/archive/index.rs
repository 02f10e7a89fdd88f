//! The places of the members of an archive.

use std::{collections::BTreeMap, ops::ControlFlow};

use serde::{Deserialize, Serialize};

use super::{MemberPath, entry::Budget, place::Place, tarred, visit_entries, zipped};
use crate::{format::Format, limits::Limits};

/// The places of the members of the outer archive.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    /// In the order of the archive; several files may share a path. The place is `None` for a member
    /// that is found by a search of the archive.
    pub(super) places: BTreeMap<String, Vec<Option<Place>>>,
    /// Number of entries, for the budget.
    pub(super) entries: u32,
}

impl Index {
    /// Returns `None` where members are found by a search alone: the archive is damaged, is unpacked
    /// as a stream, or takes a process of its own.
    pub(super) fn build(bytes: &[u8], name: &str, limits: &Limits) -> Option<Self> {
        let format = Format::detect(bytes, name).ok()?;
        let is_small = match format {
            Format::Zip => zipped::has_few_entries(bytes),
            Format::Tar => tarred::has_short_names(bytes),
            format => format == Format::Mbox,
        };
        if !is_small {
            return None;
        }
        let budget = Budget::new(bytes, limits);
        let mut index = Self::default();
        let visited = visit_entries(bytes, name, format, &budget, |path, entry| {
            index.add(path, entry.ok().and_then(|entry| entry.place));
            Ok(ControlFlow::Continue(()))
        });
        visited.ok()?;
        index.entries = budget.entries();
        Some(index)
    }

    pub(super) fn add(&mut self, path: &str, place: Option<Place>) {
        self.places.entry(path.to_owned()).or_default().push(place);
    }

    pub(super) fn place(&self, path: &MemberPath<'_>) -> Option<&Place> {
        let places = self.places.get(&path.wanted)?;
        let at = match usize::try_from(path.number).ok()? {
            1 => places.len().checked_sub(1)?,
            number => number.checked_sub(2).filter(|_| number <= places.len())?,
        };
        places.get(at)?.as_ref()
    }
}
