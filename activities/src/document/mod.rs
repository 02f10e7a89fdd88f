//! One document's way, from its URI to its result.
//!
//! * [`content`]: what of a document goes to the provider; [`version`]: which version of it that is
//! * [`done`]: whether its answer is there already
//! * [`process`]: a document in one call; [`long`]: part by part; [`pack`]: several in a call
//! * `asked`: the answer to a question, whoever asks it
//! * `embed`: its text as a vector
//! * `readings`: texts of documents that come back
//! * [`archived`]: documents in archives
//! * [`answers`]: those that batches share; [`result`]: the object that is written; [`schema`]: whether an answer is what was asked for; `expansion`: by how many schemas

pub mod answers;
pub mod archived;
pub(crate) mod asked;
pub mod content;
pub(crate) mod done;
pub(crate) mod embed;
mod expansion;
pub mod long;
pub mod pack;
pub mod process;
mod readings;
pub mod result;
pub mod schema;
pub mod version;
