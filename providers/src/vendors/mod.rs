//! The table of vendors: the facts about each, a row per vendor. Vendor-specific code is in the
//! vendor's folder.

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
    /// All vendors that have a name here.
    pub fn known() -> impl Iterator<Item = Self> {
        Self::OWN.into_iter().chain(Self::CLOUDS).chain(Self::PRESETS)
    }

    /// The cap of a model's output, in tokens: by this vendor's names, or else by the others',
    /// because gateways serve several vendors' models.
    pub(crate) fn output_cap(self, model: &str) -> Option<u32> {
        let others = Self::OWN.into_iter().filter(|other| *other != self);
        iter::once(self).chain(others).find_map(|vendor| bounds::cap(vendor.0.output_caps, model))
    }

    /// The bounds of a call to a model. The context is known only at the vendor's own host:
    /// elsewhere the same name may be another model.
    pub(crate) fn bounds(self, model: &str, is_official: bool, time: Duration) -> Bounds {
        Bounds {
            output_tokens: self.output_cap(model),
            time: Some(time),
            context_tokens: is_official.then(|| bounds::cap(bounds::CONTEXTS, model)).flatten(),
        }
    }

    /// The error names of all vendors, this one's first.
    pub(crate) fn classifier(self) -> Classifier {
        let others = Self::OWN.into_iter().filter(|other| *other != self);
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
