//! All results of a batch in one table, written row group by row group.
//!
//! A row group's bytes do not depend on earlier groups; only the offsets in its description do. So
//! each group is written as a table of its own and appended with adjusted offsets, and the footer
//! describes all groups. Another worker continues from their descriptions.

use std::sync::Arc;

use bytes::Bytes;
use parquet::{
    errors::ParquetError,
    file::metadata::{
        ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataOptions,
        ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
    },
};

use crate::{
    failure::Failure,
    output::{
        jsonl,
        tables::columns::{ended, row_group, writer},
    },
    storage::Location,
};

/// Bytes of a row group's lines, as JSON. They take about four times as much memory at once.
const GROUP: usize = 8 << 20;

/// First and last bytes of a table.
const MAGIC: &[u8] = b"PAR1";

/// Length of the footer's end: its length, and [`MAGIC`].
const TAIL: usize = 8;

/// A table that is being written; its bytes are returned as it grows.
pub(in crate::output) struct Table {
    location: Location,
    /// The row groups that were returned.
    groups: Vec<RowGroupMetaData>,
    lines: Vec<Bytes>,
    bytes: usize,
}

impl Table {
    /// An empty table, or one that continues from another worker's [`Self::state`].
    pub(in crate::output) fn resume(
        location: Location,
        state: Vec<Bytes>,
    ) -> Result<Self, Failure> {
        let mut table = Self { location, groups: Vec::new(), lines: Vec::new(), bytes: 0 };
        if let Some([groups, lines]) = state.first_chunk() {
            let thrift = groups.len().saturating_sub(TAIL);
            // Kept as written, the kinds of pages included.
            let whole = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
            let read = ParquetMetaDataReader::decode_metadata_with_options(
                &groups[..thrift],
                Some(&whole),
            );
            table.groups = ended(&table.location, Ok(read))?.row_groups().to_vec();
            table.lines = jsonl::lines(lines).collect();
            table.bytes = lines.len();
        }
        Ok(table)
    }

    /// The state from which another worker continues: the row groups so far, and the lines of the next.
    pub(in crate::output) fn state(&self) -> Result<[Bytes; 2], Failure> {
        let groups = ended(&self.location, Ok(description(self.groups.clone())))?;
        Ok([groups.into(), self.lines.concat().into()])
    }

    /// Adds a result, as a line. Returns the bytes by which the table has grown, if any.
    pub(in crate::output) async fn append(
        &mut self,
        json: &Bytes,
    ) -> Result<Option<Bytes>, Failure> {
        self.lines.push(json.clone());
        self.bytes += json.len();
        if self.bytes >= GROUP { self.group().await.map(Some) } else { Ok(None) }
    }

    /// Returns the remaining bytes of the table.
    pub(in crate::output) async fn finish(mut self) -> Result<Bytes, Failure> {
        let mut rest = Vec::new();
        if !self.lines.is_empty() {
            rest.extend_from_slice(&self.group().await?);
        } else if self.groups.is_empty() {
            rest.extend_from_slice(MAGIC);
        }
        rest.extend(ended(&self.location, Ok(description(self.groups)))?);
        Ok(rest.into())
    }

    /// Writes the next row group behind the others.
    async fn group(&mut self) -> Result<Bytes, Failure> {
        let lines = std::mem::take(&mut self.lines);
        self.bytes = 0;
        let before = self.groups.iter().map(RowGroupMetaData::compressed_size).sum();
        let number = self.groups.len();
        let made = tokio::task::spawn_blocking(move || {
            let mut writer = writer()?;
            row_group(&mut writer, &lines)?;
            writer.flush()?;
            let group = writer.flushed_row_groups().first().cloned();
            let group = group.ok_or_else(|| ParquetError::General("no row group".to_owned()))?;
            let bytes = Bytes::from(std::mem::take(writer.inner_mut()));
            // The offset of the next group.
            if i64::try_from(bytes.len() - MAGIC.len()) != Ok(group.compressed_size()) {
                return Err(ParquetError::General("a row group of another length".to_owned()));
            }
            Ok((move_group(group, number, before)?, bytes))
        });
        let (group, bytes) = ended(&self.location, made.await)?;
        self.groups.push(group);
        Ok(if number == 0 { bytes } else { bytes.slice(MAGIC.len()..) })
    }
}

/// Adjusts the description of a row group that was written alone, for its place behind `before`
/// bytes of others.
fn move_group(
    group: RowGroupMetaData,
    number: usize,
    before: i64,
) -> Result<RowGroupMetaData, ParquetError> {
    let column = |column: &ColumnChunkMetaData| {
        let (data, words) = (column.data_page_offset(), column.dictionary_page_offset());
        let column = column.clone().into_builder().set_data_page_offset(before + data);
        column.set_dictionary_page_offset(words.map(|words| before + words)).build()
    };
    let columns = group.columns().iter().map(column).collect::<Result<_, _>>()?;
    let place = group.file_offset().unwrap_or_default();
    let number = i32::try_from(number).map_err(|error| ParquetError::External(error.into()))?;
    let group = group.into_builder().set_column_metadata(columns);
    group.set_file_offset(before + place).set_ordinal(number).build()
}

