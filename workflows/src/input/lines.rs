//! What can be said of a batch of requests in a vendor's own form: nearly all of it is in the requests.

use super::{BatchInput, read::Mode};
use crate::contract::ResultsAs;

/// # Errors
/// A sentence that says which field is of no use.
pub(super) fn check(input: &BatchInput) -> Result<(), String> {
    if input.lines.is_none() {
        return Ok(());
    }
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
        ("deadline", input.deadline.is_some()),
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
