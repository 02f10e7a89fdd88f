//! Sheets of `OpenDocument`, as shown.

use std::{collections::HashSet, ops::Range};

use calamine::Data;

use super::{
    cells::{Cells, Fault, display_value},
    number_format::format_general,
};
use crate::{
    context::Context,
    format::Format,
    left_out::Kind,
    open_document::{BookTexts, short_name},
    package::Package,
    spaces::joined_lines,
    unreadable::Unreadable,
    xml::Element,
};

/// The elements that are shapes, or links around them.
const SHAPES: [&str; 15] = [
    "a",
    "caption",
    "circle",
    "connector",
    "custom-shape",
    "ellipse",
    "frame",
    "g",
    "line",
    "measure",
    "path",
    "polygon",
    "polyline",
    "rect",
    "regular-polygon",
];

/// Reads the text of a book.
pub(super) fn read(package: &mut Package<'_>, context: &Context<'_>) -> Result<String, Unreadable> {
    if is_encrypted(package)? {
        return Err(Unreadable::Encrypted { format: Format::Ods });
    }
    let content = package.xml("content.xml")?;
    let content =
        content.ok_or_else(|| Unreadable::damaged(Format::Ods, "its content is missing"))?;
    let hidden: HashSet<String> = content
        .all("style")
        .into_iter()
        .filter(|style| {
            let properties = style.child("table-properties");
            properties.and_then(|it| it.attribute("display")).as_deref() == Some("false")
        })
        .filter_map(|style| style.attribute("name"))
        .collect();
    let mut texts = BookTexts::of_book(package, &content, context.tally)?;
    let mut text = String::new();
    let books = content.all("spreadsheet");
    let parts = books.iter().flat_map(|book| book.elements());
    // Other tables hold the last values of links to other programs.
    for (number, table) in (1..).zip(parts.filter(|part| &*part.name == "table")) {
        let mut cells = Cells::new(context.limits, context.deadline, text.len());
        let mut sheet = Sheet {
            cells: &mut cells,
            texts: &mut texts,
            beside: Vec::new(),
            columns: Vec::new(),
            styles: Vec::new(),
            formulas: 0,
            row: 0,
        };
        let place = format!("sheet {number}");
        sheet.texts.begin_sheet(&place);
        sheet.read_columns(table, &mut 0);
        match sheet.rows(table) {
            Ok(()) => {}
            Err(Fault::Document(unreadable)) => return Err(unreadable),
            Err(Fault::Sheet(why)) => return Err(Unreadable::damaged(Format::Ods, why)),
        }
        let Sheet { mut beside, formulas, .. } = sheet;
        context.tally.add_in_part(Kind::FormulasWithoutValue, formulas, &place);
        let is_hidden = table.attribute("style-name").is_some_and(|style| hidden.contains(&style));
        let hidden = cells.take_hidden(is_hidden, &place, context.tally);
        if is_hidden {
            beside.clear();
        }
        beside.extend((!hidden.is_empty()).then_some(hidden));
        cells.write(&table.attribute("name").unwrap_or_default(), &beside, &mut text)?;
    }
    for links in content.all("dde-links") {
        text.push_str(&context.tally.count_hidden(links.text().trim(), None));
    }
    Ok(text.trim_end().to_owned())
}

/// Returns whether a part is encrypted, according to the manifest.
fn is_encrypted(package: &mut Package<'_>) -> Result<bool, Unreadable> {
    let manifest = package.xml("META-INF/manifest.xml")?;
    Ok(manifest.is_some_and(|it| !it.all("encryption-data").is_empty()))
}

struct Sheet<'s, 'c> {
    cells: &'s mut Cells<'c>,
    texts: &'s mut BookTexts<'c>,
    /// Text boxes, charts and comments.
    beside: Vec<String>,
    /// Hidden columns, in order.
    columns: Vec<Range<u32>>,
    /// The end of each run of columns, and the style of its cells without one.
    styles: Vec<(u32, Option<String>)>,
    formulas: usize,
    row: u32,
}

impl Sheet<'_, '_> {
    /// Collects hidden columns and styles, including those in groups. `at` is the index of the next column.
    fn read_columns(&mut self, parent: &Element, at: &mut u32) {
        for child in parent.elements() {
            match &*child.name {
                "table-column" => {
                    let end = at.saturating_add(repeated(child, "number-columns-repeated"));
                    if child.attribute("visibility").is_some_and(|it| it != "visible") {
                        self.columns.push(*at..end);
                    }
                    self.styles.push((end, default_style(child)));
                    *at = end;
                }
                "table-columns" | "table-column-group" | "table-header-columns" => {
                    self.read_columns(child, at);
                }
                _ => {}
            }
        }
    }

