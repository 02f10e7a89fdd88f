//! Books in one XML file (`SpreadsheetML` 2003), usually named `.xls`.

use std::{collections::HashMap, ops::RangeInclusive};

use super::{
    cells::{Cells, Fault},
    number_format::{NumberFormat, format_general},
};
use crate::{
    context::Context,
    format::Format,
    left_out::Kind,
    spaces::{joined_lines, one_line},
    unreadable::Unreadable,
    xml::{self, Element},
};

/// Longest chain of styles based on each other.
const MAX_CHAIN: usize = 20;

/// Namespace of such a file.
const NAMESPACE: &str = "urn:schemas-microsoft-com:office:spreadsheet";

/// Returns whether bytes are such a book.
pub(crate) fn is_xml_2003(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4 << 10)]);
    let head = head.trim_start_matches('\u{feff}').trim_start();
    head.starts_with("<?xml") && head.contains(NAMESPACE) && head.contains("Workbook")
}

/// Reads the text of a book.
pub(super) fn read(bytes: &[u8], context: &Context<'_>) -> Result<String, Unreadable> {
    let tree = xml::parse(bytes, Format::Xls)?;
    let formats = formats(&tree);
    let mut text = String::new();
    for (number, sheet) in (1..).zip(tree.all("Worksheet")) {
        let mut cells = Cells::new(context.limits, context.deadline, text.len());
        let (mut at, mut texts_after_cells, mut formulas) = (0_u32, Vec::new(), 0);
        let columns = columns(sheet);
        for row in sheet.all("Row") {
            at = index(row).unwrap_or_else(|| at.saturating_add(1));
            let mut column = 0_u32;
            for cell in row.elements().filter(|cell| &*cell.name == "Cell") {
                column = index(cell).unwrap_or_else(|| column.saturating_add(1));
                let of_column = columns.iter().find(|(places, _)| places.contains(&column));
                let around = [Some(cell), Some(row), of_column.map(|(_, column)| *column)];
                let style = around.into_iter().flatten().find_map(|it| it.attribute("StyleID"));
                let format = style.and_then(|style| formats.get(&style));
                let value = match (cell.child("Data"), cell.attribute("Formula")) {
                    (Some(data), _) => display_value(data, format),
                    (None, Some(formula)) => {
                        formulas += 1;
                        format!("={}", formula.trim_start_matches('='))
                    }
                    (None, None) => String::new(),
                };
                let is_hidden = around.into_iter().flatten().any(|it| it.is_on("Hidden"));
                let added = match is_hidden {
                    true => cells.hide(value),
                    // A format without digits shows nothing.
                    false if value.is_empty() => {
                        cells.hide(cell.child("Data").map(Element::text).unwrap_or_default())
                    }
                    false => cells.add_text((at, column), value),
                };
                if let Err(Fault::Document(unreadable)) = added {
                    return Err(unreadable);
                }
                if let Some(comment) = cell.child("Comment") {
                    texts_after_cells.push(format!("[Comment: {}]", one_line(&comment.text())));
                }
                let more = cell.attribute("MergeAcross").and_then(|it| it.parse::<u32>().ok());
                column = column.saturating_add(more.unwrap_or(0));
            }
        }
        let place = format!("sheet {number}");
        context.tally.add_in_part(Kind::FormulasWithoutValue, formulas, &place);
        let state = sheet.all("Visible").first().map(|it| it.text());
        let is_hidden = state.is_some_and(|state| state.trim() != "SheetVisible");
        let hidden = cells.take_hidden(is_hidden, &place, context.tally);
        if is_hidden {
            texts_after_cells.clear();
        }
        texts_after_cells.extend((!hidden.is_empty()).then_some(hidden));
        cells.write(&sheet.attribute("Name").unwrap_or_default(), &texts_after_cells, &mut text)?;
    }
    Ok(text.trim_end().to_owned())
}

/// Returns the number formats of a book's styles by their names.
fn formats(book: &Element) -> HashMap<String, NumberFormat> {
    let styles = book.all("Style").into_iter();
    let styles: HashMap<String, &Element> =
        styles.filter_map(|style| Some((style.attribute("ID")?, style))).collect();
    let formats = styles.iter().filter_map(|(id, style)| {
        let parent = |style: &&Element| styles.get(&style.attribute("Parent")?).copied();
        let mut chain = std::iter::successors(Some(*style), parent).take(MAX_CHAIN);
        let format = chain.find_map(|style| style.child("NumberFormat")?.attribute("Format"))?;
        // Names instead of codes. The words of the first three depend on the language.
        let code = match &*format {
            "True/False" | "Yes/No" | "On/Off" => return None,
            "Percent" => "0.00%",
            "Fixed" => "0.00",
            "Standard" => "#,##0.00",
            "Scientific" => "0.00E+00",
            "Currency" => "$#,##0.00",
            "Euro Currency" => "€#,##0.00",
            code => code,
        };
        Some((id.clone(), NumberFormat::parse(code)))
    });
    formats.collect()
}

/// Returns the columns that the sheet describes, with their numbers from 1.
fn columns(sheet: &Element) -> Vec<(RangeInclusive<u32>, &Element)> {
    let mut at = 0_u32;
    let columns = sheet.all("Column").into_iter().map(|column| {
        let first = index(column).unwrap_or_else(|| at.saturating_add(1));
        let more = column.attribute("Span").and_then(|it| it.parse().ok()).unwrap_or(0);
        at = first.saturating_add(more);
        (first..=at, column)
    });
    columns.collect()
}

fn index(element: &Element) -> Option<u32> {
    element.attribute("Index")?.parse().ok()
}

fn display_value(data: &Element, format: Option<&NumberFormat>) -> String {
    let text = data.text();
    match data.attribute("Type").as_deref() {
        Some("Number") => text.trim().parse().map_or(text, |number| {
            let shown = format.and_then(|format| format.format_number(number));
            shown.unwrap_or_else(|| format_general(number))
        }),
        Some("Boolean") => if text.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned(),
        Some("DateTime") => {
            let moment = text.trim().trim_end_matches(".000").replacen('T', " ", 1);
            moment.strip_suffix(" 00:00:00").map(str::to_owned).unwrap_or(moment)
        }
        _ => joined_lines(&text),
    }
}
