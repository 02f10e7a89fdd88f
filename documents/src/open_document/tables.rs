//! Tables in texts.

use super::Body;
use crate::{
    look::Look,
    rows::{cell_text, write_row},
    xml::Element,
};

/// Most repetitions of a cell.
const MAX_SPAN: usize = 60;

impl Body<'_> {
    /// Writes a table, one row a line. Cells covered by others are empty.
    pub(super) fn write_table(&mut self, table: &Element, text: &mut String) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let outer = std::mem::replace(&mut self.in_cell, true);
        for row in rows(table) {
            let mut cells: Vec<String> = Vec::new();
            for cell in row.elements() {
                if !matches!(&*cell.name, "table-cell" | "covered-table-cell") {
                    continue;
                }
                let mut inner = String::new();
                let look = self.styles.look_of_element(cell, "table-cell", Look::default());
                let background = look.background.unwrap_or(self.background);
                self.with_background(background, |body| body.write_blocks(cell, &mut inner));
                let times = cell
                    .attribute("number-columns-repeated")
                    .and_then(|n| n.parse::<usize>().ok())
                    .unwrap_or(1);
                cells.extend(std::iter::repeat_n(cell_text(&inner), times.clamp(1, MAX_SPAN)));
            }
            write_row(&cells, text);
        }
        self.in_cell = outer;
    }
}

/// Returns the rows of a table, including those in groups and headers.
fn rows(table: &Element) -> Vec<&Element> {
    let mut rows = Vec::new();
    for element in table.elements() {
        match &*element.name {
            "table-row" => rows.push(element),
            "table-header-rows" | "table-rows" | "table-row-group" => {
                rows.extend(self::rows(element));
            }
            _ => {}
        }
    }
    rows
}
