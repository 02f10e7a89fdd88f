//! Converts a batch's JSON Schema to the form that a vendor follows, and the answer back to the
//! form that the author asked for.
//!
//! Each vendor follows only a part of JSON Schema ([`Rules`]). All other parts of an ordinary
//! schema are left out of the request (and put into a description for the model); the caller checks
//! the answer against the original schema. If a schema cannot be reduced, such as a map with any
//! names, the model gets it in words ([`Form::Told`]). Models that follow no schema but know tools
//! are forced to call one whose arguments are the answer ([`Form::Tool`]): this is no stricter than
//! words, but gives JSON.
//!
//! | the author writes | sent to a strict vendor | the answer comes back |
//! |---|---|---|
//! | a field that is not required | required, and may be null | without the null |
//! | no `additionalProperties` | `false` | |
//! | `oneOf`, `allOf`, `const`, lists of types | `anyOf`, one schema, `enum`, `anyOf` | |
//! | `definitions`, a `$ref` with other words in it | `$defs`, the schema that it refers to | |
//! | a list, or a choice, at the top | an object with it as `answer` | the list |
//! | `minLength`, `not`, `if` and others | left out, and stated in the description | |

mod circle;
mod normal;
mod restore;
mod rules;

use serde_json::Value;
use tidegate_types::Effort;

pub(crate) use rules::{ANTHROPIC, GEMINI, Keeps, LENIENT, OPENAI, TOOL};

use crate::{call::Request, parameters::merge};

/// The form in which a schema is sent to a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// The vendor follows it.
    Kept {
        /// The schema as sent.
        schema: Value,
        /// The answer is in a field of the object.
        wrapped: bool,
    },
    /// The vendor follows no schema: the model must call a tool whose arguments are the answer.
    Tool {
        /// The schema of the arguments.
        schema: Value,
        /// The answer is in a field of the arguments.
        wrapped: bool,
    },
    /// The model gets the schema in words.
    Told {
        /// The reason why the vendor cannot follow it.
        why: String,
    },
}

impl Keeps {
    /// The form for such a model.
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

    /// Removes from an answer the parts that only the vendor's form of the schema added. An answer
    /// that does not fit stays unchanged; the caller judges it.
    pub(crate) fn restored(self, schema: &Value, answer: String) -> String {
        match (self, self.form(schema)) {
            // The model may have left out the tool, and a server may ignore the schema: the answer
            // is then read as if the schema had been sent in words.
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
    /// Fields that switch on JSON output.
    pub(crate) json_mode: Option<Value>,
}

impl<'a> Prepared<'a> {
    /// `json_mode`: the fields that switch on JSON output for a model that gets the schema in
    /// words.
    pub(crate) fn new(keeps: Keeps, json_mode: Option<Value>, request: &Request<'a>) -> Self {
        let plain = Self { request: *request, schema: None, instructions: None, json_mode: None };
        let Some(schema) = request.schema else { return plain };
        match keeps.form(schema) {
            Form::Kept { schema, .. } => Self { schema: Some(schema), ..plain },
            Form::Tool { schema, .. } if !thinks(request) => Self { schema: Some(schema), ..plain },
            Form::Tool { .. } | Form::Told { .. } => Self {
                instructions: Some(schema_in_words(request.instructions, schema)),
                json_mode,
                ..plain
            },
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

/// Adds the fields that switch on JSON output to a body.
pub(crate) fn with_json_mode(body: Vec<u8>, mode: Option<Value>) -> Vec<u8> {
    let Some(mode) = mode else { return body };
    let Ok(mut value) = serde_json::from_slice::<Value>(&body) else { return body };
    merge(&mut value, mode);
    serde_json::to_vec(&value).unwrap_or(body)
}

/// The name of the only tool that is offered.
pub(crate) const TOOL_NAME: &str = "answer";

pub(crate) const TOOL_IS: &str = "Takes the answer. Call it once, with all of the answer.";

/// A thinking model cannot be forced to call a tool: "Thinking may not be enabled when tool_choice
/// forces tool use" (platform.claude.com/docs/en/build-with-claude/extended-thinking).
fn thinks(request: &Request<'_>) -> bool {
    let has_budget = |fields: &serde_json::Map<String, Value>| {
        ["thinking_budget", "thinking"].iter().any(|name| fields.contains_key(*name))
    };
    request.parameters.effort.is_some_and(|effort| effort != Effort::None)
        || request.parameters.fields.is_some_and(has_budget)
}

fn schema_in_words(instructions: &str, schema: &Value) -> String {
    format!(
        "{instructions}\n\nAnswer with JSON alone, without a code fence and without a word around it. The JSON must satisfy this JSON Schema:\n{schema}"
    )
}

#[cfg(test)]
mod tests;