/// The footer of a table of these row groups.
fn description(groups: Vec<RowGroupMetaData>) -> Result<Vec<u8>, ParquetError> {
    let empty = writer()?;
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let schema = Arc::new(empty.schema_descr().clone());
    let (version, by) =
        (empty.properties().writer_version().as_num(), empty.properties().created_by());
    let file = FileMetaData::new(version, rows, Some(by.to_owned()), None, schema, None);
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, groups)).finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use parquet::file::{reader::FileReader, serialized_reader::SerializedFileReader};
    use serde_json::json;

    use super::*;
    use crate::{
        output::{result::ResultLine, tables::read},
        storage::Storage,
    };

    fn location() -> Location {
        let root = "file:///nowhere/";
        Storage::new([root]).unwrap().resolve(root).unwrap().child("results.parquet")
    }

    /// Lines whose answers do not compress.
    fn lines(number: usize, length: usize) -> Vec<Bytes> {
        let mut seed = 7_u64;
        let mut letter = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'#' + u8::try_from((seed >> 33) % 57).unwrap())
        };
        let line = |number| {
            let answer: String = (0..length).map(|_| letter()).collect();
            let line = json!({"id": format!("{number:02}"), "uri": "file:///x", "model": "a:b", "answer": answer,
                "stop_reason": "end_turn", "finish": "complete", "input_tokens": number, "cached_input_tokens": 0, "output_tokens": 1,
                "provider_calls": 1, "completed_at": "2026-11-22T10:00:00.000Z"});
            Bytes::from(format!("{line}\n"))
        };
        (0..number).map(line).collect()
    }

    /// The whole table, written by workers that each die after this many lines.
    async fn written(lines: &[Bytes], each: usize) -> Bytes {
        let mut table = Table::resume(location(), Vec::new()).unwrap();
        let mut whole = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            if number % each == each - 1 {
                let state = table.state().unwrap();
                table = Table::resume(location(), state.to_vec()).unwrap();
            }
            whole.extend(table.append(line).await.unwrap().unwrap_or_default());
            assert!(table.bytes < GROUP);
        }
        whole.extend(table.finish().await.unwrap());
        whole.into()
    }

    #[tokio::test]
    async fn rows_leave_group_by_group_and_another_worker_goes_on_with_them() {
        let lines = lines(14, 1_500_000);
        let whole = written(&lines, usize::MAX).await;
        let table = SerializedFileReader::new(whole.clone()).unwrap();
        let groups = table.metadata().row_groups();
        assert_eq!(groups.iter().map(RowGroupMetaData::num_rows).collect::<Vec<_>>(), [6, 6, 2]);
        assert_eq!(
            groups.iter().map(|group| group.ordinal()).collect::<Vec<_>>(),
            [0, 1, 2].map(Some)
        );
        assert_eq!(table.metadata().file_metadata().num_rows(), 14);
        let mut columns = table.metadata().file_metadata().schema_descr().columns().iter();
        let input = columns.position(|column| column.name() == "input_tokens").unwrap();
        let least = groups[1].column(input).statistics().unwrap().min_bytes_opt().unwrap();
        assert_eq!(least, 6_i64.to_le_bytes(), "each says what is in it");
        let read = read(&location(), whole.clone()).await.unwrap();
        let results = lines.iter().map(|line| ResultLine::parse(line.clone()).unwrap().result);
        assert!(read.into_iter().map(|line| line.result).eq(results));
        // The footer follows. Details of it that are never read may be lost.
        let described = u32::from_le_bytes(*whole[..whole.len() - 4].last_chunk().unwrap());
        let end = whole.len() - TAIL - described as usize;
        let pieced = written(&lines, 1).await;
        let again = SerializedFileReader::new(pieced.clone()).unwrap();
        assert_eq!(again.metadata().row_groups(), groups);
        assert!(pieced[..end] == whole[..end], "byte by byte");
    }

    #[tokio::test]
    async fn a_table_without_rows_is_a_table() {
        let whole = Table::resume(location(), Vec::new()).unwrap().finish().await.unwrap();
        let table = SerializedFileReader::new(whole).unwrap();
        assert_eq!((table.num_row_groups(), table.metadata().file_metadata().num_rows()), (0, 0));
    }

    #[test]
    fn a_state_that_cannot_be_read_is_refused() {
        let damaged = vec![Bytes::from_static(b"x"), Bytes::new()];
        assert!(Table::resume(location(), damaged).is_err());
    }
}
