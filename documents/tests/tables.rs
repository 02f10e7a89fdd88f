//! Parquet files as other programs write them.
#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use std::{
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
};

use bytes::Bytes;
use common::Dice;
use serde_json::json;
use tidegate_documents::{RecordFields, tables};

const FILES: [(&str, &[u8]); 7] = [
    ("Zstandard", include_bytes!("fixtures/zstd-1.parquet")),
    ("Zstandard in pages of version 2", include_bytes!("fixtures/zstd-2.parquet")),
    ("Brotli", include_bytes!("fixtures/brotli-1.parquet")),
    ("Brotli in pages of version 2", include_bytes!("fixtures/brotli-2.parquet")),
    ("LZ4", include_bytes!("fixtures/lz4-1.parquet")),
    ("Snappy", include_bytes!("fixtures/snappy-1.parquet")),
    ("gzip", include_bytes!("fixtures/gzip-1.parquet")),
];

/// Files.
const DAMAGED: usize = 504;

fn rows(file: Vec<u8>) -> Result<Vec<serde_json::Value>, String> {
    let (size, file) = (file.len() as u64, Bytes::from(file));
    let open = move |from: u64| {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(file.len());
        Ok(Cursor::new(file.slice(from..)))
    };
    let mut rows = Vec::new();
    let each = |record: Result<tidegate_documents::Record, _>| {
        rows.extend(record.map(|record| record.json));
        rows.len() < 1_000
    };
    tables::rows(open, size, RecordFields::default(), 0, each).map_err(|why| why.to_string())?;
    Ok(rows)
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

/// The codec's number stands behind the column's name in what the file says of itself.
#[test]
fn a_codec_that_is_not_read_is_named_with_the_way_out() {
    let mut file = FILES[5].1.to_vec();
    let place = file.windows(6).position(|window| window == b"ship\x15\x02").unwrap();
    file[place + 5] = 6;
    let why = rows(file).unwrap_err();
    assert!(why.contains("its column \"ship\" is compressed with LZO, which is not read"), "{why}");
    assert!(why.contains("write the file with another compression"), "{why}");
}

/// Whoever calls it runs it where a panic can be caught.
#[test]
fn damaged_tables_are_read_or_refused() {
    let mut dice = Dice(5);
    let (mut read, mut refused) = (0, 0);
    for (codec, file) in FILES {
        for _ in 0..DAMAGED / FILES.len() {
            let mut bytes = file.to_vec();
            dice.damage(&mut bytes);
            match catch_unwind(AssertUnwindSafe(|| rows(bytes))) {
                Ok(Ok(_)) => read += 1,
                Ok(Err(why)) => {
                    assert!(!why.is_empty(), "{codec}");
                    refused += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

/// One text of a megabyte, which two thousand rows have.
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
    let size = file.len() as u64;
    assert!(size < 2 << 20, "{size} bytes: the text is written once");
    let file = Bytes::from(file);
    let open = move |from: u64| {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(file.len());
        Ok(Cursor::new(file.slice(from..)))
    };
    let mut seen = 0_u64;
    let each = |_: Result<tidegate_documents::Record, _>| {
        seen += 1;
        true
    };
    let refused = tables::rows(open, size, RecordFields::default(), 0, each).unwrap_err();
    assert!(refused.to_string().contains("MiB, and the file has"), "{refused}");
    assert!(seen < 1_100, "{seen} rows of a megabyte");
}
