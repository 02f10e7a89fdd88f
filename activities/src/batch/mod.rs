//! A batch as a whole: what is in it, what it will take, and what comes out of it.
//!
//! * [`plan`]: checks the input and writes the shards; [`source`]: which documents there are;
//!   [`estimate`]: what they will take, as a [`forecast`]
//! * [`job`]: what every activity of a batch reads: its input and its manifests; [`question`]: what
//!   is asked, in parts that can be compared
//! * [`seal`], [`finish`]: from results to `results.jsonl`, `failures.jsonl` and `report.json`

pub mod estimate;
pub mod finish;
pub mod forecast;
pub mod job;
pub mod plan;
pub mod question;
pub mod seal;
pub mod source;
