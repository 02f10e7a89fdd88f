//! Spreadsheets: a heading for each sheet, a line for each row.

use std::io::Cursor;

use calamine::{Data, Ods, Reader as _, Sheets, Xls, Xlsb, Xlsx};

use crate::{
    format::Format,
    limits::{Deadline, Limits},
    package::Package,
    unreadable::Unreadable,
};

/// Values as they are stored, formulas as what they came to. Empty rows are left out.
pub(crate) fn extract(
    bytes: &[u8],
    format: Format,
    limits: &Limits,
    deadline: Deadline,
) -> Result<String, Unreadable> {
    if format != Format::Xls {
        Package::open(bytes, format, limits)?.check()?;
    }
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
    for name in book.sheet_names() {
        let cells = match book.worksheet_range(&name) {
            Ok(cells) => cells,
            // A sheet that is a chart has no cells.
            Err(error) => {
                fault = Some(error.to_string());
                continue;
            }
        };
        let mut is_named = false;
        for row in cells.rows() {
            let mut row: Vec<String> = row.iter().map(shown).collect();
            while row.last().is_some_and(String::is_empty) {
                row.pop();
            }
            if row.is_empty() {
                continue;
            }
            if !is_named {
                text.push_str(if text.is_empty() { "" } else { "\n" });
                text.push_str(&format!("## {name}\n\n"));
                is_named = true;
            }
            text.push_str(&row.join(" | "));
            text.push('\n');
            if text.len() > limits.text_bytes {
                return Err(Unreadable::TooLarge {
                    what: "text".into(),
                    size: text.len() as u64,
                    most: limits.text_bytes as u64,
                });
            }
            if deadline.has_passed() {
                return Err(Unreadable::TooSlow(limits.time));
            }
        }
    }
    match fault {
        Some(fault) if text.is_empty() => Err(Unreadable::damaged(format, fault)),
        _ => Ok(text.trim_end().to_owned()),
    }
}

/// Opens a book as what it is; guessing would lose the reason why it cannot be opened.
fn open(bytes: &[u8], format: Format) -> Result<Sheets<Cursor<&[u8]>>, calamine::Error> {
    let file = Cursor::new(bytes);
    Ok(match format {
        Format::Xls => Sheets::Xls(Xls::new(file)?),
        Format::Ods => Sheets::Ods(Ods::new(file)?),
        _ if is_binary(bytes) => Sheets::Xlsb(Xlsb::new(file)?),
        _ => Sheets::Xlsx(Xlsx::new(file)?),
    })
}

/// Whether the parts of a newer book are binary.
fn is_binary(bytes: &[u8]) -> bool {
    zip::ZipArchive::new(Cursor::new(bytes))
        .is_ok_and(|archive| archive.index_for_name("xl/workbook.bin").is_some())
}

/// A value as a person would write it, on one line.
fn shown(value: &Data) -> String {
    match value {
        Data::DateTime(moment) if !moment.is_duration() => {
            let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
            let date = format!("{year:04}-{month:02}-{day:02}");
            if (hour, minute, second) == (0, 0, 0) {
                date
            } else {
                format!("{date} {hour:02}:{minute:02}:{second:02}")
            }
        }
        Data::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        other => other.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    }
}
