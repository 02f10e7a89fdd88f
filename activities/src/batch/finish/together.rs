//! All results of a batch in one object.

use bytes::Bytes;
use tidegate_workflows::contract::ResultsAs;

use super::{checkpoint::Written, gather::lost};
use crate::{
    batch::{places, tables::Table},
    failure::Failure,
    storage::{Assembly, Location},
};

/// Where the results go beside their parts.
pub(super) enum Together {
    /// Nowhere: the parts are all there is.
    Nowhere,
    Lines(Assembly),
    Table(Box<Table>),
}

impl Together {
    /// What a worker before this one has written of lines is taken over.
    pub(super) fn begin(
        output: &Location,
        folder: &Location,
        written_as: Option<ResultsAs>,
        (assembled, rest): Written,
    ) -> Result<Self, Failure> {
        let Some(written_as) = written_as else { return Ok(Self::Nowhere) };
        let object = places::results(output, written_as);
        let staging = folder.child(&format!("{}.part", object.name()));
        Ok(match written_as {
            ResultsAs::Jsonl => Self::Lines(Assembly::resume(object, &staging, assembled, rest)),
            ResultsAs::Parquet => Self::Table(Box::new(Table::new(object, &staging)?)),
        })
    }

    /// Adds a result, as a line. Whether another worker can go on behind it.
    pub(super) async fn append(
        &mut self,
        folder: &Location,
        json: &Bytes,
    ) -> Result<bool, Failure> {
        match self {
            Self::Nowhere => Ok(false),
            Self::Lines(lines) => match lines.append(json).await {
                Ok(has_new_part) => Ok(has_new_part),
                Err(error) => Err(lost(folder, error).await),
            },
            Self::Table(table) => table.append(json).await.map(|()| false),
        }
    }

    /// What is written so far; `None` where nobody can go on with it.
    pub(super) fn written(&self) -> Option<Written> {
        match self {
            Self::Nowhere => Some(Written::default()),
            Self::Lines(lines) => {
                Some((lines.assembled().clone(), Bytes::copy_from_slice(lines.rest())))
            }
            Self::Table(_) => None,
        }
    }

    /// Puts it into its place. What batches before this one have left there in another way goes.
    pub(super) async fn complete(
        self,
        output: &Location,
        folder: &Location,
    ) -> Result<(), Failure> {
        let written_as = match self {
            Self::Nowhere => None,
            Self::Lines(lines) => {
                if let Err(error) = lines.complete().await {
                    return Err(lost(folder, error).await);
                }
                Some(ResultsAs::Jsonl)
            }
            Self::Table(table) => {
                table.complete().await?;
                Some(ResultsAs::Parquet)
            }
        };
        for other in [ResultsAs::Jsonl, ResultsAs::Parquet] {
            if written_as != Some(other) {
                places::results(output, other).delete().await?;
            }
        }
        Ok(())
    }
}
