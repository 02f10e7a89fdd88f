//! All results of a batch in one object.

use bytes::Bytes;
use tidegate_workflows::contract::ResultsAs;

use crate::{
    failure::Failure,
    output::{
        finish::checkpoint::{Written, lost},
        layout,
        tables::Table,
    },
    storage::{Location, assembly::Assembly},
};

/// The object with all results, in addition to their parts.
pub(super) enum MergedResults {
    /// No object: only the parts exist.
    Nowhere,
    Lines(Assembly),
    Table(Assembly, Box<Table>),
}

impl MergedResults {
    /// Continues from the state of an earlier worker, or begins.
    pub(super) fn begin(
        output: &Location,
        folder: &Location,
        written_as: Option<ResultsAs>,
        written: Written,
    ) -> Result<Self, Failure> {
        let Some(written_as) = written_as else { return Ok(Self::Nowhere) };
        let location = layout::results(output, written_as);
        let staging = folder.child(&format!("{}.part", location.name()));
        let (object, more) = written.resume(location.clone(), &staging);
        Ok(match written_as {
            ResultsAs::Jsonl => Self::Lines(object),
            ResultsAs::Parquet => Self::Table(object, Box::new(Table::resume(location, more)?)),
        })
    }

    /// Adds a result, as a line.
    pub(super) async fn append(&mut self, folder: &Location, json: &Bytes) -> Result<(), Failure> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Lines(lines) => append(folder, lines, json).await,
            Self::Table(object, table) => match table.append(json).await? {
                Some(grown) => append(folder, object, &grown).await,
                None => Ok(()),
            },
        }
    }

    /// The written part so far.
    pub(super) fn save_state(&self) -> Result<Written, Failure> {
        Ok(match self {
            Self::Nowhere => Written::default(),
            Self::Lines(lines) => Written::new(lines, []),
            Self::Table(object, table) => Written::new(object, table.state()?),
        })
    }

    /// Completes the object, and removes objects that earlier batches have written in another format.
    pub(super) async fn complete(
        self,
        output: &Location,
        folder: &Location,
    ) -> Result<(), Failure> {
        let written_as = match self {
            Self::Nowhere => None,
            Self::Lines(lines) => {
                complete(folder, lines).await?;
                Some(ResultsAs::Jsonl)
            }
            Self::Table(mut object, table) => {
                append(folder, &mut object, &table.finish().await?).await?;
                complete(folder, object).await?;
                Some(ResultsAs::Parquet)
            }
        };
        for other in [ResultsAs::Jsonl, ResultsAs::Parquet] {
            if written_as != Some(other) {
                layout::results(output, other).delete().await?;
            }
        }
        Ok(())
    }
}

/// Appends to an object; see [`lost`] for its errors.
pub(super) async fn append(
    folder: &Location,
    to: &mut Assembly,
    bytes: &[u8],
) -> Result<(), Failure> {
    match to.append(bytes).await {
        Ok(()) => Ok(()),
        Err(error) => Err(lost(folder, error).await),
    }
}

/// Completes an object; see [`lost`] for its errors.
pub(super) async fn complete(folder: &Location, object: Assembly) -> Result<(), Failure> {
    match object.complete().await {
        Ok(()) => Ok(()),
        Err(error) => Err(lost(folder, error).await),
    }
}
