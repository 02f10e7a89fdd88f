//! A batch as a whole: what is in it, what it will take, and what comes out of it.
//!
//! * [`plan`]: checks the input and writes the shards; [`source`], [`records`]: which documents
//!   there are; [`forecast`]: what they will take
//! * [`job`]: what every activity of a batch reads: its input and its manifests
//! * [`seal`], [`finish`]: from results to `results.jsonl`, `failures.jsonl` and `report.json`

pub mod finish;
pub mod forecast;
pub mod job;
pub mod plan;
pub mod records;
pub mod seal;
pub mod source;
