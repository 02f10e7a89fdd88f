//! All results of a batch in one table, row group by row group.

use bytes::Bytes;
use parquet::file::writer::SerializedFileWriter;

use super::columns::{ended, row_group, writer};
use crate::{
    failure::Failure,
    storage::{Assembly, Location},
};

/// Of the lines of a row group, as JSON: what is held in memory at once, some four times over.
const GROUP: usize = 8 << 20;

/// A table on the way. What follows its last row group says where all of them are, so that another
/// worker cannot go on with it: it begins anew.
pub(in crate::batch) struct Table {
    location: Location,
    object: Assembly,
    writer: SerializedFileWriter<Vec<u8>>,
    lines: Vec<Bytes>,
    bytes: usize,
}

impl Table {
    pub(in crate::batch) fn new(location: Location, staging: &Location) -> Result<Self, Failure> {
        let writer = ended(&location, Ok(writer()))?;
        let object = Assembly::new(location.clone(), staging);
        Ok(Self { location, object, writer, lines: Vec::new(), bytes: 0 })
    }

    /// A result, as a line.
    pub(in crate::batch) async fn append(&mut self, json: &Bytes) -> Result<(), Failure> {
        self.lines.push(json.clone());
        self.bytes += json.len();
        if self.bytes >= GROUP { self.put().await } else { Ok(()) }
    }

    /// Puts it into its place, whatever is there.
    pub(in crate::batch) async fn complete(mut self) -> Result<(), Failure> {
        if !self.lines.is_empty() {
            self.put().await?;
        }
        let Self { location, mut object, writer, .. } = self;
        let rest = ended(&location, Ok(writer.into_inner()))?;
        object.append(&rest).await?;
        Ok(object.complete().await?)
    }

    async fn put(&mut self) -> Result<(), Failure> {
        let lines = std::mem::take(&mut self.lines);
        self.bytes = 0;
        let empty = ended(&self.location, Ok(writer()))?;
        let mut writer = std::mem::replace(&mut self.writer, empty);
        let grown = tokio::task::spawn_blocking(move || {
            row_group(&mut writer, &lines)?;
            writer.flush()?;
            let bytes = std::mem::take(writer.inner_mut());
            Ok((writer, bytes))
        });
        let (writer, bytes) = ended(&self.location, grown.await)?;
        self.writer = writer;
        self.object.append(&bytes).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::{reader::FileReader, serialized_reader::SerializedFileReader};
    use serde_json::json;

    use super::*;
    use crate::{batch::part::Part, storage::Storage};
    use tidegate_workflows::contract::ResultsAs;

    #[tokio::test]
    async fn rows_leave_group_by_group() {
        let folder = tempfile::tempdir().unwrap();
        let root = format!("file://{}/", folder.path().canonicalize().unwrap().display());
        let output = Storage::new([root.as_str()]).unwrap().resolve(&root).unwrap();
        std::fs::create_dir(folder.path().join("results")).unwrap();
        let part = output.child("results").child("part-00000.parquet");
        let mut table = Table::new(part, &output.child("staging")).unwrap();
        // Answers that do not shrink, so that the object is written in several parts.
        let mut seed = 7_u64;
        let mut answer = || {
            let mut letter = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'!' + u8::try_from((seed >> 33) % 94).unwrap())
            };
            (0..1_500_000).map(|_| letter()).collect::<String>()
        };
        let mut answers = Vec::new();
        for number in 0..14 {
            answers.push(answer());
            let line = json!({"id": format!("{number:02}"), "uri": "file:///x", "model": "a:b", "answer": answers[number],
                "stop_reason": "end_turn", "input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1,
                "provider_calls": 1, "completed_at": "2026-11-22T10:00:00.000Z"});
            table.append(&line.to_string().into()).await.unwrap();
            assert!(table.bytes < GROUP);
        }
        table.complete().await.unwrap();
        let whole = std::fs::read(folder.path().join("results/part-00000.parquet")).unwrap();
        assert_eq!(SerializedFileReader::new(Bytes::from(whole)).unwrap().num_row_groups(), 3);
        let read = Part::new(&output, 0, ResultsAs::Parquet).read().await.unwrap().unwrap();
        let read: Vec<String> = read.into_iter().map(|line| line.result.answer).collect();
        assert!(read == answers);
    }
}
