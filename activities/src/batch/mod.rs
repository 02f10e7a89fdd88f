//! The plan of a batch: its documents and its forecast.
//!
//! * [`plan`]: checks the input and writes the shards; [`source`]: lists the documents; `archives`:
//!   the documents in an archive; [`document_ids`]: their ids; `plan_writer`: writes them
//! * [`estimate`]: the forecast; `expected_calls`: how often models are asked with checked answers;
//!   `in_flight`: the number of documents in flight
//! * `model_parameters`: the parameters of each model; `fallbacks`: the reasons for falling back;
//!   `examples`: examples and templates; `sample`: a sample of the documents; [`pairs`]: a batch that judges pairs of texts
//! * [`run_status`]: whether a batch's run has ended, and a batch's labels in Temporal; [`turn_release`]: releases the
//!   turns of a cancelled batch

mod archives;
pub mod document_ids;
pub mod estimate;
mod examples;
mod expected_calls;
mod fallbacks;
mod in_flight;
pub(crate) mod model_parameters;
pub mod pairs;
pub mod plan;
mod plan_writer;
pub mod run_status;
mod sample;
pub mod source;
pub mod turn_release;
