//! Where the objects of a batch lie in its output.

use tidegate_types::DocumentId;
use tidegate_workflows::contract::ResultsAs;

use crate::storage::Location;

/// The folder under a batch's output that holds everything internal.
pub const FOLDER: &str = "_tidegate";

const PART: &str = "part-";
const INDEX: &str = "index-";
const END: &str = ".jsonl";

/// A sealed part of an output.
pub fn part(output: &Location, number: u32, written_as: ResultsAs) -> Location {
    output.child("results").child(&format!("{PART}{number:05}.{}", written_as.as_str()))
}

/// All results in one object.
pub fn results(output: &Location, written_as: ResultsAs) -> Location {
    output.child(&format!("results.{}", written_as.as_str()))
}

/// What a sealed part's lines answer.
pub fn part_index(output: &Location, number: u32) -> Location {
    indexes(output).child(&format!("{INDEX}{number:05}{END}"))
}

pub(super) fn indexes(output: &Location) -> Location {
    output.child(FOLDER).child("sealed")
}

/// The number of a part, by its name.
pub(super) fn part_number(name: &str) -> Option<u32> {
    let name = name.strip_prefix(PART)?;
    let number = [ResultsAs::Jsonl, ResultsAs::Parquet]
        .into_iter()
        .find_map(|it| name.strip_suffix(it.as_str())?.strip_suffix('.'));
    number?.parse().ok()
}

/// The number of the part that an index is of, by its name.
pub(super) fn index_number(name: &str) -> Option<u32> {
    name.strip_prefix(INDEX)?.strip_suffix(END)?.parse().ok()
}

/// The folder of one run of one batch. Of the run's id it takes all: they begin with the time, and
/// the first characters of two that start within a minute are the same.
pub fn folder(output: &Location, workflow_id: &str, run_id: &str) -> Location {
    let workflow = DocumentId::from_relative_path(workflow_id);
    output.child(FOLDER).child(&format!("{workflow}-{run_id}"))
}

/// The manifest of a shard.
pub fn manifest(job: &Location, shard: u32) -> Location {
    job.child(&format!("shard-{shard:05}.jsonl"))
}

/// Where a page of the plan begins.
pub fn page(job: &Location, page: u32) -> Location {
    job.child(&format!("page-{page:05}.json"))
}

/// The ids of a page, for those that follow.
pub fn names(job: &Location, page: u32) -> Location {
    job.child(&format!("names-{page:05}"))
}

/// What earlier batches had sealed when the plan began.
pub fn earlier(job: &Location) -> Location {
    job.child("earlier")
}

/// Documents whose result was sealed before, in one page of the plan.
pub fn settled(job: &Location, page: u32) -> Location {
    job.child(&format!("settled-{page:05}.jsonl"))
}

/// A shard's part of `failures.jsonl`.
pub fn failures_part(job: &Location, shard: u32) -> Location {
    job.child(&format!("failures-{shard:05}.jsonl"))
}