    /// Reads rows, including those in groups.
    fn rows(&mut self, parent: &Element) -> Result<(), Fault> {
        for child in parent.elements() {
            match &*child.name {
                "table-row" => self.row(child)?,
                "table-rows" | "table-row-group" | "table-header-rows" => self.rows(child)?,
                "shapes" => self.read_shapes(child),
                _ => {}
            }
        }
        Ok(())
    }

    fn row(&mut self, row: &Element) -> Result<(), Fault> {
        let count = repeated(row, "number-rows-repeated");
        let is_hidden = row.attribute("visibility").is_some_and(|it| it != "visible");
        let mut shown: Vec<(Range<u32>, String)> = Vec::new();
        let row_style = default_style(row);
        let mut column = 0_u32;
        for cell in row.elements() {
            let mut next = column;
            column = column.saturating_add(repeated(cell, "number-columns-repeated"));
            // Other elements are no cells.
            let is_covered = &*cell.name == "covered-table-cell";
            if !is_covered && &*cell.name != "table-cell" {
                continue;
            }
            let style = cell.attribute("style-name").or_else(|| row_style.clone());
            let style = style.or_else(|| self.column_style(next));
            let (value, is_unseen) = self.value(cell, style);
            self.read_shapes(cell);
            if is_hidden || is_covered || is_unseen {
                self.cells.hide(value)?;
                continue;
            }
            if value.is_empty() {
                continue;
            }
            for hidden in &self.columns {
                let hidden = hidden.start.max(next)..hidden.end.min(column);
                if !hidden.is_empty() {
                    shown.push((next..hidden.start, value.clone()));
                    self.cells.hide(value.clone())?;
                    next = hidden.end;
                }
            }
            shown.push((next..column, value));
        }
        // Empty rows take no memory.
        shown.retain(|(columns, _)| !columns.is_empty());
        let rows = self.row..self.row.saturating_add(count);
        self.row = rows.end;
        for row in if shown.is_empty() { 0..0 } else { rows } {
            for (columns, value) in &shown {
                for column in columns.clone() {
                    self.cells.add_text((row, column), value.clone())?;
                }
            }
        }
        Ok(())
    }

    fn column_style(&self, column: u32) -> Option<String> {
        let run = self.styles.partition_point(|(end, _)| *end <= column);
        self.styles.get(run).and_then(|(_, style)| style.clone())
    }

    /// Returns a cell's value as shown, and whether it is not seen. Dates and times are as stored, which is
    /// more precise.
    fn value(&mut self, cell: &Element, style: Option<String>) -> (String, bool) {
        let kind = cell.attribute("value-type").unwrap_or_default();
        let stored = match &*kind {
            "date" => cell.attribute("date-value").map(Data::DateTimeIso),
            "time" => cell.attribute("time-value").map(Data::DurationIso),
            "boolean" => cell.attribute("boolean-value").map(|it| Data::Bool(it == "true")),
            _ => None,
        };
        let stored = stored.map(|stored| display_value(&stored));
        let shown = self.texts.read_cell(cell, style, stored);
        if !shown.beside.is_empty() {
            self.beside.push(shown.beside);
        }
        let text = joined_lines(&shown.text);
        // Words that are not shown are not replaced by the value, which repeats them.
        let mut paragraphs = cell.elements().filter(|it| matches!(&*it.name, "p" | "h"));
        if !text.is_empty() || paragraphs.any(|it| !it.text().trim().is_empty()) {
            return (text, shown.is_hidden);
        }
        let number =
            cell.attribute("value").and_then(|value| value.parse().ok()).map(format_general);
        let number = number.or_else(|| cell.attribute("string-value"));
        let value = match (number, cell.attribute("formula")) {
            (Some(number), _) => number,
            (None, Some(formula)) if kind.is_empty() => {
                self.formulas += 1;
                // The formula follows the name of its grammar.
                let formula = formula.split_once(":=").map_or(&*formula, |(_, formula)| formula);
                format!("={}", formula.trim_start_matches('='))
            }
            _ => String::new(),
        };
        (value, shown.is_hidden)
    }

    /// Reads the comments and the shapes of a cell or a sheet.
    fn read_shapes(&mut self, parent: &Element) {
        for child in parent.elements() {
            let text = match &*child.name {
                "annotation" => {
                    format!("[Comment: {}]", self.texts.read_shape(child).replace('\n', " "))
                }
                name if SHAPES.contains(&name) => self.texts.read_shape(child),
                _ => continue,
            };
            if !text.is_empty() {
                self.beside.push(text);
            }
        }
    }
}

/// Returns the name of the style of the cells without one.
fn default_style(element: &Element) -> Option<String> {
    element.attribute("default-cell-style-name").map(short_name)
}

fn repeated(element: &Element, name: &str) -> u32 {
    element.attribute(name).and_then(|it| it.parse().ok()).unwrap_or(1).max(1)
}
