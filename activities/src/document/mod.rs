//! One document's way, from its URI to its result: read → ask → keep.
//!
//! * [`process`]: a document in one call; [`long`]: part by part; [`pack`]: several in a call
//! * `request`: one that is a request in a vendor's own form
//! * [`read`]: what of it goes to the provider, if it is not done already
//! * [`ask`]: in which words, and whether the answer is one
//! * `check`: whether the answer passes what the batch's author wants of it
//! * `keep`: what becomes of the answer

pub mod ask;
pub(crate) mod check;
pub(crate) mod keep;
pub mod long;
pub mod pack;
pub mod process;
pub mod read;
pub(crate) mod request;
