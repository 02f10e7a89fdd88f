//! A batch's output: the objects that are written there and read again. Other modules do not know
//! them.
//!
//! * `layout`: their locations; `jsonl`: one value a line
//! * [`job`]: the input and the manifests, which every activity of a batch reads; [`forecast`]: the
//!   expected use of the batch; [`actions`]: its Temporal actions; [`question`]: the question of a
//!   batch, in parts that can be compared
//! * [`lease`]: one batch at a time writes there; `recorded_question`: the question that the results answer;
//!   [`comparisons`]: models that were compared for a question; `row_ids`: ids of records without names
//! * [`result`]: a document's result, and [`version`]: the document's version; [`pending_writes`]: answers that cannot be
//!   written now, [`spool`]: a folder for them; [`answers`]: answers shared between batches
//! * [`seal`]: merges a shard's results into a part; `part`: one part, [`sealed`]: all parts of
//!   an output; `tables`: parts as columns
//! * [`truth`]: expected answers, and [`agreement`]: how many answers agree with them
//! * `vendor_lines`: results and failures of requests in a vendor's own form
//! * [`finish`]: `results.jsonl`, `failures.jsonl`, `report.json` and `report.html`

pub mod actions;
pub mod agreement;
pub mod answers;
pub mod comparisons;
pub mod finish;
pub mod forecast;
pub mod job;
pub(crate) mod jsonl;
pub mod layout;
pub mod lease;
pub mod part;
pub mod pending_writes;
pub mod question;
pub(crate) mod recorded_question;
pub mod result;
pub(crate) mod row_ids;
pub mod seal;
pub mod sealed;
mod size_cache;
pub mod spool;
pub(crate) mod tables;
pub mod truth;
mod vendor_lines;
pub mod version;
