//! Numbers of items as letters, words and signs of many scripts.

mod systems;
mod words;

pub(crate) use self::systems::{system_of_samples, write_number};
