//! A batch's output: the objects that are written there and read again. No other module knows them.
//!
//! * `layout`: their locations; `jsonl`: one value a line; [`ids`]: documents' ids in eight bytes
//! * [`job`]: what every activity of a batch reads: its input and its manifests; [`forecast`]: what it was expected to take,
//!   [`actions`]: of Temporal's; [`question`]: what is asked, in parts that can be compared
//! * [`lease`]: one batch at a time writes there; `recorded`: whether its results answer this question; [`comparisons`]: models that were
//!   compared for it; `rows`: what
//!   records without names are called in it
//! * [`result`]: a document's result, and [`version`]: of what; [`pending_writes`]: one that cannot be written now, [`spool`]: the
//!   folder for them; [`answers`]: those that batches share
//! * [`seal`]: a shard's results become a part; `part`: one of them, `line`: a result in it, [`sealed`]: all that lie there; `tables`: as columns
//! * `truth`: what answers should be, and [`agreement`]: how many are
//! * `reply`: results and failures of requests in a vendor's own form
//! * [`finish`]: `results.jsonl`, `failures.jsonl`, `report.json` and `report.html`; `full_price`: why
//!   shards paid the full price

pub mod actions;
pub mod agreement;
pub mod answers;
pub mod comparisons;
pub mod evidence;
pub mod finish;
pub mod forecast;
pub(crate) mod full_price;
pub mod ids;
pub mod job;
pub(crate) mod jsonl;
pub mod layout;
pub mod lease;
mod line;
pub mod part;
pub mod pending_writes;
pub mod question;
pub(crate) mod recorded;
mod reply;
pub mod result;
pub(crate) mod rows;
pub mod seal;
pub mod sealed;
pub mod spool;
pub(crate) mod tables;
pub(crate) mod truth;
pub mod version;
