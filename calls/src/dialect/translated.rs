//! A request of one dialect for models that speak another.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidegate_providers::{
    Completion, Document, Fields, Operation, Parameters, Providers, Request, RequestFacts, Said,
};
use tidegate_types::ModelId;

use crate::{
    caller::{Question, UNBOUNDED_OUTPUT},
    dialect::{
        chat,
        conversation::{Conversation, RefusedField},
        messages,
    },
    route::Route,
};

/// A translated request.
#[derive(Debug)]
pub struct Translated {
    operation: Operation,
    /// The model's name in the client's request.
    name: String,
    conversation: Conversation,
    input_tokens: u64,
    template: u64,
    /// The parameters of each model, in its own dialect.
    pub(super) parameters: BTreeMap<ModelId, Map<String, Value>>,
}

impl Translated {
    /// Reads a request for models that speak another dialect; returns it with the models of the
    /// route that take it.
    ///
    /// # Errors
    /// Names the field that is refused.
    pub fn read(
        (operation, name): (Operation, &str),
        fields: &Fields,
        asked: &RequestFacts,
        route: &Route,
        providers: &Providers,
    ) -> Result<(Self, Route), RefusedField> {
        let conversation = match operation {
            Operation::ChatCompletions => chat::read(fields)?,
            Operation::Messages => messages::read(fields)?,
            Operation::Responses | Operation::Embeddings | Operation::CountTokens => {
                let why = format!(
                    "is {name}, which does not take {operation}; ask a model of this dialect"
                );
                return Err(RefusedField::new("model", &why));
            }
        };
        conversation.check()?;
        let mut given = Map::new();
        given.extend(conversation.temperature.clone().map(|it| ("temperature".to_owned(), it)));
        given.extend(conversation.stop.clone().map(|it| ("stop".to_owned(), it)));
        let (mut parameters, mut fault) = (BTreeMap::new(), None);
        for model in &route.models {
            let checked = match providers.dialect(model) {
                _ if given.is_empty() => Ok(Map::new()),
                Some(dialect) => {
                    dialect.check(model.model(), None, &given, conversation.max_output_tokens)
                }
                None => Err(format!("{model} takes no parameters")),
            };
            match checked {
                Ok(checked) => drop(parameters.insert(model.clone(), checked)),
                Err(why) => fault = fault.or(Some(why)),
            }
        }
        if let (true, Some(why)) = (parameters.is_empty(), fault) {
            let field = given.keys().find(|name| why.contains(name.as_str()));
            let field = match (operation, field.map_or("model", String::as_str)) {
                (Operation::Messages, "stop") => "stop_sequences",
                (_, field) => field,
            };
            return Err(RefusedField::new(field, &format!("does not fit the model: {why}")));
        }
        let keep = |models: &[ModelId]| {
            models.iter().filter(|it| parameters.contains_key(*it)).cloned().collect()
        };
        let (models, equivalent) = (keep(&route.models), keep(&route.equivalent));
        let route = Route { models, equivalent, ..route.clone() };
        let (input_tokens, template) = (asked.input_tokens, asked.template);
        let name = name.to_owned();
        Ok((Self { operation, name, conversation, input_tokens, template, parameters }, route))
    }

    /// The answer in the client's dialect.
    pub fn answer(&self, completion: &Completion) -> Value {
        let id = format!("{:032x}", rand::random::<u128>());
        match self.operation {
            Operation::ChatCompletions => chat::answer(&id, &self.name, completion),
            Operation::Messages => messages::answer(&id, &self.name, completion),
            Operation::Responses | Operation::Embeddings | Operation::CountTokens => json!({}),
        }
    }
}

impl Question for Translated {
    fn template(&self) -> u64 {
        self.template
    }

    fn input_tokens(&self, _model: &ModelId) -> u64 {
        self.input_tokens
    }

    fn room(&self, cap: Option<u32>) -> u32 {
        let usual = u32::try_from(UNBOUNDED_OUTPUT).unwrap_or(u32::MAX);
        let room = self.conversation.max_output_tokens.unwrap_or(usual);
        cap.map_or(room, |cap| room.min(cap))
    }

    fn likely_output(&self, learned: Option<u64>) -> Option<u64> {
        learned
    }

    fn cached_instructions(&self) -> Option<(u64, &str)> {
        None
    }

    fn call<'c>(&'c self, model: &'c ModelId, room: u32) -> Request<'c> {
        let Conversation { system, turns, schema, .. } = &self.conversation;
        let (last, turns) = match turns.split_last() {
            Some((last, turns)) => (last.text.as_str(), turns),
            None => ("", &[][..]),
        };
        Request {
            model: model.model(),
            instructions: system,
            turns,
            said: Said::Instead(last),
            document: Document::Text(""),
            max_output_tokens: room,
            schema: schema.as_ref(),
            cache_instructions: false,
            parameters: Parameters { effort: None, fields: self.parameters.get(model) },
        }
    }
}
