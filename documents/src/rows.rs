//! Rows of tables and of shapes.

/// Returns the text of a cell on one line; rows of a table within it are divided by semicolons.
pub(crate) fn cell_text(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(if text.contains(" | ") { "; " } else { " " })
}

/// Writes a row as a line, unless all of its cells are empty.
pub(crate) fn write_row(cells: &[String], text: &mut String) {
    if cells.iter().any(|cell| !cell.is_empty()) {
        text.push_str(cells.join(" | ").trim_end());
        text.push('\n');
    }
}

/// Sorts shapes by row from above, then from the left. `placed` has the distance of each from the
/// upper and from the left edge; a row has those whose upper edges are at most `same_row` below its
/// first one's.
pub(crate) fn sort_by_rows<T>(mut placed: Vec<((f64, f64), T)>, same_row: f64) -> Vec<T> {
    placed.sort_by(|((one, _), _), ((other, _), _)| one.total_cmp(other));
    let mut row = f64::MIN;
    for ((y, _), _) in &mut placed {
        if *y - row > same_row {
            row = *y;
        }
        *y = row;
    }
    placed.sort_by(|((y, x), _), ((row, left), _)| y.total_cmp(row).then(x.total_cmp(left)));
    placed.into_iter().map(|(_, shape)| shape).collect()
}
