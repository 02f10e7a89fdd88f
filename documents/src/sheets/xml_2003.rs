//! Books in one file of XML (`SpreadsheetML` 2003), which are commonly called `.xls`.

use super::{
    cells::{Cells, Fault},
    number_format::general,
};
use crate::{
    context::Context,
    format::Format,
    unreadable::Unreadable,
    xml::{self, Element},
};

/// What such a file says of itself.
const NAMESPACE: &str = "urn:schemas-microsoft-com:office:spreadsheet";

/// Whether bytes are such a book.
pub(crate) fn is(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4 << 10)]);
    let head = head.trim_start_matches('\u{feff}').trim_start();
    head.starts_with("<?xml") && head.contains(NAMESPACE) && head.contains("Workbook")
}

/// A book's text.
pub(super) fn read(bytes: &[u8], context: &Context<'_>) -> Result<String, Unreadable> {
    let tree = xml::parse(bytes, Format::Xls)?;
    let mut text = String::new();
    for (number, sheet) in (1..).zip(tree.all("Worksheet")) {
        let mut cells = Cells::new(context.limits, context.deadline, text.len());
        let (mut at, mut beside) = (0_u32, Vec::new());
        for row in sheet.all("Row") {
            at = index(row).unwrap_or_else(|| at.saturating_add(1));
            let is_hidden = row.attribute("Hidden").as_deref() == Some("1");
            let mut column = 0_u32;
            for cell in row.elements().filter(|cell| &*cell.name == "Cell") {
                column = index(cell).unwrap_or_else(|| column.saturating_add(1));
                let value = cell.child("Data").map(shown).unwrap_or_default();
                let added = match is_hidden {
                    true => cells.hide(value),
                    false => cells.add_text((at, column), value),
                };
                if let Err(Fault::Document(unreadable)) = added {
                    return Err(unreadable);
                }
                if let Some(comment) = cell.child("Comment") {
                    beside.push(format!("[Comment: {}]", one_line(&comment.text())));
                }
                let more = cell.attribute("MergeAcross").and_then(|it| it.parse::<u32>().ok());
                column = column.saturating_add(more.unwrap_or(0));
            }
        }
        let place = format!("sheet {number}");
        let state = sheet.all("Visible").first().map(|it| it.text());
        let is_hidden = state.is_some_and(|state| state.trim() != "SheetVisible");
        let hidden = cells.hidden(is_hidden, &place, context.tally);
        if is_hidden {
            beside.clear();
        }
        beside.extend((!hidden.is_empty()).then_some(hidden));
        cells.write(&sheet.attribute("Name").unwrap_or_default(), &beside, &mut text)?;
    }
    Ok(text.trim_end().to_owned())
}

fn index(element: &Element) -> Option<u32> {
    element.attribute("Index")?.parse().ok()
}

fn shown(data: &Element) -> String {
    let text = data.text();
    match data.attribute("Type").as_deref() {
        Some("Number") => text.trim().parse().map_or(text, general),
        Some("Boolean") => if text.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned(),
        Some("DateTime") => {
            let moment = text.trim().trim_end_matches(".000").replacen('T', " ", 1);
            moment.strip_suffix(" 00:00:00").map(str::to_owned).unwrap_or(moment)
        }
        _ => one_line(&text),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
