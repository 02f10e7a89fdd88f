//! Parquet files as other programs write them.
#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use std::ops::Range;

use bytes::Bytes;
use common::Dice;
use serde_json::json;
use tidegate_documents::{
    Limits, Reader,
    confined::Part,
    tables::{DecodedRows, RowRequest},
};

const FILES: [(&str, &[u8]); 7] = [
    ("Zstandard", include_bytes!("fixtures/zstd-1.parquet")),
    ("Zstandard in pages of version 2", include_bytes!("fixtures/zstd-2.parquet")),
    ("Brotli", include_bytes!("fixtures/brotli-1.parquet")),
    ("Brotli in pages of version 2", include_bytes!("fixtures/brotli-2.parquet")),
    ("LZ4", include_bytes!("fixtures/lz4-1.parquet")),
    ("Snappy", include_bytes!("fixtures/snappy-1.parquet")),
    ("gzip", include_bytes!("fixtures/gzip-1.parquet")),
];

/// Number of damaged files.
const DAMAGED: usize = 504;

fn rows(file: Vec<u8>) -> Result<Vec<serde_json::Value>, String> {
    let rows = decoded(file, 0, (1_000, usize::MAX))?.rows;
    Ok(rows.into_iter().flatten().map(|row| row.json).collect())
}

/// Decodes rows in a child process, which asks for parts of the file.
fn decoded(
    file: Vec<u8>,
    skip: u64,
    (max_rows, max_bytes): (usize, usize),
) -> Result<DecodedRows, String> {
    let reader = Reader::isolated(env!("CARGO_BIN_EXE_read-document"), [], Limits::default());
    let (size, file) = (file.len() as u64, Bytes::from(file));
    let request = RowRequest { size, id: None, text: None, skip, max_rows, max_bytes };
    let part = |range: Range<u64>| -> Part {
        let part = file.slice(range.start as usize..range.end as usize);
        Box::pin(async move { Ok(part) })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(reader.read_rows(&request, &part)).map_err(|why| why.to_string())
}

#[test]
fn each_codec_is_unpacked() {
    let expected = [
        json!({"ship": "Anna", "note": "The tide turns.", "crew": 3}),
        json!({"ship": "Bert", "note": null, "crew": 4}),
        json!({"ship": "Anna", "note": "großer Hafen", "crew": 5}),
    ];
    for (codec, file) in FILES {
        assert_eq!(rows(file.to_vec()).unwrap(), expected, "{codec}");
    }
}

/// In the metadata the codec's number follows the column's name.
#[test]
fn a_codec_that_is_not_read_is_named_with_the_way_out() {
    let mut file = FILES[5].1.to_vec();
    let place = file.windows(6).position(|window| window == b"ship\x15\x02").unwrap();
    file[place + 5] = 6;
    let why = rows(file).unwrap_err();
    assert!(why.contains("its column \"ship\" is compressed with LZO, which is not read"), "{why}");
    assert!(why.contains("write the file with another compression"), "{why}");
}

#[test]
fn damaged_tables_are_read_or_refused() {
    let mut dice = Dice(5);
    let (mut read, mut refused) = (0, 0);
    for (codec, file) in FILES {
        for _ in 0..DAMAGED / FILES.len() {
            let mut bytes = file.to_vec();
            dice.damage(&mut bytes);
            match rows(bytes) {
                Ok(_) => read += 1,
                Err(why) => {
                    assert!(!why.is_empty(), "{codec}");
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

/// One text of a megabyte, shared by two thousand rows.
#[test]
fn a_file_whose_rows_are_far_larger_than_itself_is_refused() {
    use std::sync::Arc;

    use parquet::{
        data_type::{ByteArray, ByteArrayType},
        file::{properties::WriterProperties, writer::SerializedFileWriter},
        schema::parser::parse_message_type,
    };

    let schema =
        Arc::new(parse_message_type("message m { required binary text (UTF8); }").unwrap());
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(8 << 20).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let text = ByteArray::from(vec![b'x'; 1 << 20]);
    let texts = vec![text; 2_000];
    column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let file = writer.into_inner().unwrap();
    let size = file.len();
    assert!(size < 2 << 20, "{size} bytes: the text is written once");
    // The bound on bytes ends the rows.
    let some = decoded(file.clone(), 0, (usize::MAX, 20 << 20)).unwrap();
    assert_eq!((some.rows.len(), some.more), (20, true));
    let refused = decoded(file.clone(), 1_500, (usize::MAX, 20 << 20)).unwrap_err();
    assert!(refused.contains("MiB, and the file has"), "{refused}");
    // Memory bounds the rows in any case, before the process runs out of it.
    let some = decoded(file, 0, (usize::MAX, usize::MAX)).unwrap();
    assert_eq!((some.rows.len(), some.more), (256, true));
}

/// The file states 2⁶² rows of no columns.
#[test]
fn rows_of_no_columns_are_counted_too() {
    let zigzag = |number: u64| {
        let (mut rest, mut bytes) = (number << 1, Vec::new());
        while rest > 127 {
            bytes.push(rest as u8 | 128);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    };
    let rows = zigzag(1 << 62);
    // Version 1; a schema of its root alone; the rows; one group without columns, with its bytes and rows.
    let schema: &[u8] = b"\x15\x02\x19\x1c\x48\x06schema\x15\x00\x00\x16";
    let metadata = [schema, &rows, b"\x19\x1c\x19\x0c\x16\x00\x16", &rows, b"\x00\x00"].concat();
    let length = (metadata.len() as u32).to_le_bytes();
    let file = [b"PAR1", metadata.as_slice(), &length, b"PAR1"].concat();
    // It is refused before a row is read.
    let refused = decoded(file, 5, (7, usize::MAX)).unwrap_err();
    assert!(refused.contains("its 4611686018427387904 rows take more than 256 MiB"), "{refused}");
}

/// The values of one row take hundreds of megabytes in memory, and next to nothing in the file.
#[test]
fn a_row_of_too_many_values_fails_alone() {
    use std::sync::Arc;

    use parquet::{
        data_type::Int32Type, file::writer::SerializedFileWriter,
        schema::parser::parse_message_type,
    };

    let schema =
        "message m { required group a (LIST) { repeated group list { required int32 element; } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values = 1_000_001;
    // The second row has one value.
    let levels = [vec![0], vec![1; values - 1], vec![0]].concat();
    let (values, defined) = (vec![0; values + 1], vec![1; values + 1]);
    column.typed::<Int32Type>().write_batch(&values, Some(&defined), Some(&levels)).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let decoded = decoded(writer.into_inner().unwrap(), 0, (10, usize::MAX)).unwrap();
    let [Err(refused), Ok(small)] = decoded.rows.as_slice() else { panic!("{decoded:?}") };
    assert!(refused.to_string().contains("more than 1000000 values"), "{refused}");
    assert_eq!(small.json, json!({"a": [0]}));
    assert!(!decoded.more);
}
