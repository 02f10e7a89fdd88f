//! What is known of how a provider is asked, before any call and without its key.

use serde_json::{Map, Value};
use tidegate_types::Effort;

use crate::{
    parameters::Table,
    settings::{Api, Settings, Vendor},
};

/// Whose API is spoken, and which of its APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    pub(crate) vendor: Vendor,
    pub(crate) api: Api,
}

impl Dialect {
    /// Of a vendor's API.
    #[must_use]
    pub fn new(vendor: Vendor, api: Api) -> Self {
        Self { vendor, api }
    }

    pub(crate) fn of(settings: &Settings) -> Self {
        Self::new(settings.vendor, settings.api)
    }

    pub(crate) fn table(self) -> &'static Table {
        (self.vendor.0.parameters)(self.api)
    }

    /// The parameters that are known of, with what each may be.
    pub fn parameters(self) -> impl Iterator<Item = (&'static str, String)> {
        self.table().rows.iter().map(|row| (row.name, row.takes.must_be()))
    }

    /// The pages of the vendor that say so.
    #[must_use]
    pub fn sources(self) -> &'static [&'static str] {
        self.table().sources
    }

    /// The parameters for one model under the names of the vendor's table, which calls then take.
    /// `room` is the bound of the answer, if it is known.
    ///
    /// # Errors
    /// What is wrong with one of them, and what to change.
    pub fn check(
        self,
        model: &str,
        effort: Option<Effort>,
        given: &Map<String, Value>,
        room: Option<u32>,
    ) -> Result<Map<String, Value>, String> {
        self.table().check(self.vendor.as_str(), model, effort, given, room)
    }
}
