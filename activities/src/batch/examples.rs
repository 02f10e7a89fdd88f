//! Examples and templates, which are checked when a batch is planned.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_workflows::contract::{Example, Job};

use crate::{
    document::ask::{
        expression::{self, OF_CHECKS},
        prompt_builder::{self, DocumentFacts, OF_ALL, PromptText},
        template::Text,
    },
    failure::{Failure, field_fault},
    output::{
        job::{Document, resolve},
        jsonl::objects,
    },
    services::Services,
};

/// Largest object of examples, in bytes: they are sent with each document.
const MOST_BYTES: u64 = 1 << 20;

/// A line of the object.
#[derive(Deserialize)]
struct Line {
    document: String,
    answer: Value,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// Adds the examples to the job.
///
/// # Errors
/// `InvalidInput` names the line that is wrong; `Transient` when the store fails.
pub(super) async fn read(services: &Services, job: &Job) -> Result<Job, Failure> {
    let Some(uri) = &job.examples else { return Ok(job.clone()) };
    let of_field = |error| field_fault("examples", error);
    let place = resolve(&services.storage, "examples", uri)?;
    let size = place.size().await.map_err(of_field)?;
    let size = size.ok_or_else(|| {
        Failure::invalid_input(format!("examples {place}: there is no such object"))
    })?;
    if size > MOST_BYTES {
        return Err(Failure::invalid_input(format!(
            "examples {place} has {size} bytes; at most {MOST_BYTES} are sent with each document"
        )));
    }
    let (bytes, _) = place.read_at_most(MOST_BYTES).await.map_err(of_field)?;
    let shown = lines(&bytes).map_err(|(line, why)| {
        Failure::invalid_input(format!(
            "examples {place}, line {line}: {why}; write {{\"document\": \"…\", \"answer\": \"…\"}}"
        ))
    })?;
    if shown.is_empty() {
        return Err(Failure::invalid_input(format!("examples {place}: there is none")));
    }
    Ok(Job { shown, ..job.clone() })
}

fn lines(bytes: &[u8]) -> Result<Vec<Example>, (u64, String)> {
    let example = |(number, line): (u64, Result<Line, String>)| {
        let Line { document, answer, fields } = line.map_err(|why| (number, why))?;
        let answer = match answer {
            Value::String(text) => text,
            other => other.to_string(),
        };
        Ok(Example { document, answer, fields })
    };
    objects(bytes, "an example").map(example).collect()
}

/// Checks whether the templates can be filled for these documents.
///
/// # Errors
/// `InvalidInput` names the unknown name and the document.
pub(super) fn check<'a>(
    job: &Job,
    documents: impl IntoIterator<Item = &'a Document>,
) -> Result<(), Failure> {
    let documents: Vec<&Document> =
        documents.into_iter().filter(|document| document.unreadable.is_none()).collect();
    check_expressions(job, &documents)?;
    if !job.template {
        return Ok(());
    }
    let mut names = BTreeSet::new();
    for (place, text) in prompt_builder::texts(job) {
        let found = Text { place: &place, text }.names().map_err(Failure::invalid_input)?;
        names.extend(found.into_iter().map(|name| (name, place.clone())));
    }
    names.retain(|(name, _)| !OF_ALL.contains(&name.as_str()));
    if names.is_empty() {
        return Ok(());
    }
    for document in documents {
        let fields = &document.fields;
        let Some((name, place)) = names.iter().find(|(name, _)| !fields.contains_key(name)) else {
            continue;
        };
        // A name that a template uses only under a condition may be unknown. A template that is not
        // plain is checked when its document is processed.
        let text = document.text.as_deref().unwrap_or_default();
        if !fields.is_empty()
            && (!prompt_builder::is_plain(job)
                || PromptText::build(job, &DocumentFacts::new(document, text)).is_ok())
        {
            continue;
        }
        let known = OF_ALL.into_iter().chain(fields.keys().map(String::as_str));
        return Err(Failure::invalid_input(format!(
            "{place}: {{{{ {name} }}}} is not known of {}; known: {}",
            document.uri,
            known.collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(())
}

/// Checks the names in the expressions of the job's checks in the same manner.
fn check_expressions(job: &Job, documents: &[&Document]) -> Result<(), Failure> {
    for (_, expression) in expression::expressions(&job.checks) {
        let mut names = expression.names().map_err(Failure::invalid_input)?;
        names.retain(|name| !OF_ALL.contains(&&**name) && !OF_CHECKS.contains(&&**name));
        let lacks = |document: &&&Document| {
            let fields = &document.fields;
            let missing = names.iter().any(|name| !fields.contains_key(name));
            // A name that is used only under a condition may be unknown.
            let may_do = || {
                !expression::are_plain(&job.checks)
                    || expression.knows_its_names(&DocumentFacts::new(document, ""))
            };
            missing && (fields.is_empty() || !may_do())
        };
        let Some(document) = documents.iter().find(lacks) else { continue };
        let fields = document.fields.keys().map(String::as_str);
        let known: Vec<&str> = OF_CHECKS.into_iter().chain(OF_ALL).chain(fields).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(Failure::invalid_input(format!(
            "{}: {} is not known of {}; known: {}",
            expression.place,
            names.join(", "),
            document.uri,
            known.join(", ")
        )));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn examples_are_lines_with_a_document_and_an_answer() {
        let read = lines(b"{\"document\":\"a\",\"answer\":{\"n\":1},\"city\":\"x\"}\n\n").unwrap();
        assert_eq!(
            (read[0].answer.as_str(), read[0].fields["city"].as_str()),
            ("{\"n\":1}", Some("x"))
        );
        let (line, why) = lines(b"\n{\"document\":\"a\"}").unwrap_err();
        assert!(line == 2 && why.contains("answer"), "{line} {why}");
    }
}
