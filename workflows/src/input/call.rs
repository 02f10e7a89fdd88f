//! Inputs of the activities that any workflow may call, checked like a batch's input: a call is a
//! question without a document.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_types::{Effort, ModelId, Tenant};

use crate::{
    contract::{Job, Message, OnCut, Task},
    input::{
        batch_input::{BatchInput, MAX_DIMENSIONS, MAX_OUTPUT},
        check, named,
        names::first_beside,
        read, typed,
    },
};

/// Fields that may be `{"uri": "…"}` if they are too large for Temporal, and whether the object is
/// JSON (otherwise text).
pub const BY_URI: [(&str, bool); 3] = [("prompt", false), ("messages", true), ("inputs", true)];

/// The field with a body in the vendor's own form. It may be `{"uri": "…"}` too, and its text is
/// kept unchanged.
pub const BODY: &str = "body";

/// The input of `tidegate.call`. An absent field has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallInput {
    /// The model that answers, or
    #[serde(deserialize_with = "read::model")]
    pub model: Option<ModelId>,
    /// a configured list of models.
    #[serde(deserialize_with = "read::text")]
    pub route: Option<String>,
    /// The question, or
    #[serde(deserialize_with = "read::text")]
    pub prompt: Option<String>,
    /// several turns, the last of which asks.
    #[serde(deserialize_with = "read::messages")]
    pub messages: Option<Vec<Message>>,
    /// The system prompt.
    #[serde(deserialize_with = "read::text")]
    pub system: Option<String>,
    /// Most output tokens.
    #[serde(deserialize_with = "read::whole::<_, _, 1, MAX_OUTPUT>")]
    pub max_output_tokens: Option<u32>,
    /// What happens to an answer that is cut or empty.
    #[serde(deserialize_with = "read::given")]
    pub on_cut: Option<OnCut>,
    /// JSON Schema that the answer must satisfy.
    #[serde(deserialize_with = "read::schema")]
    pub schema: Option<Map<String, Value>>,
    /// Fields of the vendor's request: temperature, seed, service tier and others.
    #[serde(deserialize_with = "read::parameters")]
    pub parameters: Option<Map<String, Value>>,
    /// How much a reasoning model thinks.
    #[serde(deserialize_with = "read::given")]
    pub effort: Option<Effort>,
    /// The tenant whose budget pays.
    #[serde(deserialize_with = "read::name")]
    pub tenant: Option<Tenant>,
    /// The group that the call belongs to; by default its workflow.
    #[serde(deserialize_with = "read::text")]
    pub batch: Option<String>,
    /// Whether there is a body in the vendor's own form, which replaces all fields of the question.
    #[serde(rename = "body", deserialize_with = "is_object")]
    pub has_body: bool,
}

/// The input of `tidegate.embed`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbedInput {
    /// The model that gives the vectors.
    #[serde(deserialize_with = "read::model")]
    pub model: Option<ModelId>,
    /// The texts.
    #[serde(deserialize_with = "texts")]
    pub inputs: Vec<String>,
    /// Dimensions of each vector.
    #[serde(deserialize_with = "read::whole::<_, _, 1, MAX_DIMENSIONS>")]
    pub dimensions: Option<u32>,
    /// Fields of the vendor's request.
    #[serde(deserialize_with = "read::parameters")]
    pub parameters: Option<Map<String, Value>>,
    /// The tenant whose budget pays.
    #[serde(deserialize_with = "read::name")]
    pub tenant: Option<Tenant>,
    /// The group that the call belongs to; by default its workflow.
    #[serde(deserialize_with = "read::text")]
    pub batch: Option<String>,
}

/// Reads the input of `tidegate.call`, field by field.
///
/// # Errors
/// A sentence that names the wrong field and the remedy.
pub fn call(value: Value) -> Result<CallInput, String> {
    typed(named::<CallInput>(value)?)
}

/// Reads the input of `tidegate.embed`, field by field.
///
/// # Errors
/// The errors of [`call`].
pub fn embed(value: Value) -> Result<EmbedInput, String> {
    typed(named::<EmbedInput>(value)?)
}

impl CallInput {
    /// Returns the model to which a body is sent, and the tenant that pays.
    ///
    /// # Errors
    /// A sentence that names the field that is not allowed beside a body.
    pub fn into_body(self) -> Result<(ModelId, Tenant), String> {
        let with_body = ["model", "tenant", "batch", BODY];
        if let Some(field) = first_beside(&with_body, &self) {
            return Err(format!(
                "body is sent to one model as it is, and {field} would change it; leave {field} out"
            ));
        }
        let model = self.model.ok_or("model is missing: the one whose form the body has")?;
        Ok((model, self.tenant.unwrap_or_default()))
    }

