//! The table of vendors: all that is known of each, one row a vendor. What differs in code stands
//! in the vendor's folder.

mod clouds;
mod compatible;
mod own;
mod parameters;

use std::{iter, str::FromStr, time::Duration};

use crate::{
    bounds::{self, Bounds},
    classify::Classifier,
    vendor::{UnknownVendor, Vendor},
};

impl Vendor {
    /// All that are known by name.
    pub fn known() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain(Self::CLOUDS).chain(Self::PRESETS)
    }

    /// The cap of a model's output, in tokens: by this vendor's names, else, as gateways serve
    /// several vendors' models, by the others'.
    pub(crate) fn output_cap(self, model: &str) -> Option<u32> {
        let others = Self::ALL.into_iter().filter(|other| *other != self);
        iter::once(self).chain(others).find_map(|vendor| bounds::cap(vendor.0.output_caps, model))
    }

    /// What bounds a call to a model. What a model takes is known of the vendor's own host alone:
    /// behind other names there may be other models.
    pub(crate) fn bounds(self, model: &str, is_official: bool, time: Duration) -> Bounds {
        Bounds {
            output_tokens: self.output_cap(model),
            time: Some(time),
            context_tokens: is_official.then(|| bounds::cap(bounds::CONTEXTS, model)).flatten(),
        }
    }

    /// All vendors' names of errors, this one's first.
    pub(crate) fn classifier(self) -> Classifier {
        let others = Self::ALL.into_iter().filter(|other| *other != self);
        Classifier::new(iter::once(self).chain(others).map(|vendor| vendor.0.error_names))
    }
}

impl FromStr for Vendor {
    type Err = UnknownVendor;

    fn from_str(text: &str) -> Result<Self, UnknownVendor> {
        Self::known().find(|vendor| vendor.as_str() == text).ok_or_else(|| UnknownVendor {
            given: text.to_owned(),
            known: Self::known().map(Self::as_str).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
