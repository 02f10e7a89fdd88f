//! Number formats, hidden cells and drawings of the binary formats ([MS-XLS], [MS-XLSB]), which their
//! parser skips. Damaged records are ignored.

use std::collections::{HashMap, HashSet};

use super::{number_format::NumberFormat, xlsx::floating_texts};
use crate::{compound, context::Context, package::Package, unreadable::Unreadable};

/// The appearance of the cells of a book.
#[derive(Default)]
pub(super) struct BookFormats {
    /// Number formats by style.
    formats: Vec<NumberFormat>,
    /// In the order of the sheets.
    sheets: Vec<SheetFormats>,
}

/// The appearance of the cells of a sheet.
#[derive(Default)]
pub(super) struct SheetFormats {
    pub(super) is_hidden: bool,
    /// Text boxes, charts and comments that are read.
    pub(super) beside: Vec<String>,
    /// Pictures, charts, and text boxes and comments that are not read.
    pub(super) pictures: usize,
    pub(super) unread: usize,
    hidden_rows: HashSet<u32>,
    /// First and last column of each hidden range.
    hidden_columns: Vec<(u32, u32)>,
    styles_by_cell: HashMap<(u32, u32), usize>,
}

impl SheetFormats {
    /// Returns whether a cell is hidden.
    pub(super) fn hides(&self, (row, column): (u32, u32)) -> bool {
        self.hidden_rows.contains(&row)
            || self.hidden_columns.iter().any(|(from, to)| (*from..=*to).contains(&column))
    }
}

impl BookFormats {
    /// Returns the formats of a sheet by its index.
    pub(super) fn sheet(&self, at: usize) -> Option<&SheetFormats> {
        self.sheets.get(at)
    }

    /// Formats a number. Returns `None` if its style has no format for it.
    pub(super) fn format_number(
        &self,
        sheet: &SheetFormats,
        place: (u32, u32),
        number: f64,
    ) -> Option<String> {
        self.formats.get(*sheet.styles_by_cell.get(&place)?)?.format_number(number)
    }

    /// Reads the formats of an XLS book. Returns `None` if its records are encrypted.
    pub(super) fn of_xls(file: &[u8]) -> Option<Self> {
        let stream = compound::read_stream(file, "Workbook").unwrap_or_default();
        let (mut book, mut codes, mut styles) = (Self::default(), HashMap::new(), Vec::new());
        let mut begins = Vec::new();
        for (kind, record) in Records::of_xls(&stream, 0) {
            match kind {
                0x85 => {
                    let start = record.number(0);
                    begins.push((start as usize, record.byte(4) & 3 != 0));
                }
                0x41e => drop(codes.insert(record.short(0), record.xls_text(2))),
                0xe0 => styles.push(record.short(2)),
                // `FilePass`, in any of its methods.
                0x2f => return None,
                0x0a => break,
                _ => {}
            }
        }
        book.formats = number_formats(&styles, &codes);
        for (start, is_hidden) in begins {
            let mut formats = SheetFormats { is_hidden, ..SheetFormats::default() };
            let mut depth = 0_usize;
            for (kind, record) in Records::of_xls(&stream, start) {
                let place = (record.short(0), record.short(2));
                match kind {
                    // Charts are nested substreams.
                    0x809 => depth += 1,
                    0x0a => depth = depth.saturating_sub(1),
                    0x203 | 0x27e | 0x06 => formats.set_style(place, record.short(4)),
                    0xbd => {
                        let count = record.0.len().saturating_sub(6) / 6;
                        for (at, column) in (0..count).zip(place.1..) {
                            formats.set_style((place.0, column), record.short(4 + 6 * at));
                        }
                    }
                    0x208 if record.short(12) & 0x20 != 0 => {
                        formats.hidden_rows.insert(place.0);
                    }
                    0x7d if record.short(8) & 1 != 0 => formats.hidden_columns.push(place),
                    // `Obj`: a chart or a picture. `TxO`: the text of a box or a comment.
                    0x5d if record.short(4) == 5 => formats.unread += 1,
                    0x5d if record.short(4) == 8 => formats.pictures += 1,
                    0x1b6 if record.short(10) != 0 => formats.unread += 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            book.sheets.push(formats);
        }
        Some(book)
    }

    /// Reads the formats of an XLSB book.
    pub(super) fn of_xlsb(
        package: &mut Package<'_>,
        context: &Context<'_>,
    ) -> Result<Self, Unreadable> {
        const BOOK: &str = "xl/workbook.bin";
        let (mut book_formats, mut codes, mut styles) =
            (Self::default(), HashMap::new(), Vec::new());
        let mut in_cells = false;
        let part = package.read("xl/styles.bin").ok().flatten().unwrap_or_default();
        for (kind, record) in Records::of_xlsb(&part) {
            match kind {
                44 => drop(codes.insert(record.short(0), record.xlsb_text(2).0)),
                617 => in_cells = true,
                618 => in_cells = false,
                47 if in_cells => styles.push(record.short(2)),
                _ => {}
            }
        }
        book_formats.formats = number_formats(&styles, &codes);
        let parts = package.relations(BOOK)?;
        let book = package.read(BOOK).ok().flatten().unwrap_or_default();
        let mut drawn = HashSet::new();
        for (_, sheet) in Records::of_xlsb(&book).filter(|(kind, _)| *kind == 156) {
            let mut formats =
                SheetFormats { is_hidden: sheet.number(0) != 0, ..SheetFormats::default() };
            let part = parts.get(&sheet.xlsb_text(8).0);
            let target = part.map(|part| &*part.target);
            // A book may name a sheet twice.
            let shown = target.filter(|target| !formats.is_hidden && drawn.insert(*target));
            if let Some(target) = shown {
                formats.beside = floating_texts(package, target, context)?;
            }
            let part = target.and_then(|target| package.read(target).ok().flatten());
            let part = part.unwrap_or_default();
            let mut row = 0;
            for (kind, record) in Records::of_xlsb(&part) {
                match kind {
                    0 => {
                        row = record.number(0);
                        if record.byte(11) & 0x10 != 0 {
                            formats.hidden_rows.insert(row);
                        }
                    }
                    60 if record.short(16) & 1 != 0 => {
                        formats.hidden_columns.push((record.number(0), record.number(4)));
                    }
                    2 | 5 | 9 => {
                        formats.set_style((row, record.number(0)), record.number(4) & 0xff_ffff)
                    }
                    _ => {}
                }
            }
            book_formats.sheets.push(formats);
        }
        Ok(book_formats)
    }
}

impl SheetFormats {
    fn set_style(&mut self, place: (u32, u32), style: u32) {
        self.styles_by_cell.insert(place, style as usize);
    }
}

/// Returns the number formats of styles by their ids.
fn number_formats(styles: &[u32], codes: &HashMap<u32, String>) -> Vec<NumberFormat> {
    let format = |id: &u32| {
        codes.get(id).map_or_else(|| NumberFormat::built_in(*id), |code| NumberFormat::parse(code))
    };
    styles.iter().map(format).collect()
}

/// The content of a record. Bytes behind its end count as zeros.
struct Record<'b>(&'b [u8]);

impl Record<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn short(&self, at: usize) -> u32 {
        u32::from(u16::from_le_bytes([self.byte(at), self.byte(at + 1)]))
    }

