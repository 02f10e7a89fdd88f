//! Fields that do not apply to every batch: a batch that embeds does not use fields about answers,
//! and a batch of requests in a vendor's own form states nearly everything in the requests.

use super::{batch_input::BatchInput, read::MAX_PACK};
use crate::contract::{Attach, Mode, Pack, ResultsAs, Task};

/// # Errors
/// A sentence that names the field that does not apply.
pub(super) fn check(input: &BatchInput) -> Result<(), String> {
    if input.lines.is_some() {
        return check_lines(input);
    }
    if input.task != Some(Task::Embed) {
        return match input.dimensions {
            Some(_) => {
                Err("dimensions is of no use without task; add \"task\": \"embed\"".to_owned())
            }
            None => Ok(()),
        };
    }
    let of_answers = [
        ("system", input.system.is_some()),
        ("messages", input.messages.is_some()),
        ("examples", input.examples.is_some()),
        ("max_output_tokens", input.max_output_tokens.is_some()),
        ("on_cut", input.on_cut.is_some()),
        ("schema", input.schema.is_some()),
        ("checks", input.checks.is_some()),
        ("evidence", input.evidence == Some(true)),
        ("effort", input.effort.is_some()),
        ("truth", input.truth.is_some()),
    ];
    if let Some((field, _)) = of_answers.iter().find(|(_, given)| *given) {
        return Err(format!(
            "task \"embed\" puts out vectors, and {field} is about answers; leave it out"
        ));
    }
    if !input.instructions.is_empty() && input.template != Some(true) {
        return Err("task \"embed\" follows no instructions; leave them out, or say with \"template\": true what is embedded in place of the document, such as \"passage: {{ document }}\"".to_owned());
    }
    if input.template == Some(true) && input.instructions.is_empty() {
        return Err("template is of no use without instructions, which say what is embedded, such as \"passage: {{ document }}\"".to_owned());
    }
    if input.long.is_some() || input.chunk_tokens.is_some() {
        return Err("task \"embed\" and long exclude each other: a part of a document would have a vector of its own, and its document none; divide long documents before, for example into the lines of a JSONL file (\"records\")".to_owned());
    }
    if input.attach.is_some_and(|attach| attach != Attach::Text) {
        return Err("task \"embed\" is about text; leave attach out".to_owned());
    }
    if input.mode == Some(Mode::Economy) || input.deadline.is_some() {
        let field = if input.deadline.is_some() { "deadline" } else { "mode \"economy\"" };
        return Err(format!(
            "task \"embed\" and {field} exclude each other: embeddings do not go through batch APIs; leave it out"
        ));
    }
    Ok(())
}

/// # Errors
/// A sentence that names the field that does not apply.
fn check_lines(input: &BatchInput) -> Result<(), String> {
    let of_documents = [
        ("documents", input.documents.is_some()),
        ("manifest", input.manifest.is_some()),
        ("task", input.task.is_some()),
        ("dimensions", input.dimensions.is_some()),
        ("instructions", !input.instructions.is_empty()),
        ("template", input.template.is_some()),
        ("system", input.system.is_some()),
        ("messages", input.messages.is_some()),
        ("examples", input.examples.is_some()),
        ("max_output_tokens", input.max_output_tokens.is_some()),
        ("on_cut", input.on_cut.is_some()),
        ("schema", input.schema.is_some()),
        ("parameters", input.parameters.is_some()),
        ("effort", input.effort.is_some()),
        ("long", input.long.is_some()),
        ("chunk_tokens", input.chunk_tokens.is_some()),
        ("records", input.records.is_some()),
        ("attach", input.attach.is_some()),
        ("mode", input.mode == Some(Mode::Economy)),
        ("pack", input.pack.is_some()),
        ("reread", input.reread.is_some()),
        ("sample", input.sample.is_some()),
        ("truth", input.truth.is_some()),
        ("results", input.results == Some(ResultsAs::Parquet)),
    ];
    match of_documents.iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(format!(
            "lines are requests that are sent as they are, and {field} would say something else; leave it out"
        )),
        None => Ok(()),
    }
}

/// Texts to embed share calls unless the author states a number: sharing does not change a vector.
pub(super) fn pack(given: Option<Pack>, task: Task) -> Option<Pack> {
    let most = u32::try_from(MAX_PACK).unwrap_or(u32::MAX);
    given.or_else(|| (task == Task::Embed).then_some(Pack::Of(most)))
}
