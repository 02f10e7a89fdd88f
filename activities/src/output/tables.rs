//! Results as tables (Parquet), in builds with the feature `parquet`; other builds refuse batches that
//! ask for them.

#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod table_writer;

#[cfg(feature = "parquet")]
pub(in crate::output) use self::{
    columns::{read, write_table},
    table_writer::Table,
};
#[cfg(not(feature = "parquet"))]
pub(in crate::output) use absent::{Table, read, write_table};

use tidegate_workflows::contract::{Job, ResultsAs};

use crate::failure::Failure;

/// Checks that this build can write tables if the job asks for them. The error states the remedy.
///
/// # Errors
/// `InvalidInput`.
pub(crate) fn check(job: &Job) -> Result<(), Failure> {
    if job.results == ResultsAs::Parquet && !cfg!(feature = "parquet") {
        return Err(Failure::invalid_input(format!(
            "results \"parquet\" {ABSENT}, or leave results out"
        )));
    }
    Ok(())
}

/// End of a message, after the name of the absent feature.
pub(crate) const ABSENT: &str = "is not in this build of tidegate; build it with the feature parquet (cargo build --release --features parquet)";

#[cfg(not(feature = "parquet"))]
mod absent {
    use bytes::Bytes;

    use super::ABSENT;
    use crate::{failure::Failure, output::result::ResultLine, storage::Location};

    /// Stands for tables in a build without them.
    pub(in crate::output) enum Table {}

    impl Table {
        pub(in crate::output) fn resume(of: Location, _: Vec<Bytes>) -> Result<Self, Failure> {
            Err(absent(&of))
        }

        pub(in crate::output) fn state(&self) -> Result<[Bytes; 2], Failure> {
            match *self {}
        }

        pub(in crate::output) async fn append(
            &mut self,
            _: &Bytes,
        ) -> Result<Option<Bytes>, Failure> {
            match *self {}
        }

        pub(in crate::output) async fn finish(self) -> Result<Bytes, Failure> {
            match self {}
        }
    }

    pub(in crate::output) async fn read(
        of: &Location,
        _: Bytes,
    ) -> Result<Vec<ResultLine>, Failure> {
        Err(absent(of))
    }

    pub(in crate::output) async fn write_table(
        of: &Location,
        _: Vec<Bytes>,
    ) -> Result<Vec<u8>, Failure> {
        Err(absent(of))
    }

    /// Another worker may have the feature.
    fn absent(of: &Location) -> Failure {
        Failure::transient(format!("{of}: Parquet {ABSENT}"))
    }
}
