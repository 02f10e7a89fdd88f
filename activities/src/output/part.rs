//! A sealed part: the results of a shard, as lines or as a table.

use std::collections::HashMap;

use bytes::Bytes;
use tidegate_types::DocumentId;
use tidegate_workflows::contract::ResultsAs;
use tokio::io::AsyncWriteExt;

use crate::{
    failure::Failure,
    output::{jsonl::lines, layout, result::ResultLine, tables},
    storage::{Error, Location},
};

/// The object of a part, and its format.
#[derive(Debug)]
pub(super) struct Part {
    location: Location,
    written_as: ResultsAs,
}

impl Part {
    /// Part `number` of an output in the format in which it is to be written.
    pub(super) fn new(output: &Location, number: u32, written_as: ResultsAs) -> Self {
        Self { location: layout::part(output, number, written_as), written_as }
    }

    /// Finds part `number` and its lines, in either format; tries `written_as` first.
    pub(super) async fn find(
        output: &Location,
        number: u32,
        first: ResultsAs,
    ) -> Result<Option<(Self, Vec<ResultLine>)>, Failure> {
        for written_as in [first, first.other()] {
            let part = Self::new(output, number, written_as);
            if let Some(lines) = part.read().await? {
                return Ok(Some((part, lines)));
            }
        }
        Ok(None)
    }

    /// Its lines, in order; `None` where it does not exist.
    pub(super) async fn read(&self) -> Result<Option<Vec<ResultLine>>, Failure> {
        let Some(whole) = self.location.read_if_there().await? else { return Ok(None) };
        Ok(Some(match self.written_as {
            ResultsAs::Jsonl => lines(&whole).filter_map(ResultLine::parse).collect(),
            ResultsAs::Parquet => tables::read(&self.location, whole).await?,
        }))
    }

    /// Its results, by their documents.
    pub(super) async fn results(&self) -> Result<HashMap<DocumentId, ResultLine>, Failure> {
        Ok(by_document(self.read().await?.unwrap_or_default()))
    }

    /// A writer, which takes results in their final order.
    pub(super) fn writer(&self) -> Writer {
        match self.written_as {
            ResultsAs::Jsonl => Writer::Lines(Box::new(self.location.writer())),
            ResultsAs::Parquet => Writer::Table(self.location.clone(), Vec::new()),
        }
    }

    /// Deletes the part; see [`Location::delete`] for the errors.
    pub(super) async fn delete(&self) -> Result<(), Error> {
        self.location.delete().await
    }
}

/// Lines by their documents.
pub(super) fn by_document(lines: Vec<ResultLine>) -> HashMap<DocumentId, ResultLine> {
    lines.into_iter().map(|line| (line.result.id.clone(), line)).collect()
}

/// The results of part `number`, by their documents.
pub(super) async fn results(
    output: &Location,
    number: u32,
) -> Result<HashMap<DocumentId, ResultLine>, Failure> {
    let found = Part::find(output, number, ResultsAs::Jsonl).await?;
    Ok(found.map(|(_, lines)| by_document(lines)).unwrap_or_default())
}

/// A part that is being written. It appears only when it is complete.
pub(super) enum Writer {
    Lines(Box<object_store::buffered::BufWriter>),
    Table(Location, Vec<Bytes>),
}

impl Writer {
    /// Adds a result, as a line.
    pub(super) async fn add(&mut self, json: &Bytes) -> Result<(), Failure> {
        match self {
            Self::Lines(writer) => writer.write_all(json).await.map_err(failure),
            Self::Table(_, lines) => {
                lines.push(json.clone());
                Ok(())
            }
        }
    }

    pub(super) async fn complete(self) -> Result<(), Failure> {
        match self {
            Self::Lines(mut writer) => writer.shutdown().await.map_err(failure),
            Self::Table(location, lines) => {
                Ok(location.write(tables::write_table(&location, lines).await?).await?)
            }
        }
    }
}

fn failure(error: std::io::Error) -> Failure {
    Error::of_writing(&error).into()
}
