//! Parquet tables: each row is a document.

mod pages;
pub(crate) mod row_process;
mod rows;

pub use self::row_process::{DecodedRows, RowRequest};
pub(crate) use self::rows::invalid;
