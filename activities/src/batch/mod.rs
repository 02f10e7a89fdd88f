//! The plan of a batch: its documents and its forecast.
//!
//! * [`plan`]: checks the input and writes the shards; [`source`]: which documents there are, `archives`: those in one,
//!   [`names`]: their ids; `pages`: how they are written
//! * [`estimate`]: what they will take, `checked`: how often models are asked where answers are checked; `in_flight`: how many go at once
//! * `asked_with`: which parameters each model is asked with; `examples`: what is shown to it; `sample`: some of the documents
//! * [`ended`]: what Temporal says of a batch; `labels`: by which it finds one; [`leave`]: what a cancelled one leaves behind

mod archives;
pub(crate) mod asked_with;
mod checked;
pub mod ended;
pub mod estimate;
mod examples;
mod fallbacks;
mod in_flight;
pub(crate) mod labels;
pub mod leave;
pub mod names;
mod pages;
pub mod plan;
mod sample;
pub mod source;