    /// The question as a job without documents and without an output.
    ///
    /// # Errors
    /// A sentence that states the remedy.
    pub fn job(self) -> Result<Job, String> {
        match (&self.prompt, &self.messages) {
            (None, None) => {
                return Err(
                    "prompt is missing: what is asked; or give messages or a body".to_owned()
                );
            }
            (Some(_), Some(_)) => return Err("give only one of prompt, messages".to_owned()),
            _ => {}
        }
        job(BatchInput {
            instructions: self.prompt.unwrap_or_default(),
            system: self.system,
            messages: self.messages,
            model: self.model,
            route: self.route,
            tenant: self.tenant,
            max_output_tokens: self.max_output_tokens,
            on_cut: self.on_cut,
            schema: self.schema,
            parameters: self.parameters,
            effort: self.effort,
            ..BatchInput::default()
        })
    }
}

impl EmbedInput {
    /// The texts, and the question as a job.
    ///
    /// # Errors
    /// The errors of [`CallInput::job`].
    pub fn job(self) -> Result<(Job, Vec<String>), String> {
        if self.inputs.is_empty() {
            return Err("inputs is missing: a list of texts".to_owned());
        }
        let job = job(BatchInput {
            task: Some(Task::Embed),
            model: self.model,
            dimensions: self.dimensions,
            parameters: self.parameters,
            tenant: self.tenant,
            ..BatchInput::default()
        })?;
        Ok((job, self.inputs))
    }
}

fn job(question: BatchInput) -> Result<Job, String> {
    // A batch must have these, and a call has none.
    let (documents, output) = (Some(Vec::new()), "none".to_owned());
    Ok(check(BatchInput { documents, output, ..question })?.job)
}

fn is_object<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    use serde::de::Error;

    match Value::deserialize(deserializer)? {
        Value::Object(_) => Ok(true),
        other => Err(D::Error::custom(format!(
            "must be an object in the vendor's own form, not {}",
            read::kind(&other)
        ))),
    }
}

fn texts<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    use serde::de::Error;

    let Value::Array(texts) = Value::deserialize(deserializer)? else {
        return Err(D::Error::custom("must be a list of texts"));
    };
    let text = |(place, text)| match text {
        Value::String(text) if text.trim().is_empty() => Err(format!("[{place}] is empty")),
        Value::String(text) => Ok(text),
        other => Err(format!("[{place}] must be a text, not {}", read::kind(&other))),
    };
    texts.into_iter().enumerate().map(text).collect::<Result<_, _>>().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::Target;

    fn asked(value: Value) -> Result<Job, String> {
        call(value)?.job()
    }

    #[test]
    fn a_call_is_a_question_without_a_document() {
        let job = asked(json!({"model": "a:b", "prompt": "Why?", "system": "Be brief.",
            "schema": {"type": "object"}, "effort": "low", "tenant": "acme"}))
        .unwrap();
        assert_eq!((job.instructions.as_str(), job.system.as_deref()), ("Why?", Some("Be brief.")));
        assert!(job.default_output && job.tenant.as_str() == "acme");
        let turns = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]);
        let job =
            asked(json!({"route": "cheap", "messages": turns, "max_output_tokens": 9})).unwrap();
        assert_eq!((job.instructions.as_str(), job.system.as_deref()), ("Why?", Some("Be brief.")));
        assert_eq!(job.target, Target::Route("cheap".to_owned()));
    }

    #[test]
    fn errors_name_the_wrong_field() {
        for (value, says) in [
            (
                json!({"model": "a:b", "promt": "x"}),
                "unknown field \"promt\"; did you mean \"prompt\"?",
            ),
            (json!({"model": "a:b"}), "prompt is missing"),
            (json!({"prompt": "x"}), "model is missing"),
            (json!({"model": "a:b", "prompt": 7}), "prompt must be a text"),
            (json!({"model": "a:b", "prompt": "x", "lane": "batch"}), "unknown field \"lane\""),
            (
                json!({"model": "a:b", "prompt": "x", "messages": []}),
                "only one of prompt, messages",
            ),
            (
                json!({"model": "a:b", "messages": [{"role": "assistant", "content": "x"}]}),
                "in turn",
            ),
            (json!({"model": "a:b", "prompt": "x", "on_cut": "drop"}), "on_cut must be"),
            (json!("x"), "must be a JSON object"),
        ] {
            let error = asked(value).unwrap_err();
            assert!(error.contains(says), "{says}: {error}");
        }
        let body = |more: Value| {
            let mut value = json!({"model": "a:b", "body": {"max_tokens": 9}});
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call(value).and_then(CallInput::into_body)
        };
        assert_eq!(body(json!({"tenant": "acme"})).unwrap().1.as_str(), "acme");
        assert!(body(json!({"effort": "low"})).unwrap_err().contains("leave effort out"));
        assert!(body(json!({"model": null})).unwrap_err().contains("model is missing"));
        assert!(body(json!({"body": "x"})).unwrap_err().contains("body must be an object"));
        for (value, says) in [
            (json!({"model": "a:b", "inputs": ["a", ""]}), "[1] is empty"),
            (json!({"model": "a:b", "inputs": "a"}), "inputs must be a list"),
            (json!({"model": "a:b"}), "inputs is missing"),
            (json!({"inputs": ["a"]}), "model is missing"),
            (json!({"model": "a:b", "inputs": ["a"], "input": "a"}), "did you mean \"inputs\"?"),
        ] {
            let error = embed(value).and_then(EmbedInput::job).unwrap_err();
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}
