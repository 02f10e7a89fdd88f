//! The plan of a batch: its documents and its forecast.
//!
//! * [`plan`]: checks the input and writes the shards; [`source`]: lists the documents, `archives`: those in an archive,
//!   [`names`]: their ids; `pages`: writes them
//! * [`estimate`]: the forecast, `checked`: how often models are asked where answers are checked; `in_flight`: how many
//!   documents are in flight
//! * `asked_with`: the parameters of each model; `fallbacks`: why a route may fall back; `examples`: examples and
//!   templates; `sample`: a sample of the documents
//! * [`ended`]: whether a batch's run has ended; `labels`: a batch's labels in Temporal; [`leave`]: releases the turns of a
//!   cancelled batch

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
