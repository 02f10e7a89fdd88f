//! The processing of one document, from its URI to its result: read → ask → keep.
//!
//! * [`process`]: a document in one call; [`long`]: part by part; [`pack`]: several in a call
//! * `request`: a document that is a request in a vendor's own form
//! * [`read`]: the content to send, unless the answer exists already
//! * [`ask`]: the prompt, the call, and whether the answer is accepted
//! * `check`: whether the answer passes the checks of the batch's author

pub mod ask;
pub(crate) mod check;
pub mod long;
pub mod pack;
pub mod process;
pub mod read;
pub(crate) mod request;
