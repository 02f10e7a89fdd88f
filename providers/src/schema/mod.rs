//! A batch's JSON Schema in the form that a vendor keeps to, and the answer back in the form that
//! the author asked for.
//!
//! Vendors keep to a part of JSON Schema only, each to its own ([`Rules`]). What an ordinary schema
//! says beyond that is left out of what is sent (and said in a description, so that the model knows
//! of it): the caller checks the answer against the schema as it was written. What cannot be left
//! out, such as a map with any names, is told to the model in words instead ([`Form::Told`]). Models
//! that keep to no schema, and know tools, are made to call one whose arguments are the answer
//! ([`Form::Tool`]): it is no stricter than words, but it is JSON.
//!
//! | the author writes | sent to a strict vendor | the answer comes back |
//! |---|---|---|
//! | a field that is not required | required, and may be null | without the null |
//! | no `additionalProperties` | `false` | |
//! | `oneOf`, `allOf`, `const`, lists of types | `anyOf`, one schema, `enum`, `anyOf` | |
//! | `definitions`, a `$ref` with other words beside it | `$defs`, what it refers to | |
//! | a list, or a choice, at the top | an object with it as `answer` | the list |
//! | `minLength`, `not`, `if` and others | left out, and said in the description | |

mod normal;
mod restore;
mod rules;

use serde_json::Value;
use tidegate_types::Effort;

pub(crate) use rules::{ANTHROPIC, GEMINI, Keeps, LENIENT, OPENAI, TOOL};

use crate::{call::Request, parameters::merge};

/// How a schema goes to a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// The vendor keeps to it.
    Kept {
        /// As it is sent.
        schema: Value,
        /// The answer stands in a field of it.
        wrapped: bool,
    },
    /// The vendor keeps to none: the model must call a tool whose arguments are the answer.
    Tool {
        /// Of the arguments.
        schema: Value,
        /// The answer stands in a field of them.
        wrapped: bool,
    },
    /// The model is told of it in words.
    Told {
        /// Why the vendor cannot keep to it.
        why: String,
    },
}

impl Keeps {
    /// How a schema goes to such a model.
    pub(crate) fn form(self, schema: &Value) -> Form {
        match self {
            Self::Schema(rules) => match normal::normal(rules, schema) {
                Ok((schema, wrapped)) => Form::Kept { schema, wrapped },
                Err(why) => Form::Told { why },
            },
            Self::Tool(rules) => match normal::normal(rules, schema) {
                Ok((schema, wrapped)) => Form::Tool { schema, wrapped },
                Err(why) => Form::Told { why },
            },
            Self::Json | Self::Nothing => {
                Form::Told { why: "this model keeps to no schema".to_owned() }
            }
        }
    }

    /// An answer as the schema's author wants it: what only the vendor's form added is taken away.
    /// One that is not as it should be stays as it came, for the caller to judge.
    pub(crate) fn restored(self, schema: &Value, answer: String) -> String {
        match (self, self.form(schema)) {
            // A tool may have been left out, and a server may keep to no schema: the model answers as
            // it would be told to then.
            (Self::Schema(rules), Form::Kept { wrapped, .. })
            | (Self::Tool(rules), Form::Tool { wrapped, .. }) => {
                let answer = restore::without_fence(&answer).unwrap_or(answer);
                restore::restored(schema, &answer, wrapped, rules.all_required).unwrap_or(answer)
            }
            (_, Form::Told { .. }) => restore::without_fence(&answer).unwrap_or(answer),
            (_, Form::Kept { .. } | Form::Tool { .. }) => answer,
        }
    }
}

/// A request with its schema in the form that the model takes.
pub(crate) struct Prepared<'a> {
    request: Request<'a>,
    schema: Option<Value>,
    instructions: Option<String>,
    /// Fields that make the vendor put out JSON.
    pub(crate) json_mode: Option<Value>,
}

impl<'a> Prepared<'a> {
    /// `json_mode`: the fields that make a model put out JSON that is told of the schema in words.
    pub(crate) fn new(keeps: Keeps, json_mode: Option<Value>, request: &Request<'a>) -> Self {
        let plain = Self { request: *request, schema: None, instructions: None, json_mode: None };
        let Some(schema) = request.schema else { return plain };
        match keeps.form(schema) {
            Form::Kept { schema, .. } => Self { schema: Some(schema), ..plain },
            Form::Tool { schema, .. } if !thinks(request) => Self { schema: Some(schema), ..plain },
            Form::Tool { .. } | Form::Told { .. } => {
                Self { instructions: Some(told(request.instructions, schema)), json_mode, ..plain }
            }
        }
    }

    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            schema: self.schema.as_ref(),
            instructions: self.instructions.as_deref().unwrap_or(self.request.instructions),
            ..self.request
        }
    }
}

/// A body with the fields that make the vendor put out JSON.
pub(crate) fn with_json_mode(body: Vec<u8>, mode: Option<Value>) -> Vec<u8> {
    let Some(mode) = mode else { return body };
    let Ok(mut value) = serde_json::from_slice::<Value>(&body) else { return body };
    merge(&mut value, mode);
    serde_json::to_vec(&value).unwrap_or(body)
}

/// The one tool that is ever offered.
pub(crate) const TOOL_NAME: &str = "answer";

pub(crate) const TOOL_IS: &str = "Takes the answer. Call it once, with all of the answer.";

/// A model that thinks cannot be made to call a tool: "Thinking may not be enabled when tool_choice
/// forces tool use" (platform.claude.com/docs/en/build-with-claude/extended-thinking).
fn thinks(request: &Request<'_>) -> bool {
    let has_budget = |fields: &serde_json::Map<String, Value>| {
        ["thinking_budget", "thinking"].iter().any(|name| fields.contains_key(*name))
    };
    request.parameters.effort.is_some_and(|effort| effort != Effort::None)
        || request.parameters.fields.is_some_and(has_budget)
}

fn told(instructions: &str, schema: &Value) -> String {
    format!(
        "{instructions}\n\nAnswer with JSON alone, without a code fence and without a word around it. The JSON must satisfy this JSON Schema:\n{schema}"
    )
}

#[cfg(test)]
mod tests;