    fn number(&self, at: usize) -> u32 {
        self.short(at) | self.short(at + 2) << 16
    }

    /// Reads a text with a length of two bytes, and a byte for the width of its characters.
    fn xls_text(&self, at: usize) -> String {
        let length = self.short(at) as usize;
        let letters = self.0.get(at + 3..).unwrap_or_default();
        if self.byte(at + 2) & 1 == 0 {
            return letters.iter().take(length).map(|byte| char::from(*byte)).collect();
        }
        decode_utf16(letters, length)
    }

    /// Reads a text with a length of four bytes. Returns it with the position of its end.
    fn xlsb_text(&self, at: usize) -> (String, usize) {
        let length = self.number(at) as usize;
        let letters = self.0.get(at + 4..).unwrap_or_default();
        (
            decode_utf16(letters, length),
            at.saturating_add(4).saturating_add(length.saturating_mul(2)),
        )
    }
}

fn decode_utf16(letters: &[u8], length: usize) -> String {
    let units =
        letters.chunks_exact(2).take(length).map(|two| u16::from_le_bytes([two[0], two[1]]));
    char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Iterator over the records of a stream, with their types.
struct Records<'b> {
    bytes: &'b [u8],
    is_xls: bool,
}

impl<'b> Records<'b> {
    fn of_xls(bytes: &'b [u8], start: usize) -> Self {
        Self { bytes: bytes.get(start..).unwrap_or_default(), is_xls: true }
    }

    fn of_xlsb(bytes: &'b [u8]) -> Self {
        Self { bytes, is_xls: false }
    }

    /// Reads a number of at most `most` bytes; in each byte but the last, the highest bit is set.
    fn number(&mut self, most: u32) -> Option<usize> {
        let mut number = 0;
        for place in 0..most {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= usize::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number)
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = (u16, Record<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, length) = if self.is_xls {
            let (head, rest) = self.bytes.split_first_chunk::<4>()?;
            self.bytes = rest;
            let [kind @ .., low, high] = *head;
            (u16::from_le_bytes(kind), usize::from(u16::from_le_bytes([low, high])))
        } else {
            // Each byte of a type keeps its highest bit.
            let low = u16::from(*self.bytes.first()?);
            let high = if low & 0x80 == 0 { 0 } else { u16::from(*self.bytes.get(1)?) };
            self.bytes = self.bytes.get(if low & 0x80 == 0 { 1 } else { 2 }..)?;
            (low & 0x7f | high << 7, self.number(4)?)
        };
        let (record, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some((kind, Record(record)))
    }
}
