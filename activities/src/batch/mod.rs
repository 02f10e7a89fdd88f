//! A batch as a whole: what is in it, what it will take, and what comes out of it.
//!
//! * [`plan`]: checks the input and writes the shards; [`source`]: which documents there are, [`names`]: their ids, and `rows` without names; `pages`: how they are written;
//!   [`estimate`]: what they will take, as a [`forecast`], `actions`: what Temporal will; `in_flight`: how many go at once
//! * `asked_with`: which parameters each model is asked with; `sample`: some of the documents
//! * [`job`]: what every activity of a batch reads: its input and its manifests; [`question`]: what
//!   is asked, in parts that can be compared
//! * `output`: whether its results answer this question; [`lease`]: one batch at a time writes there;
//!   [`ended`]: what Temporal says of that one
//! * [`seal`], [`finish`]: from results to `results.jsonl`, `failures.jsonl` and `report.json`; [`sealed`]: the parts that
//!   lie there, of earlier batches too; `part`: one of them; `tables`: as columns
//! * [`places`]: where all of that lies; [`ids`]: documents' names in eight bytes; `jsonl`: a value a line; `number`: counts as floats;
//!   [`leave`]: what a cancelled one leaves behind

mod actions;
mod archives;
pub(crate) mod asked_with;
pub mod ended;
pub mod estimate;
mod examples;
pub mod finish;
pub mod forecast;
pub mod ids;
mod in_flight;
pub mod job;
mod jsonl;
pub(crate) mod labels;
pub mod lease;
pub mod leave;
pub mod names;
mod number;
mod output;
mod pages;
mod part;
pub mod places;
pub mod plan;
pub mod question;
mod rows;
mod sample;
pub mod seal;
pub mod sealed;
pub mod source;
mod tables;
