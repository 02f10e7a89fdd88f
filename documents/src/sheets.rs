//! Spreadsheets: a heading for each sheet, a line for each row.

use std::{
    borrow::Cow,
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
};

mod binary;
mod cells;
mod chart;
mod native_digits;
mod number_format;
mod ods;
mod xlsx;
pub(crate) mod xml_2003;

use calamine::{Data, Reader as _, Sheets, Xls, Xlsb};

use crate::{
    compound, context::Context, format::Format, left_out::Kind, package::Package,
    unreadable::Unreadable,
};
use binary::{BookFormats, SheetFormats};
use cells::{Cells, Fault, display_value};
pub(crate) use chart::chart_text;

/// Extracts a spreadsheet: a formula is shown by its value; empty rows and columns are left out.
pub(crate) fn extract(
    bytes: &[u8],
    format: Format,
    context: &Context<'_>,
) -> Result<String, Unreadable> {
    let mut book_formats = BookFormats::default();
    if format != Format::Xls {
        let mut package = Package::open(bytes, format, context)?;
        match format {
            Format::Ods => return ods::read(&mut package, context),
            _ if !package.has("xl/workbook.bin") => return xlsx::read(&mut package, context),
            _ => {
                package.check_unpacked_size()?;
                book_formats = BookFormats::of_xlsb(&mut package, context)?;
            }
        }
    } else if xml_2003::is_xml_2003(bytes) {
        return xml_2003::read(bytes, context);
    } else if compound::has_endless_chain(bytes) {
        return Err(Unreadable::damaged(format, "a chain of its sectors leads back into itself"));
    }
    if format == Format::Xls {
        let formats = BookFormats::of_xls(bytes);
        book_formats = formats.ok_or(Unreadable::Encrypted { format })?;
    }
    let bytes = &*replace_xls_code_page(bytes);
    // The parser trusts the lengths and references of binary records, so it may panic.
    catch_unwind(AssertUnwindSafe(|| read_binary_book(bytes, format, &book_formats, context)))
        .unwrap_or_else(|_| Err(Unreadable::damaged(format, "its parser failed")))
}

fn read_binary_book(
    bytes: &[u8],
    format: Format,
    book_formats: &BookFormats,
    context: &Context<'_>,
) -> Result<String, Unreadable> {
    let mut book = open(bytes, format).map_err(|error| {
        let reason = error.to_string();
        if reason.to_ascii_lowercase().contains("password") {
            Unreadable::Encrypted { format }
        } else {
            Unreadable::damaged(format, reason)
        }
    })?;
    let mut text = String::new();
    let mut fault = None;
    for (at, name) in book.sheet_names().into_iter().enumerate() {
        let mut cells = Cells::new(context.limits, context.deadline, text.len());
        let sheet_formats = book_formats.sheet(at);
        let place = format!("sheet {}", at + 1);
        match fill_cells(&mut cells, &mut book, &name, (book_formats, sheet_formats)) {
            Ok(()) => {}
            Err(Fault::Document(unreadable)) => return Err(unreadable),
            // A chart sheet has no cells.
            Err(Fault::Sheet(reason)) => {
                context.tally.add_in_part(Kind::UnreadParts, 1, &place);
                fault = Some(reason);
                continue;
            }
        }
        let is_hidden = sheet_formats.is_some_and(|look| look.is_hidden);
        let hidden = cells.take_hidden(is_hidden, &place, context.tally);
        let mut texts_after_cells = Vec::new();
        if let Some(look) = sheet_formats {
            texts_after_cells.extend_from_slice(&look.beside);
            context.tally.add_in_part(Kind::Pictures, look.pictures, &place);
            context.tally.add_in_part(Kind::UnreadParts, look.unread, &place);
        }
        texts_after_cells.extend((!hidden.is_empty()).then_some(hidden));
        cells.write(&name, &texts_after_cells, &mut text)?;
    }
    match fault {
        Some(fault) if text.is_empty() => Err(Unreadable::damaged(format, fault)),
        _ => Ok(text.trim_end().to_owned()),
    }
}

fn fill_cells(
    cells: &mut Cells<'_>,
    book: &mut Sheets<Cursor<&[u8]>>,
    name: &str,
    (book_formats, sheet_formats): (&BookFormats, Option<&SheetFormats>),
) -> Result<(), Fault> {
    let mut add = |place: (u32, u32), value: &Data| {
        let number = match value {
            Data::Float(number) => Some(*number),
            Data::Int(number) => Some(*number as f64),
            _ => None,
        };
        let text =
            number.and_then(|number| book_formats.format_number(sheet_formats?, place, number));
        let text = text.unwrap_or_else(|| display_value(value));
        if sheet_formats.is_some_and(|look| look.hides(place)) {
            return cells.hide(text);
        }
        cells.add_text(place, text)
    };
    fn of_sheet(error: impl ToString) -> Fault {
        Fault::Sheet(error.to_string())
    }
    // The cells are read one by one, because the usual range would include all cells between the
    // first and the last one.
    match book {
        Sheets::Xlsb(book) => {
            let mut values = book.worksheet_cells_reader(name).map_err(of_sheet)?;
            while let Some(cell) = values.next_cell().map_err(of_sheet)? {
                let value: Data = cell.get_value().clone().into();
                add(cell.get_position(), &value)?;
            }
        }
        // An XLS sheet has few rows and columns.
        book => {
            let range = book.worksheet_range(name).map_err(of_sheet)?;
            for (row, column, value) in range.used_cells() {
                add((as_u32(row), as_u32(column)), value)?;
            }
        }
    }
    Ok(())
}

/// Replaces the code page of an XLS file by UTF-16. In the format of 1997 each string states the
/// width of its characters; a code page is a remnant of older formats, and our parser would apply
/// it.
fn replace_xls_code_page(bytes: &[u8]) -> Cow<'_, [u8]> {
    const BEGIN: &[u8] = b"\x09\x08\x10\x00\x00\x06\x05\x00";
    const CODE_PAGE: [u8; 2] = [0x42, 0];
    const UTF_16: [u8; 2] = [0xb0, 0x04];
    let Some(begin) = bytes.windows(BEGIN.len()).position(|it| it == BEGIN) else {
        return Cow::Borrowed(bytes);
    };
    let mut at = begin;
    // The code page is one of the first records.
    for _ in 0..50 {
        let Some([kind @ .., low, high]) = bytes.get(at..at + 4) else { break };
        if kind == CODE_PAGE && bytes.get(at + 4..at + 6).is_some_and(|it| it != UTF_16) {
            let mut bytes = bytes.to_vec();
            bytes[at + 4..at + 6].copy_from_slice(&UTF_16);
            return Cow::Owned(bytes);
        }
        at += 4 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    Cow::Borrowed(bytes)
}

fn as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Opens a book in the given format. Detection by the parser would hide the reason of a failure.
fn open(bytes: &[u8], format: Format) -> Result<Sheets<Cursor<&[u8]>>, calamine::Error> {
    let file = Cursor::new(bytes);
    Ok(match format {
        Format::Xls => Sheets::Xls(Xls::new(file)?),
        _ => Sheets::Xlsb(Xlsb::new(file)?),
    })
}
