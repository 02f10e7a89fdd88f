//! What is known of how a provider is asked, before any call and without its key.

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

/// Whose API is spoken, and which of its APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    pub(crate) vendor: Vendor,
    pub(crate) api: Api,
}

impl Dialect {
    /// Of a vendor's API.
    pub fn new(vendor: Vendor, api: Api) -> Self {
        Self { vendor, api }
    }

    pub(crate) fn of(settings: &Settings) -> Self {
        Self::new(settings.vendor, settings.api)
    }

    pub(crate) fn table(self) -> &'static Table {
        let Profile { parameters, responses, .. } = self.vendor.0;
        match self.api {
            Api::ChatCompletions => parameters,
            Api::Responses => responses.unwrap_or(parameters),
        }
    }

    /// The parameters that are known of, with what each may be.
    pub fn parameters(self) -> impl Iterator<Item = (&'static str, String)> {
        self.table().rows.iter().map(|row| (row.name, row.takes.must_be()))
    }

    /// The pages of the vendor that say so.
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

    fn keeps(self, model: &str) -> Keeps {
        (self.vendor.0.schemas)(model)
    }

    /// How a schema goes to this model.
    pub fn schema(self, model: &str, schema: &Value) -> Form {
        self.keeps(model).form(schema)
    }

    /// An answer as the schema's author wants it: what only the vendor's form added is taken away.
    /// One that is not as it should be stays as it came, for the caller to judge.
    pub fn restored(self, model: &str, schema: &Value, answer: String) -> String {
        self.keeps(model).restored(schema, answer)
    }

    /// Whether a schema goes to this model as a tool.
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

    /// The answer to a request, as its author wants it.
    pub(crate) fn restored_for(self, request: &Request<'_>, completion: Completion) -> Completion {
        match request.schema {
            Some(schema) => {
                let answer = self.restored(request.model, schema, completion.answer);
                Completion { answer, ..completion }
            }
            None => completion,
        }
    }

    /// What a model embeds of a text; `None` where nothing is known of the vendor's embeddings, or
    /// it has none.
    pub fn embeds(self, model: &str) -> Option<Input> {
        let Embeds { inputs, cuts, together: (texts, together), .. } = self.vendor.0.embeddings?;
        let tokens = bounds::cap(inputs, model);
        Some(Input { tokens, cuts: *cuts, texts: *texts, together: *together })
    }

    /// The parameters of an embedding that are known of, with what each may be; none where the
    /// vendor has no embeddings.
    pub fn embedding_parameters(self) -> impl Iterator<Item = (&'static str, String)> {
        let rows = self.vendor.0.embeddings.map_or(&[][..], |embeds| embeds.table.rows);
        rows.iter().map(|row| (row.name, row.takes.must_be()))
    }

    /// As [`Self::check`], of a call that embeds.
    ///
    /// # Errors
    /// What is wrong with one of them, and what to change.
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
