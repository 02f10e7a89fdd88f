//! The fields of an answer that have quotes of their own.

use serde_json::Value;
use tidegate_workflows::contract::Job;

use crate::{failure::Failure, output::agreement::WHOLE};

/// Maximum depth of nested objects whose fields have quotes of their own; a deeper object has
/// quotes as a whole.
const MAX_DEPTH: usize = 4;

/// Most fields with quotes. No provider takes a schema of so many, and each adds a line to a result.
const MAX_FIELDS: usize = 1_000;

/// Checks that an answer has few enough fields for quotes of each.
///
/// # Errors
/// `InvalidInput` states the remedy.
pub(crate) fn check_fields(job: &Job) -> Result<(), Failure> {
    if job.evidence && list_fields(job.schema.as_ref()).len() > MAX_FIELDS {
        return Err(Failure::invalid_input(format!(
            "evidence: the schema has more than {MAX_FIELDS} fields, counted {MAX_DEPTH} objects deep, and each would need quotes of its own; ask for fewer fields, or leave evidence out"
        )));
    }
    Ok(())
}

/// Paths of the fields that have quotes: those of the schema's objects, or the whole answer. At most
/// one more than [`MAX_FIELDS`].
pub(super) fn list_fields(schema: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(schema) = schema {
        let mut fields = FieldPaths { root: schema, references: vec![""], found };
        fields.add(schema, "", MAX_DEPTH);
        found = fields.found;
    }
    if found.is_empty() { vec![WHOLE.to_owned()] } else { found }
}

/// The search for the fields of a schema.
struct FieldPaths<'s> {
    root: &'s Value,
    /// The references between the root and the schema that is searched.
    references: Vec<&'s str>,
    found: Vec<String>,
}

impl<'s> FieldPaths<'s> {
    fn add(&mut self, schema: &'s Value, path: &str, depth: usize) {
        if self.found.len() > MAX_FIELDS {
            return;
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        let reference = reference.and_then(|to| to.strip_prefix('#'));
        let root = self.root;
        let target = reference.and_then(|to| Some((to, root.pointer(to)?)));
        match target {
            // A schema that refers to itself has no end: its object has quotes as a whole.
            Some((to, _)) if self.references.contains(&to) => self.add_path(path),
            Some((to, target)) => {
                self.references.push(to);
                self.add_fields(target, path, depth);
                self.references.pop();
            }
            None => self.add_fields(schema, path, depth),
        }
    }

    fn add_fields(&mut self, schema: &'s Value, path: &str, depth: usize) {
        let properties = schema.get("properties").and_then(Value::as_object);
        match properties.filter(|properties| depth > 0 && !properties.is_empty()) {
            Some(properties) => {
                for (name, property) in properties {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.add(property, &path, depth - 1);
                }
            }
            None => self.add_path(path),
        }
    }

    fn add_path(&mut self, path: &str) {
        if !path.is_empty() {
            self.found.push(path.to_owned());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn job(schema: &Value) -> Job {
        serde_json::from_value(
            json!({"source": {"prefix": "file:///in/"}, "output": "file:///out/",
            "instructions": "Read it.", "model": "a:b", "lane": "batch", "tenant": "default",
            "max_output_tokens": 9, "evidence": true, "schema": schema}),
        )
        .unwrap()
    }

    /// Without a bound, these are 150⁴ fields.
    #[test]
    fn a_schema_that_refers_to_itself_has_no_more_fields_than_it_names() {
        let properties: Map<String, Value> =
            (0..150).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/n"}))).collect();
        let schema = json!({"properties": properties, "$defs": {"n": {"properties": properties}}});
        let found = list_fields(Some(&schema));
        assert_eq!(found.len(), MAX_FIELDS + 1, "150 × 150, and the search stops at the bound");
        let failure = check_fields(&job(&schema)).unwrap_err();
        assert!(failure.message.contains("more than 1000 fields"), "{failure}");
        let tree = json!({"properties": {"left": {"$ref": "#"}, "n": {"type": "integer"}}});
        assert_eq!(list_fields(Some(&tree)), ["left", "n"]);
        check_fields(&job(&tree)).unwrap();
    }
}
