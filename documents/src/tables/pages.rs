//! Decompression of the pages of a table's columns, for codecs that the Parquet crate supports only
//! through a C library or a second version of a crate.

use std::{
    fmt,
    io::{self, Read},
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    basic::{Compression, CompressionCodec},
    bloom_filter::Sbbf,
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
    file::{
        metadata::{ColumnChunkMetaData, RowGroupMetaData},
        reader::{ChunkReader, RowGroupReader},
        serialized_reader::SerializedPageReader,
    },
    record::reader::RowIter,
    schema::types::Type,
};

use crate::zstd::Frames;

/// Most bytes of a page. Normal pages have about a megabyte; a larger one is a bomb.
const MAX_PAGE: u64 = 256 << 20;

/// The columns of a row group.
pub(super) struct Group<'a, R> {
    pub(super) file: Arc<R>,
    pub(super) metadata: &'a RowGroupMetaData,
}

/// A codec that is decompressed here.
#[derive(Debug, Clone, Copy)]
enum Codec {
    Zstandard,
    Brotli,
}

/// Returns why a row group cannot be read: its first column with an unsupported codec.
pub(super) fn find_unsupported_codec(group: &RowGroupMetaData) -> Option<String> {
    let column = group.columns().iter().find(|column| {
        !matches!(
            column.compression_codec(),
            CompressionCodec::UNCOMPRESSED
                | CompressionCodec::SNAPPY
                | CompressionCodec::GZIP
                | CompressionCodec::BROTLI
                | CompressionCodec::LZ4
                | CompressionCodec::LZ4_RAW
                | CompressionCodec::ZSTD
        )
    })?;
    Some(format!(
        "its column \"{}\" is compressed with {:?}, which is not read; write the file with another compression (Zstandard, Snappy, gzip, LZ4, Brotli) or with none",
        column.column_path().string(),
        column.compression_codec(),
    ))
}

impl<R: ChunkReader + 'static> RowGroupReader for Group<'_, R> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.metadata
    }

    fn num_columns(&self) -> usize {
        self.metadata.num_columns()
    }

    fn get_column_page_reader(&self, place: usize) -> Result<Box<dyn PageReader>> {
        let column = self.metadata.column(place);
        let rows = usize::try_from(self.metadata.num_rows())?;
        let pages = |column: &ColumnChunkMetaData| {
            SerializedPageReader::new(Arc::clone(&self.file), column, rows, None)
        };
        let codec = match column.compression_codec() {
            CompressionCodec::ZSTD => Codec::Zstandard,
            CompressionCodec::BROTLI => Codec::Brotli,
            _ => return Ok(Box::new(pages(column)?)),
        };
        // The reader returns compressed pages unchanged if the metadata states no compression.
        let packed = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED);
        Ok(Box::new(Unpacked { pages: pages(&packed.build()?)?, codec }))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

/// A page reader that decompresses pages.
struct Unpacked<P> {
    pages: P,
    codec: Codec,
}

impl<P: PageReader> Unpacked<P> {
    fn unpack_page(&self, page: Page) -> Result<Page> {
        Ok(match page {
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => Page::DataPage {
                buf: self.codec.unpack(&buf, 0)?,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            },
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed: true,
                statistics,
            } => Page::DataPageV2 {
                // The levels before the data are not compressed.
                buf: self
                    .codec
                    .unpack(&buf, def_levels_byte_len as usize + rep_levels_byte_len as usize)?,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed: false,
                statistics,
            },
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => Page::DictionaryPage {
                buf: self.codec.unpack(&buf, 0)?,
                num_values,
                encoding,
                is_sorted,
            },
            page @ Page::DataPageV2 { .. } => page,
        })
    }
}

impl<P: PageReader> Iterator for Unpacked<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for Unpacked<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.unpack_page(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Codec {
    /// Decompresses a page whose first `plain` bytes are not compressed.
    fn unpack(self, packed: &Bytes, plain: usize) -> Result<Bytes> {
        let Some((levels, packed)) = packed.split_at_checked(plain) else {
            return Err(ParquetError::EOF("a page ends in its levels".to_owned()));
        };
        let mut bytes = levels.to_vec();
        if packed.is_empty() {
            return Ok(bytes.into());
        }
        let reader: Box<dyn Read + '_> = match self {
            Self::Zstandard => Box::new(Frames::new(packed)),
            Self::Brotli => Box::new(brotli_decompressor::Decompressor::new(packed, 4 << 10)),
        };
        let read = reader.take(MAX_PAGE + 1).read_to_end(&mut bytes);
        let damaged = |why: io::Error| ParquetError::General(format!("a page in {self}: {why}"));
        if read.map_err(damaged)? as u64 > MAX_PAGE {
            let most = MAX_PAGE >> 20;
            return Err(ParquetError::General(format!("a page has more than {most} MiB")));
        }
        Ok(bytes.into())
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zstandard => "Zstandard",
            Self::Brotli => "Brotli",
        })
    }
}
