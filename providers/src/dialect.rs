//! Properties of a provider's API that are known without a call or a key.

use serde_json::{Map, Value};
use tidegate_types::Effort;

use crate::{
    bounds,
    call::{Completion, Request},
    embedding::{Embeds, Input},
    parameters::Table,
    schema::{Form, Keeps, Prepared},
    settings::Settings,
    vendor::{Api, Profile, Vendor},
};

/// A vendor's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    pub(crate) vendor: Vendor,
    pub(crate) api: Api,
}

impl Dialect {
    /// The dialect of a vendor's API.
    pub fn new(vendor: Vendor, api: Api) -> Self {
        Self { vendor, api }
    }

    pub(crate) fn from_settings(settings: &Settings) -> Self {
        Self::new(settings.vendor, settings.api)
    }

    pub(crate) fn table(self) -> &'static Table {
        let Profile { parameters, responses, .. } = self.vendor.0;
        match self.api {
            Api::ChatCompletions => parameters,
            Api::Responses => responses.unwrap_or(parameters),
        }
    }

    /// The known parameters, with the values that each takes.
    pub fn parameters(self) -> impl Iterator<Item = (&'static str, String)> {
        self.table().rows.iter().map(|row| (row.name, row.takes.must_be()))
    }

    /// The vendor's pages that document them.
    pub fn sources(self) -> &'static [&'static str] {
        self.table().sources
    }

    /// Checks parameters for one model; returns those that calls take, under the names of the
    /// vendor's table. `room` is the bound of the answer, if known.
    ///
    /// # Errors
    /// The fault of a parameter, and the remedy.
    pub fn check(
        self,
        model: &str,
        effort: Option<Effort>,
        given: &Map<String, Value>,
        room: Option<u32>,
    ) -> Result<Map<String, Value>, String> {
        self.table().check(self.vendor.as_str(), model, effort, given, room)
    }

    fn keeps(self, model: &str) -> Keeps {
        (self.vendor.0.schemas)(model)
    }

    /// The form in which a schema is sent to this model.
    pub fn schema(self, model: &str, schema: &Value) -> Form {
        self.keeps(model).form(schema)
    }

    /// Removes from an answer the parts that only the vendor's form of the schema added. An answer
    /// that does not fit stays unchanged; the caller judges it.
    pub fn restored(self, model: &str, schema: &Value, answer: String) -> String {
        self.keeps(model).restored(schema, answer)
    }

    /// Whether a schema is sent to this model as a tool.
    pub(crate) fn has_tool(self, model: &str) -> bool {
        matches!(self.keeps(model), Keeps::Tool(_))
    }

    /// A request with its schema in the form that the model takes.
    pub(crate) fn prepared<'a>(self, request: &Request<'a>) -> Prepared<'a> {
        let keeps = self.keeps(request.model);
        let json_mode = match keeps {
            Keeps::Nothing | Keeps::Tool(_) => None,
            Keeps::Json | Keeps::Schema(_) => self.vendor.0.json_mode.map(|mode| mode(self.api)),
        };
        Prepared::new(keeps, json_mode, request)
    }

    /// The completion with the answer in the form that the schema's author wants.
    pub(crate) fn restored_for(self, request: &Request<'_>, completion: Completion) -> Completion {
        match request.schema {
            Some(schema) => {
                let answer = self.restored(request.model, schema, completion.answer);
                Completion { answer, ..completion }
            }
            None => completion,
        }
    }

    /// The limits of a text that a model embeds; `None` if the vendor has no embeddings, or they
    /// are unknown.
    pub fn embeds(self, model: &str) -> Option<Input> {
        let Embeds { inputs, cuts, together: (texts, together), .. } = self.vendor.0.embeddings?;
        let tokens = bounds::cap(inputs, model);
        Some(Input { tokens, cuts: *cuts, texts: *texts, together: *together })
    }

    /// The known parameters of an embedding, with the values that each takes; none if the vendor
    /// has no embeddings.
    pub fn embedding_parameters(self) -> impl Iterator<Item = (&'static str, String)> {
        let rows = self.vendor.0.embeddings.map_or(&[][..], |embeds| embeds.table.rows);
        rows.iter().map(|row| (row.name, row.takes.must_be()))
    }

    /// Like [`Self::check`], for a call that embeds.
    ///
    /// # Errors
    /// The fault of a parameter, and the remedy.
    pub fn check_embedding(
        self,
        model: &str,
        given: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        match self.vendor.0.embeddings {
            Some(embeds) => embeds.table.check(self.vendor.as_str(), model, None, given, None),
            None => Err(format!("{} has no embeddings", self.vendor)),
        }
    }
}
