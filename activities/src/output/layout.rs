//! The locations of a batch's objects in its output.

use tidegate_types::DocumentId;
use tidegate_workflows::contract::ResultsAs;

use crate::storage::Location;

/// The folder of an output for internal objects.
pub const FOLDER: &str = "_tidegate";

/// Objects directly in an output that a batch or a comparison writes for its author.
pub(crate) const AT_TOP: [&str; 7] = [
    "results.jsonl",
    "results.parquet",
    "failures.jsonl",
    "disagreements.jsonl",
    "comparison.json",
    "report.json",
    "report.html",
];

/// Objects of an output that are read at once.
pub(crate) const READ_AHEAD: usize = 32;

const PART: &str = "part-";
const INDEX: &str = "index-";
const END: &str = ".jsonl";

/// A sealed part of an output.
pub fn part(output: &Location, number: u32, written_as: ResultsAs) -> Location {
    output.child("results").child(&format!("{PART}{number:05}.{}", written_as.as_str()))
}

/// The object with all results.
pub fn results(output: &Location, written_as: ResultsAs) -> Location {
    output.child(&format!("results.{}", written_as.as_str()))
}

/// The index of a sealed part.
pub fn part_index(output: &Location, number: u32) -> Location {
    indexes(output).child(&format!("{INDEX}{number:05}{END}"))
}

pub(super) fn indexes(output: &Location) -> Location {
    output.child(FOLDER).child("sealed")
}

/// The number of a part, from its name.
pub(super) fn part_number(name: &str) -> Option<u32> {
    let name = name.strip_prefix(PART)?;
    let number = [ResultsAs::Jsonl, ResultsAs::Parquet]
        .into_iter()
        .find_map(|it| name.strip_suffix(it.as_str())?.strip_suffix('.'));
    number?.parse().ok()
}

/// The number of an index's part, from its name.
pub(super) fn index_number(name: &str) -> Option<u32> {
    name.strip_prefix(INDEX)?.strip_suffix(END)?.parse().ok()
}

/// The folder of one run of one batch. It contains the whole id of the run: such ids begin with the
/// time, so that ids of one minute have an equal prefix.
pub fn folder(output: &Location, workflow_id: &str, run_id: &str) -> Location {
    let workflow = DocumentId::from_relative_path(workflow_id);
    output.child(FOLDER).child(&format!("{workflow}-{run_id}"))
}

/// The manifest of a shard.
pub fn manifest(job: &Location, shard: u32) -> Location {
    job.child(&format!("shard-{shard:05}.jsonl"))
}

/// The state at the end of a page of the plan.
pub fn page(job: &Location, page: u32) -> Location {
    job.child(&format!("page-{page:05}.json"))
}

/// The ids that a page has added, for the pages after it.
pub fn names(job: &Location, page: u32) -> Location {
    job.child(&format!("names-{page:05}"))
}

/// The index of results that earlier batches had sealed when the plan began.
pub fn earlier(job: &Location) -> Location {
    job.child("earlier")
}

/// Documents of one page of the plan whose results were sealed before.
pub fn settled(job: &Location, page: u32) -> Location {
    job.child(&format!("settled-{page:05}.jsonl"))
}

/// The extracted texts of documents that will be tried again.
pub fn texts(job: &Location) -> Location {
    job.child("texts")
}

/// A record that is too large for a manifest, by the page of the plan and the number in it. It is removed
/// with the texts.
pub fn record(job: &Location, page: u32, number: u32) -> Location {
    texts(job).child(&format!("record-{page:05}-{number:06}.json"))
}

/// A shard's part of `failures.jsonl`.
pub fn failures_part(job: &Location, shard: u32) -> Location {
    job.child(&format!("failures-{shard:05}.jsonl"))
}
